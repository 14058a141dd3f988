"""Cell → the programs of its flows, but for those that come at random (:mod:`fabbbr.job.batches`). Pure.

Instants count nanoseconds from the start of the first flow. One iperf3 server per flow and run: an iperf3
server takes one client at a time, and a fresh one has no history. A flow of given bytes is sent by the
agent's own program instead, for iperf3 would end it early (see :mod:`fabbbr.agent.transfer`); so is UDP
(:mod:`fabbbr.agent.datagrams`), and a video, which iperf3 does not know (:mod:`fabbbr.agent.video`). They
are forks of the agent (:mod:`fabbbr.agent.forked`).
"""

from __future__ import annotations

import re
from typing import TypeAlias

from fabbbr.job.cabling import Cabling
from fabbbr.job.congestion import kernel_name
from fabbbr.job.headroom import longest_answer_ns
from fabbbr.job.records import FlowTask
from fabbbr.model import Cell, Datagrams, Flow, Video
from fabbbr.ports import first_data_port, server_port
from fabbbr.testbed import Testbed
from fabbbr.units import NANOSECONDS_PER_SECOND, TCP_IPV4_HEADER_BYTES
from fabbbr.ways import first_queue

_GRACE_S = 30
_SLOWEST_SHARE = 100
"""A flow given in bytes may run at 1/100 of the bottleneck's rate before it counts as stuck."""

_FIRST_WITH_THREADS = (3, 16)
_LARGEST_BLOCK_BYTES = 131_072
"""iperf3's own, for TCP."""

_REPORT_BYTES = 1400
"""Measured: an iperf3 3.12 server had 1.95 GB after 44 735 s with 32 streams."""


def has_threads(iperf3_version: str) -> bool:
    """Whether this iperf3, by the first line of its ``--version``, has a thread per stream."""
    match = re.search(r"iperf (\d+)\.(\d+)", iperf3_version)
    return match is None or (int(match[1]), int(match[2])) >= _FIRST_WITH_THREADS


def reports_bytes(flow: Flow) -> int:
    """A report per second and stream at either end, which iperf3 holds until the flow is over."""
    seconds = flow.duration.ns // NANOSECONDS_PER_SECOND if flow.duration is not None else 0
    return 2 * flow.streams * seconds * _REPORT_BYTES


def flow_task(cell: Cell, testbed: Testbed, cabling: Cabling, flow: Flow) -> FlowTask:
    """The two programs of ``flow``, for the iperf3 of its receiver."""
    ports = str(server_port(flow.index)), str(first_data_port(flow.index, flows=len(cell.flows)))
    client, server = _programs(cell, cabling.address(flow.receiver), flow, ports)
    version = testbed.tool_of(flow.receiver, "iperf3")
    if flow.of_iperf3 and version is not None and has_threads(version):
        client += ("--length", str(block_bytes(cell, flow)))
    return FlowTask(
        index=flow.index,
        client_node=flow.sender,
        server_node=flow.receiver,
        client_argv=client,
        server_argv=server,
        start_ns=flow.start.ns,
        expected_end_ns=flow.start.ns + (flow.duration.ns if flow.duration is not None else 0),
        deadline_ns=flow.start.ns + longest_ns(cell, flow),
    )


_Ends: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
_Ports: TypeAlias = tuple[str, str]
"""Of the receiver, and the sender's first."""


def _programs(cell: Cell, address: str, flow: Flow, ports: _Ports) -> _Ends:
    """What sends and what receives."""
    if flow.udp is not None:
        return _datagrams(address, flow, ports, flow.udp, longest_answer_ns(cell, flow.rtt))
    if flow.video is not None:
        return _watched(address, flow, ports, flow.video)
    return (_timed if flow.of_iperf3 else _sized)(address, flow, ports)


def block_bytes(cell: Cell, flow: Flow) -> int:
    """What an iperf3 with threads writes and reads at a time: a millisecond at the bottleneck, in segments.

    Its receiver counts a block when the last byte of it is there. With its own 128 KiB, the most that is used
    here, a flow of 1 Mbit/s would be measured in steps of a second. (Without threads it counts what has come,
    and a short block costs four times the CPU time, for it selects and looks at the clock once per block.)
    """
    segment = cell.mtu_bytes - TCP_IPV4_HEADER_BYTES
    in_a_millisecond = first_queue(cell, flow).rate.bps // 8000
    return min(max(in_a_millisecond // segment, 1) * segment, _LARGEST_BLOCK_BYTES)


def _timed(address: str, flow: Flow, ports: _Ports) -> _Ends:
    """The iperf3 client and server of a flow that lasts a given time."""
    port, first = ports
    client = [
        "iperf3", "--client", address, "--port", port, "--version4", "--json", "--zerocopy",
        "--congestion", kernel_name(flow), "--parallel", str(flow.streams), "--cport", first,
        "--time", _whole_seconds(flow),
    ]  # fmt: skip
    if flow.pacing is not None:
        client += ["--fq-rate", str(flow.pacing.bps)]
    return tuple(client), ("iperf3", "--server", "--one-off", "--port", port, "--version4", "--json")


def _sized(address: str, flow: Flow, ports: _Ports) -> _Ends:
    """Sender and receiver of a flow of given bytes."""
    assert flow.size is not None
    port, first = ports
    ends = (
        "--port", port, "--parallel", str(flow.streams), "--cport", first, "--bytes", str(flow.size.bytes),
    )  # fmt: skip
    sender = ["forked", "transfer", "send", *ends, "--address", address, "--congestion", kernel_name(flow)]
    if flow.pacing is not None:
        sender += ["--pacing", str(flow.pacing.bps)]
    return tuple(sender), ("forked", "transfer", "receive", *ends)


def _datagrams(address: str, flow: Flow, ports: _Ports, udp: Datagrams, patience_ns: int) -> _Ends:
    """Sender and receiver of datagrams; one that is a second late cannot keep the rate."""
    assert flow.duration is not None
    program, (port, first) = ("forked", "datagrams"), ports
    ends = ("--port", port, "--payload", str(udp.payload_bytes))
    sender = (
        *program, "send", *ends, "--address", address, "--cport", first,
        "--count", str(udp.count_in(flow.duration)), "--gap-ns", repr(udp.gap_ns),
        "--lateness-ns", str(NANOSECONDS_PER_SECOND),
    )  # fmt: skip
    return sender, (*program, "receive", *ends, "--patience-ns", str(patience_ns))


def _watched(address: str, flow: Flow, ports: _Ports, video: Video) -> _Ends:
    """Server and player of a video."""
    assert flow.duration is not None
    program, (port, first) = ("forked", "video"), ports
    ends = ("--port", port, "--duration-ns", str(flow.duration.ns))
    sender = [
        *program, "send", *ends, "--address", address, "--cport", first, "--congestion", kernel_name(flow),
    ]  # fmt: skip
    if flow.pacing is not None:
        sender += ["--pacing", str(flow.pacing.bps)]
    player = ("--chunk-bytes", str(video.chunk_bytes), "--chunk-ns", str(video.chunk.ns))
    return tuple(sender), (*program, "receive", *ends, *player, "--buffer-ns", str(video.buffer.ns))


def _whole_seconds(flow: Flow) -> str:
    assert flow.duration is not None
    return f"{flow.duration.ns // NANOSECONDS_PER_SECOND}"


def longest_ns(cell: Cell, flow: Flow) -> int:
    """For how long the flow may run before it is given up."""
    grace = _GRACE_S * NANOSECONDS_PER_SECOND + 100 * flow.rtt.ns
    if flow.udp is not None:  # its receiver waits for what may still be on its way
        grace += longest_answer_ns(cell, flow.rtt)
    if flow.duration is not None:
        return flow.duration.ns + grace
    assert flow.size is not None
    ideal = flow.size.bytes * 8 * NANOSECONDS_PER_SECOND // first_queue(cell, flow).rate.bps
    return ideal * _SLOWEST_SHARE * len(cell.flows) + grace

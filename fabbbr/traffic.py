"""Cell → the flows' iperf3 commands, samplers and probes on one timeline. Pure.

Instants count nanoseconds from the start of the first flow. One iperf3 server per flow and run: an iperf3 server
takes one client at a time, and a fresh one has no history.
"""

from __future__ import annotations

from math import ceil

from fabbbr.cabling import Cabling, lay_cables
from fabbbr.configure import (
    configure_commands,
    kernel_name,
    readback_captures,
    stationary_loss,
    step_commands,
    window_bytes,
)
from fabbbr.model import (
    DATA_PORT,
    PORTS_PER_FLOW,
    SERVER_PORT,
    Burst,
    Capture,
    Cell,
    Command,
    Flow,
    FlowTask,
    Job,
    StepTask,
)
from fabbbr.units import ETHERNET_HEADER_BYTES, NANOSECONDS_PER_SECOND

_GRACE_S = 30
_SLOWEST_SHARE = 100
"""A flow given in bytes may run at 1/100 of the bottleneck's rate before it counts as stuck."""
_IP_UDP_HEADER_BYTES = 28
_BURST_PACKETS = 2_000
_FILL_PACKETS = 20_000
_AQM_DRAIN_S = 0.05
_PINGS = 3
_BURST_PORT = 7
_AFTER_ARRIVAL_NS = 2_000
"""A look at the same instant as the arrival could come just before it."""
_HIGHEST_PORT = 65_535


def job(cell: Cell) -> Job:
    """All that the agent has to do for ``cell``."""
    cabling = lay_cables(cell)
    flows = tuple(_flow_task(cell, cabling, flow) for flow in cell.flows)
    hosts = dict.fromkeys(name for flow in cell.flows for name in (flow.sender, flow.receiver))
    return Job(
        nodes=cabling.nodes,
        cables=cabling.cables,
        mtu_bytes=cell.mtu_bytes,
        bottleneck_bps=cell.bottleneck.rate.bps if cell.bottleneck.rate is not None else 0,
        window_bytes=window_bytes(cell),
        configure=configure_commands(cell, cabling),
        readback=readback_captures(cell, cabling),
        pings=_pings(cell, cabling),
        burst=_burst(cell, cabling),
        settle_ns=_settle_ns(cell),
        flows=flows,
        steps=tuple(
            StepTask(at_ns=step.at.ns, commands=step_commands(cell, cabling, step)) for step in cell.steps
        ),
        socket_nodes=tuple(hosts),
        queue_nodes=tuple(node.name for node in cabling.nodes if node.kind != "host"),
        sample_period_ns=cell.sample_period.ns,
        end_ns=max(task.deadline_ns for task in flows),
    )


def _flow_task(cell: Cell, cabling: Cabling, flow: Flow) -> FlowTask:
    port = str(SERVER_PORT + flow.index)
    client = [
        "iperf3", "--client", cabling.address(flow.receiver), "--port", port, "--version4", "--json", "--zerocopy",
        "--congestion", kernel_name(flow.cca), "--parallel", str(flow.streams),
        "--cport", str(DATA_PORT + PORTS_PER_FLOW * flow.index),
    ]  # fmt: skip
    if flow.duration is not None:
        client += ["--time", _whole_seconds(flow)]
    elif flow.size is not None:
        client += ["--bytes", str(ceil(flow.size.bytes / flow.streams))]
    if flow.pacing is not None:
        client += ["--fq-rate", str(flow.pacing.bps)]
    return FlowTask(
        index=flow.index,
        client_node=flow.sender,
        server_node=flow.receiver,
        client_argv=tuple(client),
        server_argv=("iperf3", "--server", "--one-off", "--port", port, "--version4", "--json"),
        start_ns=flow.start.ns,
        expected_end_ns=flow.start.ns + (flow.duration.ns if flow.duration is not None else 0),
        deadline_ns=flow.start.ns + _longest_ns(cell, flow),
    )


def _whole_seconds(flow: Flow) -> str:
    assert flow.duration is not None
    return f"{flow.duration.ns // NANOSECONDS_PER_SECOND}"


def _longest_ns(cell: Cell, flow: Flow) -> int:
    grace = _GRACE_S * NANOSECONDS_PER_SECOND + 100 * flow.rtt.ns
    if flow.duration is not None:
        return flow.duration.ns + grace
    assert flow.size is not None
    rate = cell.bottleneck.rate
    assert rate is not None
    ideal = flow.size.bytes * 8 * NANOSECONDS_PER_SECOND // rate.bps
    return ideal * _SLOWEST_SHARE * len(cell.flows) + grace


def _pings(cell: Cell, cabling: Cabling) -> tuple[Capture, ...]:
    """One ping per pair of hosts that talk, with the frames small: serialisation is then negligible."""
    pairs = dict.fromkeys((flow.sender, flow.receiver) for flow in cell.flows)
    return tuple(
        Capture(
            name=f"ping.{sender}.{receiver}",
            command=Command(
                node=sender,
                argv=("ping", "-n", "-c", str(_PINGS), "-i", "0.2", "-W", "20", cabling.address(receiver)),
                timeout_s=120,
            ),
        )
        for sender, receiver in pairs
    )


def burst_fills_buffer(cell: Cell) -> bool:
    """Whether the probe overfills the bottleneck's buffer: only where that is cheap and tail drop counts bytes."""
    link = cell.bottleneck
    assert link.buffer_bytes is not None
    frame = cell.mtu_bytes + ETHERNET_HEADER_BYTES
    return link.aqm == "taildrop" and link.buffer_bytes // frame <= _FILL_PACKETS


def _burst(cell: Cell, cabling: Cabling) -> Burst:
    link = cell.bottleneck
    assert link.rate is not None
    assert link.buffer_bytes is not None
    assert link.burst_bytes is not None
    frame = cell.mtu_bytes + ETHERNET_HEADER_BYTES
    tokens = link.burst_bytes // frame
    if burst_fills_buffer(cell):
        packets = link.buffer_bytes // frame + 2 * tokens + 20
    else:
        packets = min(_BURST_PACKETS + tokens, link.buffer_bytes // frame + tokens)
    if link.aqm != "taildrop":
        # An AQM must not start to drop: keep the standing time of the burst below CoDel's interval.
        packets = min(packets, tokens + max(8, int(link.rate.bps / 8 * _AQM_DRAIN_S / frame)))
    sender, receiver = _forward_pair(cell)
    ahead_ns = _delay_ahead_ns(cell, sender)
    packets = ceil(packets / (1 - min(_loss_ahead(cell), 0.9)) * (1.2 if _loss_ahead(cell) else 1))
    drain = packets * frame * 8 * NANOSECONDS_PER_SECOND // link.rate.bps
    return Burst(
        sender=sender,
        receiver=receiver,
        receiver_address=cabling.address(receiver),
        packets=packets,
        payload_bytes=cell.mtu_bytes - _IP_UDP_HEADER_BYTES,
        source_port=_HIGHEST_PORT,
        port=_BURST_PORT,
        watch_node=link.a,
        watch_ns=ahead_ns + (_AFTER_ARRIVAL_NS if ahead_ns else 0),
        drain_ns=drain + 2 * cell.flows[0].rtt.ns + NANOSECONDS_PER_SECOND // 10,
    )


def _forward_pair(cell: Cell) -> tuple[str, str]:
    """Sender and receiver of the first flow in the data direction; a reverse flow read backwards will do."""
    first_hosts = {link.a for link in cell.links}
    for flow in cell.flows:
        if flow.sender in first_hosts:
            return flow.sender, flow.receiver
    return cell.flows[0].receiver, cell.flows[0].sender


def _delay_ahead_ns(cell: Cell, sender: str) -> int:
    """One-way delay from ``sender`` to the bottleneck's queue."""
    return sum(link.delay.ns for link in cell.links if link.a == sender and link.delay is not None)


def _loss_ahead(cell: Cell) -> float:
    """Share of the burst that is dropped before it reaches the queue."""
    ahead = [link.loss for link in cell.links if link.loss is not None and link.rate is None]
    return max((stationary_loss(loss) for loss in ahead), default=0.0)


def _settle_ns(cell: Cell) -> int:
    """Silence between probes and flows: long enough for every queue and delay line to be empty."""
    longest = max(flow.rtt.ns for flow in cell.flows)
    return 2 * longest + NANOSECONDS_PER_SECOND // 5

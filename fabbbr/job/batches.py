"""Cell → the programs of its flows that come at random. Pure.

There may be thousands of them, and a program for each would cost a guest a hundred times what their packets
do. So those of one group between the same two hosts share one program at either end, which is
:mod:`fabbbr.agent.batch`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabbbr.job.cabling import Cabling
from fabbbr.job.congestion import kernel_name
from fabbbr.job.flows import longest_ns
from fabbbr.job.records import BatchedFlow, BatchTask
from fabbbr.model import Cell, Flow
from fabbbr.ports import first_data_port, server_port

_LEAD_NS = 50_000_000
"""How long before the first flow its program is started: a fork, of a few milliseconds on a real machine."""


def batch_tasks(cell: Cell, cabling: Cabling) -> tuple[BatchTask, ...]:
    """One for each group of flows that came at random and pair of hosts."""
    alike: dict[tuple[str, str, str], list[Flow]] = {}
    for flow in cell.flows:
        if flow.at_random:
            alike.setdefault((flow.group, flow.sender, flow.receiver), []).append(flow)
    return tuple(
        _task(cell, cabling.address(receiver), index, flows)
        for index, ((_, _, receiver), flows) in enumerate(alike.items())
    )


def _task(cell: Cell, address: str, index: int, flows: Sequence[Flow]) -> BatchTask:
    one = flows[0]
    sender = ["forked", "batch", "send", "--address", address, "--congestion", kernel_name(one)]
    if one.pacing is not None:
        sender += ["--pacing", str(one.pacing.bps)]
    each = tuple(_flow(cell, flow) for flow in flows)
    return BatchTask(
        index=index,
        client_node=one.sender,
        server_node=one.receiver,
        client_argv=tuple(sender),
        server_argv=("forked", "batch", "receive"),
        start_ns=each[0].start_ns - _LEAD_NS,
        expected_end_ns=each[-1].start_ns,
        deadline_ns=max(flow.deadline_ns for flow in each) + _LEAD_NS,
        flows=each,
    )


def _flow(cell: Cell, flow: Flow) -> BatchedFlow:
    assert flow.size is not None
    return BatchedFlow(
        index=flow.index,
        port=server_port(flow.index),
        cport=first_data_port(flow.index, flows=len(cell.flows)),
        parallel=flow.streams,
        bytes=flow.size.bytes,
        start_ns=flow.start.ns,
        deadline_ns=flow.start.ns + longest_ns(cell, flow),
    )

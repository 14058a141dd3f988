"""The least time that a transfer can take through its path: what slowdown is a multiple of.

From the first SYN until the receiver has the last byte: a round trip, the way there, and what its frames take
at the slowest link. Steps meanwhile count as the best of them for it.
"""

from __future__ import annotations

import math

from fabbbr.capacity import OPPORTUNITY_BYTES, Opportunities
from fabbbr.model import Cell, Flow, LinkTrace
from fabbbr.physics import ROUND_TRIPS_OF_A_TRANSFER
from fabbbr.units import TCP_IPV4_HEADER_BYTES, goodput_ceiling
from fabbbr_analysis.ceilings import behind_s
from fabbbr_analysis.measured_cell import MeasuredCell

_NANOSECOND = 1e-9


def least_s(measured: MeasuredCell, flow: Flow, start_s: float, end_s: float) -> float | None:
    """Of a transfer that took from ``start_s`` to ``end_s`` [s]; None without a size or a bottleneck.

    A full token bucket lets a burst pass at once. Through a trace it is what a sender that knows the trace
    would take: its SYN and then each of its packets is there for the first opportunity that is left to it. So
    is the answer to the SYN, where it goes by a trace.
    """
    met = measured.bottlenecks_of(flow)
    if flow.size is None or not met:
        return None
    for link, forward in met:
        if any(_trace_of(measured.cell, link, way) is not None for way in (forward, not forward)):
            return _through_trace_s(measured, flow, link, forward, start_s, end_s)
    return _at_rates_s(measured, flow, start_s, end_s)


def _trace_of(cell: Cell, link: str, forward: bool) -> LinkTrace | None:  # noqa: FBT001 - as in bottlenecks_of
    queue = cell.bottlenecks[link]
    way = queue if forward else queue.own_way_back
    return None if way is None else way.trace


def _at_rates_s(measured: MeasuredCell, flow: Flow, start_s: float, end_s: float) -> float:
    rtt_s = measured.least_rtt_s(flow, start_s, end_s)
    return ROUND_TRIPS_OF_A_TRANSFER * rtt_s + _sent_s(measured, flow, start_s, end_s)


def _sent_s(measured: MeasuredCell, flow: Flow, start_s: float, end_s: float) -> float:
    """What its frames take at the slowest link that has a rate [s]; 0 without one."""
    assert flow.size is not None
    wire_bytes = flow.size.bytes / goodput_ceiling(measured.cell.mtu_bytes)
    taken_s = (
        8 * max(wire_bytes - measured.bucket_bytes(each, start_s, end_s), 0) / each.rate.most(start_s, end_s)
        for each in measured.served(flow)
        if each.way.trace is None
    )
    return max(taken_s, default=0.0)


def _through_trace_s(
    measured: MeasuredCell,
    flow: Flow,
    link: str,
    forward: bool,  # noqa: FBT001 - as in bottlenecks_of
    start_s: float,
    end_s: float,
) -> float:
    """The SYN, its answer and the data, each at the queue of ``link`` that it meets.

    A queue stands in front of its link's delay, so that of the way back is nearer to the receiver by that.
    """
    assert flow.size is not None
    cell, rtt_s = measured.cell, measured.least_rtt_s(flow, start_s, end_s)
    there, back = (_trace_of(cell, link, way) for way in (forward, not forward))
    behind = min(behind_s(cell, measured.ways[flow.index], link), rtt_s / 2)
    own = min(sum(each.delay.seconds for each in cell.links if each.name == link and each.delay), behind)
    before = rtt_s / 2 - behind
    syn_s = _leaves_s(there, start_s + before, 1)
    answered_s = _leaves_s(back, syn_s + 2 * behind - own, 1) + own + before
    ready_s = answered_s + before
    packets = math.ceil(flow.size.bytes / (cell.mtu_bytes - TCP_IPV4_HEADER_BYTES))
    last_s = max(
        _leaves_s(there, ready_s, flow.size.bytes + packets * TCP_IPV4_HEADER_BYTES),
        ready_s + _sent_s(measured, flow, start_s, end_s),
    )
    return last_s + behind - start_s


def _leaves_s(trace: LinkTrace | None, there_s: float, packets_bytes: int) -> float:
    """When so many bytes of packets that are there at ``there_s`` have left [s]; at once without a trace."""
    if trace is None:
        return there_s
    held = Opportunities.of(trace)
    missed = held.by(there_s - _NANOSECOND)
    return held.at(missed + math.ceil(packets_bytes / OPPORTUNITY_BYTES))

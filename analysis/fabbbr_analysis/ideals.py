"""The least time that a transfer can take through its path: what slowdown is a multiple of.

From the first SYN until the receiver has the last byte: a round trip, the way there, and what its frames take
at the slowest link. Steps meanwhile count as the best of them for it.
"""

from __future__ import annotations

import math

from fabbbr.capacity import OPPORTUNITY_BYTES, Opportunities
from fabbbr.model import Flow, LinkTrace
from fabbbr.physics import ROUND_TRIPS_OF_A_TRANSFER
from fabbbr.units import TCP_IPV4_HEADER_BYTES, goodput_ceiling
from fabbbr_analysis.ceilings import behind_s
from fabbbr_analysis.measured_cell import MeasuredCell

_NANOSECOND = 1e-9


def least_s(measured: MeasuredCell, flow: Flow, start_s: float, end_s: float) -> float | None:
    """Of a transfer that took from ``start_s`` to ``end_s`` [s]; None without a size or a bottleneck.

    A full token bucket lets a burst pass at once. Through a trace it is what a sender that knows the trace
    would take: its SYN and then each of its packets is there for the first opportunity that is left to it.
    """
    met = measured.bottlenecks_of(flow)
    if flow.size is None or not met:
        return None
    for link, forward in met:
        trace = measured.bottlenecks[link].trace
        if forward and trace is not None:
            return _through_trace_s(measured, flow, link, trace, start_s, end_s)
    return _at_rates_s(measured, flow, start_s, end_s)


def _at_rates_s(measured: MeasuredCell, flow: Flow, start_s: float, end_s: float) -> float:
    assert flow.size is not None
    wire_bytes = flow.size.bytes / goodput_ceiling(measured.cell.mtu_bytes)
    sent_s = max(
        8 * max(wire_bytes - measured.bucket_bytes(each, start_s, end_s), 0) / each.rate.most(start_s, end_s)
        for each in measured.served(flow)
    )
    return ROUND_TRIPS_OF_A_TRANSFER * measured.least_rtt_s(flow, start_s, end_s) + sent_s


def _through_trace_s(
    measured: MeasuredCell, flow: Flow, link: str, trace: LinkTrace, start_s: float, end_s: float
) -> float:
    assert flow.size is not None
    held, rtt_s = Opportunities.of(trace), measured.least_rtt_s(flow, start_s, end_s)
    behind = min(behind_s(measured.cell, measured.ways[flow.index], link), rtt_s / 2)

    def leaves_s(there_s: float, packets_bytes: int) -> float:
        missed = held.by(there_s - _NANOSECOND)
        return held.at(missed + math.ceil(packets_bytes / OPPORTUNITY_BYTES))

    packets = math.ceil(flow.size.bytes / (measured.cell.mtu_bytes - TCP_IPV4_HEADER_BYTES))
    syn_s = leaves_s(start_s + rtt_s / 2 - behind, 1)
    last_s = leaves_s(syn_s + rtt_s, flow.size.bytes + packets * TCP_IPV4_HEADER_BYTES)
    return last_s + behind - start_s

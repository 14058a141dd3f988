"""Room that must never bind: socket windows of hosts, packets in delay lines. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

from fabbbr.capacity import OPPORTUNITY_BYTES, Opportunities
from fabbbr.model import Bottleneck, Cell, CellLink, LinkWay
from fabbbr.physics import losses_of, stationary_loss
from fabbbr.units import NANOSECONDS_PER_SECOND, Duration, Rate, bdp_bytes

_SMALLEST_FRAME_BYTES = 60
_MINIMUM_WINDOW_BYTES = 4 << 20
_LARGEST_WINDOW_BYTES = (1 << 31) - 1
_PROBING = 1.25
"""How much faster than the rate that it knows a sender tries to be."""
_MOST_REMEMBERED_BYTES = 64 << 20
"""Of payload that comes so. A queue may drain for minutes, and no window should ask for a larger guest."""


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """The most that the links and steps of a cell ask for; looked up once, as there may be thousands."""

    step_rate: Rate
    """Zero without such a step, as are ``step_rtt`` and ``step_buffer_bytes``."""
    slow_rate: Rate | None
    """The slowest that a step makes a link; None without such a step."""
    link_rate: Rate
    step_rtt: Duration
    flow_rtt: Duration
    step_buffer_bytes: int
    link_buffers_bytes: int
    """Of all links together, and of ways back that differ; and what their token buckets let pass at once."""
    held_ns: int
    """How long data may come late and acknowledgements wait for aggregates, on all links together."""
    drained_back_ns: int
    """How long they may stand in ways back with a rate of their own, on all links together."""

    @classmethod
    def of(cls, cell: Cell) -> Extremes:
        rates = [step.rate for step in cell.steps if step.rate is not None]
        return cls(
            step_rate=max(rates, default=Rate(0)),
            slow_rate=min(rates, default=None),
            link_rate=max(_fastest(queue) for queue in cell.queues),
            step_rtt=max((step.rtt for step in cell.steps if step.rtt is not None), default=Duration(0)),
            flow_rtt=max(flow.rtt for flow in cell.flows),
            step_buffer_bytes=max((step.buffer_bytes or 0 for step in cell.steps), default=0),
            link_buffers_bytes=sum(queue.buffer_bytes + (queue.burst_bytes or 0) for queue in cell.queues),
            held_ns=sum(map(held_ns, cell.links)),
            drained_back_ns=sum(map(_drained_back_ns, cell.bottlenecks.values())),
        )

    def netem_limit(self, link: CellLink) -> int:
        """Packets that can stand in the delay line at once, were all of them the smallest: it can never bind.

        A delay line behind no bottleneck of its own is fed at most at the fastest rate of the cell.
        """
        fastest = max(self.link_rate, self.step_rate)
        longest = max(link.delay or Duration(0), self.step_rtt)
        ways = link.bottleneck.distinct if link.bottleneck is not None else ()
        if any(way.trace is not None for way in ways):
            # What its fastest second brings may come at once.
            longest = max(longest, Duration(NANOSECONDS_PER_SECOND))
        standing = bdp_bytes(fastest, Duration(longest.ns + held_ns(link))) / _SMALLEST_FRAME_BYTES
        return 1000 + ceil(standing + self.link_buffers_bytes / _SMALLEST_FRAME_BYTES)


def held_ns(link: CellLink) -> int:
    """How long a packet that comes late, and then its acknowledgement, may be held beside its delay."""
    late = link.reordering.late.ns if link.reordering is not None else 0
    return late + (link.ack_aggregation.most.ns if link.ack_aggregation is not None else 0)


def _fastest(queue: Bottleneck) -> Rate:
    """Its rate, or that of the fastest second of its trace."""
    return queue.rate if queue.trace is None else Rate(queue.trace.most_at_once * OPPORTUNITY_BYTES * 8)


def window_bytes(cell: Cell) -> int:
    """Socket buffer limit of every host, or the largest that the kernel takes.

    Two bytes for each of payload, since Linux counts memory. Payload: 2 BDP, the buffer and a token bucket
    of the experiment's own in flight, and
    what is sent while acknowledgements stand in a way back of its own, within bounds; as much again, or a BDP
    for each time that some packet of a BDP is likely lost again: what arrived waits for it. Where the rate
    falls, what is sent at the old rate while a packet stands in a queue that drains at the new one, within
    bounds.
    """
    most = Extremes.of(cell)
    payload = max(_in_flight_and_waiting_bytes(cell, queue, most) for queue in cell.queues)
    return min(max(int(2 * payload), _MINIMUM_WINDOW_BYTES), _LARGEST_WINDOW_BYTES)


def _in_flight_and_waiting_bytes(cell: Cell, queue: Bottleneck, most: Extremes) -> float:
    rate = max(_fastest(queue), most.step_rate)
    rtt = max(most.flow_rtt, most.step_rtt)
    bdp = bdp_bytes(rate, Duration(rtt.ns + most.held_ns))
    buffer_bytes = max(queue.buffer_bytes, most.step_buffer_bytes) + (queue.burst_bytes or 0)
    unheard = float(bdp_bytes(rate, Duration(most.drained_back_ns)))
    in_flight = float(2 * bdp + buffer_bytes) + min(unheard, _MOST_REMEMBERED_BYTES)
    if most.slow_rate is not None and most.slow_rate < rate:
        drained_ns = buffer_bytes * 8 * NANOSECONDS_PER_SECOND // most.slow_rate.bps
        remembered = _PROBING * float(bdp_bytes(rate, Duration(rtt.ns + most.held_ns + drained_ns)))
        in_flight = max(in_flight, min(remembered, _MOST_REMEMBERED_BYTES))
    return in_flight + max(in_flight, float(_rounds_to_repair(cell, float(bdp / cell.mtu_bytes)) * bdp))


def _rounds_to_repair(cell: Cell, packets: float) -> int:
    """How often the unluckiest of ``packets`` is lost: packets × p^rounds falls to one."""
    lossy = [stationary_loss(loss) for _, loss in losses_of(cell)]
    worst = max((loss for loss in lossy if 0 < loss < 1), default=0.0)
    return ceil(log(packets) / -log(worst)) if worst and packets > 1 else 0


def longest_answer_ns(cell: Cell, rtt: Duration) -> int:
    """How long an answer can take that comes at all, and a second: behind full queues, both ways.

    Rates and buffers are those that the steps leave at the worst, opportunities those that are longest in
    coming.
    """
    rates, buffers, round_trips = {}, {}, [rtt.ns]
    for name, queue in cell.bottlenecks.items():
        rates[name], buffers[name] = queue.rate.bps, queue.buffer_bytes
    for step in cell.steps:
        if step.rate is not None:
            rates[step.link] = min(rates[step.link], step.rate.bps)
        if step.buffer_bytes is not None:
            buffers[step.link] = max(buffers[step.link], step.buffer_bytes)
        if step.rtt is not None:
            round_trips.append(rtt.ns + step.rtt.ns)
    drained_ns = 0
    for name, queue in cell.bottlenecks.items():
        there_ns = _drained_ns(queue, buffers[name], rates[name])
        drained_ns += there_ns + (there_ns if queue.reverse is None else _drained_back_ns(queue))
    return max(round_trips) + drained_ns + sum(map(held_ns, cell.links)) + NANOSECONDS_PER_SECOND


def _drained_back_ns(queue: Bottleneck) -> int:
    back = queue.reverse
    return 0 if back is None else _drained_ns(back, back.buffer_bytes, back.rate.bps)


def _drained_ns(way: LinkWay, queued_bytes: int, bps: int) -> int:
    """At a rate; or by the opportunities of a trace where they come the slowest, and one that has begun."""
    if way.trace is not None:
        count = ceil(queued_bytes / OPPORTUNITY_BYTES) + 1
        return round(Opportunities.of(way.trace).longest_s(count) * NANOSECONDS_PER_SECOND)
    return queued_bytes * 8 * NANOSECONDS_PER_SECOND // bps

"""What physics alone decides: bursts, losses, CUBIC's window, what never does what its words say."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from fabbbr.capacity import RateOverTime
from fabbbr.model import AQM_TARGETS, Cell, CellLink, Flow, LinkWay, Loss
from fabbbr.units import (
    ETHERNET_HEADER_BYTES,
    NANOSECONDS_PER_SECOND,
    Duration,
    Rate,
    goodput_ceiling,
)


def burst_bytes(rate: Rate, *, timer_hz: int, frame_bytes: int) -> int:
    """The least TBF bucket that sustains ``rate``: what it sends in one tick, and at least one frame.

    tc-tbf(8): "burst" must hold rate / HZ.

    >>> burst_bytes(Rate.parse("10 Gbit/s"), timer_hz=1000, frame_bytes=1514)
    1250000
    >>> burst_bytes(Rate.parse("10 Mbit/s"), timer_hz=1000, frame_bytes=1514)
    1514
    """
    return max(-(-rate.bps // (8 * timer_hz)), frame_bytes)


def bucket_bytes(way: LinkWay, rate: Rate, *, timer_hz: int, frame_bytes: int) -> int:
    """What the token bucket of a bottleneck holds at ``rate``: as asked, or no more than it needs."""
    if way.burst_bytes is not None:
        return way.burst_bytes
    return burst_bytes(rate, timer_hz=timer_hz, frame_bytes=frame_bytes)


ROUND_TRIPS_OF_A_TRANSFER = 1.5
"""At least: its SYN, the answer, and the way of its last byte."""


class Chain(NamedTuple):
    """A link that is good or bad, by its chances per packet (Gilbert 1960, Elliott 1963; ``gemodel``).

    It is bad for p / (p + r) of all packets, and each time for 1 / r of them on average.
    """

    goes_bad: float
    """p."""
    recovers: float
    """r."""
    lost_in_bad: float
    """1 - h."""
    lost_in_good: float
    """1 - k."""


def chain_of(loss: Loss) -> Chain | None:
    """The chain that loses as asked; None where packets are lost independently.

    >>> [round(chance, 6) for chance in chain_of(Loss(rate="1 %", model="bursts", burst=10))]
    [0.00101, 0.1, 1.0, 0.0]
    """
    share = loss.rate.value
    if loss.model == "random":
        return None
    if loss.model == "bursts":
        assert loss.burst is not None
        odds = share / (1 - share) if share < 1 else math.inf
        return Chain(odds / loss.burst, 1 / loss.burst, 1.0, 0.0)
    return Chain(
        goes_bad=share,
        recovers=loss.recovery.value if loss.recovery else 1.0,
        lost_in_bad=loss.loss_in_bad.value if loss.loss_in_bad else 1.0,
        lost_in_good=loss.loss_in_good.value if loss.loss_in_good else 0.0,
    )


def stationary_loss(loss: Loss) -> float:
    """Share of the packets lost in the long run: as asked, or Gilbert–Elliott's mixture of two states."""
    chain = chain_of(loss)
    if chain is None or loss.model == "bursts":
        return loss.rate.value
    p, r, in_bad, in_good = chain
    bad = p / (p + r) if p + r else 0.0
    return bad * in_bad + (1 - bad) * in_good


def loses(loss: Loss | None) -> bool:
    """Whether any packet may be lost."""
    return loss is not None and stationary_loss(loss) > 0


def losses_of(cell: Cell) -> Iterator[tuple[str, Loss]]:
    """Link and what of its data is lost, at first and by steps; each loss of a link once."""
    at_first = [(link.name, link.loss) for link in cell.links]
    later = [(step.link, step.loss) for step in cell.steps]
    yield from dict.fromkeys((name, loss) for name, loss in at_first + later if loss is not None)


def mean_burst(loss: Loss) -> float | None:
    """For how many packets a bad link stays bad on average; None where it is never bad, or for ever."""
    chain = chain_of(loss)
    return 1 / chain.recovers if chain is not None and chain.recovers else None


def loss_in_words(loss: Loss) -> str:
    """How much is lost, and how many in a row.

    >>> loss_in_words(Loss(rate="0.02 %", model="gilbert_elliott", recovery="20 %"))
    '0.0999 % in bursts of 5'
    """
    share = f"{100 * stationary_loss(loss):.3g} %" if loss.model == "gilbert_elliott" else str(loss.rate)
    burst = mean_burst(loss)
    return share if burst is None else f"{share} in bursts of {burst:.3g}"


def correlated_spread(loss: Loss) -> float:
    """Standard deviation relative to independent packets, of a two-state chain with correlation 1 - p - r."""
    chain = chain_of(loss)
    correlation = 0.0 if chain is None else 1 - chain.goes_bad - chain.recovers
    return math.sqrt((1 + correlation) / max(1 - correlation, 1e-9)) if correlation > 0 else 1.0


CUBIC_C = 0.4
CUBIC_BETA = 0.7
CUBIC_GAIN = (CUBIC_C * (3 + CUBIC_BETA) / (4 * (1 - CUBIC_BETA))) ** 0.25


def cubic_window_segments(*, rtt_s: float, loss: float) -> float:
    """Average window of CUBIC: larger of its response function and Reno's (RFC 9438, 5.1 and 4.3).

    (C (3 + β) / (4 (1 - β)))^¼ RTT^¾ / p^¾ with C = 0.4 and β = 0.7, at least √(1.5 / p).

    >>> round(cubic_window_segments(rtt_s=0.1, loss=1e-4), 1)
    187.4
    """
    window: float = CUBIC_GAIN * (rtt_s / loss) ** 0.75
    return max(window, math.sqrt(1.5 / loss))


def end_of(flows: Sequence[Flow], links: Sequence[CellLink]) -> Duration:
    """When the last flow ends; flows with a size are taken to use the slowest bottleneck one by one.

    In the order of their starts: it is idle while all that have started are over.
    """
    rate = min(way.rate for link in links if link.bottleneck is not None for way in link.bottleneck.of_data)
    timed = [flow.start.ns + flow.duration.ns for flow in flows if flow.duration is not None]
    sized = sorted((flow.start.ns, flow.size.bytes) for flow in flows if flow.size is not None)
    busy_from = bits = end = 0
    for start, size in sized:
        if start > end:
            busy_from, bits = start, 0
        bits += 8 * size
        end = busy_from + bits * NANOSECONDS_PER_SECOND // rate.bps
    return Duration(max([*timed, end]))


def payload_share(flow: Flow, mtu_bytes: int) -> float:
    """The share of a tc rate that the flow's payload can fill: of TCP in full packets, of UDP in its own."""
    if flow.udp is None:
        return goodput_ceiling(mtu_bytes)
    return flow.udp.payload_bytes / (flow.udp.packet_bytes + ETHERNET_HEADER_BYTES)


def _acts_after(queue: LinkWay) -> Duration | None:
    """How long packets wait before an AQM drops or marks one; None where that is not known.

    CoDel's target (RFC 8289), and half of PIE's, up to which Linux drops none early until its probability is
    20 % (RFC 8033, 4.1). Those with ``fq_`` and CAKE time the packets of each flow apart, and RED goes by
    bytes.
    """
    if queue.aqm not in ("codel", "pie"):
        return None
    target = queue.aqm_target or AQM_TARGETS[queue.aqm]
    return Duration(target.ns // 2) if queue.aqm == "pie" else target


class IdleAqm(NamedTuple):
    """An AQM that drops as tail drop does, for its buffer is full before it acts."""

    aqm: str
    acts_after: Duration
    full_s: float
    """How long the last packet of a full buffer waits [s]."""


def acts_after_in_words(idle: Collection[IdleAqm]) -> str:
    """The waits after which they act, or the shortest and the longest."""
    waits = [one.acts_after for one in idle]
    return " to ".join(dict.fromkeys(map(str, (min(waits), max(waits)))))


def idle_aqms(cells: Iterable[Cell]) -> dict[str, dict[str, IdleAqm]]:
    """AQM → condition → why it never acts there, whatever comes.

    A full buffer drains in 8 × buffer / rate, at the lowest rate and with the largest buffer that steps set.
    """
    found: dict[str, dict[str, IdleAqm]] = {}
    for condition, cell in {cell.condition: cell for cell in cells}.items():
        for idle in _idle_of(cell):
            found.setdefault(idle.aqm, {})[condition] = idle
    return found


def _idle_of(cell: Cell) -> Iterator[IdleAqm]:
    if cell.offloads:  # limits are counted in packets, of which one may be as long as 45
        return
    for link, queue in cell.bottlenecks.items():
        own = [step.buffer_bytes for step in cell.steps if step.link == link]
        largest = max(queue.buffer_bytes, *(size or 0 for size in own), 0)
        yield from _idle(queue, largest, min(RateOverTime.of(cell, link).bps))
        if queue.reverse is not None:
            yield from _idle(queue.reverse, queue.reverse.buffer_bytes, queue.reverse.rate.bps)


def _idle(queue: LinkWay, buffer_bytes: int, bps: int) -> Iterator[IdleAqm]:
    acts_after, full_s = _acts_after(queue), 8 * buffer_bytes / bps
    marks_after = queue.ce_threshold
    marks = marks_after is not None and 0 < marks_after.seconds <= full_s
    if acts_after is not None and full_s < acts_after.seconds and not marks:
        yield IdleAqm(queue.aqm, acts_after, full_s)


def without_marks(cells: Iterable[Cell]) -> list[str]:
    """Conditions in which DCTCP runs and no packet can be marked: Linux does Reno then (``dctcp_reno``)."""
    found = (cell for cell in cells if not cell.ecn and "dctcp" in {flow.cca for flow in cell.flows})
    return list(dict.fromkeys(cell.condition for cell in found))


_MOST_TIMER_HZ = 1000
"""Of Linux: a kernel with fewer ticks needs larger buckets."""


def deep_buckets(cells: Iterable[Cell]) -> dict[str, tuple[int, int]]:
    """Condition → bytes of a token bucket that holds what its path does and more, and of the path.

    Of those that nobody asked for: on round trips of a millisecond and less, what a kernel's ticks need lets
    a whole window pass at the speed of the access links.
    """
    found: dict[str, tuple[int, int]] = {}
    # A super-packet of 64 kB passes at once in any case.
    for cell in (each for each in cells if not each.offloads):
        for queue in cell.bottlenecks.values():
            needs = burst_bytes(queue.rate, timer_hz=_MOST_TIMER_HZ, frame_bytes=cell.frame_bytes)
            asked = queue.burst_bytes is not None or queue.trace_name is not None
            if not asked and needs > cell.frame_bytes and needs >= queue.bdp_bytes:
                found[cell.condition] = max(found.get(cell.condition, (0, 0)), (needs, queue.bdp_bytes))
    return found

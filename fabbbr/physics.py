"""What physics alone decides: bursts, losses, CUBIC's window, and when a flow that fills its link is over."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from fabbbr.model import Cell, CellLink, Flow, Loss
from fabbbr.units import NANOSECONDS_PER_SECOND, Duration, Rate


def burst_bytes(rate: Rate, *, timer_hz: int, frame_bytes: int) -> int:
    """The least TBF bucket that sustains ``rate``: what it sends in one tick, and at least one frame.

    tc-tbf(8): "burst" must hold rate / HZ.

    >>> burst_bytes(Rate.parse("10 Gbit/s"), timer_hz=1000, frame_bytes=1514)
    1250000
    >>> burst_bytes(Rate.parse("10 Mbit/s"), timer_hz=1000, frame_bytes=1514)
    1514
    """
    return max(-(-rate.bps // (8 * timer_hz)), frame_bytes)


OPPORTUNITY_BYTES = 1500
"""What passes at one opportunity of a link trace, of IP packets."""


def opportunity_s(rate: Rate) -> float:
    """Seconds from one opportunity to the next where they are even and make up ``rate``.

    >>> opportunity_s(Rate.parse("12 Mbit/s"))
    0.001
    """
    return OPPORTUNITY_BYTES * 8 / rate.bps


def stationary_loss(loss: Loss) -> float:
    """Long-run loss of the model: the rate itself, or Gilbert–Elliott's mixture of its two states."""
    if loss.model == "random":
        return loss.rate.value
    p, r = loss.rate.value, (loss.recovery.value if loss.recovery else 1.0)
    bad = p / (p + r) if p + r else 0.0
    in_bad = loss.loss_in_bad.value if loss.loss_in_bad else 1.0
    in_good = loss.loss_in_good.value if loss.loss_in_good else 0.0
    return bad * in_bad + (1 - bad) * in_good


def correlated_spread(loss: Loss) -> float:
    """Standard deviation relative to independent packets, of a two-state chain with correlation 1 - p - r."""
    p, r = loss.rate.value, (loss.recovery.value if loss.recovery else 1.0)
    correlation = 1 - p - r
    return sqrt((1 + correlation) / max(1 - correlation, 1e-9)) if correlation > 0 else 1.0


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
    return max(window, sqrt(1.5 / loss))


def going_back(cell: Cell) -> frozenset[int]:
    """The flows whose data crosses some bottleneck from ``b`` to ``a``: from behind it to before it."""
    behind = [_behind(link, cell.links) for link in cell.links if link.bottleneck is not None]
    return frozenset(
        flow.index
        for flow in cell.flows
        if any(flow.sender in nodes and flow.receiver not in nodes for nodes in behind)
    )


def _behind(cut: CellLink, links: Sequence[CellLink]) -> set[str]:
    """What hangs on the ``b`` of a link when that is cut: networks are trees."""
    found: set[str] = set()
    waiting = [cut.b]
    while waiting:
        node = waiting.pop()
        found.add(node)
        ends = ((link.a, link.b) for link in links if link != cut and node in (link.a, link.b))
        waiting += {end for pair in ends for end in pair} - found
    return found


def end_of(flows: Sequence[Flow], links: Sequence[CellLink]) -> Duration:
    """When the last flow ends; flows with a size are taken to use the slowest bottleneck one by one.

    In the order of their starts: it is idle while all that have started are over.
    """
    rate = min(link.bottleneck.rate for link in links if link.bottleneck is not None)
    timed = [flow.start.ns + flow.duration.ns for flow in flows if flow.duration is not None]
    sized = sorted((flow.start.ns, flow.size.bytes) for flow in flows if flow.size is not None)
    busy_from = bits = end = 0
    for start, size in sized:
        if start > end:
            busy_from, bits = start, 0
        bits += 8 * size
        end = busy_from + bits * NANOSECONDS_PER_SECOND // rate.bps
    return Duration(max([*timed, end]))


def capacity_bytes(cell: Cell, link: str, end: Duration) -> float:
    """What the bottleneck of ``link`` can send until ``end``: the integral of its rate, steps included."""
    changes = [(Duration(0), cell.bottlenecks[link].rate)]
    changes += [(step.at, step.rate) for step in cell.steps if step.link == link and step.rate is not None]
    until = [at for at, _ in changes[1:]] + [end]
    bits = sum(rate.bps * max(stop.ns - at.ns, 0) for (at, rate), stop in zip(changes, until, strict=True))
    return bits / (8 * NANOSECONDS_PER_SECOND)

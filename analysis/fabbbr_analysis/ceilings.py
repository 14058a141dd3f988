"""What a bottleneck could have carried while flows ran: the most that goodput can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from fabbbr.capacity import RateOverTime, capacity_of, filled_anew_s, way_of
from fabbbr.model import Cell, LinkWay
from fabbbr.physics import bucket_bytes
from fabbbr.units import Rate
from fabbbr_analysis.arrivals import joined


def most_bps(
    cell: Cell,
    link: str,
    spans: Iterable[tuple[float, float]],
    *,
    timer_hz: int,
    reverse: bool = False,
) -> float | None:
    """The most that a bottleneck lets through in the spans [bit/s, of frames]; None when they are empty.

    ``spans`` are when flows could fill it, in seconds of the cell's clock there; they may overlap.
    A token bucket counts as often as it can be full: at first, as far as pauses fill it, and after each step
    that changes its rate or its buffer. One that no experiment asks for is as large as its kernel needs,
    which has ``timer_hz`` ticks a second.
    """
    stretches = joined(spans)
    seconds = sum(end - start for start, end in stretches)
    if seconds <= 0:
        return None
    capacity = capacity_of(cell, link, reverse=reverse)
    bits = sum(capacity.bits(*each) for each in stretches)
    if way_of(cell, link, reverse=reverse).trace is None:
        bits += 8 * _stored_bytes(cell, link, stretches, timer_hz=timer_hz, reverse=reverse)
    return bits / seconds


def _stored_bytes(
    cell: Cell, link: str, stretches: Sequence[tuple[float, float]], *, timer_hz: int, reverse: bool
) -> float:
    """What the token bucket of a bottleneck gives beside its rate, in stretches that do not overlap."""
    way, rate = way_of(cell, link, reverse=reverse), RateOverTime.of(cell, link, reverse=reverse)

    def full(at_s: float) -> int:
        return held_bytes(cell, way, rate, at_s, at_s, timer_hz=timer_hz)

    anew = (at_s for at_s in _anew_s(cell, link, reverse=reverse) if _within(at_s, stretches))
    pauses = ((end_s, start_s) for (_, end_s), (start_s, _) in pairwise(stretches))
    return (
        full(stretches[0][0])
        + sum(min(rate.bits(*pause) / 8, full(pause[1])) for pause in pauses)
        + sum(full(at_s) for at_s in anew)
    )


def held_bytes(
    cell: Cell, way: LinkWay, rate: RateOverTime, start_s: float, end_s: float, *, timer_hz: int
) -> int:
    """The most that the token bucket of one way through a bottleneck holds between two instants.

    With offloads it stays while the rate falls (``fabbbr.job.qdiscs.tbf_line``).
    """
    most = Rate(rate.most(0.0 if cell.offloads else start_s, end_s))
    return bucket_bytes(way, most, timer_hz=timer_hz, frame_bytes=cell.frame_bytes)


def _within(at_s: float, stretches: Iterable[tuple[float, float]]) -> bool:
    return any(start < at_s < end for start, end in stretches)


def _anew_s(cell: Cell, link: str, *, reverse: bool) -> frozenset[float]:
    """When steps fill its token bucket; they change no way back that is of its own."""
    of_its_own = reverse and cell.bottlenecks[link].reverse is not None
    return frozenset() if of_its_own else filled_anew_s(cell, link)


def behind_s(cell: Cell, way: Iterable[str], link: str) -> float:
    """Propagation from a link of a flow's way to its receiver [s]: what arrives left it so much earlier.

    That before any step of the RTT.
    """
    names = list(way)
    rest = frozenset(names[names.index(link) :])
    return sum(each.delay.seconds for each in cell.links if each.name in rest and each.delay is not None)

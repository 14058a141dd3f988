"""What a bottleneck could have carried while flows ran: the most that goodput can be."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from fabbbr.capacity import RateOverTime, capacity_of, filled_anew_s, way_of
from fabbbr.model import Cell
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
    A token bucket that the experiment asks for counts as often as it can be full: at first, as far as pauses
    fill it, and after each step that changes its rate or its buffer. One that is as large as its kernel
    needs, which has ``timer_hz`` ticks a second, counts after such steps alone.
    """
    stretches = joined(spans)
    seconds = sum(end - start for start, end in stretches)
    if seconds <= 0:
        return None
    capacity = capacity_of(cell, link, reverse=reverse)
    bits = sum(capacity.bits(*each) for each in stretches)
    anew = sorted(at_s for at_s in _anew_s(cell, link, reverse=reverse) if _within(at_s, stretches))
    way = way_of(cell, link, reverse=reverse)
    if way.burst_bytes is not None:
        pauses = ((before[1], after[0]) for before, after in pairwise(stretches))
        filled = sum(min(capacity.bits(*pause) / 8, way.burst_bytes) for pause in pauses)
        bits += 8 * (way.burst_bytes * (1 + len(anew)) + filled)
    elif anew:
        rate = RateOverTime.of(cell, link, reverse=reverse)
        bits += 8 * sum(
            bucket_bytes(way, Rate(rate.at(at_s)), timer_hz=timer_hz, frame_bytes=cell.frame_bytes)
            for at_s in anew
        )
    return bits / seconds


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

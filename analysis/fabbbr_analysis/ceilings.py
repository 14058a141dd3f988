"""What a bottleneck could have carried while flows ran: the most that goodput can be."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from fabbbr.capacity import Capacity, capacity_of, filled_anew_s, way_of
from fabbbr.model import Cell
from fabbbr_analysis.arrivals import joined


def most_bps(
    cell: Cell, link: str, spans: Iterable[tuple[float, float]], *, reverse: bool = False
) -> float | None:
    """The most that a bottleneck lets through in the spans [bit/s, of frames]; None when they are empty.

    ``spans`` are when flows could fill it, in seconds of the cell's clock there; they may overlap.
    A token bucket that the experiment asks for counts as often as it can be full: at first, as far as pauses
    fill it, and after each step that changes its rate or its buffer.
    """
    stretches = joined(spans)
    seconds = sum(end - start for start, end in stretches)
    if seconds <= 0:
        return None
    capacity = capacity_of(cell, link, reverse=reverse)
    bits = sum(capacity.bits(*each) for each in stretches)
    return (bits + 8 * _stored_bytes(cell, link, stretches, capacity, reverse=reverse)) / seconds


def _stored_bytes(
    cell: Cell, link: str, stretches: list[tuple[float, float]], capacity: Capacity, *, reverse: bool
) -> float:
    burst_bytes = way_of(cell, link, reverse=reverse).burst_bytes
    if burst_bytes is None:
        return 0.0
    pauses = ((before[1], after[0]) for before, after in pairwise(stretches))
    filled = sum(min(capacity.bits(*pause) / 8, burst_bytes) for pause in pauses)
    of_its_own = reverse and cell.bottlenecks[link].reverse is not None
    anew_s = frozenset() if of_its_own else filled_anew_s(cell, link)
    anew = sum(start < at_s < end for at_s in anew_s for start, end in stretches)
    return burst_bytes * (1 + anew) + filled


def behind_s(cell: Cell, way: Iterable[str], link: str) -> float:
    """Propagation from a link of a flow's way to its receiver [s]: what arrives left it so much earlier.

    That before any step of the RTT.
    """
    names = list(way)
    rest = frozenset(names[names.index(link) :])
    return sum(each.delay.seconds for each in cell.links if each.name in rest and each.delay is not None)

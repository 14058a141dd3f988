"""Which figure comes first, which stand open, and which are folded away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fabbbr_analysis.figures.catalogue import changes_over_time
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.report import within
from fabbbr_analysis.report.slots import Slot, grid_slots, metric_slots, overview_slots

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

MOST_OPEN = 6
"""Figures of a whole page that are drawn before a reader asks for more."""
_METRICS_FIRST = 3


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of one experiment."""

    first: Slot | None
    """Under the headline; None where other experiments have used up what stands open."""
    open: tuple[Slot, ...]
    folded: tuple[Slot, ...]


def ordered(run_set: RunSet, palette: Palette, slug: str) -> list[Slot]:
    """Return all figures of an experiment, the one that answers its question first.

    Where something changes while flows run, that is what happened over time; where flows deliver a given
    number of bytes, how long they took; else a metric over what was varied, beside what a paper has of it.
    """
    metrics = [
        *grid_slots(run_set, palette, slug),
        *overview_slots(run_set, palette, slug),
        *metric_slots(run_set, palette, slug),
    ]
    over_time = within.over_time_slot(run_set, palette, slug)
    completion = within.completion_slot(run_set, palette, slug)
    by_size = within.completion_by_size_slot(run_set, palette, slug)
    estimates = within.estimates_slot(run_set, palette, slug)
    delays = within.delays_slot(run_set, palette, slug)
    if changes_over_time(run_set):
        found = [
            over_time,
            completion,
            by_size,
            *metrics[:_METRICS_FIRST],
            estimates,
            *metrics[_METRICS_FIRST:],
        ]
    else:
        found = [
            completion,
            by_size,
            *metrics[:_METRICS_FIRST],
            over_time,
            *metrics[_METRICS_FIRST:],
            estimates,
        ]
    found += [delays, *within.distribution_slots(run_set, palette, slug)]
    return [slot for slot in found if slot is not None]


def arranged(experiments: Sequence[Sequence[Slot]]) -> list[Figures]:
    """Share out what may stand open on a page: the first of each experiment, then the second of each."""
    turns = sorted((turn, place) for place, slots in enumerate(experiments) for turn in range(len(slots)))[
        :MOST_OPEN
    ]
    shares = [sum(place == own for _, own in turns) for place in range(len(experiments))]
    return [_figures(slots, share) for slots, share in zip(experiments, shares, strict=True)]


def _figures(slots: Sequence[Slot], share: int) -> Figures:
    first = replace(slots[0], wide=True) if share else None
    return Figures(first=first, open=in_pairs(slots[1:share]), folded=in_pairs(slots[share:]))


def in_pairs(slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """Give the width of the page to a figure that would stand alone in its row."""
    found: list[Slot] = []
    half = False
    for place, slot in enumerate(slots):
        following = slots[place + 1] if place + 1 < len(slots) else None
        alone = not half and (following is None or following.wide)
        found.append(replace(slot, wide=True) if alone else slot)
        half = not (slot.wide or alone or half)
    return tuple(found)

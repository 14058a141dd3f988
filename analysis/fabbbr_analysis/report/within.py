"""Places on the page for what samples show: what happened over time, and how it is distributed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from fabbbr_analysis.figures import by_size, delays, distribution, estimates, timeline
from fabbbr_analysis.figures.catalogue import Point, points, points_beside
from fabbbr_analysis.figures.events import Event, events
from fabbbr_analysis.figures.measures import in_a_sentence
from fabbbr_analysis.figures.sampling import POINTS_PER_TRACE
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.report.slots import Option, Slot, embed
from fabbbr_analysis.wording import listing, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_POINT_BUDGET = 100_000
"""Samples of time series in one experiment's section: about 1 MB of page."""
_FEWEST_POINTS = 200
_MOST_EVENTS_TOLD = 8


def over_time_slot(run_set: RunSet, palette: Palette, prefix: str) -> Slot | None:
    """Return the figure of runs over time."""
    here = points(run_set)
    limit = _limit(run_set, here)
    chosen = timeline.CAPTION_OF_ONE if run_set.shares_draws else timeline.CAPTION
    drawn = [
        (point.label, timeline.over_time(run_set, point.representatives, palette=palette, limit=limit))
        for point in here
    ]
    return _slot(
        drawn,
        slot_id=f"{prefix}-over-time",
        title="Inside a run",
        caption=f"{chosen}{_what_is_drawn_together(run_set)}{_what_happens(run_set)}",
        wide=True,
    )


def _what_is_drawn_together(run_set: RunSet) -> str:
    cells = run_set.plan.values()
    groups = dict.fromkeys(each.group for cell in cells for each in cell.arrivals)
    if not groups:
        return ""
    named = listing(list(groups))
    return (
        f" Flows that come at random ({named}) are one curve: all that they get, and the mean of their RTT."
    )


def _what_happens(run_set: RunSet) -> str:
    """Say what the marks stand for, where they are the same in all cells."""
    told = {tuple(event for event in events([cell]) if event.text) for cell in run_set.plan.values()}
    if len(told) != 1:
        return " Dotted lines mark steps and starts." if any(told) else ""
    (common,) = told
    if not common:
        return ""
    said = listing([_in_words(event) for event in common[:_MOST_EVENTS_TOLD]])
    return f" Dotted lines: {said}{' …' if len(common) > _MOST_EVENTS_TOLD else '.'}"


def _in_words(event: Event) -> str:
    return tie(f"{event.text} at {event.at_s:g} s")


def estimates_slot(run_set: RunSet, palette: Palette, prefix: str) -> Slot | None:
    """Return the figure of what BBR believes; None without a BBR."""
    here = points(run_set)
    limit = _limit(run_set, here)
    drawn = [
        (
            point.label,
            estimates.bandwidth_estimates(run_set, point.cell_ids, palette=palette, limit=limit),
        )
        for point in here
    ]
    return _slot(
        drawn,
        slot_id=f"{prefix}-estimates",
        title="What BBR believes the bottleneck's rate to be",
        caption=estimates.caption(run_set),
        wide=True,
    )


def delays_slot(run_set: RunSet, palette: Palette, prefix: str) -> Slot | None:
    """Return the figure of how long packets stood in the queue; None where none was timed."""
    drawn = [
        (point.label, delays.queue_delays(run_set, point.cell_ids, palette=palette))
        for point in points(run_set)
    ]
    return _slot(
        drawn,
        slot_id=f"{prefix}-queue-delays",
        title="How long packets stand in the queue",
        caption=delays.CAPTION,
        wide=True,
    )


def completion_slot(run_set: RunSet, palette: Palette, prefix: str) -> Slot | None:
    """Return the distribution of completion times; None where no flow delivers a given number of bytes."""
    return _distribution(run_set, distribution.COMPLETION, palette, prefix)


def completion_by_size_slot(run_set: RunSet, palette: Palette, prefix: str) -> Slot | None:
    """Return how long transfers take by their size; None where they do not have many."""
    if not by_size.is_asked_of(run_set):
        return None
    return _slot(
        [
            (point.label, by_size.completion_by_size(run_set, point.cell_ids, palette=palette))
            for point in points_beside(run_set)
        ],
        slot_id=f"{prefix}-completion-by-size",
        title="Flow completion time by size",
        caption=by_size.CAPTION,
        wide=False,
    )


def distribution_slots(run_set: RunSet, palette: Palette, prefix: str) -> list[Slot]:
    """Return the other distributions: of pings and chunks where there are some, of RTT and queue."""
    found = (
        _distribution(run_set, quantity, palette, prefix)
        for quantity in distribution.QUANTITIES
        if quantity is not distribution.COMPLETION
    )
    return [slot for slot in found if slot is not None]


def _distribution(
    run_set: RunSet, quantity: distribution.Distribution, palette: Palette, prefix: str
) -> Slot | None:
    if not quantity.is_asked_of(run_set):
        return None
    drawn = [
        (point.label, distribution.draw(run_set, quantity, point.cell_ids, palette=palette))
        for point in points_beside(run_set)
    ]
    return _slot(
        drawn,
        slot_id=f"{prefix}-{quantity.slug.replace('_', '-')}",
        title=quantity.title,
        caption=quantity.caption,
        wide=False,
    )


def _limit(run_set: RunSet, here: Iterable[Point]) -> int:
    """Points per trace such that all figures over time stay within the budget."""
    cells = [cell_id for point in here for cell_id in point.representatives]
    planned = [run_set.plan[cell] for cell in cells if cell in run_set.plan]
    random = timeline.came_at_random(planned)
    together = {(cell, first) for (cell, _), first in random.items()}
    flows = int(run_set.flows["cell_id"].isin(cells).sum()) - len(random) + len(together)
    traces = 2 * flows + len(cells)
    return max(_FEWEST_POINTS, min(POINTS_PER_TRACE, _POINT_BUDGET // max(1, traces)))


def _slot(
    figures: Sequence[tuple[str, go.Figure]], *, slot_id: str, title: str, caption: str, wide: bool
) -> Slot | None:
    drawn = [(label, figure) for label, figure in figures if figure.data]
    if not drawn:
        return None
    return Slot(
        id=slot_id,
        title=title,
        caption=caption,
        alt=f"Chart: {in_a_sentence(title)}. {caption}",
        height=max(int(figure.layout.height) for _, figure in drawn),
        options=tuple(Option(label=label, data=embed(figure)) for label, figure in drawn),
        selector="At",
        scale_toggle=False,
        wide=wide,
    )

"""Which figures a run set has, and what they are called."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import plotly.graph_objects as go

from fabbbr.errors import AnalysisError
from fabbbr.suggest import did_you_mean
from fabbbr_analysis.figures import (
    added,
    by_size,
    delays,
    distribution,
    estimates,
    grid,
    heat,
    overview,
    published,
    sweep,
    timeline,
)
from fabbbr_analysis.figures.conditions import Axis, held_to, mixes, varied
from fabbbr_analysis.figures.events import something_changes
from fabbbr_analysis.figures.measures import BY_COLUMN, OF_GROUPS, Measure, in_a_sentence
from fabbbr_analysis.figures.sampling import POINTS_PER_TRACE
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.figures.sweep import Sweep
from fabbbr_analysis.summary import summarise

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

OFFERED = (
    "goodput_bps",
    "throughput_bps",
    "retransmits",
    "spurious_ratio",
    "rtt_median_s",
    "queue_median_bdp",
    "jain_flows",
    "jain_groups",
    "completion_mean_s",
    "ping_p95_s",
)
"""Metrics that get a figure, in this order; throughput only where a paper reports it and not goodput."""

_OF_DATAGRAMS = {"datagram_loss_ratio": 0.0, "pdv_p95_s": 1e-6, "jitter_s": 1e-6}
"""Metric → up to which it is none."""
_MOST_BESIDE = 6
_A_FLOW = frozenset({"goodput_bps", "throughput_bps"})
"""Of which a flow has its own."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One place in the grid of conditions: all congestion controls at the same values of the other axes."""

    label: str
    """Such as ``loss 1 %``; empty when nothing else varies."""
    slug: str
    representatives: tuple[str, ...]
    """One cell id per condition."""
    cell_ids: tuple[str, ...]
    """All certified cells."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure that a run set has."""

    title: str
    """What is shown, without a full stop."""
    reading: str
    """How to read its marks, in whole sentences."""
    draw: Callable[[], go.Figure]
    means: Callable[[], pd.DataFrame] | None = None
    """The summary, as :func:`fabbbr_analysis.summary.summarise` gives it, behind the means that are drawn."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A figure of metrics over conditions."""

    name: str
    title: str
    """Without the panel: entries that differ in their panel alone share it."""
    held: str
    """The panel, such as ``rtt 26 ms``; empty when there is one."""
    sweep: Sweep
    published: published.Published | None = field(repr=False)

    @property
    def caption(self) -> str:
        """What the metric is, and how to read the marks."""
        explanation = self.sweep.measure.explanation
        says = f"{explanation} Small marks are runs, large ones means with 95 % intervals."
        if self.published is None:
            return says
        remark = f", {self.published.remark}" if self.published.remark else ""
        return f"{says} Hollow marks on dotted lines are what was published{remark}."


def palette_of(*run_sets: RunSet) -> Palette:
    """Return the looks of every congestion control, and mix of them, in these run sets."""
    names: set[str] = set()
    for run_set in run_sets:
        cells = run_set.cells.dropna(subset=["ccas"])
        names.update(cells["ccas"], mixes(cells))
        names.update(run_set.flows["cca"].dropna().astype(str))
    return Palette.of(names)


def entries(run_set: RunSet) -> list[Entry]:
    """Return the metric figures of a run set, the ones that a paper has first."""
    axes = varied(run_set.runs)
    axis = axes[0] if axes else None
    vary = _numbers_vary(run_set)
    found = [
        _entry(run_set, measure, axis, panel, numbers_vary=vary)
        for measure in _measures(run_set, axis)
        for panel in _panels(run_set.runs, axes[1:])
    ]
    in_papers = {entry.title for entry in found if entry.published is not None}
    return sorted(found, key=lambda entry: entry.title not in in_papers)


def _entry(
    run_set: RunSet, measure: Measure, axis: Axis | None, panel: Mapping[str, str], *, numbers_vary: bool
) -> Entry:
    in_a_paper = published.find(run_set, measure, axis, panel)
    # Papers draw what a group has.
    drawn = _sweep(run_set, measure, axis, panel, by_flow=numbers_vary and in_a_paper is None)
    held = ", ".join(f"{key} {text}" for key, text in panel.items())
    versus = f"{measure.slug}_by_{axis.slug if axis else 'cca'}"
    against = f"{drawn.measure.title} against {in_a_sentence(axis.title) if axis else 'congestion control'}"
    return Entry(
        name=f"{versus}[{held}]" if held else versus,
        title=against,
        held=held,
        sweep=drawn,
        published=in_a_paper,
    )


def _sweep(
    run_set: RunSet, measure: Measure, axis: Axis | None, panel: Mapping[str, str], *, by_flow: bool
) -> Sweep:
    """``by_flow``: where a group's number of flows varies, what all have says little of how they fare."""
    by_group = measure.column in OF_GROUPS and has_groups(run_set)
    per_flow = by_flow and by_group and measure.column in _A_FLOW
    if per_flow:
        said = f"{measure.explanation} The mean of a group's flows, whose number varies."
        measure = replace(measure, title=f"{measure.title} a flow", explanation=said)
    return Sweep(
        measure=_suited(measure, run_set), axis=axis, panel=panel, by_group=by_group, per_flow=per_flow
    )


def _numbers_vary(run_set: RunSet) -> bool:
    """Whether some group has more flows in one cell than in another; of transfers each has its own time."""
    numbers: dict[str, set[int]] = {}
    for cell in run_set.plan.values():
        for group, number in Counter(flow.group for flow in cell.flows if flow.size is None).items():
            numbers.setdefault(group, set()).add(number)
    return any(len(each) > 1 for each in numbers.values())


def _suited(measure: Measure, run_set: RunSet) -> Measure:
    """In one unit in all figures of a run set."""
    return measure.suited(run_set.runs[measure.column].astype("float64"))


def has_groups(run_set: RunSet) -> bool:
    """Whether flows compete in groups, so that a whole cell is no longer one series."""
    return bool((run_set.flows.groupby("cell_id")["group"].nunique() > 1).any())


def _measures(run_set: RunSet, axis: Axis | None) -> Iterator[Measure]:
    for column in (*_suffered(run_set), *OFFERED):
        if column not in run_set.runs.columns or run_set.runs[column].isna().all():
            continue
        if BY_COLUMN[column].rare and not run_set.runs[column].any():
            continue
        if column == "throughput_bps" and not _only_throughput_is_published(run_set, axis):
            continue
        yield BY_COLUMN[column]


def _suffered(run_set: RunSet) -> list[str]:
    """What comes first where nothing but UDP was sent: goodput is what was asked for, less what was lost."""
    flows, runs = run_set.flows, run_set.runs
    if "udp_rate_bps" not in flows or flows["udp_rate_bps"].isna().any():
        return []
    return [column for column, none in _OF_DATAGRAMS.items() if column in runs and runs[column].max() > none]


def _only_throughput_is_published(run_set: RunSet, axis: Axis | None) -> bool:
    goodput, throughput = (
        published.find(run_set, BY_COLUMN[column], axis, {}) for column in ("goodput_bps", "throughput_bps")
    )
    return goodput is None and throughput is not None


def _panels(runs: pd.DataFrame, axes: Sequence[Axis]) -> list[dict[str, str]]:
    """Return every combination of the axes that are not drawn in which something was run."""
    columns = [runs[f"axis_{axis.key}"].astype(str) for axis in axes]
    there = set(zip(*columns, strict=True)) if columns else {()}
    combinations = itertools.product(*(axis.texts for axis in axes))
    return [
        dict(zip((axis.key for axis in axes), texts, strict=True)) for texts in combinations if texts in there
    ]


def points(run_set: RunSet) -> list[Point]:
    """Return the grid of conditions without the congestion control, in ascending order of each axis."""
    runs = run_set.runs
    axes = varied(runs)
    chosen = timeline.representative_cells(runs, of_one_repetition=run_set.shares_draws)
    return [
        point
        for texts in itertools.product(*(axis.texts for axis in axes))
        if (point := _point(runs, chosen, axes, texts)).representatives
    ]


def points_beside(run_set: RunSet) -> list[Point]:
    """As :func:`points`; but all conditions at once, where they are few and no place has rivals to compare.

    What is to be compared is then the places themselves.
    """
    here = points(run_set)
    if not 1 < len(here) <= _MOST_BESIDE or any(len(point.representatives) > 1 for point in here):
        return here
    return [
        Point(
            label="",
            slug="",
            representatives=tuple(cell_id for point in here for cell_id in point.representatives),
            cell_ids=tuple(cell_id for point in here for cell_id in point.cell_ids),
        )
    ]


def _point(runs: pd.DataFrame, chosen: pd.DataFrame, axes: tuple[Axis, ...], texts: tuple[str, ...]) -> Point:
    rows = held_to(runs, dict(zip((axis.key for axis in axes), texts, strict=True)))
    return Point(
        label=", ".join(f"{axis.title} {text}" for axis, text in zip(axes, texts, strict=True)),
        slug=",".join(f"{axis.key}={text}" for axis, text in zip(axes, texts, strict=True)).replace(" ", ""),
        representatives=tuple(chosen[chosen["cell_id"].isin(rows["cell_id"])]["cell_id"]),
        cell_ids=tuple(rows[rows["status"] == "certified"]["cell_id"].sort_values()),
    )


def figure_names(run_set: RunSet) -> list[str]:
    """Return every name that :func:`figure` takes."""
    return list(drawings(run_set))


def figure(run_set: RunSet, name: str, *, points_per_trace: int = POINTS_PER_TRACE) -> go.Figure:
    """Return the plotly figure called ``name``; raise AnalysisError listing the names when there is none."""
    return drawing(run_set, name, points_per_trace=points_per_trace).draw()


def drawing(run_set: RunSet, name: str, *, points_per_trace: int = POINTS_PER_TRACE) -> Drawing:
    """Return the figure called ``name`` with its words; raise AnalysisError listing the names for others."""
    found = drawings(run_set, points_per_trace)
    if name not in found:
        hint = did_you_mean(name, found)
        message = f"{run_set.experiment} has no figure {name!r}{hint} (figures: {', '.join(found)})"
        raise AnalysisError(message)
    return found[name]


def drawings(run_set: RunSet, limit: int = POINTS_PER_TRACE) -> dict[str, Drawing]:
    """Name → figure, in the order in which they are listed; ``limit`` points in a trace of samples."""
    palette = palette_of(run_set)
    over, beside = overview.axis_of(run_set), grid.find(run_set)
    found: dict[str, Drawing] = {}
    if beside is not None:
        found |= {name: _beside(beside, kind, palette) for name, kind in grid.names(beside).items()}
    if over is not None:
        found[f"overview_by_{over.slug}"] = Drawing(
            title=overview.title(over),
            reading=overview.caption(run_set, over),
            draw=partial(overview.draw, run_set, over, palette=palette),
            means=partial(summarise, run_set.runs, [measure.column for measure in overview.MEASURES]),
        )
    if added.shared(run_set):
        found[added.NAME] = Drawing(
            title="The same conditions on the testbed and in the guest",
            reading="Marks are means of certified runs with 95 % intervals.",
            draw=partial(added.draw, run_set),
            means=partial(summarise, run_set.runs, added.COLUMNS),
        )
    for entry in entries(run_set):
        found[entry.name] = Drawing(
            title=f"{entry.title}, {entry.held}" if entry.held else entry.title,
            reading=entry.caption,
            draw=partial(sweep.draw, run_set, entry.sweep, palette=palette, published=entry.published),
            means=partial(sweep.means, run_set, entry.sweep),
        )
    return found | _maps(run_set) | _over_time(run_set, palette, limit)


def _maps(run_set: RunSet) -> dict[str, Drawing]:
    """Heat maps over the two axes that vary most, where there are two; the others are held."""
    axes = varied(run_set.runs)
    if len(axes) < 2:
        return {}
    across, up = axes[:2]
    found: dict[str, Drawing] = {}
    panels = [
        panel for panel in _panels(run_set.runs, axes[2:]) if _is_a_map(run_set.runs, across, up, panel)
    ]
    vary = _numbers_vary(run_set)
    for measure, panel in itertools.product(_measures(run_set, across), panels):
        chosen = _sweep(run_set, measure, across, panel, by_flow=vary)
        held = ", ".join(f"{key} {text}" for key, text in panel.items())
        name = f"{measure.slug}_map_by_{across.slug}_and_{up.slug}"
        over = f"{in_a_sentence(across.title)} and {in_a_sentence(up.title)}"
        found[f"{name}[{held}]" if held else name] = Drawing(
            title=f"{chosen.measure.title} over {over}{f', {held}' if held else ''}",
            reading=f"{chosen.measure.explanation} {heat.CAPTION}".strip(),
            draw=partial(heat.draw, run_set, chosen, up),
        )
    return found


def _is_a_map(runs: pd.DataFrame, across: Axis, up: Axis, panel: Mapping[str, str]) -> bool:
    """Whether both axes vary there: one may hang on what the panel holds."""
    here = held_to(runs, panel)
    return all(here[f"axis_{axis.key}"].nunique() > 1 for axis in (across, up))


def _beside(beside: grid.Beside, panel: grid.Panel | None, palette: Palette) -> Drawing:
    if panel is None:
        return Drawing(
            title=f"{beside.measure.title} of every condition, here and published",
            reading=grid.SCATTER_CAPTION,
            draw=partial(grid.draw, beside, panel, palette),
        )
    return Drawing(
        title=f"{beside.title}, {panel.label}" if panel.label else beside.title,
        reading=beside.caption,
        draw=partial(grid.draw, beside, panel, palette),
    )


def _over_time(run_set: RunSet, palette: Palette, limit: int) -> dict[str, Drawing]:
    here = points(run_set)
    over_time = {
        _timed("over_time", point): Drawing(
            title=_titled("Goodput, RTT and queue over time", point),
            reading=timeline.CAPTION,
            draw=partial(timeline.over_time, run_set, point.representatives, palette=palette, limit=limit),
        )
        for point in here
    }
    distributions = {
        _timed(quantity.slug, point): Drawing(
            title=_titled(quantity.title, point),
            reading=quantity.caption,
            draw=partial(distribution.draw, run_set, quantity, point.cell_ids, palette=palette),
        )
        for quantity in distribution.QUANTITIES
        if quantity.is_asked_of(run_set)
        for point in points_beside(run_set)
    }
    sized = {
        _timed("completion_percentiles", point): Drawing(
            title=_titled("Flow completion time by size", point),
            reading=by_size.CAPTION,
            draw=partial(by_size.completion_by_size, run_set, point.cell_ids, palette=palette),
        )
        for point in (points_beside(run_set) if by_size.is_asked_of(run_set) else ())
    }
    believed = {
        _timed("bandwidth_estimate", point): Drawing(
            title=_titled("Bandwidth estimate of BBR", point),
            reading=estimates.caption(run_set),
            draw=partial(
                estimates.bandwidth_estimates, run_set, point.cell_ids, palette=palette, limit=limit
            ),
        )
        for point in here
    }
    timed = delays.timed_cells(run_set)
    stood = {
        _timed("queue_delay", point): Drawing(
            title=_titled("Queueing delay of every packet", point),
            reading=delays.CAPTION,
            draw=partial(delays.queue_delays, run_set, point.cell_ids, palette=palette),
        )
        for point in here
        if timed.intersection(point.cell_ids)
    }
    return over_time | distributions | sized | believed | stood


def changes_over_time(run_set: RunSet) -> bool:
    """Whether some cell has steps, or groups of flows that start at different times."""
    return any(something_changes(cell) for cell in run_set.plan.values())


def _timed(kind: str, point: Point) -> str:
    return f"{kind}[{point.slug}]" if point.slug else kind


def _titled(title: str, point: Point) -> str:
    return ", ".join([title, *(in_a_sentence(part) for part in point.label.split(", ") if part)])

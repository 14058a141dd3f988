"""Places on the page that hold a figure, with the data that each of its choices needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from markupsafe import Markup

from fabbbr.errors import AnalysisError
from fabbbr_analysis.figures import grid, overview, sweep
from fabbbr_analysis.figures.catalogue import Entry, entries
from fabbbr_analysis.figures.measures import in_a_sentence
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.report.render import bundled_plotly

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet


@dataclass(frozen=True, kw_only=True)
class Option:
    """One choice of a figure: what the selector says and the figure itself, safe inside a script element."""

    label: str
    data: Markup


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A figure of the page; with several options it gets a selector."""

    id: str
    title: str
    caption: str
    alt: str
    height: int
    options: tuple[Option, ...]
    selector: str
    """Label of the selector."""
    scale_toggle: bool
    """Whether the reader may switch the vertical axis between linear and logarithmic."""
    wide: bool
    """Whether it has the width of the page; others stand in pairs."""


def embed(figure: go.Figure) -> Markup:
    """Return the figure as JSON that cannot end the script element it stands in.

    The notebook's template is taken out: on the page, the style sheet decides about colours of text and grid.
    Raises AnalysisError for a type of trace that the page's plotly.js does not draw.
    """
    beyond = {trace.type for trace in figure.data} - bundled_plotly().traces
    if beyond:
        message = (
            f"the pages' plotly.js draws no {', '.join(sorted(beyond))}; add it to TRACES in "
            "scripts/make-plotly.mjs and run that"
        )
        raise AnalysisError(message)
    data = json.loads(figure.to_json(validate=False))
    data["layout"].pop("template", None)
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, sort_keys=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - escaped here


def metric_slots(run_set: RunSet, palette: Palette, prefix: str) -> list[Slot]:
    """Return the figures of metrics over conditions; entries that differ by panel share a slot."""
    groups = [list(group) for _, group in groupby(entries(run_set), key=lambda entry: entry.title)]
    return [
        _metric_slot(run_set, group, palette, f"{prefix}-metric-{place}", wide=False)
        for place, group in enumerate(groups)
    ]


def first_slot(run_set: RunSet, palette: Palette, prefix: str) -> Slot | None:
    """Return the one figure that stands for a run set: beside published numbers, where a paper has them."""
    groups = [list(group) for _, group in groupby(entries(run_set), key=lambda entry: entry.title)]
    if not groups:
        return None
    return _metric_slot(run_set, groups[0], palette, f"{prefix}-first", wide=True)


def overview_slots(run_set: RunSet, palette: Palette, prefix: str) -> list[Slot]:
    """Return the figure that has throughput, retransmissions and queue together, where there is one."""
    axis = overview.axis_of(run_set)
    if axis is None:
        return []
    figure = overview.draw(run_set, axis, palette=palette)
    names = sorted(trace.name for trace in figure.data if trace.showlegend)
    slot = Slot(
        id=f"{prefix}-overview",
        title=overview.title(axis),
        caption=overview.caption(run_set, axis),
        alt=f"Three charts over one axis, series: {'; '.join(names)}. The table of results has the numbers.",
        height=int(figure.layout.height),
        options=(Option(label="", data=embed(figure)),),
        selector="",
        scale_toggle=False,
        wide=True,
    )
    return [slot]


def grid_slots(run_set: RunSet, palette: Palette, prefix: str) -> list[Slot]:
    """Return the figures that lay our means beside a published grid, where there is one."""
    beside = grid.find(run_set)
    if beside is None:
        return []
    held = [(panel.label, grid.heat_maps(beside, panel)) for panel in beside.mapped]
    drawn = {
        "maps": (beside.title, beside.caption, held),
        "scatter": (
            f"{beside.measure.title} of every condition, here and published",
            grid.SCATTER_CAPTION,
            [("", grid.scatter(beside, palette))] if not beside.both.empty else [],
        ),
    }
    return [
        Slot(
            id=f"{prefix}-beside-{kind}",
            title=title,
            caption=caption,
            alt=f"Chart: {in_a_sentence(title)}. {caption}",
            height=int(figures[0][1].layout.height),
            options=tuple(Option(label=label, data=embed(figure)) for label, figure in figures),
            selector="Where",
            scale_toggle=False,
            wide=True,
        )
        for kind, (title, caption, figures) in drawn.items()
        if figures
    ]


def _metric_slot(
    run_set: RunSet, group: Sequence[Entry], palette: Palette, slot_id: str, *, wide: bool
) -> Slot:
    figures = [
        sweep.draw(run_set, entry.sweep, palette=palette, published=entry.published) for entry in group
    ]
    measure = group[0].sweep.measure
    values = run_set.runs[measure.column].dropna()
    series = sorted(
        {trace.name for figure in figures for trace in figure.data if trace.showlegend is not False}
    )
    return Slot(
        id=slot_id,
        title=group[0].title,
        caption=_caption(group),
        alt=(
            f"Chart of {in_a_sentence(group[0].title)}, series: {'; '.join(series)}. The table of "
            f"results has the numbers."
        ),
        height=max(int(figure.layout.height) for figure in figures),
        options=tuple(
            Option(label=entry.held, data=embed(figure)) for entry, figure in zip(group, figures, strict=True)
        ),
        selector="Where",
        scale_toggle=bool((values > 0).all()),
        wide=wide,
    )


def _caption(group: Sequence[Entry]) -> str:
    """The caption of the first that lies beside published values, where one does."""
    return next((entry for entry in group if entry.published is not None), group[0]).caption

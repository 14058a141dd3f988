"""Throughput, retransmissions and queue over one axis, one below the other, with one legend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fabbbr_analysis.figures import canvas, published, sweep
from fabbbr_analysis.figures.conditions import Axis, varied
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure, in_a_sentence
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.figures.sweep import Sweep

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

MEASURES: tuple[Measure, ...] = tuple(
    BY_COLUMN[column] for column in ("goodput_bps", "retransmits", "queue_median_fill")
)
"""From top to bottom. The queue counts by its buffer: at the shortest RTT a buffer of packets is many BDP."""


def axis_of(run_set: RunSet) -> Axis | None:
    """Return the RTT when nothing else varies but the congestion control, one per run; else None."""
    runs, axes = run_set.runs, varied(run_set.runs)
    if len(axes) != 1 or axes[0].condition is None or axes[0].condition.column != "rtt_s":
        return None
    alone = not runs["ccas"].str.contains(",").any() and (runs["n_flows"] == 1).all()
    measured = all(runs[measure.column].notna().any() for measure in MEASURES)
    return axes[0] if alone and measured else None


def draw(run_set: RunSet, axis: Axis, *, palette: Palette) -> go.Figure:
    """Draw all measures over ``axis``, each beside what was published of it; a name is in the legend once."""
    figure = make_subplots(
        rows=len(MEASURES),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.05,
        figure=canvas.empty(height=820),
    )
    named: set[str] = set()
    for row, measure in enumerate(MEASURES, start=1):
        panel = sweep.draw(
            run_set,
            Sweep(measure=measure, axis=axis),
            palette=palette,
            published=published.find(run_set, measure, axis, {}),
        )
        for trace in panel.data:
            trace.showlegend = trace.showlegend is not False and trace.name not in named
            named.update([trace.name] if trace.showlegend else [])
            figure.add_trace(trace, row=row, col=1)
        figure.update_yaxes(panel.layout.yaxis.to_plotly_json(), row=row, col=1)
        figure.update_xaxes({**panel.layout.xaxis.to_plotly_json(), "title": None}, row=row, col=1)
        values = run_set.runs[measure.column].dropna()
        if measure.log_by_nature and (values > 0).all():
            figure.update_yaxes(type="log", rangemode="normal", row=row, col=1)
    figure.update_xaxes(title_text=axis.label, row=len(MEASURES), col=1)
    return figure


def title(axis: Axis) -> str:
    """Name the figure in words."""
    return f"Goodput, retransmissions and queue against {in_a_sentence(axis.title)}"


def caption(run_set: RunSet, axis: Axis) -> str:
    """Say how to read the marks, and which published points are there."""
    says = "Small marks are runs, large ones means with 95 % intervals."
    found = {measure.title: published.find(run_set, measure, axis, {}) for measure in MEASURES}
    drawn = [each for each in found.values() if each is not None]
    if not drawn:
        return says
    remark = f", {drawn[0].remark}; published counts hold for their own rate only" if drawn[0].remark else ""
    return f"{says} Hollow marks on dotted lines are what was published{remark}."

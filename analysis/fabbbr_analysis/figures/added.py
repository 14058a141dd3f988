"""What a testbed adds to the emulation: the same conditions there and in the guest, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.measures import BY_COLUMN
from fabbbr_analysis.summary import summarise

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

NAME = "testbed_adds"
COLUMNS = ("goodput_bps", "retransmit_ratio", "rtt_median_s")
"""What is compared, from left to right. Few: each makes every other harder to tell apart."""
_COLOURS = ("#D55E00", "#0072B2")
_SYMBOLS = ("diamond", "circle-open")
_APART = 0.16
"""Of the distance between two conditions: how far the marks of the two places stand above and below it."""
_ROW_PX = 34
_FRAME_PX = 130


def shared(run_set: RunSet) -> list[str]:
    """Conditions with certified runs both there and in the guest, in the order of the plan; often none."""
    if run_set.beside is None or run_set.beside.runs.empty:
        return []
    emulated = set(run_set.beside.certified["condition"])
    return [str(each) for each in run_set.certified["condition"].drop_duplicates() if each in emulated]


def draw(run_set: RunSet) -> go.Figure:
    """Draw the means of both places with their 95 % intervals, one condition below the other."""
    conditions = shared(run_set)
    beside = run_set.beside
    assert beside is not None
    figure = make_subplots(
        rows=1,
        cols=len(COLUMNS),
        shared_yaxes=True,
        horizontal_spacing=0.03,
        figure=canvas.empty(height=_FRAME_PX + _ROW_PX * len(conditions)),
    )
    places = [(run_set.manifest.backend, run_set, -_APART), (beside.manifest.backend, beside, _APART)]
    for number, (name, runs, shift) in enumerate(places):
        means = summarise(runs.runs, COLUMNS)
        for column, metric in enumerate(COLUMNS, start=1):
            rows = means[means["metric"] == metric].set_index("condition").loc[conditions]
            trace = _marks(rows, BY_COLUMN[metric].factor, shift)
            says = f"{name}: %{{x:.4g}} {BY_COLUMN[metric].unit}"
            trace.update(
                name=name,
                legendgroup=name,
                showlegend=column == 1,
                marker={"color": _COLOURS[number], "symbol": _SYMBOLS[number], "size": 9},
                hovertemplate=f"<b>%{{customdata}}</b><br>{says}<extra></extra>",
            )
            figure.add_trace(trace, row=1, col=column)
    for column, metric in enumerate(COLUMNS, start=1):
        figure.update_xaxes(title_text=BY_COLUMN[metric].label, rangemode="tozero", row=1, col=column)
    figure.update_yaxes(range=[len(conditions) - 0.5, -0.5], zeroline=False, automargin=True)
    figure.update_yaxes(
        tickmode="array", tickvals=list(range(len(conditions))), ticktext=conditions, row=1, col=1
    )
    return figure


def _marks(rows: pd.DataFrame, factor: float, shift: float) -> go.Scatter:
    """Means in the unit that is drawn, with whiskers where there are intervals."""
    mean, low, high = (rows[each].astype(float) * factor for each in ("mean", "low", "high"))
    return go.Scatter(
        x=canvas.or_none(mean),
        y=[place + shift for place in range(len(rows))],
        customdata=list(rows.index),
        mode="markers",
        error_x={
            "type": "data",
            "symmetric": False,
            "array": canvas.or_none(high - mean),
            "arrayminus": canvas.or_none(mean - low),
            "thickness": 1.5,
            "width": 3,
        },
    )

"""A metric over two axes at once: a heat map of means for each congestion control."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.figures.sweep import Sweep, points

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

CAPTION = "Numbers are means of certified runs; a cell without one was not run or not certified."
_COLOURS = "Viridis"
_SIDE_BY_SIDE = 2
_ROW_PX = 330


def means(run_set: RunSet, sweep: Sweep, up: Axis) -> pd.DataFrame:
    """Return ``series``, both ``axis_*`` columns, and the mean over certified runs [base unit]."""
    assert sweep.axis is not None
    frame = points(run_set, sweep)
    frame = frame[(frame["status"] == "certified") & frame[sweep.measure.column].notna()]
    by = ["series", f"axis_{sweep.axis.key}", f"axis_{up.key}"]
    return frame.groupby(by, as_index=False)[[sweep.measure.column]].mean()


def draw(run_set: RunSet, sweep: Sweep, up: Axis) -> go.Figure:
    """Draw a map per series over ``sweep.axis`` and ``up``, all in the same colours."""
    across = sweep.axis
    assert across is not None
    table = means(run_set, sweep, up)
    names = sorted(str(name) for name in table["series"].unique())
    columns = min(_SIDE_BY_SIDE, max(1, len(names)))
    rows = -(-max(1, len(names)) // columns)
    figure = make_subplots(
        rows=rows, cols=columns, subplot_titles=names, shared_xaxes=True, shared_yaxes=True,
        horizontal_spacing=0.04, vertical_spacing=0.28 / (rows + 1),
        figure=canvas.empty(height=_ROW_PX * rows),
    )  # fmt: skip
    for name, (row, column) in zip(
        names, itertools.product(range(1, rows + 1), range(1, columns + 1)), strict=False
    ):
        here = table[table["series"] == name]
        figure.add_trace(_map(here, sweep, across, up), row=row, col=column)
    label = {"title": {"text": sweep.measure.label}}
    figure.update_layout(coloraxis={"colorscale": _COLOURS, "colorbar": label}, margin={"t": 40})
    figure.update_xaxes(title_text=across.label, type="category", row=rows)
    figure.update_yaxes(title_text=up.label, type="category", col=1)
    return figure


def _map(rows: pd.DataFrame, sweep: Sweep, across: Axis, up: Axis) -> go.Heatmap:
    wide = rows.pivot(
        index=f"axis_{up.key}", columns=f"axis_{across.key}", values=sweep.measure.column
    ).reindex(index=list(up.texts), columns=list(across.texts))
    values = wide.to_numpy(dtype=np.float64) * sweep.measure.factor
    return go.Heatmap(
        x=_labels(across),
        y=_labels(up),
        z=[canvas.or_none(pd.Series(line)) for line in values],
        coloraxis="coloraxis",
        texttemplate="%{z:.3g}",
        xgap=1,
        ygap=1,
        hovertemplate=(
            f"{across.title} %{{x}} {across.unit}<br>{up.title} %{{y}} {up.unit}"
            f"<br>%{{z:.4g}} {sweep.measure.unit}<extra></extra>"
        ),
    )


def _labels(axis: Axis) -> list[str]:
    return list(axis.texts) if axis.shown is None else [f"{value:g}" for value in axis.shown]

"""The frame of every figure: margins, axes, legend. Colours of text and grid are the page's, set there."""

from __future__ import annotations

import math

import pandas as pd
import plotly.graph_objects as go

from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.figures.measures import Measure

_LEGEND = {
    "orientation": "h",
    "yanchor": "bottom",
    "y": 1.02,
    "xanchor": "left",
    "x": 0,
    "title": {"text": ""},
    "itemsizing": "constant",
    "tracegroupgap": 0,
}
_LABEL_DECADES = 0.25
_MARGIN = {"l": 64, "r": 16, "t": 24, "b": 52}


def empty(*, height: int = 440) -> go.Figure:
    """Return a figure without data; ``height`` in pixels."""
    return go.Figure(
        layout={
            "template": "plotly_white",
            "height": height,
            "margin": _MARGIN,
            "legend": _LEGEND,
            "hovermode": "closest",
            "hoverlabel": {"align": "left"},
        }
    )


def label_axes(figure: go.Figure, axis: Axis | None, measure: Measure) -> None:
    """Put titles, units and scales on both axes."""
    figure.update_yaxes(title_text=measure.label, rangemode="tozero", automargin=True)
    if axis is None:
        figure.update_xaxes(title_text="Congestion control", type="category")
    elif axis.shown is None:
        figure.update_xaxes(title_text=axis.label, type="category", categoryarray=list(axis.texts))
    else:
        figure.update_xaxes(title_text=axis.label, type="log" if axis.log else "linear")
        if axis.log:
            figure.update_xaxes(**ticks_at(axis.shown))


def ticks_at(values: tuple[float, ...]) -> dict[str, object]:
    """Ticks at values that were run, named in full: 0.001 and not 1m or 10⁻³.

    Values closer than a label is wide go without, so that labels never overlap or turn.
    """
    labelled = [values[0]]
    for value in values[1:]:
        if math.log10(value / labelled[-1]) >= _LABEL_DECADES:
            labelled.append(value)
    return {
        "tickmode": "array",
        "tickvals": labelled,
        "ticktext": [f"{value:.6g}" for value in labelled],
        "tickangle": 0,
    }


def or_none(values: pd.Series[float]) -> list[float | None]:
    """Return the values for plotly, which draws no bar where there is none."""
    return [None if pd.isna(value) else float(value) for value in values]

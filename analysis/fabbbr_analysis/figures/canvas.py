"""The frame of every figure: margins, axes, legend. Colours of text and grid are the page's, set there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from fabbbr.capacity import Capacity
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.figures.events import Event
from fabbbr_analysis.figures.measures import Measure
from fabbbr_analysis.figures.words import levels

_LEGEND = {
    "orientation": "h",
    "yanchor": "bottom",
    "y": 1.02,
    "xanchor": "left",
    "x": 0,
    "title": {"text": ""},
    "itemsizing": "constant",
    "itemwidth": 40,
    "tracegroupgap": 0,
}
_LABEL_DECADES = 0.25
_LABEL_HEIGHT = 16
_SHARE_OF_A_LETTER = 0.0085
"""Of the time axis, where a figure has the width of the page."""
_NAMES_IN_A_LINE, _LEGEND_LINE = 4, 20
RATE = "rate of the bottleneck"
RATE_BACK = "rate of the way back"
PROPAGATION = "RTT without a queue"
REFERENCE_LINE = {"color": "#8A8F98", "width": 1.5, "dash": "dot"}
_GRID = {"gridcolor": "#EBF0F8", "linecolor": "#EBF0F8", "zerolinecolor": "#EBF0F8", "zerolinewidth": 2}
_TEMPLATE = {
    "layout": {
        "autotypenumbers": "strict",
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "font": {"color": "#2A3F5F"},
        "xaxis": _GRID,
        "yaxis": _GRID,
    }
}
"""For a notebook. Small: plotly's own ones take longer to check than a figure takes to draw."""
_MARGIN = {"l": 64, "r": 16, "t": 24, "b": 52}


def empty(*, height: int = 400) -> go.Figure:
    """Return a figure without data; ``height`` in pixels."""
    return go.Figure(
        layout={
            "template": _TEMPLATE,
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
        figure.update_xaxes(title_text="Congestion control", type="category", automargin=True)
    elif axis.shown is None:
        figure.update_xaxes(
            title_text=axis.label, type="category", categoryarray=list(axis.texts), automargin=True
        )
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


def rate_line(capacity: Capacity, end_s: float, *, name: str = RATE) -> go.Scatter:
    """The rate of the bottleneck (Mbit/s) over the cell's clock, until ``end_s``; of a trace, by seconds."""
    since_s, held_bps = capacity.curve(end_s)
    return go.Scatter(
        x=since_s,
        y=[bps * 1e-6 for bps in held_bps],
        mode="lines",
        name=name,
        line={**REFERENCE_LINE, "shape": "hv"},
        hovertemplate=f"{name} from %{{x:.6g}} s: %{{y:.6g}} Mbit/s<extra></extra>",
    )


def propagation_line(since_s: Sequence[float], rtts_s: Sequence[float]) -> go.Scatter:
    """The round trip of a path without its queues (ms), as steps have it from when on."""
    return go.Scatter(
        x=list(since_s),
        y=[rtt_s * 1e3 for rtt_s in rtts_s],
        mode="lines",
        name=PROPAGATION,
        legendgroup=PROPAGATION,
        line={**REFERENCE_LINE, "shape": "hv"},
        hovertemplate=f"{PROPAGATION} from %{{x:.6g}} s: %{{y:.6g}} ms<extra></extra>",
    )


def mark(figure: go.Figure, happened: Sequence[Event], *, span_s: float) -> None:
    """Draw a dotted line at each event through all rows, with its words above the uppermost."""
    texts = [(event.at_s, event.text) for event in happened if event.text]
    places = levels(texts, letter=_SHARE_OF_A_LETTER * span_s, begin=0.0, end=span_s * 1.02)
    for event in happened:
        figure.add_shape(
            type="line", x0=event.at_s, x1=event.at_s, y0=0, y1=1, xref="x", yref="paper",
            line={"color": "#8A8F98", "width": 1, "dash": "dot"}, layer="above",
        )  # fmt: skip
    for (at_s, text), place in zip(texts, places, strict=True):
        figure.add_annotation(
            x=at_s, y=1, xref="x", yref="paper", text=text, showarrow=False,
            xanchor="right" if place.ends else "left", yanchor="bottom",
            yshift=place.level * _LABEL_HEIGHT, font={"size": 12},
        )  # fmt: skip
    high = 1 + max((place.level for place in places), default=-1)
    figure.update_layout(legend_y=1.02 + high * _LABEL_HEIGHT / figure.layout.height)
    figure.update_layout(margin_t=_MARGIN["t"] + high * _LABEL_HEIGHT)


def make_room_for_legend(figure: go.Figure, names: int) -> None:
    """Make a figure higher by the lines of a legend with so many names, so that the plot keeps its height."""
    lines = max(0, math.ceil(names / _NAMES_IN_A_LINE) - 1)
    figure.update_layout(height=figure.layout.height + lines * _LEGEND_LINE)


def or_none(values: pd.Series[float]) -> list[float | None]:
    """Return the values for plotly, which draws no bar where there is none."""
    return [None if pd.isna(value) else float(value) for value in values]

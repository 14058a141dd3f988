"""What a figure shows, without the library that drew it: read from a plotly figure, drawn on paper.

The figures of :mod:`fabbbr_analysis.figures` are the one place that decides which numbers are shown. A page
on paper takes them from there, so that it cannot differ from the report.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from fabbbr.errors import AnalysisError
from fabbbr_analysis.figures.style import PUBLISHED_READING

Numbers: TypeAlias = npt.NDArray[np.float64]
Rgb: TypeAlias = tuple[float, float, float]
"""Red, green and blue from 0 to 1."""

_AXIS = re.compile(r"[xy]axis\d*")
_GREY = "#8A8F98"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """One axis of a panel."""

    title: str
    log: bool
    from_zero: bool
    percent: bool
    """Whether a value of 1 is written as 100 %."""
    labelled: bool
    """False where another panel of the same column or row has the labels."""
    names: tuple[str, ...]
    """Of a row of names: what stands at 0, 1, 2, …; empty for numbers."""
    ticks: tuple[tuple[float, str], ...]
    """Where the labels stand, and what they say; empty: wherever it suits."""
    limits: tuple[float, float] | None
    """In the unit of the data; None: as wide as the data."""
    upside_down: bool = False


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Points, in the order in which a line joins them."""

    name: str
    x: Numbers
    y: Numbers
    x_bars: tuple[Numbers, Numbers] | None
    """Lower and upper ends of the bars, where there are any; NaN for a point without one."""
    y_bars: tuple[Numbers, Numbers] | None
    line: bool
    marks: bool
    stepped: bool
    filled: bool
    """An area within its points, without an outline."""
    colour: str
    symbol: str
    """As plotly names it, without ``-open``."""
    hollow: bool
    dash: str
    width: float
    size: float
    """Of marks and lines, in pixels of the report."""
    opacity: float
    in_legend: bool


@dataclass(frozen=True, kw_only=True)
class Map:
    """A heat map; its cells stand at 0, 1, 2, … of the names of both axes."""

    z: Numbers
    """Rows from bottom to top; NaN where there is nothing."""
    digits: str
    """Format of the number that stands in a cell; empty: none."""
    colours: tuple[tuple[float, Rgb], ...]
    limits: tuple[float, float] | None
    label: str


@dataclass(frozen=True, kw_only=True)
class Note:
    """Words above a panel, at ``x`` of its horizontal axis."""

    x: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One pair of axes; rows and columns count from 0 at the top left."""

    row: int
    column: int
    title: str
    across: Scale
    up: Scale
    traces: tuple[Trace, ...]
    map: Map | None
    marked: tuple[tuple[float, str], ...]
    """Vertical lines: where, and their dash."""
    notes: tuple[Note, ...] = ()
    """What is written above the panel."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A whole figure."""

    panels: tuple[Plot, ...]
    legend: bool
    shared: bool = True
    """Whether panels above one another have one horizontal axis."""

    @property
    def rows(self) -> int:
        """How many panels stand below one another."""
        return 1 + max(panel.row for panel in self.panels)

    @property
    def columns(self) -> int:
        """How many stand side by side."""
        return 1 + max(panel.column for panel in self.panels)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to see."""
        return not any(panel.traces or panel.map for panel in self.panels)


def read(figure: go.Figure) -> Chart:
    """Take a figure apart; raise AnalysisError for a kind of trace that has no form on paper yet."""
    for trace in figure.data:
        if trace.type not in ("scatter", "scattergl", "heatmap"):
            message = (
                f"a trace of type {trace.type!r} cannot be drawn on paper; the figure is in the report "
                f"and in notebooks"
            )
            raise AnalysisError(message)
    _require_known_marks(figure)
    pairs = _pairs(figure)
    return Chart(
        panels=tuple(_panel(figure, pair, place) for pair, place in pairs.items()),
        legend=figure.layout.showlegend is not False,
    )


def _pairs(figure: go.Figure) -> dict[tuple[str, str], tuple[int, int]]:
    """Names of the axes of each panel → row and column."""
    known = sorted(key for key in figure.layout.to_plotly_json() if _AXIS.fullmatch(key))
    anchors = {
        (key.replace("axis", ""), figure.layout[key].anchor or "y") for key in known if key.startswith("x")
    }
    pairs = anchors | {(trace.xaxis or "x", trace.yaxis or "y") for trace in figure.data} or {("x", "y")}
    lefts = sorted({_start(figure, across) for across, _ in pairs})
    bottoms = sorted({_start(figure, up) for _, up in pairs}, reverse=True)
    places = {
        pair: (bottoms.index(_start(figure, pair[1])), lefts.index(_start(figure, pair[0]))) for pair in pairs
    }
    return dict(sorted(places.items(), key=lambda item: item[1]))


def _axis(figure: go.Figure, name: str) -> Any:  # noqa: ANN401 - plotly's own, of many forms
    return figure.layout[f"{name[0]}axis{name[1:]}"]


def _start(figure: go.Figure, name: str) -> float:
    domain = _axis(figure, name).domain
    return round(float(domain[0]), 6) if domain else 0.0


def _panel(figure: go.Figure, pair: tuple[str, str], place: tuple[int, int]) -> Plot:
    here = [each for each in figure.data if (each.xaxis or "x", each.yaxis or "y") == pair]
    maps = [each for each in here if each.type == "heatmap"]
    points = [each for each in here if each.type != "heatmap"]
    names = [_names(_axis(figure, axis), here, axis[0]) for axis in pair]
    alone = len([each for each in figure.data if each.type != "heatmap"]) == 1
    return Plot(
        row=place[0],
        column=place[1],
        title=_subtitle(figure, pair),
        across=_scale(_axis(figure, pair[0]), names[0]),
        up=_scale(_axis(figure, pair[1]), names[1]),
        traces=tuple(_trace(each, names[0], names[1], alone=alone) for each in points),
        map=_map(figure, maps[0]) if maps else None,
        marked=_marked(figure, pair),
        notes=_notes(figure, pair) if place[0] == 0 else (),
    )


def _subtitle(figure: go.Figure, pair: tuple[str, str]) -> str:
    """The annotation that plotly puts above a panel of a grid."""
    across, up = (_axis(figure, name).domain or (0.0, 1.0) for name in pair)
    middle, top = (across[0] + across[1]) / 2, up[1]
    for each in figure.layout.annotations:
        if (each.xref, each.yref) == ("paper", "paper") and np.allclose((each.x, each.y), (middle, top)):
            return str(each.text)
    return ""


def _names(axis: Any, traces: Sequence[Any], which: str) -> tuple[str, ...]:  # noqa: ANN401 - plotly's own
    """What stands on an axis of names, in its order; nothing for an axis of numbers."""
    values = [value for trace in traces for value in (trace[which] if trace[which] is not None else ())]
    if axis.type != "category" and not any(isinstance(value, str) for value in values):
        return ()
    listed = [str(name) for name in axis.categoryarray] if axis.categoryarray is not None else []
    return tuple(dict.fromkeys([*listed, *map(str, values)]))


def _scale(axis: Any, names: tuple[str, ...]) -> Scale:  # noqa: ANN401 - plotly's own
    log = axis.type == "log"
    limits = tuple(float(10**end if log else end) for end in axis.range) if axis.range is not None else None
    texts = axis.ticktext if axis.ticktext is not None else axis.tickvals
    pairs = () if axis.tickvals is None else zip(axis.tickvals, texts, strict=True)
    return Scale(
        title=str(axis.title.text or ""),
        log=log,
        from_zero=axis.rangemode == "tozero" and not log,
        percent=bool(axis.tickformat) and str(axis.tickformat).endswith("%"),
        labelled=axis.showticklabels is not False,
        names=names,
        ticks=tuple((float(value), str(text)) for value, text in pairs),
        limits=None if limits is None else (min(limits), max(limits)),
        upside_down=limits is not None and limits[0] > limits[-1],
    )


def _trace(trace: Any, across: tuple[str, ...], up: tuple[str, ...], *, alone: bool) -> Trace:  # noqa: ANN401
    x, y = _numbers(trace.x, across), _numbers(trace.y, up)
    mode, symbol = str(trace.mode or "lines"), str(trace.marker.symbol or "circle")
    opacities = (trace.opacity, trace.marker.opacity if "lines" not in mode else None)
    shown = trace.showlegend is not False and not (alone and trace.showlegend is None)
    return Trace(
        name=_brief(str(trace.name or "")),
        x=x,
        y=y,
        x_bars=_bars(trace.error_x, x),
        y_bars=_bars(trace.error_y, y),
        line="lines" in mode,
        marks="markers" in mode,
        stepped=trace.line.shape in ("hv", "vh"),
        filled=trace.fill == "toself",
        colour=str(trace.line.color or trace.marker.color or trace.fillcolor or _GREY),
        symbol=symbol.removesuffix("-open"),
        hollow=symbol.endswith("-open"),
        dash=str(trace.line.dash or "solid"),
        width=float(trace.line.width or 2),
        size=float(trace.marker.size or 6),
        opacity=float(np.prod([each for each in opacities if each is not None])),
        in_legend=shown and bool(trace.name),
    )


def _brief(name: str) -> str:
    """A column has no room for how published values were read, which the caption says."""
    for reading in PUBLISHED_READING.values():
        if name.endswith(f", {reading}"):
            return f"{name.removesuffix(reading)}published"
    return name


def _numbers(values: Iterable[Any] | None, names: Sequence[str]) -> Numbers:
    if values is None:
        return np.empty(0)
    if names:
        return np.array([names.index(str(value)) for value in values], dtype=np.float64)
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _bars(bars: Any, middle: Numbers) -> tuple[Numbers, Numbers] | None:  # noqa: ANN401 - plotly's own
    if bars.array is None:
        return None
    above = _numbers(bars.array, ())
    below = above if bars.arrayminus is None else _numbers(bars.arrayminus, ())
    return middle - below, middle + above


def _marked(figure: go.Figure, pair: tuple[str, str]) -> tuple[tuple[float, str], ...]:
    """Vertical lines that go through a panel from bottom to top, and through those above and below it."""
    return tuple(
        (float(shape.x0), str(shape.line.dash or "solid"))
        for shape in figure.layout.shapes
        if _start(figure, shape.xref or "x") == _start(figure, pair[0])
    )


def _notes(figure: go.Figure, pair: tuple[str, str]) -> tuple[Note, ...]:
    """Annotations that stand at a place of the horizontal axis, above all panels of its column."""
    return tuple(
        Note(x=float(each.x), text=str(each.text))
        for each in figure.layout.annotations
        if each.xref != "paper" and _start(figure, each.xref) == _start(figure, pair[0])
    )


def _require_known_marks(figure: go.Figure) -> None:
    """Raise AnalysisError for shapes and annotations of other kinds: what cannot be drawn is not left out."""
    for shape in figure.layout.shapes:
        if shape.type != "line" or shape.x0 != shape.x1 or shape.yref != "paper":
            message = f"a {shape.type} across a figure cannot be drawn on paper, only a vertical line"
            raise AnalysisError(message)
    for each in figure.layout.annotations:
        if each.yref != "paper" or each.showarrow:
            message = f"the note {each.text!r} cannot be drawn on paper, only one above a panel"
            raise AnalysisError(message)


def _map(figure: go.Figure, trace: Any) -> Map:  # noqa: ANN401 - plotly's own
    colours = figure.layout[trace.coloraxis] if trace.coloraxis is not None else trace
    least, most = (
        (colours.cmin, colours.cmax) if trace.coloraxis is not None else (colours.zmin, colours.zmax)
    )
    digits = re.search(r"%\{z:([^}]*)\}", str(trace.texttemplate or ""))
    return Map(
        z=np.array([_numbers(row, ()) for row in trace.z]),
        digits=digits[1] if digits else "",
        colours=tuple((float(place), _rgb(str(colour))) for place, colour in colours.colorscale),
        limits=None if least is None or most is None else (float(least), float(most)),
        label=str(colours.colorbar.title.text or ""),
    )


def _rgb(colour: str) -> Rgb:
    """Read ``#440154`` or ``rgb(5,48,97)``.

    >>> _rgb("rgb(255, 0, 51)") == _rgb("#FF0033") == (1.0, 0.0, 0.2)
    True
    """
    if colour.startswith("#"):
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    else:
        red, green, blue = (round(float(each)) for each in re.findall(r"[\d.]+", colour)[:3])
    return red / 255, green / 255, blue / 255

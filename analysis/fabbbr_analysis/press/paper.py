"""A chart on paper: matplotlib draws it in the width of a column, and the same chart gives the same bytes."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fabbbr.errors import AnalysisError
from fabbbr_analysis.figures.words import levels
from fabbbr_analysis.press import ink
from fabbbr_analysis.press.chart import Chart, Map, Note, Numbers, Plot, Scale, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Format: TypeAlias = Literal["pdf", "svg", "png"]
COLUMN_IN = 3.3
"""Width of a column of a two-column page."""
_ONE_ROW, _MANY_ROWS, _MAP_ROW = 0.66, 0.42, 0.62
"""Height of a row over the width of the figure (of a column of panels, for maps)."""
_WIDEST_IN = 4.5
"""A figure that is wider is no higher: across a page it would take half of it."""
_NO_DATE: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": "fabbbr"},
    "svg": {"Date": None, "Creator": "fabbbr"},
    "png": {},
}
_LETTER_IN, _LABEL_SHARE = 0.052, 0.72
"""Width of a letter of a label, roughly; share of a row's height that its panel has."""
_NOTE_PT, _NOTE_LINE = 6, 1.25
"""Size of a note above a panel, and its lines over it."""
_NOTE_LETTER_IN, _AXES_SHARE = 0.035, 0.8
"""Width of a letter of a note, roughly; share of a column's width that the axes have."""
_CHARACTER_IN = 0.055
"""Width of a digit of a label, roughly, and a gap of one more."""


@dataclass(frozen=True, kw_only=True)
class Framing:
    """How large a figure is, and what stands above it."""

    width_in: float = COLUMN_IN
    height_in: float | None = None
    """None: what suits the width and the number of rows."""
    title: str = ""


def printed(chart: Chart, sheet: Framing, kind: Format) -> bytes:
    """Draw the chart as a file of this kind; raise AnalysisError for letters that no font of ours has."""
    import matplotlib as mpl

    settings: dict[Any, Any] = {**mpl.rcParamsDefault, **ink.SETTINGS}
    with mpl.rc_context({key: value for key, value in settings.items() if "backend" not in key}):
        return _bytes(chart, sheet, kind)


def _bytes(chart: Chart, sheet: Framing, kind: Format) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        drawn(chart, sheet).savefig(out, format=kind, metadata=_NO_DATE[kind])
    missing = [str(each.message) for each in said if "missing from" in str(each.message)]
    if missing:
        message = f"{missing[0].rstrip('.')}: a letter of a title or name has no form in print; use another"
        raise AnalysisError(message)
    return out.getvalue()


def drawn(chart: Chart, sheet: Framing) -> Figure:
    """Draw the chart with the settings that are in force."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(sheet.width_in, sheet.height_in or _height(chart, sheet)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(
        chart.rows, chart.columns, squeeze=False, sharex="col" if chart.shared and chart.rows > 1 else False
    )
    _take_empty_away(axes, chart)
    dashes = ink.dashes(chart)
    legend: dict[str, Line2D] = {}
    for panel in chart.panels:
        lines = _draw_panel(axes[panel.row, panel.column], panel, dashes, sheet.width_in / chart.columns)
        for trace, line in zip(panel.traces, lines, strict=True):
            if trace.in_legend:
                legend.setdefault(_plain(trace.name), line)
    _wrap_labels(axes, figure.get_figheight() / chart.rows)
    if chart.legend and legend:
        _add_legend(figure, legend, sheet)
    elif sheet.title:
        figure.suptitle(_plain(sheet.title))
    return figure


def _take_empty_away(axes: Any, chart: Chart) -> None:  # noqa: ANN401 - an array of axes
    """Places of the grid without a panel have no axes either."""
    used = {(panel.row, panel.column) for panel in chart.panels}
    for place, each in np.ndenumerate(axes):
        if place not in used:
            each.remove()


def _plain(text: str) -> str:
    """A text of the run as it stands: matplotlib would set what is between dollars as a formula."""
    return text.replace("$", r"\$")


def _wrap_labels(axes: Any, height_in: float) -> None:  # noqa: ANN401 - an array of axes
    """Break labels of vertical axes that are longer than their row is high."""
    there = [each for each in axes.flat if each.figure is not None]
    for each in there:
        label = each.yaxis.get_label_text()
        most = max(10, int(height_in * _LABEL_SHARE / _LETTER_IN))
        each.yaxis.set_label_text("\n".join(textwrap.wrap(label, most, break_long_words=False)))
        each.yaxis.label.set_linespacing(1.0)
    there[0].figure.align_ylabels()


def _height(chart: Chart, sheet: Framing) -> float:
    if any(panel.map is not None for panel in chart.panels):
        return (0.25 + chart.rows * _MAP_ROW / chart.columns) * sheet.width_in
    return (_ONE_ROW if chart.rows == 1 else _MANY_ROWS * chart.rows) * min(sheet.width_in, _WIDEST_IN)


def _draw_panel(axes: Axes, panel: Plot, dashes: dict[str, str], width_in: float) -> list[Line2D]:
    """Draw a panel; return the line of each trace."""
    if panel.title:
        axes.set_title(_plain(panel.title))
    clipped = panel.across.limits is not None or panel.up.limits is not None
    lines = [
        _draw_trace(axes, each, dashes.get(each.colour, each.dash), clipped=clipped) for each in panel.traces
    ]
    for place, dash in panel.marked:
        axes.axvline(place, color=ink.printed("#8A8F98"), linewidth=0.6, dashes=ink.DASHES[dash] or (1, 0))
    if panel.map is not None:
        _draw_map(axes, panel.map)
    else:
        axes.grid(visible=True, axis="y")
        axes.set_axisbelow(True)
    _set_scale(axes, "x", panel.across, width_in)
    _set_scale(axes, "y", panel.up, width_in)
    _write_notes(axes, panel.notes, width_in)
    return lines


def _write_notes(axes: Axes, notes: Sequence[Note], width_in: float) -> None:
    """Letters take more of a narrow figure than of a page, so places are looked for anew."""
    begin, end = axes.get_xlim()
    letter = _NOTE_LETTER_IN / (width_in * _AXES_SHARE) * (end - begin)
    texts = [(note.x, note.text) for note in notes]
    for note, place in zip(notes, levels(texts, letter=letter, begin=begin, end=end), strict=True):
        axes.annotate(
            _plain(note.text), (note.x, 1), xycoords=("data", "axes fraction"), fontsize=_NOTE_PT,
            xytext=(0, 1 + place.level * _NOTE_LINE * _NOTE_PT), textcoords="offset points",
            ha="right" if place.ends else "left",
        )  # fmt: skip


def _draw_trace(axes: Axes, trace: Trace, dash: str, *, clipped: bool) -> Line2D:
    import matplotlib.lines as mlines

    colour = ink.printed(trace.colour)
    if trace.filled:
        axes.fill(trace.x, trace.y, color=colour, alpha=trace.opacity, linewidth=0, label=f"_{trace.name}")
        return mlines.Line2D([], [])  # a band has no place in the legend
    width = max(0.5, trace.width * ink.POINT_PER_PIXEL)
    bars = {"x": _lengths(trace.x_bars, trace.x), "y": _lengths(trace.y_bars, trace.y)}
    (line,) = axes.plot(
        trace.x,
        trace.y,
        color=colour,
        alpha=trace.opacity,
        linestyle="-" if trace.line else "none",
        linewidth=width,
        marker=ink.MARKERS.get(trace.symbol, "o") if trace.marks else "none",
        markersize=trace.size * ink.POINT_PER_PIXEL,
        markerfacecolor="white" if trace.hollow else colour,
        markeredgewidth=0.7 if trace.hollow or trace.symbol == "x-thin" else 0.0,
        drawstyle="steps-post" if trace.stepped else "default",
        label=f"_{trace.name}",  # hidden from matplotlib's own legend: ours is made of the chart's
        zorder=2.5 if trace.opacity < 1 else 3,
        # A mark at zero is drawn whole; a line without a point that is not clipped has no extent to lay out.
        clip_on=clipped or not trace.marks or not len(trace.x),
    )
    if trace.line and ink.DASHES.get(dash):
        line.set_dashes(ink.DASHES[dash])
    if any(each is not None for each in bars.values()):
        axes.errorbar(
            trace.x, trace.y, xerr=bars["x"], yerr=bars["y"], fmt="none",
            ecolor=colour, elinewidth=0.7, capsize=1.6, capthick=0.7, zorder=3,
        )  # fmt: skip
    return line


def _lengths(bars: tuple[Numbers, Numbers] | None, middle: Numbers) -> Numbers | None:
    """Below and above, as matplotlib takes them; rounding must not make a length of 0 negative."""
    if bars is None:
        return None
    return np.array([np.maximum(middle - bars[0], 0.0), np.maximum(bars[1] - middle, 0.0)])


def _draw_map(axes: Axes, cells: Map) -> None:
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    known = cells.z[~np.isnan(cells.z)]
    least, most = cells.limits or ((known.min(), known.max()) if known.size else (0.0, 1.0))
    colours = LinearSegmentedColormap.from_list("chart", list(cells.colours))
    norm = Normalize(least, most if most > least else least + 1)
    axes.pcolormesh(
        np.arange(cells.z.shape[1] + 1) - 0.5, np.arange(cells.z.shape[0] + 1) - 0.5,
        np.ma.masked_invalid(cells.z), cmap=colours, norm=norm, edgecolors="white", linewidth=0.5,
    )  # fmt: skip
    for (row, column), value in np.ndenumerate(cells.z):
        if cells.digits and not np.isnan(value):
            red, green, blue, _ = colours(norm(value))
            dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
            text = format(value, cells.digits).replace("-", "−")
            axes.text(column, row, text, ha="center", va="center", fontsize=6, color="w" if dark else "k")


def _set_scale(axes: Axes, which: Literal["x", "y"], scale: Scale, width_in: float) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_label_text(_plain(scale.title))
    if scale.log:
        getattr(axes, f"set_{which}scale")("log")
    _limit(axes, which, scale)
    _tick(axes, axis, which, scale, width_in)
    if not scale.labelled:
        axes.tick_params(axis=which, labelbottom=False, labelleft=False)
    if scale.upside_down:
        axis.set_inverted(True)


def _limit(axes: Axes, which: Literal["x", "y"], scale: Scale) -> None:
    set_limits = axes.set_xlim if which == "x" else axes.set_ylim
    if scale.names:
        set_limits(-0.5, len(scale.names) - 0.5)
    elif scale.limits is not None:
        set_limits(*scale.limits)
    elif scale.from_zero and (axes.get_xlim() if which == "x" else axes.get_ylim())[1] > 0:
        low, high = axes.dataLim.intervalx if which == "x" else axes.dataLim.intervaly
        if low >= 0:
            set_limits(0, high * 1.05 if high > 0 else None)


def _tick(axes: Axes, axis: Axis, which: str, scale: Scale, width_in: float) -> None:
    from matplotlib.ticker import NullLocator, PercentFormatter

    if scale.names:
        axis.set_ticks(range(len(scale.names)), list(map(_plain, scale.names)))
        if which == "x" and sum(map(len, scale.names)) * _CHARACTER_IN > 0.8 * width_in:
            axes.tick_params(axis="x", rotation=30)
    elif scale.ticks:
        labelled = _thinned(axes, scale, width_in) if which == "x" else list(scale.ticks)
        axis.set_ticks([place for place, _ in labelled], [_plain(text) for _, text in labelled])
        axis.set_minor_locator(NullLocator())
        axis.set_ticks([place for place, _ in scale.ticks if (place, _) not in labelled], minor=True)
    elif scale.percent:
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _thinned(axes: Axes, scale: Scale, width_in: float) -> list[tuple[float, str]]:
    """Labels from left to right, without those that would touch the one before."""
    low, high = axes.get_xlim()
    places = np.log10([low, high]) if scale.log else np.array([low, high])
    kept: list[tuple[float, str]] = []
    end_in = -1.0
    for value, text in scale.ticks:
        place = np.log10(value) if scale.log else value
        middle_in = 0.85 * width_in * (place - places[0]) / (places[1] - places[0])
        half_in = _CHARACTER_IN * (len(text) + 1) / 2
        if middle_in - half_in >= end_in:
            kept.append((value, text))
            end_in = middle_in + half_in
    return kept


def _add_legend(figure: Figure, named: dict[str, Line2D], sheet: Framing) -> None:
    """Above everything, in as many columns as there is room for, and with the title above it."""
    how: dict[str, Any] = {"loc": "outside upper center"}
    if sheet.title:
        how |= {"title": _plain(sheet.title), "title_fontsize": ink.SETTINGS["figure.titlesize"]}
    for columns in range(len(named), 0, -1):
        legend = figure.legend(named.values(), named.keys(), ncols=columns, **how)
        if columns == 1 or legend.get_window_extent().width <= 0.97 * sheet.width_in * figure.dpi:
            break
        legend.remove()

"""The panels of a datasheet as one chart, which is drawn on paper and for the page alike."""

from __future__ import annotations

import numpy as np

from fabbbr_analysis.datasheet.sheet import Answered, Datasheet
from fabbbr_analysis.figures.style import Look, Palette
from fabbbr_analysis.press.chart import Chart, Numbers, Plot, Scale, Trace

COLUMNS = 3
WIDTH_IN, ROW_IN = 7.2, 1.75
_ASIDE = 0.12
"""How far apart the marks of rivals stand at one place."""


def picture(found: Datasheet) -> Chart:
    """Lay the panels out, three in a row; the datasheet's own congestion control is drawn bold."""
    palette = Palette.of(found.ccas)
    panels = tuple(
        _axes(panel, found, palette, divmod(number, COLUMNS)) for number, panel in enumerate(found.panels)
    )
    return Chart(panels=panels, legend=True, shared=False)


def height_in(chart: Chart) -> float:
    """What the chart needs of a page."""
    return 0.4 + ROW_IN * chart.rows


def _axes(panel: Answered, found: Datasheet, palette: Palette, at: tuple[int, int]) -> Plot:
    fair = () if isinstance(panel.asked.better, str) else (_fair(panel),)
    traces = tuple(
        _trace(panel, cca, palette[cca], place, len(found.ccas))
        for place, cca in enumerate(found.ccas)
        if any(cell.cca == cca for cell in panel.cells)
    )
    return Plot(
        row=at[0],
        column=at[1],
        title=panel.asked.title,
        across=_scale(panel.axis, names=tuple(text.replace(" ", "\u202f") for text in panel.places)),
        up=_scale(panel.asked.unit, from_zero=True),
        traces=(*fair, *traces),
        map=None,
        marked=(),
    )


def _scale(title: str, *, names: tuple[str, ...] = (), from_zero: bool = False) -> Scale:
    return Scale(
        title=title,
        log=False,
        from_zero=from_zero,
        percent=False,
        labelled=True,
        names=names,
        ticks=(),
        limits=None,
    )


def _fair(panel: Answered) -> Trace:
    """A line where both have half."""
    level = float(panel.asked.better) * panel.asked.factor
    ends = np.array([-0.5, len(panel.places) - 0.5])
    grey = Look(colour="#8A8F98", symbol="circle", dash="dot")
    return _line("fair", (ends, np.full(2, level)), grey, bars=None, own=False)


def _trace(panel: Answered, cca: str, look: Look, place: int, of: int) -> Trace:
    cells = [(x, cell) for x, text in enumerate(panel.places) if (cell := panel.at(cca, text)) is not None]
    factor = panel.asked.factor
    x = np.array([at + (place - (of - 1) / 2) * _ASIDE for at, _ in cells], dtype=np.float64)
    y = np.array([cell.mean.value * factor for _, cell in cells], dtype=np.float64)
    low = np.array([_or_nan(cell.mean.low) * factor for _, cell in cells], dtype=np.float64)
    high = np.array([_or_nan(cell.mean.high) * factor for _, cell in cells], dtype=np.float64)
    return _line(cca, (x, y), look, bars=(low, high), own=place == 0)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _line(
    name: str, points: tuple[Numbers, Numbers], look: Look, *, bars: tuple[Numbers, Numbers] | None, own: bool
) -> Trace:
    """A line through ``points``; what has no bars has no marks either."""
    return Trace(
        name=name,
        x=points[0],
        y=points[1],
        x_bars=None,
        y_bars=bars,
        line=True,
        marks=bars is not None,
        stepped=False,
        filled=False,
        colour=look.colour,
        symbol=look.symbol,
        hollow=False,
        dash=look.dash,
        width=4.0 if own else 1.8,
        size=10.0 if own else 7.0,
        opacity=1.0,
        in_legend=True,
    )

"""Our means beside a published grid: heat maps of the same conditions, and each mean against the paper's."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.measures import BY_COLUMN, CONDITIONS, ConditionColumn, Measure, in_a_sentence
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.references import Grid, published_grid

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_CONDITIONS = {condition.column: condition for condition in CONDITIONS}
_FEWEST_POINTS = 4
"""Fewer are read faster in a table."""
_GAIN_COLOURS, _VALUE_COLOURS = "RdBu_r", "Viridis"
_WIDEST_GAIN_PCT = 100.0
"""What gains more has the same colour; its number stands in it."""
_NEAR = 0.05
"""The thin lines beside the diagonal."""
SCATTER_CAPTION = (
    "Bars are the standard deviation of the runs; between the dotted lines both agree within 5 %."
)
_ROW_HEIGHT = 330
_DECADE = 10
"""Values that span more are drawn on logarithmic axes."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The values at which axes that are not drawn are held."""

    held: Mapping[str, float]
    label: str
    """Such as ``buffer 102.4 kB``; empty when nothing is held."""

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """Take the rows of this panel."""
        here = pd.Series(data=True, index=table.index)
        for column, value in self.held.items():
            here &= table[column] == value
        return table[here]


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Our conditions in the axes of a published grid, and what was published of them."""

    measure: Measure
    grid: Grid
    across: ConditionColumn
    """The axis with the most values."""
    up: ConditionColumn
    panels: tuple[Panel, ...]
    table: pd.DataFrame
    """One row per condition of ours: ``cca``, the axes, ``ours`` with ``ours_sd`` and ``our_gain``, and the
    paper's ``mean``, ``sd`` and ``gain``, which are NaN where nothing was published."""

    @property
    def values(self) -> tuple[str, str]:
        """Columns of ``table`` that heat maps show: ours and the paper's."""
        return ("our_gain", "gain") if self.grid.baseline is not None else ("ours", "mean")

    @property
    def compared(self) -> tuple[str, ...]:
        """Congestion controls that get a heat map; a gain needs the baseline beside it."""
        present = self.table[self.table[self.values[0]].notna()]
        return tuple(sorted(set(present["cca"]) - {self.grid.baseline}))

    @property
    def mapped(self) -> tuple[Panel, ...]:
        """Panels that have heat maps."""
        return self.panels if self.compared else ()

    @property
    def both(self) -> pd.DataFrame:
        """The conditions that were published too."""
        return self.table[self.table["mean"].notna()]

    @property
    def title(self) -> str:
        """What the heat maps show, in words."""
        metric = in_a_sentence(self.measure.title)
        what = f"Gain in {metric} over {self.grid.baseline}" if self.grid.baseline else self.measure.title
        return what if self.both.empty else f"{what}, here and published"

    @property
    def caption(self) -> str:
        """How to read the heat maps."""
        if self.both.empty:
            return f"Means of certified runs; {self.grid.label} measured none of these conditions."
        return f"Means of certified runs on the left, {self.grid.label} on the right where they measured it."


def find(run_set: RunSet) -> Beside | None:
    """Lay our certified means beside the grid that was published of some metric; None when none was."""
    for measure in BY_COLUMN.values():
        grid = published_grid(run_set.experiment, measure.column)
        if grid is not None and set(grid.axes) <= set(run_set.runs.columns):
            return _beside(run_set.certified, measure, grid)
    return None


def _beside(runs: pd.DataFrame, measure: Measure, grid: Grid) -> Beside | None:
    ours = _our_means(runs, measure, grid)
    theirs = _rounded(grid.table.assign(gain=_gains(grid)), grid.axes)
    table = ours.merge(theirs, on=["cca", *grid.axes], how="left")
    varied = sorted(grid.axes, key=lambda column: -table[column].nunique())
    if len(table) < _FEWEST_POINTS or len(varied) < 2 or table[varied[1]].nunique() < 2:
        return None
    across, up = (_CONDITIONS[column] for column in varied[:2])
    panels = tuple(_panels(table, varied[2:]))
    return Beside(measure=measure, grid=grid, across=across, up=up, panels=panels, table=table)


def _our_means(runs: pd.DataFrame, measure: Measure, grid: Grid) -> pd.DataFrame:
    # Tables have no loss where none is injected; a grid has a zero there.
    known = runs.assign(cca=runs["ccas"], value=runs[measure.column]).fillna({"loss_ratio": 0.0})
    present = _rounded(known, grid.axes)
    by = ["cca", *grid.axes]
    ours = present.dropna(subset=["value"]).groupby(by, as_index=False)["value"].agg(["mean", "std", "count"])
    ours = ours.rename(columns={"mean": "ours", "std": "ours_sd", "count": "ours_n"})
    baseline = ours[ours["cca"] == grid.baseline].set_index(list(grid.axes))["ours"]
    beside = pd.MultiIndex.from_frame(ours[list(grid.axes)])
    return ours.assign(our_gain=ours["ours"].to_numpy() / baseline.reindex(beside).to_numpy() - 1)


def _gains(grid: Grid) -> pd.Series[float] | float:
    return grid.gains if grid.baseline is not None else np.nan


def _rounded(table: pd.DataFrame, axes: tuple[str, ...]) -> pd.DataFrame:
    """Four digits: a buffer of whole bytes is not exactly 0.3 BDP."""
    return table.assign(**{axis: table[axis].map(lambda value: float(f"{value:.4g}")) for axis in axes})


def _panels(table: pd.DataFrame, columns: list[str]) -> Iterator[Panel]:
    there = set(table[columns].itertuples(index=False, name=None)) if columns else {()}
    for values in sorted(there):
        held = dict(zip(columns, values, strict=True))
        label = ", ".join(_named(_CONDITIONS[column], float(value)) for column, value in held.items())
        yield Panel(held=held, label=label)


def _named(condition: ConditionColumn, value: float) -> str:
    return f"{in_a_sentence(condition.title)} {value * condition.factor:g} {condition.unit}".rstrip()


def heat_maps(beside: Beside, panel: Panel) -> go.Figure:
    """Draw a row per congestion control: ours on the left, the paper's on the right, in the same colours.

    Where nothing was published at the values of the panel, ours are alone.
    """
    names, rows = beside.compared, panel.of(beside.table)
    sides = dict(zip(("here", beside.grid.label), beside.values, strict=True))
    if rows["mean"].isna().all():
        del sides[beside.grid.label]
    titles = [f"{name}, {whose}" for name in names for whose in sides]
    figure = make_subplots(
        rows=len(names), cols=len(sides), subplot_titles=titles, shared_xaxes=True, shared_yaxes=True,
        horizontal_spacing=0.04, vertical_spacing=0.28 / (len(names) + 1),
        figure=canvas.empty(height=_ROW_HEIGHT * len(names)),
    )  # fmt: skip
    for (row, name), (column, value) in itertools.product(enumerate(names, 1), enumerate(sides.values(), 1)):
        figure.add_trace(_heat_map(beside, rows[rows["cca"] == name], value), row=row, col=column)
    figure.update_layout(coloraxis=_colours(beside), margin={"t": 40})
    figure.update_xaxes(title_text=_label(beside.across), row=len(names))
    figure.update_yaxes(title_text=_label(beside.up), col=1)
    return figure


def _heat_map(beside: Beside, rows: pd.DataFrame, value: str) -> go.Heatmap:
    factor = 100.0 if beside.grid.baseline is not None else beside.measure.factor
    wide = rows.pivot(index=beside.up.column, columns=beside.across.column, values=value) * factor
    across, up = wide.columns.to_numpy(dtype=np.float64), wide.index.to_numpy(dtype=np.float64)
    return go.Heatmap(
        x=[f"{each:g}" for each in across * beside.across.factor],
        y=[f"{each:g}" for each in up * beside.up.factor],
        z=[canvas.or_none(line) for _, line in wide.iterrows()],
        coloraxis="coloraxis",
        texttemplate="%{z:.1f}" if beside.grid.baseline is not None else "%{z:.3g}",
        xgap=1,
        ygap=1,
        hovertemplate=(
            f"{beside.across.title} %{{x}} {beside.across.unit}<br>{beside.up.title} %{{y}} {beside.up.unit}"
            "<br>%{z:.4g}<extra></extra>"
        ),
    )


def _colours(beside: Beside) -> dict[str, object]:
    if beside.grid.baseline is not None:
        ends = {"cmin": -_WIDEST_GAIN_PCT, "cmax": _WIDEST_GAIN_PCT}
        return {"colorscale": _GAIN_COLOURS, **ends, "colorbar": {"title": {"text": "Gain (%)"}}}
    return {"colorscale": _VALUE_COLOURS, "colorbar": {"title": {"text": beside.measure.label}}}


def _label(condition: ConditionColumn) -> str:
    return f"{condition.title} ({condition.unit})" if condition.unit else condition.title


def scatter(beside: Beside, palette: Palette) -> go.Figure:
    """Draw every mean of ours over the paper's, with the standard deviation of the runs of both."""
    figure = canvas.empty(height=560)
    for name, rows in beside.both.groupby("cca", sort=True):
        look = palette[str(name)]
        for place, panel in enumerate(beside.panels):
            symbol = look.open_symbol if place % 2 == 0 and len(beside.panels) > 1 else look.symbol
            _add_points(figure, beside, panel.of(rows), _Points(str(name), panel.label, look.colour, symbol))
    values = beside.both[["ours", "mean"]].to_numpy() * beside.measure.factor
    _add_diagonals(figure, float(values.min()), float(values.max()))
    log = beside.measure.log_by_nature or values.max() > 10 * values.min() > 0
    figure.update_xaxes(
        title_text=f"{beside.measure.label}, {beside.grid.label}", type="log" if log else None
    )
    figure.update_yaxes(title_text=f"{beside.measure.label}, here", type="log" if log else None)
    return figure


@dataclass(frozen=True)
class _Points:
    cca: str
    panel: str
    colour: str
    symbol: str

    @property
    def name(self) -> str:
        return f"{self.cca}, {self.panel}" if self.panel else self.cca


def _add_points(figure: go.Figure, beside: Beside, rows: pd.DataFrame, points: _Points) -> None:
    factor, bar = beside.measure.factor, {"type": "data", "thickness": 1, "width": 0, "color": points.colour}
    figure.add_scatter(
        x=list(rows["mean"] * factor),
        y=list(rows["ours"] * factor),
        error_x={**bar, "array": canvas.or_none(rows["sd"] * factor)},
        error_y={**bar, "array": canvas.or_none(rows["ours_sd"] * factor)},
        mode="markers",
        name=points.name,
        marker={"color": points.colour, "symbol": points.symbol, "size": 8},
        customdata=[[_where(beside, row)] for row in rows.to_dict("records")],
        hovertemplate=(
            f"<b>{points.name}</b><br>%{{customdata[0]}}<br>here %{{y:.4g}} ± %{{error_y.array:.2g}}, "
            f"published %{{x:.4g}} ± %{{error_x.array:.2g}} {beside.measure.unit}<extra></extra>"
        ),
    )


def _where(beside: Beside, row: Mapping[Hashable, Any]) -> str:
    return ", ".join(_named(each, float(row[each.column])) for each in (beside.up, beside.across))


def _add_diagonals(figure: go.Figure, low: float, high: float) -> None:
    for factor, dash, name in (
        (1.0, "solid", "equal"),
        (1 + _NEAR, "dot", f"± {_NEAR:.0%}"),
        (1 - _NEAR, "dot", ""),
    ):
        figure.add_scatter(
            x=[low, high],
            y=[low * factor, high * factor],
            mode="lines",
            name=name,
            showlegend=bool(name),
            hoverinfo="skip",
            line={"color": "#8A8F98", "width": 1, "dash": dash},
        )


def names(beside: Beside) -> dict[str, Panel | None]:
    """Name of a figure → the panel whose heat maps it shows; None for the scatter."""
    metric = beside.measure.slug
    maps = f"{metric}_gain_beside_published" if beside.grid.baseline else f"{metric}_beside_published"
    held = {f"{maps}[{panel.label}]" if panel.label else maps: panel for panel in beside.mapped}
    return {**held, **({} if beside.both.empty else {f"{metric}_against_published": None})}


def draw(beside: Beside, panel: Panel | None, palette: Palette) -> go.Figure:
    """Draw what :func:`names` named."""
    return scatter(beside, palette) if panel is None else heat_maps(beside, panel)

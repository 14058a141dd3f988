"""A metric against what was varied: each run a point, mean and 95 % interval, beside what was published."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.graph_objects as go

from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.conditions import Axis, cca_columns, held_to, mixes
from fabbbr_analysis.figures.curves import told_apart
from fabbbr_analysis.figures.measures import Measure
from fabbbr_analysis.figures.published import Published
from fabbbr_analysis.figures.style import NO_CCA, PUBLISHED_READING, Look, Palette, among
from fabbbr_analysis.metrics import together_bps
from fabbbr_analysis.summary import summarise

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet


_RATES = {
    "goodput_bps": ("received_bytes", "receiver_s"),
    "throughput_bps": ("sent_bytes", "sender_s"),
}
"""Rates of a group: the bytes of its flows, over the seconds in which one of them ran."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Which metric is drawn against which axis."""

    measure: Measure
    axis: Axis | None
    """None when nothing but the congestion control varies."""
    panel: Mapping[str, str] = field(default_factory=dict)
    """Axis key → value to which the other axes are held."""
    by_group: bool = False
    """Whether a series is a group of flows (from table ``flows``) and not a whole cell."""
    per_flow: bool = False
    """Whether it is of a group the mean of its flows: of more flows all together have more, or as much."""


def points(run_set: RunSet, sweep: Sweep) -> pd.DataFrame:
    """Return one row per run and series: table ``runs`` plus ``series`` and ``cca``, held to the panel."""
    runs = held_to(run_set.runs.assign(series=mixes(run_set.runs)), sweep.panel)
    if not sweep.by_group:
        return runs.assign(cca=runs["ccas"])
    return _per_group(run_set.flows, runs, sweep)


def _per_group(flows: pd.DataFrame, runs: pd.DataFrame, sweep: Sweep) -> pd.DataFrame:
    keys, column = ["cell_id", "group", "cca"], sweep.measure.column
    rows = [
        {**dict(zip(keys, names, strict=True)), column: _of_group(own, sweep)}
        for names, own in flows.groupby(keys, dropna=False)
    ]
    found = pd.DataFrame(rows, columns=[*keys, column]).astype({column: "float64"})
    frame: pd.DataFrame = runs.drop(columns=[column]).merge(found, on="cell_id")
    return frame.assign(
        condition=frame["condition"] + " " + frame["group"],
        series=told_apart(frame, runs, cca_columns(runs)),
    )


def _of_group(flows: pd.DataFrame, sweep: Sweep) -> float | None:
    column = sweep.measure.column
    if sweep.per_flow:
        return float(flows[column].mean(skipna=False))
    if column in _RATES:
        # Not a sum of rates: flows that follow one another would be faster than their link.
        return together_bps(flows, *_RATES[column])
    # min_count: a group of flows that all failed has no sum, which is not a sum of 0.
    return float(flows[column].sum(min_count=1))


def means(run_set: RunSet, sweep: Sweep) -> pd.DataFrame:
    """Return the summary behind the means that :func:`draw` draws."""
    column = sweep.measure.column
    frame = points(run_set, sweep)
    return summarise(frame[frame[column].notna()], [column])


def draw(run_set: RunSet, sweep: Sweep, *, palette: Palette, published: Published | None) -> go.Figure:
    """Draw the sweep; cells that were not certified are shown and never averaged."""
    frame = points(run_set, sweep)
    frame = frame[frame[sweep.measure.column].notna()]
    figure = canvas.empty()
    canvas.label_axes(figure, sweep.axis, sweep.measure)
    looks = _looks(frame, palette)
    for series, runs in frame.groupby("series", sort=True):
        certified = runs[runs["status"] == "certified"]
        _add_runs(figure, sweep, certified, looks[str(series)])
        _add_means(figure, sweep, certified, looks[str(series)])
    if published is not None:
        _add_published(figure, sweep, published, looks)
    excluded = frame[frame["status"] != "certified"]
    _add_excluded(figure, sweep, excluded)
    if sweep.axis is None and excluded.empty:
        # The names of the series stand on the axis.
        figure.update_layout(showlegend=False)
    else:
        canvas.make_room_for_legend(figure, sum(trace.showlegend is not False for trace in figure.data))
    return figure


def _looks(frame: pd.DataFrame, palette: Palette) -> dict[str, Look]:
    """Colour by congestion control; series that share one differ by lightness, marker and dash."""
    looks: dict[str, Look] = {}
    for cca, rows in frame.groupby(frame["cca"].fillna(NO_CCA), sort=True):
        look = palette[str(cca)]
        names = sorted(rows["series"].unique())
        for place, name in enumerate(names):
            looks[str(name)] = look if len(names) == 1 else among(look, place, len(names))
    return looks


def _places(frame: pd.DataFrame, axis: Axis | None) -> list[float | str]:
    if axis is None:
        return [str(name) for name in frame["series"]]
    return [axis.place_of(str(text)) for text in frame[f"axis_{axis.key}"]]


def _shown(frame: pd.DataFrame, sweep: Sweep) -> list[float]:
    return [float(value) * sweep.measure.factor for value in frame[sweep.measure.column]]


def _hover(sweep: Sweep) -> str:
    return (
        f"<b>%{{customdata[0]}}</b><br>seed %{{customdata[1]}}"
        f"<br>{sweep.measure.title} %{{y:.4g}} {sweep.measure.unit}<extra></extra>"
    )


def _identity(frame: pd.DataFrame) -> list[list[str]]:
    # A 63-bit seed does not fit a JavaScript number; as text it stays exact.
    return [[str(cell), str(seed)] for cell, seed in zip(frame["cell_id"], frame["seed"], strict=True)]


def _add_runs(figure: go.Figure, sweep: Sweep, runs: pd.DataFrame, look: Look) -> None:
    if runs.empty:
        return
    figure.add_scatter(
        x=_places(runs, sweep.axis),
        y=_shown(runs, sweep),
        mode="markers",
        name=f"{runs['series'].iloc[0]}, each run",
        legendgroup=str(runs["series"].iloc[0]),
        showlegend=False,
        marker={"color": look.colour, "symbol": look.symbol, "size": 6, "opacity": 0.4},
        customdata=_identity(runs),
        hovertemplate=_hover(sweep),
    )


def _add_means(figure: go.Figure, sweep: Sweep, runs: pd.DataFrame, look: Look) -> None:
    if runs.empty:
        return
    series = str(runs["series"].iloc[0])
    column = sweep.measure.column
    means = summarise(runs, [column]).merge(
        runs.drop_duplicates("condition")[["condition", "series"]], on="condition"
    )
    means = means.assign(x=_places(means, sweep.axis))
    if sweep.axis is not None and sweep.axis.shown is not None:
        means = means.sort_values("x")
    factor = sweep.measure.factor
    figure.add_scatter(
        x=list(means["x"]),
        y=list(means["mean"] * factor),
        error_y={
            "type": "data",
            "symmetric": False,
            "array": canvas.or_none((means["high"] - means["mean"]) * factor),
            "arrayminus": canvas.or_none((means["mean"] - means["low"]) * factor),
            "thickness": 1.5,
            "width": 4,
            "color": look.colour,
        },
        mode="markers" if sweep.axis is None or sweep.axis.shown is None else "lines+markers",
        name=series,
        legendgroup=series,
        line={"color": look.colour, "width": 2, "dash": look.dash},
        marker={"color": look.colour, "symbol": look.symbol, "size": 10},
        customdata=[[str(row["n"]), _range(row, factor)] for row in means.to_dict("records")],
        hovertemplate=(
            f"<b>{series}</b>, mean of %{{customdata[0]}} runs"
            f"<br>{sweep.measure.title} %{{y:.4g}} {sweep.measure.unit}"
            "<br>%{customdata[1]}<extra></extra>"
        ),
    )


def _range(row: Mapping[Hashable, Any], factor: float) -> str:
    if row["exact"]:
        return "the same in all runs"
    if pd.isna(row["low"]):
        return "no interval: one run"
    return f"95 % interval {row['low'] * factor:.4g} to {row['high'] * factor:.4g}"


def _add_published(figure: go.Figure, sweep: Sweep, published: Published, looks: Mapping[str, Look]) -> None:
    # Of several series of one, the first has the look of the congestion control itself.
    by_cca = {name.split(" ")[0]: looks[name] for name in sorted(looks, reverse=True)}
    drawn = published.series[published.series["cca"].isin(list(by_cca))]
    for (cca, label, reading), rows in drawn.groupby(["cca", "label", "reading"], sort=True):
        ordered = rows.sort_values("x")
        look = by_cca[str(cca)]
        says = PUBLISHED_READING[str(reading)]
        scaled = f"<br>{published.remark}" if published.remark else ""
        figure.add_scatter(
            x=[float(x) for x in ordered["x"]],
            y=[float(y) for y in ordered["y"]],
            mode="lines+markers",
            name=f"{cca}, {says}",
            legendgroup=f"{cca} published",
            line={"color": look.colour, "width": 1, "dash": "dot"},
            marker={"color": look.colour, "symbol": look.open_symbol, "size": 11, "line": {"width": 1.5}},
            hovertemplate=f"<b>{label}</b>, {says}{scaled}<br>%{{y:.4g}} {sweep.measure.unit}<extra></extra>",
        )


def _add_excluded(figure: go.Figure, sweep: Sweep, runs: pd.DataFrame) -> None:
    if runs.empty:
        return
    figure.add_scatter(
        x=_places(runs, sweep.axis),
        y=_shown(runs, sweep),
        mode="markers",
        name="not certified, not averaged",
        marker={"color": "#8A8F98", "symbol": "x-thin", "size": 10, "line": {"width": 2, "color": "#8A8F98"}},
        customdata=_identity(runs),
        hovertemplate=_hover(sweep),
    )

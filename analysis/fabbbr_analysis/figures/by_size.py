"""How long transfers take by how much they carry: percentiles of flows of about the same size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fabbbr.model import Cell
from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.distribution import looks_of, transfers
from fabbbr_analysis.figures.sampling import FloatArray, compact
from fabbbr_analysis.figures.style import Look, Palette

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

CAPTION = (
    "Of transfers of about the same size, in all certified runs: half of them take no longer than the solid "
    "line, 95 % no longer than the dotted one. Those that did not complete count as slower than any."
)
_FEWEST_SIZES = 40
_FLOWS_AT_A_POINT = 40
_MOST_POINTS = 16
_PERCENTILES = {"half": (50, "solid"), "95 %": (95, "dot")}


def is_asked_of(run_set: RunSet) -> bool:
    """Whether transfers of many sizes are in some cell."""
    return any(_sizes(cell) >= _FEWEST_SIZES for cell in run_set.plan.values())


def _sizes(cell: Cell) -> int:
    return len({flow.size.bytes for flow in cell.flows if flow.size is not None})


def completion_by_size(run_set: RunSet, cell_ids: Sequence[str], *, palette: Palette) -> go.Figure:
    """Draw percentiles of the completion time against the size (kB) of transfers, two curves per series.

    Times are in s, or in ms where all are shorter than a second. Points hold about as many transfers each,
    and are the same sizes for all series. A figure without traces means that there are no transfers.
    """
    figure = canvas.empty(height=400)
    flows = transfers(run_set, cell_ids)
    order = {cell_id: number for number, cell_id in enumerate(cell_ids)}
    flows = flows.sort_values("cell_id", key=lambda ids: ids.map(order), kind="stable")
    looks = looks_of(run_set, cell_ids, list(flows["series"]), palette)
    edges, times = _edges(flows), flows["completion_s"].astype("float64")
    unit, factor = ("ms", 1e3) if (times.dropna() < 1).all() else ("s", 1.0)
    flows = flows.assign(told=times * factor)
    for series, rows in flows.groupby("series", sort=False):
        place = np.clip(np.searchsorted(edges, rows["size_bytes"], side="right") - 1, 0, len(edges) - 2)
        at = [rows[place == number] for number in range(len(edges) - 1)]
        _draw(figure, str(series), [each for each in at if not each.empty], looks[str(series)], unit)
    figure.update_xaxes(title_text="Size (kB)", type="log")
    figure.update_yaxes(title_text=f"Flow completion time ({unit})", type="log")
    canvas.make_room_for_legend(figure, len(looks))
    return figure


def _edges(flows: pd.DataFrame) -> FloatArray:
    """Sizes [bytes] between which the points are; ascending, at least two."""
    if flows.empty:
        return np.array([0.0, 1.0])
    fewest = flows["series"].value_counts().min()
    points = int(np.clip(fewest // _FLOWS_AT_A_POINT, 1, _MOST_POINTS))
    edges: FloatArray = np.unique(np.quantile(flows["size_bytes"], np.linspace(0, 1, points + 1)))
    return edges if len(edges) > 1 else np.array([edges[0], edges[0] + 1])


def _draw(figure: go.Figure, series: str, at: Sequence[pd.DataFrame], look: Look, unit: str) -> None:
    sizes = np.array([np.exp(np.log(rows["size_bytes"]).mean()) for rows in at]) * 1e-3
    counts = np.array([len(rows) for rows in at])
    for share, (percentile, dash) in _PERCENTILES.items():
        times = np.array([_percentile(rows["told"], percentile) for rows in at])
        there = np.isfinite(times)
        figure.add_scatter(
            x=compact(sizes[there]),
            y=compact(times[there]),
            customdata=counts[there],
            mode="lines+markers",
            name=series,
            legendgroup=series,
            showlegend=percentile == 50,
            line={"color": look.colour, "width": 1.75, "dash": dash},
            marker={"symbol": look.symbol, "size": 5},
            hovertemplate=(
                f"<b>{series}</b><br>{share} of %{{customdata}} transfers of about %{{x:.4g}} kB "
                f"take no longer than %{{y:.4g}} {unit}<extra></extra>"
            ),
        )


def _percentile(told: pd.Series, percentile: int) -> float:
    """A time that was measured, as a band that holds infinite ones has no middle."""
    times = told.fillna(np.inf).to_numpy()
    return float(np.percentile(times, percentile, method="inverted_cdf"))

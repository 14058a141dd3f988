"""How long each packet stood in the bottleneck's queue, as a CDF, a curve per run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.distribution import QUANTILES
from fabbbr_analysis.figures.sampling import compact
from fabbbr_analysis.figures.style import Palette

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

CAPTION = (
    "Distribution of the time from a data packet's arrival at the bottleneck to the leaving of its last bit, "
    "of every packet that left it, over the whole of each run."
)


def queue_delays(run_set: RunSet, cell_ids: Sequence[str], *, palette: Palette) -> go.Figure:
    """Draw the CDF of the time (ms) that data packets stood in a bottleneck's queue, over the whole run.

    Cells with several bottlenecks have a curve for each. Cells whose packets were not timed add nothing: a
    figure without traces means that none were.
    """
    timed = timed_cells(run_set)
    curves = [curve for cell_id in cell_ids if cell_id in timed for curve in _delays(run_set, cell_id)]
    figure = _drawn(run_set, curves, palette, "of the packets left within %{x:.4g} ms")
    figure.update_xaxes(title_text="Time in the bottleneck's queue (ms)")
    figure.update_yaxes(title_text="Share of packets below", range=[0, 1], tickformat=".0%")
    return figure


def timed_cells(run_set: RunSet) -> frozenset[str]:
    """Return the ids of the cells whose packets were timed."""
    runs = run_set.runs
    if "queue_delay_p50_s" not in runs.columns:
        return frozenset()
    return frozenset(runs.loc[runs["queue_delay_p50_s"].notna(), "cell_id"])


_Curve = tuple[str, str, npt.NDArray[np.float32]]
"""Congestion control, cell, and the value at each of :data:`QUANTILES`."""


def _drawn(run_set: RunSet, curves: Sequence[_Curve], palette: Palette, said: str) -> go.Figure:
    figure = canvas.empty(height=360)
    seeds = dict(zip(run_set.cells["cell_id"], run_set.cells["seed"], strict=True))
    named: set[str] = set()
    for name, cell_id, values in sorted(curves, key=lambda curve: curve[:2]):
        figure.add_scatter(
            x=values,
            y=compact(QUANTILES),
            mode="lines",
            name=name,
            legendgroup=name,
            showlegend=name not in named,
            line={"color": palette[name].colour, "width": 1.5, "shape": "hv"},
            hovertemplate=f"<b>{cell_id}</b><br>seed {seeds[cell_id]}<br>%{{y:.1%}} {said}<extra></extra>",
        )
        named.add(name)
    return figure


def _delays(run_set: RunSet, cell_id: str) -> Iterator[_Curve]:
    """Quantiles [ms] for each congestion control of one cell; only its packets are read."""
    columns = ["cell_id", "link", "role", "flow", "sojourn_s"]
    packets = run_set.packets(columns=columns, cell_ids=[cell_id])
    packets = packets[(packets["role"] == "bottleneck") & packets["sojourn_s"].notna()]
    packets = packets.merge(run_set.flows[["cell_id", "flow", "cca"]], on=["cell_id", "flow"])
    for (cca, _), rows in packets.groupby(["cca", "link"], sort=True):
        yield (
            str(cca),
            cell_id,
            compact(np.quantile(rows["sojourn_s"].to_numpy(dtype=float), QUANTILES) * 1e3),
        )

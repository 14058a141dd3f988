"""How long each packet stood in the bottleneck's queue, and how long a ping took: CDFs, a curve per run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.distribution import QUANTILES
from fabbbr_analysis.figures.sampling import compact
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.metrics import while_flows_run

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

CAPTION = (
    "Distribution of the time from a data packet's arrival at the bottleneck to the leaving of its last bit, "
    "of every packet that left it, over the whole of each run."
)


PING_CAPTION = (
    "Distribution of the round trips of the echo requests that were sent while flows ran: what a small "
    "packet waits beside them. A curve ends below 100 % where some had no answer."
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
    figure.update_yaxes(title_text="Share of packets below")
    return figure


def ping_round_trips(run_set: RunSet, cell_ids: Sequence[str], *, palette: Palette) -> go.Figure:
    """Draw the CDF of the round trips (ms) of pings that were sent while flows ran, a curve per cell.

    Cells without a ping beside their flows add nothing.
    """
    pinged = pinged_cells(run_set)
    curves = [_round_trips(run_set, cell_id) for cell_id in cell_ids if cell_id in pinged]
    figure = _drawn(run_set, curves, palette, "of the requests were answered within %{x:.4g} ms")
    figure.update_xaxes(title_text="Round trip of a ping (ms)")
    figure.update_yaxes(title_text="Share of requests below")
    return figure


def timed_cells(run_set: RunSet) -> frozenset[str]:
    """Return the ids of the cells whose packets were timed."""
    return _cells_with(run_set, "queue_delay_p50_s")


def pinged_cells(run_set: RunSet) -> frozenset[str]:
    """Return the ids of the cells in which a ping had answers beside the flows."""
    return _cells_with(run_set, "ping_median_s")


def _cells_with(run_set: RunSet, column: str) -> frozenset[str]:
    runs = run_set.runs
    if column not in runs.columns:
        return frozenset()
    return frozenset(runs.loc[runs[column].notna(), "cell_id"])


@dataclass(frozen=True, kw_only=True)
class _Curve:
    name: str
    """Congestion control; of pings that of all flows beside them."""
    cell_id: str
    values: npt.NDArray[np.float32]
    """Of what came, at each of :data:`QUANTILES`."""
    came: float = 1.0
    """Share of all."""


def _drawn(run_set: RunSet, curves: Sequence[_Curve], palette: Palette, said: str) -> go.Figure:
    figure = canvas.empty(height=360)
    seeds = dict(zip(run_set.cells["cell_id"], run_set.cells["seed"], strict=True))
    named: set[str] = set()
    for curve in sorted(curves, key=lambda curve: (curve.name, curve.cell_id)):
        whose = f"<b>{curve.cell_id}</b><br>seed {seeds[curve.cell_id]}"
        figure.add_scatter(
            x=curve.values,
            y=compact(QUANTILES * curve.came),
            mode="lines",
            name=curve.name,
            legendgroup=curve.name,
            showlegend=curve.name not in named,
            line={"color": palette[curve.name].colour, "width": 1.5, "shape": "hv"},
            hovertemplate=f"{whose}<br>%{{y:.1%}} {said}<extra></extra>",
        )
        named.add(curve.name)
    figure.update_yaxes(range=[0, 1], tickformat=".0%")
    return figure


def _delays(run_set: RunSet, cell_id: str) -> Iterator[_Curve]:
    """Quantiles [ms] for each congestion control of one cell; only its packets are read."""
    columns = ["cell_id", "link", "role", "flow", "sojourn_s"]
    packets = run_set.packets(columns=columns, cell_ids=[cell_id])
    packets = packets[(packets["role"] == "bottleneck") & packets["sojourn_s"].notna()]
    packets = packets.merge(run_set.flows[["cell_id", "flow", "cca"]], on=["cell_id", "flow"])
    for (cca, _), rows in packets.groupby(["cca", "link"], sort=True):
        yield _Curve(name=str(cca), cell_id=cell_id, values=_milliseconds(rows["sojourn_s"]))


def _round_trips(run_set: RunSet, cell_id: str) -> _Curve:
    flows, cells = run_set.flows, run_set.cells
    pings = run_set.pings(columns=["cell_id", "t_s", "rtt_s"], cell_ids=[cell_id])
    sent = while_flows_run(pings, flows[flows["cell_id"] == cell_id])["rtt_s"]
    return _Curve(
        name=str(cells.loc[cells["cell_id"] == cell_id, "ccas"].iloc[0]),
        cell_id=cell_id,
        values=_milliseconds(sent.dropna()),
        came=float(sent.notna().mean()),
    )


def _milliseconds(seconds: pd.Series) -> npt.NDArray[np.float32]:
    return compact(np.quantile(seconds.to_numpy(dtype=float), QUANTILES) * 1e3)

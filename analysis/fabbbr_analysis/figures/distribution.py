"""Distributions within a run as CDFs, a curve per run: BBR's bandwidth estimate, the delay of each packet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.sampling import compact
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.metrics import while_flows_run

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

CAPTION = "Distribution of the bandwidth estimate over the samples of each run, from warm-up on."
DELAYS_CAPTION = (
    "Distribution of the time from a data packet's arrival at the bottleneck to the leaving of its last bit, "
    "of every packet that left it, over the whole of each run."
)
RTTS_CAPTION = "Distribution of the senders' smoothed RTT over the samples of each run, a curve per run."
QUEUES_CAPTION = (
    "Distribution of the backlog of the bottleneck over the samples taken while flows ran, a curve per run."
)
COMPLETIONS_CAPTION = (
    "Distribution of the completion time of the flows of a given size, of all runs together."
)
QUANTILES = np.linspace(0, 1, 201)
"""Half a percent apart: finer than the line is thick."""


def bandwidth_estimates(run_set: RunSet, cell_ids: Sequence[str], *, palette: Palette) -> go.Figure:
    """Draw the CDF of BBR's bandwidth estimate (Mbit/s) from warm-up on, over the senders' socket samples.

    Cells without a BBR flow add nothing: a figure without traces means that there was none.
    """
    curves = [curve for cell_id in cell_ids for curve in _estimates(run_set, cell_id)]
    figure = _drawn(run_set, curves, palette, "of the samples are below %{x:.4g} Mbit/s")
    if curves and run_set.cells["rate_bps"].nunique() == 1:
        _mark_rate(figure, float(run_set.cells["rate_bps"].iloc[0]) * 1e-6)
    figure.update_xaxes(title_text="Bandwidth estimate of BBR (Mbit/s)")
    figure.update_yaxes(title_text="Share of samples below", range=[0, 1], tickformat=".0%")
    return figure


def queue_delays(run_set: RunSet, cell_ids: Sequence[str], *, palette: Palette) -> go.Figure:
    """Draw the CDF of the time (ms) that data packets stood in a bottleneck's queue, over the whole run.

    One curve for each congestion control and bottleneck of a cell; UDP has none. Cells whose packets were
    not timed add nothing: a figure without traces means that none were.
    """
    timed = timed_cells(run_set)
    curves = [curve for cell_id in cell_ids if cell_id in timed for curve in _delays(run_set, cell_id)]
    figure = _drawn(run_set, curves, palette, "of the packets left within %{x:.4g} ms")
    figure.update_xaxes(title_text="Time in the bottleneck's queue (ms)")
    figure.update_yaxes(title_text="Share of packets below", range=[0, 1], tickformat=".0%")
    return figure


def rtts(run_set: RunSet, cell_ids: Sequence[str], *, palette: Palette) -> go.Figure:
    """Draw the CDF of the senders' smoothed RTT (ms) over all samples, by congestion control and run."""
    curves = [curve for cell_id in cell_ids for curve in _rtts(run_set, cell_id)]
    figure = _drawn(run_set, curves, palette, "of the samples are below %{x:.4g} ms")
    figure.update_xaxes(title_text="RTT (ms)")
    figure.update_yaxes(title_text="Share of samples below", range=[0, 1], tickformat=".0%")
    return figure


def queues(run_set: RunSet, cell_ids: Sequence[str], *, palette: Palette) -> go.Figure:
    """Draw the CDF of the backlog of each bottleneck (kB), a curve per run, over samples while flows ran."""
    curves = [curve for cell_id in cell_ids for curve in _backlogs(run_set, cell_id)]
    figure = _drawn(run_set, curves, palette, "of the samples are below %{x:.4g} kB")
    figure.update_xaxes(title_text="Queue at the bottleneck (kB)", rangemode="tozero")
    figure.update_yaxes(title_text="Share of samples below", range=[0, 1], tickformat=".0%")
    return figure


def completions(run_set: RunSet, cell_ids: Sequence[str], *, palette: Palette) -> go.Figure:
    """Draw the CDF of the completion time (s) of flows of a given size: a step for each flow of every run.

    A flow that did not complete is among those that there are, so its curve ends below 100 %.
    """
    figure = canvas.empty(height=360)
    flows = run_set.flows[run_set.flows["cell_id"].isin(list(cell_ids))].merge(
        run_set.sized(), on=["cell_id", "flow"]
    )
    for cca, rows in flows.groupby("cca", sort=True):
        there = rows["completion_s"].dropna().sort_values().to_numpy(dtype=float)
        if there.size:
            figure.add_scatter(
                x=np.concatenate([there[:1], there]),
                y=np.arange(there.size + 1) / len(rows),
                mode="lines",
                name=str(cca),
                line={"color": palette[str(cca)].colour, "width": 1.5, "shape": "hv"},
                hovertemplate=(
                    f"<b>{cca}</b><br>%{{y:.1%}} of {len(rows)} flows within %{{x:.4g}} s<extra></extra>"
                ),
            )
    figure.update_xaxes(title_text="Flow completion time (s)", rangemode="tozero")
    figure.update_yaxes(title_text="Share of flows within", range=[0, 1], tickformat=".0%")
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


def _rtts(run_set: RunSet, cell_id: str) -> Iterator[_Curve]:
    """Quantiles [ms] for each congestion control of one cell."""
    sockets = run_set.sockets(columns=["cell_id", "flow", "side", "rtt_s"], cell_ids=[cell_id])
    sockets = sockets[(sockets["side"] == "sender") & sockets["rtt_s"].notna()]
    sockets = sockets.merge(run_set.flows[["cell_id", "flow", "cca"]], on=["cell_id", "flow"])
    for cca, samples in sockets.groupby("cca", sort=True):
        yield (
            str(cca),
            cell_id,
            compact(np.quantile(samples["rtt_s"].to_numpy(dtype=float), QUANTILES) * 1e3),
        )


def _backlogs(run_set: RunSet, cell_id: str) -> Iterator[_Curve]:
    """Quantiles [kB] of every bottleneck of one cell, under the congestion controls that share it."""
    columns = ["cell_id", "node", "link", "role", "t_s", "backlog_bytes"]
    samples = run_set.queues(columns=columns, cell_ids=[cell_id])
    samples = samples[(samples["role"] == "bottleneck") & samples["backlog_bytes"].notna()]
    samples = while_flows_run(samples, run_set.flows[run_set.flows["cell_id"] == cell_id])
    (ccas,) = run_set.cells.loc[run_set.cells["cell_id"] == cell_id, "ccas"]
    for _, rows in samples.groupby(["link", "node"], sort=True):
        backlog_bytes = rows["backlog_bytes"].to_numpy(dtype=float)
        yield str(ccas), cell_id, compact(np.quantile(backlog_bytes, QUANTILES) * 1e-3)


def _estimates(run_set: RunSet, cell_id: str) -> Iterator[_Curve]:
    """Congestion control, cell and quantiles [Mbit/s] for each BBR of one cell; only its samples are read."""
    columns = ["cell_id", "flow", "t_s", "side", "bbr_bw_bps"]
    sockets = run_set.sockets(columns=columns, cell_ids=[cell_id])
    sockets = sockets[(sockets["side"] == "sender") & sockets["bbr_bw_bps"].notna()]
    sockets = sockets.merge(run_set.cells[["cell_id", "warm_up_s"]], on="cell_id")
    sockets = sockets[sockets["t_s"] >= sockets["warm_up_s"]]
    # The kernel calls every BBR "bbr"; which one was asked for is in table flows.
    sockets = sockets.merge(run_set.flows[["cell_id", "flow", "cca"]], on=["cell_id", "flow"])
    for cca, samples in sockets.groupby("cca", sort=True):
        estimates_bps = samples["bbr_bw_bps"].to_numpy(dtype=float)
        yield str(cca), cell_id, compact(np.quantile(estimates_bps, QUANTILES) * 1e-6)


def _mark_rate(figure: go.Figure, rate_mbps: float) -> None:
    """Add the truth that the estimates are about."""
    figure.add_scatter(
        x=[rate_mbps, rate_mbps],
        y=[0, 1],
        mode="lines",
        name="rate of the bottleneck",
        line={"color": "#8A8F98", "width": 1.5, "dash": "dot"},
        hovertemplate="rate of the bottleneck: %{x:.6g} Mbit/s<extra></extra>",
    )

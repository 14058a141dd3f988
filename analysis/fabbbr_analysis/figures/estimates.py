"""What BBR believes the bottleneck's rate to be, against the rate that held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fabbbr.capacity import Capacity, capacity_of
from fabbbr.model import Cell
from fabbbr.ways import crossed
from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.distribution import QUANTILES
from fabbbr_analysis.figures.events import events
from fabbbr_analysis.figures.sampling import POINTS_PER_TRACE, compact, keep_extremes
from fabbbr_analysis.figures.style import Palette

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet


def caption(run_set: RunSet) -> str:
    """Say how to read the figure of this run set."""
    if any(held.changes for cell in run_set.plan.values() for held in _rates_of(cell)):
        return "Bandwidth estimate of each run over time, and the rate that held."
    return "Distribution of the bandwidth estimate over the samples of each run, from warm-up on."


def bandwidth_estimates(
    run_set: RunSet, cell_ids: Sequence[str], *, palette: Palette, limit: int = POINTS_PER_TRACE
) -> go.Figure:
    """Draw BBR's bandwidth estimate (Mbit/s), over the senders' socket samples, against the rate that held.

    Where a step or a trace changes the rate, over time and beside it; else as a CDF from warm-up on, one
    curve per run. Cells without a BBR flow add nothing: a figure without traces means that there was none.
    """
    cells = [run_set.plan[cell_id] for cell_id in cell_ids if cell_id in run_set.plan]
    held = list(dict.fromkeys(rate for cell in cells for rate in _rates_of(cell)))
    if any(each.changes for each in held):
        return _estimates_over_time(run_set, cell_ids, held, palette, limit)
    return _estimates_as_cdf(run_set, cell_ids, held, palette)


def _rates_of(cell: Cell) -> Iterator[Capacity]:
    """Of the first bottleneck, as its flows of BBR meet it; a module of one's own may be called otherwise."""
    named = [flow for flow in cell.flows if flow.cca is not None and flow.cca.startswith("bbr")]
    for flow in named or cell.flows:
        forward = crossed(cell.links, flow.sender, flow.receiver).get(cell.trunk.name, True)
        yield capacity_of(cell, cell.trunk.name, reverse=not forward)


def _estimates_over_time(
    run_set: RunSet,
    cell_ids: Sequence[str],
    held: Sequence[Capacity],
    palette: Palette,
    limit: int,
) -> go.Figure:
    figure = canvas.empty(height=400)
    for name, cell_id, samples in _estimates(run_set, cell_ids):
        x = samples["t_s"].to_numpy(dtype=np.float64)
        y = samples["bbr_bw_bps"].to_numpy(dtype=np.float64) * 1e-6
        kept = keep_extremes(x, y, limit)
        figure.add_scatter(
            x=compact(x[kept]),
            y=compact(y[kept]),
            **_estimate_line(figure, name, palette),
            hovertemplate=f"<b>{cell_id}</b><br>%{{x:.2f}} s: %{{y:.4g}} Mbit/s<extra></extra>",
        )
    if figure.data:
        end_s = max(float(trace.x[-1]) for trace in figure.data)
        cells = [run_set.plan[cell_id] for cell_id in cell_ids]
        for each in held:
            figure.add_trace(canvas.rate_line(each, end_s))
        canvas.mark(figure, [event for event in events(cells) if event.at_s < end_s], span_s=end_s)
    figure.update_xaxes(title_text="Time since the first flow started (s)")
    figure.update_yaxes(title_text="Bandwidth estimate of BBR (Mbit/s)", rangemode="tozero")
    return figure


def _estimates_as_cdf(
    run_set: RunSet, cell_ids: Sequence[str], held: Sequence[Capacity], palette: Palette
) -> go.Figure:
    figure = canvas.empty(height=360)
    cells = run_set.cells[run_set.cells["cell_id"].isin(list(cell_ids))].set_index("cell_id")
    seeds = cells["seed"].astype(str)
    for name, cell_id, samples in _estimates(run_set, cell_ids):
        steady = samples[samples["t_s"] >= cells.loc[cell_id, "warm_up_s"]]["bbr_bw_bps"]
        if steady.empty:
            continue
        figure.add_scatter(
            x=compact(np.quantile(steady.to_numpy(dtype=np.float64), QUANTILES) * 1e-6),
            y=compact(QUANTILES),
            **_estimate_line(figure, name, palette),
            hovertemplate=(
                f"<b>{cell_id}</b><br>seed {seeds[cell_id]}"
                "<br>%{y:.1%} of the samples are below %{x:.4g} Mbit/s<extra></extra>"
            ),
        )
    if figure.data and len(held) == 1:
        _mark_rate(figure, held[0].bits(0.0, 1.0) * 1e-6)
    figure.update_xaxes(title_text="Bandwidth estimate of BBR (Mbit/s)")
    figure.update_yaxes(title_text="Share of samples below", range=[0, 1.02], tickformat=".0%")
    return figure


def _estimate_line(figure: go.Figure, name: str, palette: Palette) -> dict[str, object]:
    line = {"color": palette[name].colour, "width": 1.5}
    named = {trace.name for trace in figure.data}
    return {"mode": "lines", "name": name, "legendgroup": name, "showlegend": name not in named, "line": line}


def _estimates(run_set: RunSet, cell_ids: Sequence[str]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Congestion control, cell and samples of each BBR; the samples of one cell are read at a time."""
    columns = ["cell_id", "flow", "t_s", "side", "bbr_bw_bps"]
    found = []
    for cell_id in cell_ids:
        sockets = run_set.sockets(columns=columns, cell_ids=[cell_id])
        sockets = sockets[(sockets["side"] == "sender") & sockets["bbr_bw_bps"].notna()]
        # The kernel calls every BBR "bbr"; which one was asked for is in table flows.
        sockets = sockets.merge(run_set.flows[["cell_id", "flow", "cca"]], on=["cell_id", "flow"])
        found += [
            (str(cca), cell_id, samples.sort_values("t_s", kind="stable"))
            for cca, samples in sockets.groupby("cca", sort=True)
        ]
    yield from sorted(found, key=lambda each: each[:2])


def _mark_rate(figure: go.Figure, rate_mbps: float) -> None:
    """Add the truth that the estimates are about."""
    figure.add_scatter(
        x=[rate_mbps, rate_mbps],
        y=[0, 1],
        mode="lines",
        name=canvas.RATE,
        line=canvas.REFERENCE_LINE,
        hovertemplate="rate of the bottleneck: %{x:.6g} Mbit/s<extra></extra>",
    )

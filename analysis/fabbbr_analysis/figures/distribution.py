"""Distributions as CDFs, over the samples or the flows of the runs of a condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from fabbbr.model import Cell
from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.conditions import axis_columns, cca_columns, mixes
from fabbbr_analysis.figures.curves import told_apart, told_where
from fabbbr_analysis.figures.sampling import compact
from fabbbr_analysis.figures.style import NO_CCA, Look, Palette, among
from fabbbr_analysis.metrics import queue_of, while_flows_run
from fabbbr_analysis.waits import waits_s

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

QUANTILES = np.linspace(0, 1, 201)
"""Half a percent apart: finer than the line is thick."""
Samples: TypeAlias = Mapping[tuple[str, str], npt.NDArray[np.float64]]
"""Series and cell → its samples in the unit drawn."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Something that has a value for each sample, or for each flow, of a run."""

    slug: str
    """The first half of a figure's name, such as ``rtt_cdf``."""
    title: str
    label: str
    unit: str
    caption: str
    samples: Callable[[RunSet, Sequence[str]], Samples]
    what: str
    """What the shares are of."""
    may_be_brief: bool = False
    """Whether it is drawn in milliseconds where all of it is shorter than a second."""
    asked: Callable[[Cell], bool] = lambda _: True
    """Whether it is a result of such a cell."""

    def is_asked_of(self, run_set: RunSet) -> bool:
        """Whether some cell of the run set has it."""
        return any(map(self.asked, run_set.plan.values()))


def draw(run_set: RunSet, quantity: Distribution, cell_ids: Sequence[str], *, palette: Palette) -> go.Figure:
    """Draw the CDF of a quantity over all samples of these cells, one curve per series.

    With several runs the band is what single runs lie in, from the lowest to the highest at each share. A
    figure without traces means that there was no sample.
    """
    figure = canvas.empty(height=380)
    quantity, found = _suited(quantity, quantity.samples(run_set, cell_ids))
    looks = looks_of(run_set, cell_ids, [series for series, _ in _in_turn(found, cell_ids)], palette)
    for series in looks:
        runs = [values for (name, _), values in found.items() if name == series]
        if len(runs) > 1:
            figure.add_trace(_band(series, runs, looks[series]))
        figure.add_trace(_curve(series, runs, looks[series], quantity))
    figure.update_xaxes(title_text=f"{quantity.label} ({quantity.unit})")
    figure.update_yaxes(title_text=f"Share of {quantity.what} below", range=[0, 1.02], tickformat=".0%")
    canvas.make_room_for_legend(figure, len(looks))
    return figure


def _suited(quantity: Distribution, found: Samples) -> tuple[Distribution, Samples]:
    """In the unit that suits all samples."""
    brief = all((values[np.isfinite(values)] < 1).all() for values in found.values())
    if not quantity.may_be_brief or not brief:
        return quantity, found
    return replace(quantity, unit="ms"), {key: values * 1e3 for key, values in found.items()}


def looks_of(
    run_set: RunSet, cell_ids: Sequence[str], names: Sequence[str], palette: Palette
) -> dict[str, Look]:
    """Series → its look, in the order of ``names``: that of the congestion control, or of the mix of them.

    Those that share one differ by shade, symbol and dash.
    """
    flows, told = _named(run_set, cell_ids), _mixes(run_set, cell_ids)
    of_mix = dict(zip(told.values(), _plain_mixes(run_set, told), strict=True))
    own = of_mix | dict(zip(flows["series"], flows["cca"].fillna(NO_CCA), strict=True))
    shared = Counter(own[name] for name in dict.fromkeys(names))
    placed: Counter[str] = Counter()
    looks: dict[str, Look] = {}
    for name in dict.fromkeys(names):
        looks[name] = among(palette[own[name]], placed[own[name]], shared[own[name]])
        placed[own[name]] += 1
    return looks


def _in_turn(found: Samples, cell_ids: Sequence[str]) -> list[tuple[str, str]]:
    """Series and cell of the samples, in the order in which the cells are asked for."""
    place = {cell_id: number for number, cell_id in enumerate(cell_ids)}
    return sorted(found, key=lambda key: (place[key[1]], key[0]))


def _curve(
    series: str, runs: Sequence[npt.NDArray[np.float64]], look: Look, quantity: Distribution
) -> go.Scatter:
    pooled = np.concatenate(runs)
    values = _quantiles(pooled)
    there = np.isfinite(values)
    count = f"{len(pooled)} {quantity.what}, {len(runs)} run{'s' if len(runs) > 1 else ''}"
    return go.Scatter(
        x=compact(values[there]),
        y=compact(QUANTILES[there]),
        mode="lines",
        name=series,
        legendgroup=series,
        line={"color": look.colour, "width": 1.75, "dash": look.dash},
        hovertemplate=(
            f"<b>{series}</b><br>{count}<br>%{{y:.1%}} are below %{{x:.4g}} {quantity.unit}<extra></extra>"
        ),
    )


def _quantiles(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of the empirical distribution, so that every value is a sample and the band holds the curve."""
    # Rounded: 0.07 × 100 is a little more than 7.
    ranks = np.ceil(np.round(QUANTILES * len(values), 9)).astype(int)
    return np.asarray(np.sort(values)[np.maximum(ranks - 1, 0)], dtype=np.float64)


def _band(series: str, runs: Sequence[npt.NDArray[np.float64]], look: Look) -> go.Scatter:
    each = np.array([_quantiles(values) for values in runs])
    there = np.isfinite(each).all(axis=0)
    low, high, shares = each.min(axis=0)[there], each.max(axis=0)[there], QUANTILES[there]
    return go.Scatter(
        x=compact(np.concatenate([low, high[::-1]])),
        y=compact(np.concatenate([shares, shares[::-1]])),
        mode="lines",
        name=f"{series}, single runs",
        fill="toself",
        fillcolor=look.colour,
        opacity=0.2,
        line={"width": 0},
        showlegend=False,
        hoverinfo="skip",
    )


def _rtts(run_set: RunSet, cell_ids: Sequence[str]) -> Samples:
    named = _named(run_set, cell_ids)[["cell_id", "flow", "series"]]
    columns = ["cell_id", "flow", "side", "rtt_s"]
    found: Samples = {}
    for cell_id in cell_ids:  # one at a time: samples of all runs at once are most of a report's memory
        sockets = run_set.sockets(columns=columns, cell_ids=[cell_id])
        sockets = sockets[(sockets["side"] == "sender") & sockets["rtt_s"].notna() & sockets["flow"].notna()]
        sockets = sockets.merge(named, on=["cell_id", "flow"])
        found = {**found, **_by_series(sockets.assign(value=sockets["rtt_s"] * 1e3))}
    return found


def _queues(run_set: RunSet, cell_ids: Sequence[str]) -> Samples:
    columns = ["cell_id", "role", "link", "node", "t_s", "backlog_bytes"]
    ccas = _mixes(run_set, cell_ids)
    found: Samples = {}
    for cell_id in cell_ids:
        if cell_id not in run_set.plan:
            continue
        queue = queue_of(run_set.queues(columns=columns, cell_ids=[cell_id]), run_set.plan[cell_id].trunk)
        queue = while_flows_run(queue, run_set.flows[run_set.flows["cell_id"] == cell_id])
        timed = queue.assign(value=queue["backlog_bytes"] * 1e-3, series=ccas[cell_id])
        found = {**found, **_by_series(timed[timed["value"].notna()])}
    return found


def _mixes(run_set: RunSet, cell_ids: Sequence[str]) -> dict[str, str]:
    """Cell → the congestion controls of all its flows, and what else these cells differ in."""
    cells = run_set.cells[run_set.cells["cell_id"].isin(list(cell_ids))]
    where = told_where(cells, [name for name in axis_columns(cells) if name not in cca_columns(cells)])
    return {
        cell_id: f"{mix} {where.get(cell_id, '')}".strip()
        for cell_id, mix in zip(cells["cell_id"], _plain_mixes(run_set, cells["cell_id"]), strict=True)
    }


def _plain_mixes(run_set: RunSet, cell_ids: Iterable[str]) -> list[str]:
    of_cell = dict(zip(run_set.cells["cell_id"], mixes(run_set.cells), strict=True))
    return [of_cell[cell_id] for cell_id in cell_ids]


def _pings(run_set: RunSet, cell_ids: Sequence[str]) -> Samples:
    """Of requests sent while flows ran; one without an answer is slower than any."""
    ccas = _mixes(run_set, cell_ids)
    found: Samples = {}
    for cell_id in cell_ids:
        pings = run_set.pings(columns=["cell_id", "t_s", "rtt_s"], cell_ids=[cell_id])
        sent = while_flows_run(pings, run_set.flows[run_set.flows["cell_id"] == cell_id])
        timed = sent.assign(value=sent["rtt_s"].fillna(np.inf) * 1e3, series=ccas[cell_id])
        found = {**found, **_by_series(timed)}
    return found


def _chunks(run_set: RunSet, cell_ids: Sequence[str]) -> Samples:
    """Of all videos of a cell: what is told apart is what they run beside."""
    ccas = _mixes(run_set, cell_ids)
    chunks = run_set.chunks(columns=["cell_id", "asked_s", "whole_s"], cell_ids=cell_ids)
    whole = chunks[chunks["whole_s"].notna()]
    series = whole["cell_id"].map(ccas)
    return _by_series(whole.assign(value=whole["whole_s"] - whole["asked_s"], series=series))


def _datagrams(run_set: RunSet, cell_ids: Sequence[str]) -> Samples:
    """Of those sent while other flows ran, where some do; one that never came is later than any."""
    ccas = _mixes(run_set, cell_ids)
    found: Samples = {}
    for cell_id in cell_ids:
        if cell_id not in run_set.plan:
            continue
        datagrams = run_set.datagrams(columns=["cell_id", "flow", "t_s", "pdv_s"], cell_ids=[cell_id])
        waits = waits_s(datagrams, run_set.plan[cell_id])
        timed = datagrams.assign(value=waits.fillna(np.inf) * 1e3, series=ccas[cell_id])
        flows = run_set.flows[run_set.flows["cell_id"] == cell_id]
        others = flows[flows["udp_rate_bps"].isna()]
        found = {**found, **_by_series(while_flows_run(timed, flows if others.empty else others))}
    return found


def transfers(run_set: RunSet, cell_ids: Sequence[str]) -> pd.DataFrame:
    """The flows of these cells that deliver a given number of bytes, with ``series`` and ``size_bytes``."""
    flows = _named(run_set, cell_ids)
    sizes = {
        (cell_id, flow.index): flow.size.bytes
        for cell_id in cell_ids
        if cell_id in run_set.plan
        for flow in run_set.plan[cell_id].flows
        if flow.size is not None
    }
    asked = [sizes.get(key) for key in zip(flows["cell_id"], flows["flow"], strict=True)]
    flows = flows.assign(size_bytes=np.array(asked, dtype=np.float64))
    return flows[flows["size_bytes"].notna()]


def _completions(run_set: RunSet, cell_ids: Sequence[str]) -> Samples:
    flows = transfers(run_set, cell_ids)
    # One that never completed is among the flows that there are: its curve ends below 100 %.
    return _by_series(flows.assign(value=flows["completion_s"].astype("float64").fillna(np.inf)))


def _named(run_set: RunSet, cell_ids: Sequence[str]) -> pd.DataFrame:
    """The flows of these cells with the names of their series: nothing is pooled over conditions."""
    runs = run_set.runs[run_set.runs["cell_id"].isin(list(cell_ids))]
    flows = run_set.flows[run_set.flows["cell_id"].isin(list(cell_ids))]
    return flows.assign(series=told_apart(flows, runs, axis_columns(runs)))


def _by_series(samples: pd.DataFrame) -> Samples:
    return {
        (str(series), str(cell_id)): rows["value"].to_numpy(dtype=np.float64)
        for (series, cell_id), rows in samples.groupby(["series", "cell_id"], sort=True)
    }


_BAND = "The band is what single runs lie in."
RTT = Distribution(
    slug="rtt_cdf",
    title="Distribution of the RTT",
    label="RTT",
    unit="ms",
    caption=f"Smoothed RTT of the senders' sockets, all samples of all certified runs. {_BAND}",
    samples=_rtts,
    what="samples",
)
QUEUE = Distribution(
    slug="queue_cdf",
    title="Distribution of the queue",
    label="Queue",
    unit="kB",
    caption=f"Backlog of the first bottleneck, all samples of all certified runs. {_BAND}",
    samples=_queues,
    what="samples",
)
COMPLETION = Distribution(
    slug="completion_cdf",
    title="Flow completion time",
    label="Flow completion time",
    unit="s",
    caption=(
        "Of the flows that deliver a given number of bytes, in all certified runs; those that did not "
        f"complete keep the curve below 100 %. {_BAND}"
    ),
    samples=_completions,
    what="flows",
    may_be_brief=True,
    asked=lambda cell: any(flow.size is not None for flow in cell.flows),
)
PING = Distribution(
    slug="ping_cdf",
    title="Round trips of pings beside the flows",
    label="Round trip of a ping",
    unit="ms",
    caption=(
        "Of the echo requests that were sent while flows ran, in all certified runs: what a small packet "
        f"waits. Those without an answer keep the curve below 100 %. {_BAND}"
    ),
    samples=_pings,
    what="requests",
    asked=lambda cell: bool(cell.pings),
)
CHUNK = Distribution(
    slug="chunk_cdf",
    title="Download time of a video's chunk",
    label="From asking for a chunk to its last byte",
    unit="s",
    caption=(
        "Of all chunks that came whole, in all certified runs. One that takes longer than what the player "
        f"has in its buffer makes it stall. {_BAND}"
    ),
    samples=_chunks,
    what="chunks",
    asked=lambda cell: any(flow.video is not None for flow in cell.flows),
)
DATAGRAM = Distribution(
    slug="datagram_cdf",
    title="What datagrams wait",
    label="Wait of a datagram",
    unit="ms",
    caption=(
        "By how much each datagram is later than the quickest of its flow, apart from what steps add to the "
        f"path; of those that were sent while other flows ran. Those lost keep the curve below 100 %. {_BAND}"
    ),
    samples=_datagrams,
    what="datagrams",
    asked=lambda cell: any(flow.udp is not None for flow in cell.flows),
)
QUANTITIES = (COMPLETION, PING, DATAGRAM, CHUNK, RTT, QUEUE)

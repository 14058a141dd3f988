"""What happened inside a run: goodput, RTT and queue over time, one representative cell per condition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fabbbr.capacity import capacity_of
from fabbbr.model import Cell
from fabbbr.ways import goes_back
from fabbbr_analysis.arrivals import amounts_between, zeros_s
from fabbbr_analysis.figures import canvas, curves
from fabbbr_analysis.figures.curves import Curve
from fabbbr_analysis.figures.events import events
from fabbbr_analysis.figures.sampling import POINTS_PER_TRACE, FloatArray, compact, keep_extremes
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.propagation import round_trips

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet


CAPTION = "For each congestion control the run whose goodput is nearest to the median of its repetitions."
CAPTION_OF_ONE = (
    "For each congestion control the same repetition, in which what comes at random is the same for all: the "
    "one whose goodputs are nearest to their medians."
)


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """One of the three charts that share the time axis."""

    row: int
    title: str
    unit: str


_GOODPUT = _Panel(row=1, title="Goodput", unit="Mbit/s")
_RTT = _Panel(row=2, title="RTT", unit="ms")
_QUEUE = _Panel(row=3, title="Queue", unit="kB")


def representative_cells(runs: pd.DataFrame, *, of_one_repetition: bool = False) -> pd.DataFrame:
    """Return one row per condition: the certified run whose goodput is nearest to the condition's median.

    Ties go to the lower repetition; without a certified run the first one stands in. With
    ``of_one_repetition`` all are of that which is nearest by the sum over conditions, where they have it.
    """
    certified = runs[runs["status"] == "certified"]
    pool = certified if not certified.empty else runs
    median = pool.groupby("condition")["goodput_bps"].transform("median")
    distance = (pool["goodput_bps"] / median - 1).abs()
    by_repetition = distance.groupby(pool["repetition"]).agg(["count", "sum"]).sort_index()
    nearest = by_repetition.sort_values(["count", "sum"], ascending=[False, True], kind="stable").index[0]
    other = (pool["repetition"] != nearest) & of_one_repetition
    ranked = pool.assign(_other=other, _distance=distance).sort_values(
        ["condition", "_other", "_distance", "repetition"], na_position="last"
    )
    chosen = ranked.drop_duplicates("condition").drop(columns=["_other", "_distance"])
    missing = runs[~runs["condition"].isin(chosen["condition"])].sort_values("repetition")
    return pd.concat([chosen, missing.drop_duplicates("condition")]).sort_values("condition")


def over_time(
    run_set: RunSet,
    cell_ids: Sequence[str],
    *,
    palette: Palette,
    limit: int = POINTS_PER_TRACE,
) -> go.Figure:
    """Draw the cells below one another's curves; ``limit`` points per trace, extremes kept.

    Three rows share the clock of the experiment (s from the start of the first flow): goodput of each flow
    (Mbit/s, iperf3 intervals at the receiver), RTT of each flow (ms, smoothed, at the sender), backlog of the
    bottleneck (kB). Flows of a group that came at random are one curve: what all of them got in each second,
    and the mean of their RTT. A row without samples stays empty. Dotted lines mark steps and starts; where
    the rate of the bottleneck changes, it is drawn with the goodput; of a trace, by seconds. Where the RTT of
    a path changes, it is drawn with the measured ones.
    """
    figure = make_subplots(
        rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.04, figure=canvas.empty(height=640)
    )
    looks = curves.of_cells(run_set, cell_ids, palette)
    shown: set[str] = set()
    drawn = _drawn(run_set, cell_ids)
    for panel, samples in ((_GOODPUT, _goodput(run_set, drawn)), (_RTT, _rtt(run_set, drawn))):
        by_curve = dict(iter(samples.groupby(["cell_id", "curve"])))
        for key, curve in looks.flows.items():
            if key in by_curve:
                _add(figure, panel, by_curve[key], curve, legend=curve.name not in shown, limit=limit)
                shown.add(curve.name)
    for cell_id, back, samples in _queues(run_set, cell_ids):
        curve = looks.queues[cell_id, back]
        _add(figure, _QUEUE, samples, curve, legend=curve.name not in shown, limit=limit)
        shown.add(curve.name)
    for panel in (_GOODPUT, _RTT, _QUEUE):
        # From zero, a propagation delay would flatten what the queue adds to it.
        mode = "normal" if panel is _RTT else "tozero"
        figure.update_yaxes(title_text=f"{panel.title} ({panel.unit})", rangemode=mode, row=panel.row, col=1)
    figure.update_xaxes(title_text="Time since the first flow started (s)", row=_QUEUE.row, col=1)
    _mark_changes(figure, [run_set.plan[cell_id] for cell_id in cell_ids if cell_id in run_set.plan])
    canvas.make_room_for_legend(figure, len(shown))
    return figure


def _mark_changes(figure: go.Figure, cells: Sequence[Cell]) -> None:
    """Draw the rate and the round trip of the path where they change, and mark what happens when."""
    ends_s = [float(trace.x[-1]) for trace in figure.data]
    end_s = max(ends_s, default=0.0)
    for reverse, name in ((False, canvas.RATE), (True, canvas.RATE_BACK)):
        met = [cell for cell in cells if reverse in goes_back(cell, cell.trunk.name)]
        for held in dict.fromkeys(capacity_of(cell, cell.trunk.name, reverse=reverse) for cell in met):
            if held.changes:
                figure.add_trace(canvas.rate_line(held, end_s, name=name), row=_GOODPUT.row, col=1)
    paths = (curve for cell in cells for flow in cell.flows if (curve := round_trips(cell, flow, end_s)))
    for number, (since_s, rtts_s) in enumerate(dict.fromkeys(paths)):
        line = canvas.propagation_line(since_s, rtts_s)
        figure.add_trace(line.update(showlegend=number == 0), row=_RTT.row, col=1)
    canvas.mark(figure, [event for event in events(cells) if event.at_s < end_s], span_s=end_s)


def came_at_random(cells: Sequence[Cell]) -> dict[tuple[str, int], int]:
    """Cell and number of each flow that did → the first of its group, in whose place all are drawn."""
    first: dict[tuple[str, str], int] = {}
    random = ((cell.id, flow) for cell in cells for flow in cell.flows if flow.at_random)
    return {
        (cell_id, flow.index): first.setdefault((cell_id, flow.group), flow.index) for cell_id, flow in random
    }


def _drawn(run_set: RunSet, cell_ids: Sequence[str]) -> pd.DataFrame:
    """Cell, number and zero [s] of each flow; the one in whose place it is drawn, and whether with others."""
    flows = run_set.flows[run_set.flows["cell_id"].isin(list(cell_ids))]
    random = came_at_random([run_set.plan[cell_id] for cell_id in cell_ids if cell_id in run_set.plan])
    keys = [(str(cell), int(flow)) for cell, flow in zip(flows["cell_id"], flows["flow"], strict=True)]
    return flows[["cell_id", "flow"]].assign(
        zero_s=zeros_s(flows),
        curve=[random.get(key, key[1]) for key in keys],
        together=[key in random for key in keys],
    )


def _goodput(run_set: RunSet, drawn: pd.DataFrame) -> pd.DataFrame:
    """Goodput of each curve over time, on the common clock."""
    intervals = run_set.intervals_of(list(drawn["cell_id"].unique()))
    wanted = intervals[(intervals["side"] == "receiver") & intervals["throughput_bps"].notna()]
    timed = wanted.merge(drawn, on=["cell_id", "flow"])
    found = [_by_interval(timed[~timed["together"]])]
    found += [
        _by_second(rows).assign(cell_id=rows["cell_id"].iloc[0], curve=rows["curve"].iloc[0])
        for _, rows in timed[timed["together"]].groupby(["cell_id", "curve"])
    ]
    return pd.concat(found)


def _by_interval(intervals: pd.DataFrame) -> pd.DataFrame:
    """Sum the parallel streams of each receiver interval, at the interval's middle."""
    # iperf3 closes an interval stream by stream, some microseconds apart, and never oftener than every 0.1 s.
    together = intervals.assign(interval=intervals["start_s"].round(1)).groupby(
        ["cell_id", "curve", "interval"], as_index=False
    )
    summed = together.agg({"throughput_bps": "sum", "start_s": "mean", "end_s": "mean", "zero_s": "first"})
    whole = _with_what_is_left(summed)
    middle = whole["zero_s"] + (whole["start_s"] + whole["end_s"]) / 2
    return whole.assign(t_s=middle, y=whole["throughput_bps"] * 1e-6)


def _with_what_is_left(intervals: pd.DataFrame) -> pd.DataFrame:
    """Add the last interval of each curve to the one before, where it is less than half as long.

    It is what was left of a second. Alone, what had waited for a lost segment looks faster than the link.
    """
    curve = intervals.groupby(["cell_id", "curve"])["start_s"]
    lasted = intervals["end_s"] - intervals["start_s"]
    before = lasted.shift().where(curve.cumcount() > 0)
    left = (curve.cumcount(ascending=False) == 0) & (lasted < before / 2)
    taken = left.shift(-1, fill_value=False)
    bits = intervals["throughput_bps"] * lasted
    bits = bits + bits.shift(-1).where(taken, 0.0)
    end = intervals["end_s"].shift(-1).where(taken, intervals["end_s"])
    return intervals.assign(end_s=end, throughput_bps=bits / (end - intervals["start_s"]))[~left]


def _by_second(intervals: pd.DataFrame) -> pd.DataFrame:
    """What all receivers together got in each second."""
    told = intervals[["zero_s", "start_s", "end_s", "throughput_bps"]].to_numpy(dtype=np.float64)
    begin, end = told[:, 0] + told[:, 1], told[:, 0] + told[:, 2]
    edges = np.arange(np.floor(begin.min()), np.ceil(end.max()) + 1)
    y = amounts_between(begin, end, told[:, 3], edges) * 1e-6
    return pd.DataFrame({"t_s": (edges[:-1] + edges[1:]) / 2, "y": y})


def _rtt(run_set: RunSet, drawn: pd.DataFrame) -> pd.DataFrame:
    columns = ["cell_id", "flow", "side", "t_s", "rtt_s"]
    sockets = run_set.sockets(columns=columns, cell_ids=list(drawn["cell_id"].unique()))
    sent = sockets[(sockets["side"] == "sender") & sockets["flow"].notna()].merge(
        drawn, on=["cell_id", "flow"]
    )
    mean = sent.groupby(["cell_id", "curve", "t_s"], as_index=False)[["rtt_s"]].mean()
    return mean.assign(y=mean["rtt_s"] * 1e3)


def _queues(run_set: RunSet, cell_ids: Sequence[str]) -> Iterator[tuple[str, bool, pd.DataFrame]]:
    """The backlog of each bottleneck queue of each cell, and whether it is one of the way back."""
    columns = ["cell_id", "role", "link", "interface", "t_s", "backlog_bytes"]
    queues = run_set.queues(columns=columns, cell_ids=list(cell_ids))
    queues = queues[queues["role"].isin(["bottleneck", "bottleneck_reverse"])]
    queues = queues.assign(y=queues["backlog_bytes"] * 1e-3)
    for (cell_id, role, _, _), samples in queues.groupby(["cell_id", "role", "link", "interface"], sort=True):
        yield str(cell_id), role == "bottleneck_reverse", samples


def _add(
    figure: go.Figure, panel: _Panel, samples: pd.DataFrame, curve: Curve, *, legend: bool, limit: int
) -> None:
    ordered = samples.sort_values("t_s")
    x: FloatArray = ordered["t_s"].to_numpy(dtype=np.float64)
    y: FloatArray = ordered["y"].to_numpy(dtype=np.float64, na_value=np.nan)
    kept = keep_extremes(x, y, limit)
    cell_id = ordered["cell_id"].iloc[0]
    figure.add_scatter(
        x=compact(x[kept]),
        y=compact(y[kept]),
        mode="lines",
        name=curve.name,
        legendgroup=curve.name,
        opacity=curve.opacity,
        showlegend=legend,
        line={"color": curve.look.colour, "width": 1.5, "dash": curve.look.dash},
        hovertemplate=(
            f"<b>{curve.name}</b><br>{cell_id}<br>%{{x:.2f}} s: %{{y:.4g}} {panel.unit}<extra></extra>"
        ),
        row=panel.row,
        col=1,
    )

"""Run sets → samples: where a claim finds its quantities. Only certified runs are ever read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from fabbbr_analysis.claims.records import Evidence, RunSet
from fabbbr_analysis.claims.sample import Array, MissingConditionError, Sample, sample_of
from fabbbr_analysis.metrics import progress_of_flows, received_between

Observe = Callable[[Evidence], Sample]


BBR2_BY_DEFAULT = "v2alpha"
"""The profile of BBRv2 that the published measurements ran."""


def bbr2_variants(runs: pd.DataFrame) -> tuple[str, ...]:
    """List what BBRv2 was in these runs (profiles, or ``google``); the first one is judged."""
    if runs.empty:
        return ()
    run = {str(variant) for variant in runs["bbr2_variant"].dropna()}
    return tuple(sorted(run, key=lambda variant: (variant != BBR2_BY_DEFAULT, variant)))


def certified(run_set: RunSet) -> pd.DataFrame:
    """Certified runs with ``cca``, the congestion controls in the cell: ``"bbr1"``, ``"bbr1+cubic"``.

    Where BBRv2 was run in several variants, those with another than the first of :func:`bbr2_variants` are left out.
    """
    runs = run_set.certified
    others = bbr2_variants(runs)[1:]
    if others:
        runs = runs[~runs["bbr2_variant"].isin(others)]
    if runs.empty:
        message = (
            f"no run of experiment {run_set.experiment} is certified; the report lists the failed checks"
        )
        raise MissingConditionError(message)
    names = runs["ccas"].map(lambda ccas: "+".join(sorted(set(ccas.split(",")))))
    return runs.assign(cca=names)


def metric(experiment: str, axes: tuple[str, ...], column: str) -> Observe:
    """Observe a column of ``runs`` by ``axes``."""
    return partial(_metric, experiment=experiment, axes=axes, column=column)


def _metric(evidence: Evidence, *, experiment: str, axes: tuple[str, ...], column: str) -> Sample:
    return sample_of(certified(evidence[experiment]), axes=axes, value=column)


def per_rate(experiment: str, axes: tuple[str, ...], column: str = "goodput_bps") -> Observe:
    """Observe a rate as a share of the bottleneck's configured rate."""
    return partial(_per_rate, experiment=experiment, axes=axes, column=column)


def _per_rate(evidence: Evidence, *, experiment: str, axes: tuple[str, ...], column: str) -> Sample:
    runs = certified(evidence[experiment])
    return sample_of(runs.assign(share=runs[column] / runs["rate_bps"]), axes=axes, value="share")


Trace = pd.DataFrame
"""Samples of one run's sending sockets by time; ``t_s`` from the first flow's start."""


RunsOf = Callable[[RunSet], pd.DataFrame]
"""Chooses the runs that a quantity is observed in, one row a run."""


def traced(
    experiment: str,
    columns: tuple[str, ...],
    measure: Callable[[Trace, pd.Series], float],
    *,
    axes: tuple[str, ...] = ("cca",),
    runs_of: RunsOf = certified,
) -> Observe:
    """Observe ``measure(trace, run)`` by ``axes``; NaN is a run without a value."""
    return partial(
        _traced, experiment=experiment, columns=columns, measure=measure, axes=axes, runs_of=runs_of
    )


def _traced(
    evidence: Evidence,
    *,
    experiment: str,
    columns: tuple[str, ...],
    measure: Callable[[Trace, pd.Series], float],
    axes: tuple[str, ...],
    runs_of: RunsOf,
) -> Sample:
    run_set = evidence[experiment]
    runs = runs_of(run_set)
    sockets = run_set.sockets(columns=["cell_id", "t_s", "side", *columns], cell_ids=list(runs["cell_id"]))
    sending = sockets[sockets["side"] == "sender"].sort_values("t_s", kind="stable")
    traces = dict(iter(sending.groupby("cell_id")))
    values = [
        measure(traces[run["cell_id"]], run) if run["cell_id"] in traces else np.nan
        for _, run in runs.iterrows()
    ]
    return sample_of(runs.assign(measured=values), axes=axes, value="measured")


def windowed(
    experiment: str,
    axes: tuple[str, ...],
    window: Callable[[float], tuple[float, float]],
    measure: Callable[[pd.DataFrame], float],
    *,
    runs_of: RunsOf = certified,
) -> Observe:
    """Observe ``measure(flows)``, flows having ``received``: bytes at the receiver within ``window(end of the run)``.

    The run ends with the first flow that does; seconds count from the start of the first flow. NaN is a run without a
    value.
    """
    return partial(
        _windowed, experiment=experiment, axes=axes, window=window, measure=measure, runs_of=runs_of
    )


def _windowed(
    evidence: Evidence,
    *,
    experiment: str,
    axes: tuple[str, ...],
    window: Callable[[float], tuple[float, float]],
    measure: Callable[[pd.DataFrame], float],
    runs_of: RunsOf,
) -> Sample:
    run_set = evidence[experiment]
    runs = runs_of(run_set)
    flows = dict(iter(run_set.flows.groupby("cell_id")))
    intervals = dict(iter(run_set.intervals.groupby("cell_id")))

    def value(cell_id: str) -> float:
        if cell_id not in flows or cell_id not in intervals:
            return np.nan
        progress = progress_of_flows(flows[cell_id], intervals[cell_id])
        if progress is None:
            return np.nan
        start_s, end_s = window(min(float(times[-1]) for times, _ in progress))
        return measure(flows[cell_id].assign(received=received_between(progress, start_s, end_s)))

    values = [value(cell_id) for cell_id in runs["cell_id"]]
    return sample_of(runs.assign(measured=values), axes=axes, value="measured")


def flow_metric(
    experiment: str,
    axes: tuple[str, ...],
    measure: Callable[[pd.DataFrame], float],
    *,
    runs_of: RunsOf = certified,
) -> Observe:
    """Observe ``measure(flows of the run)``; NaN is a run without a value."""
    return partial(_flow_metric, experiment=experiment, axes=axes, measure=measure, runs_of=runs_of)


def _flow_metric(
    evidence: Evidence,
    *,
    experiment: str,
    axes: tuple[str, ...],
    measure: Callable[[pd.DataFrame], float],
    runs_of: RunsOf,
) -> Sample:
    run_set = evidence[experiment]
    runs = runs_of(run_set)
    flows = dict(iter(run_set.flows.groupby("cell_id")))
    values = [measure(flows[cell_id]) if cell_id in flows else np.nan for cell_id in runs["cell_id"]]
    return sample_of(runs.assign(measured=values), axes=axes, value="measured")


def column_of(trace: Trace, column: str) -> Array:
    """Give the column as floats, absent ones as NaN."""
    return trace[column].to_numpy(dtype=np.float64, na_value=np.nan)

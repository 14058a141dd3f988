"""Quantities: what a claim finds in the runs of an experiment, by which axes, and under which name.

A quantity is a value too: frozen, comparable, hashable. ``GOODPUT["bbr1", 0.01]`` speaks of its mean in a
condition, the coordinates in the order of ``by``. Only certified runs are ever read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from typing_extensions import Self

from fabbbr.units import TCP_IPV4_HEADER_BYTES
from fabbbr_analysis import models
from fabbbr_analysis.arrivals import progress_of_flows, received_between
from fabbbr_analysis.claims.expression import Coordinate, InCondition
from fabbbr_analysis.claims.observed import Observed, RunSet, SocketTrace, TraceMeasure, at_cells
from fabbbr_analysis.claims.sample import MissingConditionError, Sample, sample_of

MEASURED = "measured"
"""The column that holds a quantity."""

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

    Where BBRv2 was run in several variants, those with another than the first of :func:`bbr2_variants` are
    left out.
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


def certified_with_loss(run_set: RunSet) -> pd.DataFrame:
    """Certified runs, whose ``loss_ratio`` is 0 where no loss is injected: none is a level of it too."""
    runs = certified(run_set)
    return runs.assign(loss_ratio=runs["loss_ratio"].fillna(0.0))


RunsOf: TypeAlias = Callable[[RunSet], pd.DataFrame]
"""Chooses the runs in which a quantity is observed, one row per run, and adds the axes that tables lack."""


@dataclass(frozen=True, kw_only=True)
class Quantity(ABC):
    """Something measured in the runs of an experiment, which the columns ``by`` tell apart."""

    words: str
    experiment: str
    by: tuple[str, ...]
    runs_of: RunsOf = certified

    def __getitem__(self, coordinates: Coordinate | tuple[Coordinate, ...]) -> InCondition:
        return InCondition(self, coordinates if isinstance(coordinates, tuple) else (coordinates,))

    @property
    def trace_measure(self) -> TraceMeasure | None:
        """What has to be read from traces; None when nothing has."""
        return None

    def observe(self, observed: Observed) -> Sample:
        """Observe it by condition; raise MissingConditionError."""
        return sample_of(self.rows(observed), axes=self.by, value=MEASURED)

    @abstractmethod
    def rows(self, observed: Observed) -> pd.DataFrame:
        """Columns ``by``, ``condition`` and ``measured``, one row per value of a run; NaN is none."""


@dataclass(frozen=True, kw_only=True)
class PerRun(Quantity):
    """One number per run."""

    def rows(self, observed: Observed) -> pd.DataFrame:
        """One row per run."""
        runs = self.runs_of(observed.run_set)
        values = pd.Series(self.values(runs, observed)).to_numpy(dtype=np.float64, na_value=np.nan)
        return runs.assign(**{MEASURED: values})

    @abstractmethod
    def values(self, runs: pd.DataFrame, observed: Observed) -> Sequence[float] | pd.Series[float]:
        """One value per row of ``runs``."""


@dataclass(frozen=True, kw_only=True)
class OfRun(PerRun):
    """Computed from columns of table ``runs``."""

    value: Callable[[pd.DataFrame], pd.Series[float]]

    @classmethod
    def column(cls, words: str, experiment: str, by: tuple[str, ...], name: str) -> Self:
        """Take a column."""
        return cls(words=words, experiment=experiment, by=by, value=_Column(name))

    @classmethod
    def per_rate(cls, experiment: str, by: tuple[str, ...]) -> Self:
        """Goodput as a share of the bottleneck's configured rate."""
        return cls(words="goodput / rate", experiment=experiment, by=by, value=_over_rate)

    def values(self, runs: pd.DataFrame, observed: Observed) -> Sequence[float] | pd.Series[float]:  # noqa: ARG002
        """Compute all at once."""
        return self.value(runs)


@dataclass(frozen=True, kw_only=True)
class OfFlows(PerRun):
    """Measured on the flows of each run."""

    measure: Callable[[pd.DataFrame], float]

    def values(self, runs: pd.DataFrame, observed: Observed) -> Sequence[float] | pd.Series[float]:
        """Measure run by run."""
        return at_cells({cell_id: self.measure(flows) for cell_id, flows in _flows_of(runs, observed)}, runs)


@dataclass(frozen=True, kw_only=True)
class InWindow(PerRun):
    """Measured on the flows of each run, having ``received``.

    That is the bytes at the receiver within ``window(end of the run)``. The run ends with the first flow that
    does; seconds count from the start of the first flow.
    """

    window: Callable[[float], tuple[float, float]]
    measure: Callable[[pd.DataFrame], float]

    def values(self, runs: pd.DataFrame, observed: Observed) -> Sequence[float] | pd.Series[float]:
        """Measure run by run."""
        values = {
            cell_id: self._value(flows, observed.run_set.intervals_of([cell_id]))
            for cell_id, flows in _flows_of(runs, observed)
        }
        return at_cells(values, runs)

    def _value(self, flows: pd.DataFrame, intervals: pd.DataFrame) -> float:
        progress = progress_of_flows(flows, intervals)
        if progress is None:
            return np.nan
        start_s, end_s = self.window(min(float(times[-1]) for times, _ in progress))
        return self.measure(flows.assign(received=received_between(progress, start_s, end_s)))


def _flows_of(runs: pd.DataFrame, observed: Observed) -> Iterator[tuple[str, pd.DataFrame]]:
    """Cell id and flows of each of the runs that has any, one run at a time."""
    flows = observed.run_set.flows
    own = flows[flows["cell_id"].isin(runs["cell_id"])]
    return ((str(cell_id), rows) for cell_id, rows in own.groupby("cell_id"))


@dataclass(frozen=True, kw_only=True)
class OfTrace(PerRun):
    """Measured on the socket samples of each run's senders."""

    columns: tuple[str, ...] = ("rtt_s",)
    measure: Callable[[SocketTrace, pd.Series], float]

    @property
    def trace_measure(self) -> TraceMeasure:
        """Columns and measure."""
        return TraceMeasure(columns=self.columns, measure=self.measure)

    def values(self, runs: pd.DataFrame, observed: Observed) -> Sequence[float] | pd.Series[float]:
        """Look up what was measured when the traces were read."""
        return at_cells(observed.traced(self.trace_measure), runs)


@dataclass(frozen=True)
class Last:
    """The last seconds of a run."""

    seconds: float

    def __call__(self, end_s: float) -> tuple[float, float]:
        """Start and end of the window."""
        return end_s - self.seconds, end_s


@dataclass(frozen=True)
class Since:
    """What is left of a run after a share of it."""

    share: float

    def __call__(self, end_s: float) -> tuple[float, float]:
        """Start and end of the window."""
        return self.share * end_s, end_s


column = OfRun.column
per_rate = OfRun.per_rate


def over_cubic_model(experiment: str, by: tuple[str, ...]) -> OfRun:
    """Goodput over CUBIC's response function for the run's own RTT, loss and MTU."""
    return OfRun(
        words="goodput / CUBIC's response function", experiment=experiment, by=by,
        value=_over_cubic_model, runs_of=_under_loss,
    )  # fmt: skip


@dataclass(frozen=True)
class _Column:
    name: str

    def __call__(self, runs: pd.DataFrame) -> pd.Series[float]:
        return runs[self.name]


def _over_rate(runs: pd.DataFrame) -> pd.Series[float]:
    return runs["goodput_bps"] / runs["rate_bps"]


def _under_loss(run_set: RunSet) -> pd.DataFrame:
    runs = certified(run_set)
    return runs[runs["loss_ratio"] > 0]


def _over_cubic_model(runs: pd.DataFrame) -> pd.Series[float]:
    model = models.cubic_bps(
        mss_bytes=runs["mtu_bytes"].to_numpy(dtype=np.float64) - TCP_IPV4_HEADER_BYTES,
        rtt_s=runs["rtt_s"].to_numpy(dtype=np.float64),
        loss=runs["loss_ratio"].to_numpy(dtype=np.float64),
    )
    return runs["goodput_bps"] / model

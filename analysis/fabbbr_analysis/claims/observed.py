"""Run sets as the claims see them: everything is observed once, however many claims ask for it.

The sockets of a big run do not fit in memory, so they are read cell by cell; all that any claim wants of a
cell is measured while its samples are there, and only the numbers are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from fabbbr.manifest import RunManifest
from fabbbr_analysis.claims.sample import MissingConditionError, Sample

T = TypeVar("T")


class RunSet(Protocol):
    """The part of :class:`fabbbr_analysis.runset.RunSet` that is needed here."""

    @property
    def experiment(self) -> str: ...
    @property
    def manifest(self) -> RunManifest: ...
    @property
    def runs(self) -> pd.DataFrame: ...
    @property
    def certified(self) -> pd.DataFrame: ...
    @property
    def flows(self) -> pd.DataFrame: ...
    def intervals_of(self, cell_ids: Sequence[str]) -> pd.DataFrame: ...
    def sockets(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame: ...
    def queues(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame: ...


SocketTrace: TypeAlias = pd.DataFrame
"""Samples of one run's sending sockets by time; ``t_s`` from the first flow's start."""


@dataclass(frozen=True, kw_only=True)
class TraceMeasure:
    """One number of a run's trace: ``measure(trace, run)``, NaN when the trace does not hold it."""

    columns: tuple[str, ...]
    measure: Callable[[SocketTrace, pd.Series], float]


class Observable(Protocol):
    """A quantity, as far as formulas and run sets know it (see ``quantities.py``)."""

    @property
    def words(self) -> str: ...
    @property
    def experiment(self) -> str: ...
    @property
    def by(self) -> tuple[str, ...]: ...
    @property
    def trace_measure(self) -> TraceMeasure | None: ...
    def observe(self, observed: Observed) -> Sample: ...
    def __hash__(self) -> int: ...


class Observed:
    """One run set and what was observed in it. ``wanted`` are all quantities that will be asked for."""

    def __init__(self, run_set: RunSet, wanted: Iterable[Observable]) -> None:
        self.run_set = run_set
        measures = (each.trace_measure for each in wanted if each.experiment == run_set.experiment)
        self._measures = tuple(dict.fromkeys(each for each in measures if each is not None))
        self._kept: dict[Hashable, Any] = {}

    @property
    def looks(self) -> int:
        """How often its claims may be judged while it grows; 0 when once, at its end."""
        return len(self.run_set.manifest.looks)

    def sample(self, quantity: Observable) -> Sample:
        """Observe a quantity; raise MissingConditionError."""
        return self.once(quantity, lambda: quantity.observe(self))

    def once(self, name: Hashable, compute: Callable[[], T]) -> T:
        """Compute something of this run set the first time that it is asked for."""
        if name not in self._kept:
            self._kept[name] = compute()
        kept: T = self._kept[name]
        return kept

    def traced(self, measure: TraceMeasure) -> Mapping[str, float]:
        """Cell id → what ``measure`` finds in its trace, for all certified cells that have one."""
        return self.once("traces", self._read_traces)[measure]

    def _read_traces(self) -> dict[TraceMeasure, dict[str, float]]:
        columns = dict.fromkeys(column for each in self._measures for column in each.columns)
        found: dict[TraceMeasure, dict[str, float]] = {each: {} for each in self._measures}
        for _, run in self.run_set.certified.iterrows():
            trace = self._trace(run["cell_id"], tuple(columns))
            for each in self._measures if len(trace) else ():
                found[each][run["cell_id"]] = each.measure(trace, run)
        return found

    def _trace(self, cell_id: str, columns: Sequence[str]) -> SocketTrace:
        sockets = self.run_set.sockets(columns=["cell_id", "t_s", "side", *columns], cell_ids=[cell_id])
        return sockets[sockets["side"] == "sender"].sort_values("t_s", kind="stable")


class Observations(dict[str, Observed]):
    """Run sets by experiment id; asking for one that is not there says how to get it."""

    settings = ""
    """With which settings."""

    def __missing__(self, experiment: str) -> Observed:
        how = f"fabbbr run {experiment}{self.settings}"
        message = f"experiment {experiment} was not run; start it with: {how}"
        raise MissingConditionError(message)


def at_cells(values: Mapping[str, float], runs: pd.DataFrame) -> list[float]:
    """One value per run, NaN where there is none."""
    return [values.get(cell_id, np.nan) for cell_id in runs["cell_id"]]

"""Per-run values by condition, and what a formula sees of them: the means over runs.

A formula is arithmetic on condition means that works elementwise. Given the means of the runs it yields one number;
given the means of 10 000 resamples of the runs it yields 10 000, whose spread is the interval of the whole formula.
A published series is a sample with one run a condition, so the same formula judges it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fabbbr.errors import AnalysisError
from fabbbr_analysis.stats import mean, resamples

Array: TypeAlias = NDArray[np.float64]
Key: TypeAlias = tuple[str | float, ...]
"""The coordinates of a condition in the order of ``Sample.axes``, e.g. ``("bbr1", 0.01)``."""

_SHOWN = {
    "loss_ratio": ("loss", 100.0, "%"),
    "rtt_s": ("RTT", 1000.0, "ms"),
    "buffer_bdp": ("buffer", 1.0, "BDP"),
    "buffer_bytes": ("buffer", 1e-3, "kB"),
    "counted_bdp": ("buffer", 1.0, "BDP"),
    "n_flows": ("flows", 1.0, ""),
}
"""Axis → name, factor and unit in messages."""


class MissingConditionError(AnalysisError):
    """A claim cannot be judged: a condition that its formula needs was not run, or cannot be told apart."""


def key_of(*coordinates: str | float) -> Key:
    """Round the numbers to four digits: a buffer of whole bytes is not exactly 0.3 BDP.

    >>> key_of("bbr1", 0.29999)
    ('bbr1', 0.3)
    """
    return tuple(part if isinstance(part, str) else float(f"{part:.4g}") for part in coordinates)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One quantity: the values of the runs of each condition."""

    axes: tuple[str, ...]
    runs: Mapping[Key, Array]
    remarks: tuple[str, ...] = ()
    """What a reader of the verdict must know, e.g. runs that had no value."""

    def describe(self, key: Key) -> str:
        """Name a condition in words."""
        return " at ".join(_coordinate(axis, part) for axis, part in zip(self.axes, key, strict=False))


def _coordinate(axis: str, value: str | float) -> str:
    if isinstance(value, str):
        return value
    name, scale, unit = _SHOWN.get(axis, (axis, 1.0, ""))
    return f"{name} {value * scale:g} {unit}".rstrip()


def sample_of(runs: pd.DataFrame, *, axes: tuple[str, ...], value: str) -> Sample:
    """Group ``runs`` (certified rows, one a run) by ``axes`` and take column ``value``.

    Raises
    ------
    MissingConditionError
        Runs of different conditions fall together, because something else was varied too.
    """
    present = runs[runs[value].notna() & runs[list(axes)].notna().all(axis=1)]
    keys = [key_of(*row) for row in present[list(axes)].itertuples(index=False)]
    groups: dict[Key, Array] = {}
    for key, rows in present.groupby(pd.Series(keys, index=present.index, dtype=object), sort=False):
        found = Sample(axes=axes, runs={}).describe(key)
        if rows["condition"].nunique() > 1:
            names = "; ".join(sorted(rows["condition"].unique()))
            message = (
                f"{found} was run in several ways ({names}); judge a run that varies only what the paper did"
            )
            raise MissingConditionError(message)
        groups[key] = rows[value].to_numpy(dtype=np.float64)
    absent = len(runs) - len(present)
    remarks = (f"{absent} certified runs have no value and were left out",) if absent else ()
    return Sample(axes=axes, runs=groups, remarks=remarks)


@dataclass(kw_only=True)
class Means:
    """The means that a formula reads. It remembers what was read, so that the verdict can tell how many runs it rests on."""

    sample: Sample
    reduce: Callable[[Array], Array]
    read: dict[Key, Array] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, sample: Sample) -> Means:
        """Take the means over the runs themselves."""
        return cls(sample=sample, reduce=mean)

    @classmethod
    def resampled(cls, sample: Sample, generator: np.random.Generator) -> Means:
        """Take the means of 10 000 resamples of the runs of each condition."""
        return cls(sample=sample, reduce=lambda runs: mean(resamples(runs, generator)))

    def __getitem__(self, coordinates: Key) -> Array:
        key = key_of(*coordinates)
        if key not in self.sample.runs:
            message = f"no certified run of {self.sample.describe(key)}"
            raise MissingConditionError(message)
        if key not in self.read:
            self.read[key] = self.reduce(self.sample.runs[key])
        return self.read[key]

    def __contains__(self, coordinates: Key) -> bool:
        return key_of(*coordinates) in self.sample.runs

    def conditions(self) -> tuple[Key, ...]:
        """All conditions, in order."""
        return tuple(sorted(self.sample.runs, key=repr))

    def levels(self, *start: str | float) -> tuple[float, ...]:
        """List the numbers that the coordinate after ``start`` takes, ascending."""
        head = key_of(*start)
        found = {key[len(head)] for key in self.sample.runs if key[: len(head)] == head}
        return tuple(sorted(level for level in found if not isinstance(level, str)))

    def ccas(self, *candidates: str) -> tuple[str, ...]:
        """Those of ``candidates`` that were run, remarking on the others; raise when none was."""
        run = tuple(cca for cca in candidates if self.levels(cca) or (cca,) in self)
        if not run:
            message = f"no certified run of {' or '.join(candidates)}"
            raise MissingConditionError(message)
        absent = [cca for cca in candidates if cca not in run]
        if absent:
            self.remarks.append(f"judged for {', '.join(run)} only, without {', '.join(absent)}")
        return run

    def smallest(self) -> tuple[int, str]:
        """Count the runs of the condition with the fewest among those read, and its name."""
        key = min(self.read, key=lambda each: self.sample.runs[each].size)
        return self.sample.runs[key].size, self.sample.describe(key)


def lowest(values: list[Array]) -> Array:
    """Elementwise minimum; raise MissingConditionError of nothing."""
    return np.asarray(np.min(_some(values), axis=0), dtype=np.float64)


def highest(values: list[Array]) -> Array:
    """Elementwise maximum; raise MissingConditionError of nothing."""
    return np.asarray(np.max(_some(values), axis=0), dtype=np.float64)


def average(values: list[Array]) -> Array:
    """Elementwise mean over conditions, each counting once; raise MissingConditionError of nothing."""
    return np.asarray(np.mean(_some(values), axis=0), dtype=np.float64)


def _some(values: list[Array]) -> list[Array]:
    if not values:
        message = "none of the conditions that the claim is about was run"
        raise MissingConditionError(message)
    return values

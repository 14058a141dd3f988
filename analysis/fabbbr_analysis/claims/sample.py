"""Per-run values of one quantity by condition.

A published series is a sample with one run per condition, so that the same formula judges it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fabbbr.errors import AnalysisError
from fabbbr_analysis.claims.axes import coordinate

Array: TypeAlias = NDArray[np.float64]
Key: TypeAlias = tuple[str | float, ...]
"""The coordinates of a condition in the order of ``Sample.axes``, e.g. ``("bbr1", 0.01)``."""


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
    conditions: Mapping[Key, str] = field(default_factory=dict)
    """The condition's own name, as in the plan; empty for a published series."""
    remarks: tuple[str, ...] = ()
    """What a reader of the verdict must know, e.g. runs that had no value."""

    def describe(self, key: Key) -> str:
        """Name a condition in words."""
        return " at ".join(coordinate(axis, part) for axis, part in zip(self.axes, key, strict=False))


def sample_of(runs: pd.DataFrame, *, axes: tuple[str, ...], value: str) -> Sample:
    """Group ``runs`` (certified rows, one per run) by ``axes`` and take column ``value``.

    Raises
    ------
    MissingConditionError
        Runs of different conditions fall together, because something else was varied too.
    """
    present = runs[runs[value].notna() & runs[list(axes)].notna().all(axis=1)]
    keys = [key_of(*row) for row in present[list(axes)].itertuples(index=False)]
    groups: dict[Key, Array] = {}
    conditions: dict[Key, str] = {}
    for key, rows in present.groupby(pd.Series(keys, index=present.index, dtype=object), sort=False):
        found = Sample(axes=axes, runs={}).describe(key)
        if rows["condition"].nunique() > 1:
            names = "; ".join(sorted(rows["condition"].unique()))
            message = (
                f"{found} was run in several ways ({names}); judge a run that varies only what the paper did"
            )
            raise MissingConditionError(message)
        groups[key] = rows[value].to_numpy(dtype=np.float64)
        conditions[key] = str(rows["condition"].iloc[0])
    absent = len(runs) - len(present)
    remarks = (f"{absent} certified runs have no value and were left out",) if absent else ()
    return Sample(axes=axes, runs=groups, conditions=conditions, remarks=remarks)

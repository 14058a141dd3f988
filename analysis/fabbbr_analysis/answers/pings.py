"""How long pings beside the flows take: where least, where most, and on the idle path."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fabbbr_analysis import stats
from fabbbr_analysis.figures.conditions import Axis, place_in_words, variants
from fabbbr_analysis.figures.measures import BY_COLUMN
from fabbbr_analysis.stats import Interval
from fabbbr_analysis.summary import UNCHANGED_WITHIN, once, values_of
from fabbbr_analysis.wording import interval, number, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_LOADED, _IDLE = "ping_p95_s", "ping_idle_median_s"


@dataclass(frozen=True, kw_only=True)
class _Pinged:
    """The 95th percentile of one condition's pings under load, over its runs, and which condition that is."""

    where: str
    took: Interval

    def __str__(self) -> str:
        """With its unit, and its interval where it has one."""
        return _in_ms(self.took)


def told_of_pings(run_set: RunSet, axes: Sequence[Axis]) -> list[str]:
    """Say it in one sentence; nothing without pings under load."""
    runs = run_set.certified
    if _LOADED not in runs:
        return []
    found = sorted(_by_condition(runs, axes), key=lambda each: each.took.value)
    if not found:
        return []
    least, most = found[0], found[-1]
    idle = runs[_IDLE].dropna()
    alone = _in_ms(stats.mean_interval([float(idle.mean())])) if len(idle) else ""
    beside = f"; on the idle path they take {alone}" if alone else ""
    if len(found) == 1:
        said = f"Beside the flows 95 % of the pings take at most {least}"
    elif most.took.value <= least.took.value * (1 + UNCHANGED_WITHIN):
        said = f"Beside the flows 95 % of the pings take at most {least} to {most} everywhere"
    else:
        said = (
            f"Beside the flows pings take least {least.where}, {least} in the 95th percentile, and most "
            f"{most.where}, {most}"
        )
    return [tie(f"{said}{beside}.")]


def _by_condition(runs: pd.DataFrame, axes: Sequence[Axis]) -> Iterator[_Pinged]:
    told = runs.assign(variant=variants(runs))
    for condition, cells in told.groupby("condition", sort=False):
        values = values_of(once(cells), _LOADED)
        if not values.size:
            continue
        place = tuple(str(cells[f"axis_{axis.key}"].iloc[0]) for axis in axes)
        variant = str(cells["variant"].iloc[0])
        words = [f"with {variant}"] if variant else []
        words += [f"at {place_in_words(axes, place)}"] if axes else []
        generator = np.random.default_rng([1, zlib.crc32(f"{condition}\0{_LOADED}".encode())])
        yield _Pinged(
            where=" ".join(words),
            took=stats.mean_within(values, within=(0.0, math.inf), generator=generator),
        )


def _in_ms(took: Interval) -> str:
    measure = BY_COLUMN[_LOADED]
    ends = (took.value, took.low, took.high)
    value, low, high = (None if end is None else end * measure.factor for end in ends)
    return f"{number(value) if low is None else interval(value, low, high)} {measure.unit}"

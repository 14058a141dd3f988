"""Where one measure of whole runs is least and where most, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fabbbr_analysis.figures.conditions import Axis, place_in_words, variants
from fabbbr_analysis.figures.measures import Measure
from fabbbr_analysis.summary import UNCHANGED_WITHIN, summarise
from fabbbr_analysis.wording import estimate


@dataclass(frozen=True, kw_only=True)
class At:
    """One condition: the mean of its runs, in the unit of the column and in words, and its name in words."""

    mean: float
    value: str
    where: str
    """Such as ``with cubic at an RTT of 40 ms``; empty where nothing varies."""


def by_mean(runs: pd.DataFrame, axes: Sequence[Axis], measure: Measure) -> list[At]:
    """Return the conditions from the least to the most.

    One that lacks the measure in some of its runs is left out: a mean would be of those that did well.
    """
    if measure.column not in runs:
        return []
    lacking = runs.loc[runs[measure.column].isna(), "condition"]
    whole = runs[~runs["condition"].isin(lacking)]
    if whole.empty:
        return []
    variant = dict(zip(runs["condition"], variants(runs), strict=True))
    means = summarise(whole, [measure.column]).sort_values("mean", kind="stable")
    return [_at(row, variant[row["condition"]], axes, measure) for row in means.to_dict("records")]


def are_alike(conditions: Sequence[At]) -> bool:
    """Whether several, from the least to the most, are within 5 %."""
    return len(conditions) > 1 and conditions[-1].mean <= conditions[0].mean * (1 + UNCHANGED_WITHIN)


def _at(row: dict[Any, Any], variant: str, axes: Sequence[Axis], measure: Measure) -> At:
    low, high = (None if pd.isna(row[end]) else float(row[end]) * measure.factor for end in ("low", "high"))
    mean = float(row["mean"]) * measure.factor
    words = [f"with {variant}"] if variant else []
    words += [f"at {place_in_words(axes, [str(row[f'axis_{axis.key}']) for axis in axes])}"] if axes else []
    return At(
        mean=float(row["mean"]),
        value=f"{estimate(mean, low, high, finest=measure.finest)} {measure.unit}",
        where=" ".join(words),
    )

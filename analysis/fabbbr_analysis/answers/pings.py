"""How long pings beside the flows take: where least, where most, and on the idle path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from fabbbr_analysis.figures.conditions import Axis, place_in_words, variants
from fabbbr_analysis.figures.measures import BY_COLUMN
from fabbbr_analysis.summary import UNCHANGED_WITHIN, summarise
from fabbbr_analysis.wording import estimate, number, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_LOADED, _IDLE = BY_COLUMN["ping_p95_s"], BY_COLUMN["ping_idle_median_s"]


def told_of_pings(run_set: RunSet, axes: Sequence[Axis]) -> list[str]:
    """Say it in one sentence; nothing without pings under load."""
    runs = run_set.certified
    if _LOADED.column not in runs:
        return []
    means = summarise(runs, [_LOADED.column]).dropna(subset="mean").sort_values("mean")
    if means.empty:
        return []
    least, most = means.iloc[0].to_dict(), means.iloc[-1].to_dict()
    if len(means) == 1:
        said = f"Beside the flows 95 % of the pings take at most {_told(least)}"
    elif most["mean"] <= least["mean"] * (1 + UNCHANGED_WITHIN):
        said = f"Beside the flows 95 % of the pings take at most {_told(least)} to {_told(most)} everywhere"
    else:
        variant = dict(zip(runs["condition"], variants(runs), strict=True))
        here, there = (_where(each, variant[each["condition"]], axes) for each in (least, most))
        said = (
            f"Beside the flows pings take least {here}, {_told(least)} in the 95th percentile, and most "
            f"{there}, {_told(most)}"
        )
    idle = runs[_IDLE.column].mean() * _IDLE.factor
    beside = "" if pd.isna(idle) else f"; on the idle path they take {number(idle)} {_IDLE.unit}"
    return [tie(f"{said}{beside}.")]


def _where(row: dict[Any, Any], variant: str, axes: Sequence[Axis]) -> str:
    words = [f"with {variant}"] if variant else []
    words += [f"at {place_in_words(axes, [str(row[f'axis_{axis.key}']) for axis in axes])}"] if axes else []
    return " ".join(words)


def _told(row: dict[Any, Any]) -> str:
    low, high = (None if pd.isna(row[end]) else float(row[end]) * _LOADED.factor for end in ("low", "high"))
    return f"{estimate(float(row['mean']) * _LOADED.factor, low, high)} {_LOADED.unit}"

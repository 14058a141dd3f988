"""How long pings and datagrams beside the flows are on their way: where least, where most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.figures.conditions import Axis, place_in_words, variants
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure
from fabbbr_analysis.summary import UNCHANGED_WITHIN, summarise
from fabbbr_analysis.wording import estimate, number, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_IDLE = BY_COLUMN["ping_idle_median_s"]


def told_of_delays(run_set: RunSet, rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """A sentence on pings and one on datagrams, of those that there are beside flows under test."""
    runs = run_set.certified
    told = _told(runs, axes, BY_COLUMN["ping_p95_s"], "pings", "take")
    if told:
        idle = runs[_IDLE.column].mean() * _IDLE.factor
        told += "" if pd.isna(idle) else f"; on the idle path they take {number(idle)} {_IDLE.unit}"
    beside = any(not row.self_limited for row in rows)
    waited = _told(runs, axes, BY_COLUMN["pdv_p95_s"], "datagrams", "wait") if beside else ""
    return [tie(f"{said}.") for said in (told, waited) if said]


def _told(runs: pd.DataFrame, axes: Sequence[Axis], measure: Measure, what: str, take: str) -> str:
    """Where 95 % of them ``take`` least and most; empty where nothing of the kind was measured."""
    if measure.column not in runs:
        return ""
    means = summarise(runs, [measure.column]).dropna(subset="mean").sort_values("mean")
    if means.empty:
        return ""
    least, most = (means.iloc[place].to_dict() for place in (0, -1))
    if len(means) == 1:
        return f"Beside the flows 95 % of the {what} {take} at most {_value(least, measure)}"
    if most["mean"] <= least["mean"] * (1 + UNCHANGED_WITHIN):
        ends = f"{_value(least, measure)} to {_value(most, measure)}"
        return f"Beside the flows 95 % of the {what} {take} at most {ends} everywhere"
    variant = dict(zip(runs["condition"], variants(runs), strict=True))
    here, there = (_where(each, variant[each["condition"]], axes) for each in (least, most))
    return (
        f"Beside the flows {what} {take} least {here}, {_value(least, measure)} in the 95th percentile, and "
        f"most {there}, {_value(most, measure)}"
    )


def _where(row: dict[Any, Any], variant: str, axes: Sequence[Axis]) -> str:
    words = [f"with {variant}"] if variant else []
    words += [f"at {place_in_words(axes, [str(row[f'axis_{axis.key}']) for axis in axes])}"] if axes else []
    return " ".join(words)


def _value(row: dict[Any, Any], measure: Measure) -> str:
    low, high = (None if pd.isna(row[end]) else float(row[end]) * measure.factor for end in ("low", "high"))
    return f"{estimate(float(row['mean']) * measure.factor, low, high)} {measure.unit}"

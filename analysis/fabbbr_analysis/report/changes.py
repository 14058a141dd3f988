"""What changed between two runs, in sentences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from fabbbr.counts import counted
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure, in_a_sentence
from fabbbr_analysis.summary import WITHIN
from fabbbr_analysis.wording import limits, listing, mean, number

_Row = Mapping[Hashable, Any]


def sentences(rows: pd.DataFrame) -> Iterator[str]:
    """A sentence for each metric of one condition that changed or may have, and one for all that did not.

    ``rows`` are of :func:`fabbbr_analysis.summary.compare`, of which A is what was before and B what came.
    """
    same, unchanged = [], []
    for row in rows.to_dict("records"):
        if row["same"] is True:
            same.append(in_a_sentence(_title(row)))
        elif row["verdict"] == "changed":
            yield f"{_title(row)} {_direction(row)} {_from_to(row)}{_relative(row)}{_sure(row)}."
        elif row["verdict"] == "unclear":
            yield f"{_title(row)} is undecided: {_from_to(row)}{_relative(row)}{_remedy(row)}."
        elif row["verdict"] == "unchanged":
            unchanged.append(in_a_sentence(_title(row)))
        else:
            yield f"Only in run {str(row['verdict'])[-1].upper()}."
    if same:
        yield f"The same in every run: {listing(same)}."
    if unchanged:
        yield f"Unchanged ({WITHIN}): {listing(unchanged)}."


def all_the_same(table: pd.DataFrame) -> str:
    """Say that nothing differs between two runs; empty where something does, or may."""
    if table.empty or not table["same"].eq(other=True).all():
        return ""
    conditions = counted(table["condition"].nunique(), "condition")
    return f"Run by run the two are the same at {conditions}, to the last digit"


def paired(table: pd.DataFrame) -> str:
    """Say that runs were compared pair by pair; empty where none were."""
    if table.empty or not table["paired"].eq(other=True).any():
        return ""
    return "What comes at random is the same in runs of equal seeds, so these are compared pair by pair"


def _measure(row: _Row) -> Measure | None:
    return BY_COLUMN.get(str(row["metric"]))


def _title(row: _Row) -> str:
    measure = _measure(row)
    return measure.title if measure else str(row["metric"]).replace("_", " ").capitalize()


def _direction(row: _Row) -> str:
    return "rose" if row["mean_b"] > row["mean_a"] else "fell"


def _from_to(row: _Row) -> str:
    known = _measure(row)
    measure = None if known is None else known.suited((row["mean_a"], row["mean_b"]))
    factor, unit = (measure.factor, measure.unit) if measure else (1.0, "")
    return f"from {number(row['mean_a'] * factor)} to {number(row['mean_b'] * factor)} {unit}".strip()


def _relative(row: _Row) -> str:
    """By how much of A, with its interval: B over A is one over the ratio of the table."""
    ratio, least, most = (_float(row[name]) for name in ("ratio", "ratio_low", "ratio_high"))
    if not ratio > 0:
        return ""
    change = 100 * (1 / ratio - 1)
    if row["exact"] or not least > 0:
        return f", by {number(change, significant=2)} %"
    low, high = 100 * (1 / most - 1), 100 * (1 / least - 1)
    return f", by {mean(change, low, high)} % {limits(change, low, high)}"


def _float(value: Any) -> float:  # noqa: ANN401 - what pandas holds
    return math.nan if value is None else float(value)


def _sure(row: _Row) -> str:
    """Why there is no interval where none is needed."""
    return "; nothing in these runs is random, so another seed would say the same" if row["exact"] else ""


def _remedy(row: _Row) -> str:
    """Why it is not known: a run alone says nothing of how far runs differ."""
    least = min(int(row["n_a"]), int(row["n_b"]))
    return "; one run of a side has no interval" if least < 2 else "; more repetitions would tell"

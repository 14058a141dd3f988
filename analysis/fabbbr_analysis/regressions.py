"""Whether a run is worse than its base, for a check that stops a change: false alarms are budgeted.

Two levels share the budget evenly. *All conditions together*: for each metric the mean over the conditions of
its relative change, which finds a small change that is everywhere. *Each condition*: Welch's t of its runs,
which finds a change in one place. P values of a level are adjusted for one another (Holm 1979), so the budget
is the chance of any false alarm in the whole table, as far as means of runs are normal. A change within the
tolerance is none, however sure it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from fabbbr.errors import AnalysisError
from fabbbr_analysis import stats
from fabbbr_analysis.stats import Array, Difference
from fabbbr_analysis.summary import RunSet, by_condition, key_of_draws, pairs_of, values_of

BUDGET = 0.001
"""Chance of any false alarm in a table: in a hundred reruns without a change the chance of one is a tenth."""

TOLERANCE = 0.01
"""Relative change of a mean that nobody minds."""

FEWEST_ALONE = 5
"""Runs on each side that a condition needs to be judged by itself. Of fewer the spread is a guess: tables of
two runs had 25 times as many false alarms as were budgeted (``benchmarks/alarms.py``)."""

EVERYWHERE = "all conditions"

Verdict: TypeAlias = Literal["worse", "better", "no change shown", "missing"]


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A metric, and what is worse of it."""

    column: str
    worse: Literal["less", "more"]
    least: float = 0.0
    """A difference of means below this is none, in the metric's unit."""


WATCHED = (
    Watched(column="goodput_bps", worse="less"),
    Watched(column="retransmit_ratio", worse="more", least=0.001),
    Watched(column="rtt_median_s", worse="more", least=100e-6),
    Watched(column="queue_median_bytes", worse="more", least=1514.0),
    Watched(column="jain_flows", worse="less", least=0.01),
    Watched(column="completion_mean_s", worse="more", least=1e-3),
)
"""Few, because each further metric makes every other harder to tell apart."""

COLUMNS = (
    "condition", "metric", "n_base", "n_run", "mean_base", "mean_run", "change", "change_low", "change_high",
    "p_holm", "verdict",
)  # fmt: skip


def find(
    base: RunSet,
    run: RunSet,
    *,
    watched: Sequence[Watched] = WATCHED,
    budget: float = BUDGET,
    tolerance: float = TOLERANCE,
) -> pd.DataFrame:
    """Compare ``run`` with ``base``, condition by condition and over all of them.

    Returns
    -------
    DataFrame
        A row per metric over all conditions (``condition`` is "all conditions"), then one per condition and
        metric where both sides have five runs or more. ``n_base`` and ``n_run`` count certified runs (of the
        smallest condition, in the first rows); ``mean_*`` have the metric's unit; ``change`` is the relative
        change of the mean from base to run, with its 95 % interval, absent where the base has 0. ``verdict``
        says ``worse``, ``better``, ``no change shown``, or ``missing``: a condition of the base of which the
        run has too few certified runs to be judged.

    Raises
    ------
    AnalysisError
        Both sides have too few certified runs of the same conditions to judge anything.
    """
    before, after = by_condition(base.certified), by_condition(run.certified)
    key = key_of_draws(base, run)
    judged = [name for name in before if min(len(before[name]), len(after.get(name, ()))) >= 2]
    sides = [(name, before[name], after[name]) for name in judged]
    each = [row for side in sides for row in _of_condition(*side, watched, key=key)]
    alone = [row for row in each if min(row.n) >= FEWEST_ALONE]
    # What comes at random is the same in all conditions: what that does is no news in the next one.
    independent = not (base.shares_draws or run.shares_draws)
    everywhere = [*_everywhere(each, independent=independent)]
    rows = [*_judged(everywhere, budget / 2, tolerance), *_judged(alone, budget / 2, tolerance)]
    if not rows:
        message = (
            "nothing can be judged: that takes two conditions of two certified runs on each side, or one of "
            f"{FEWEST_ALONE}; run the same experiment with --repeat {FEWEST_ALONE}"
        )
        raise AnalysisError(message)
    missing = [
        {
            "condition": name,
            "n_base": len(before[name]),
            "n_run": len(after.get(name, ())),
            "verdict": "missing",
        }
        for name in before
        if name not in judged and len(before[name]) >= 2
    ]
    return pd.DataFrame([*rows, *missing], columns=list(COLUMNS))


def alarms(found: pd.DataFrame) -> pd.DataFrame:
    """The rows that should stop a change."""
    return found[found["verdict"].isin(["worse", "missing"])]


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A metric at a condition, or over all of them."""

    condition: str
    metric: Watched
    n: tuple[int, int]
    """Of the base and of the run."""
    means: tuple[float, float]
    difference: Difference
    """In the metric's unit; relative in a row over all conditions."""
    relative: Difference | None
    """None where the base has 0."""


def _of_condition(
    condition: str,
    before: pd.DataFrame,
    after: pd.DataFrame,
    watched: Sequence[Watched],
    *,
    key: str | None,
) -> Iterator[_Row]:
    """Compare what both sides have of a condition's metrics; runs with the same ``key`` drew the same."""
    for metric in watched:
        if metric.column not in before or metric.column not in after:
            continue
        pairs = pairs_of(after, before, metric.column, key=key)
        base, run = (values_of(side, metric.column) for side in (before, after))
        if pairs:
            run, base = np.asarray(pairs, dtype=np.float64).T
        found = _changes(run, base, pairs) if base.size and run.size else None
        if found is None:
            continue
        yield _Row(
            condition=condition,
            metric=metric,
            n=(base.size, run.size),
            means=(float(base.mean()), float(run.mean())),
            difference=found[0],
            relative=found[1],
        )


def _changes(
    run: Array, base: Array, pairs: Sequence[tuple[float, float]]
) -> tuple[Difference, Difference | None] | None:
    """The difference, and relative to the base where that has something; None with a single run on a side."""
    mean = float(base.mean())
    if pairs and (base > 0).all():
        relative = stats.paired_change(pairs)
        return None if relative is None else (relative.over(1 / mean), relative)
    difference = stats.paired_difference(pairs) if pairs else stats.difference(run, base)
    if difference is None:
        return None
    return difference, difference.over(mean) if mean > 0 else None


def _everywhere(each: Sequence[_Row], *, independent: bool) -> Iterator[_Row]:
    """Each metric's relative change, the mean over the conditions that have one."""
    for metric in dict.fromkeys(row.metric for row in each):
        rows = [row for row in each if row.metric == metric and row.relative is not None]
        changes = [row.relative for row in rows if row.relative is not None]
        if len(changes) < 2:
            continue
        mean = Difference.mean_of(changes, independent=independent)
        yield _Row(
            condition=EVERYWHERE,
            metric=metric,
            n=(min(row.n[0] for row in rows), min(row.n[1] for row in rows)),
            means=(
                float(np.mean([row.means[0] for row in rows])),
                float(np.mean([row.means[1] for row in rows])),
            ),
            difference=mean,
            relative=mean,
        )


def _judged(rows: Sequence[_Row], budget: float, tolerance: float) -> Iterator[dict[str, object]]:
    """Adjust the p values of a level for one another, and say what of it is a change."""
    adjusted = stats.holm([row.difference.p for row in rows])
    for row, p in zip(rows, adjusted, strict=True):
        low, high = row.relative.limits() if row.relative else (None, None)
        yield {
            "condition": row.condition,
            "metric": row.metric.column,
            "n_base": row.n[0],
            "n_run": row.n[1],
            "mean_base": row.means[0],
            "mean_run": row.means[1],
            "change": row.relative.value if row.relative else None,
            "change_low": low,
            "change_high": high,
            "p_holm": float(p),
            "verdict": _verdict(row, tolerance) if p <= budget else "no change shown",
        }


def _verdict(row: _Row, tolerance: float) -> Verdict:
    """Which way a mean moved, if it moved by more than anybody minds."""
    if abs(row.means[1] - row.means[0]) < row.metric.least:
        return "no change shown"
    if row.relative is not None and abs(row.relative.value) < tolerance:
        return "no change shown"
    return "worse" if (row.difference.value < 0) == (row.metric.worse == "less") else "better"

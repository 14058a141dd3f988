"""The table of results: one row per condition, each metric with its interval."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from fabbbr_analysis.answers import Answer, AnswerRow, Lead
from fabbbr_analysis.figures.conditions import Axis, mixes, varied
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure
from fabbbr_analysis.stats import Interval
from fabbbr_analysis.summary import WITHIN, once
from fabbbr_analysis.wording import ABSENT, SAME, limits, mean, shows_nothing

_Record: TypeAlias = Mapping[Hashable, Any]
"""A row of a table by column; pandas knows no more about its types."""

_COLUMNS = (
    "goodput_bps",
    "utilisation",
    "retransmit_ratio",
    "spurious_ratio",
    "goodput_forward_bps",
    "goodput_reverse_bps",
    "rtt_median_s",
    "ping_idle_median_s",
    "ping_median_s",
    "ping_p99_s",
    "ping_loss_ratio",
    "datagram_loss_ratio",
    "datagram_reordered_ratio",
    "jitter_s",
    "pdv_p95_s",
    "video_startup_s",
    "video_stalled_s",
    "chunk_median_s",
    "chunk_p95_s",
    "queue_median_bdp",
    "queue_reverse_median_bytes",
    "jain_flows",
    "jain_groups",
    "convergence_s",
    "completion_mean_s",
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """One mean, as text."""

    mean: str
    limits: str
    """The interval, and of how many runs where others have no value; empty when there is no mean."""


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """One condition."""

    names: tuple[str, ...]
    values: tuple[Result, ...]
    runs: int
    excluded: int


_GROUPS = (
    "Each group of flows in each phase: means over runs with their 95 % intervals. "
    "Differences between groups of the same cells are paired by run."
)
_DRAWN = (
    " So are those between conditions: what comes at random is the same in equal repetitions of all of them."
)


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """Heads and rows, as text."""

    names: tuple[str, ...]
    values: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    caption: str = ""


def result_table(runs: pd.DataFrame, summary: pd.DataFrame, columns: Sequence[str] = _COLUMNS) -> ResultTable:
    """Set the long summary as a table of these metrics; those that no run has are left out."""
    axes = varied(runs)
    present = set(summary.loc[summary["mean"].notna(), "metric"])
    some = set(summary.loc[summary["mean"] > 0, "metric"])
    offered = [BY_COLUMN[column] for column in columns]
    means = {metric: rows["mean"].tolist() for metric, rows in summary.groupby("metric")}
    measures = [
        each.suited(means[each.column]) for each in offered if each.column in (some if each.rare else present)
    ]
    by_condition: dict[str, dict[str, _Record]] = {}
    for record in summary.to_dict("records"):
        by_condition.setdefault(str(record["condition"]), {})[str(record["metric"])] = record
    runs = runs.assign(ccas=mixes(runs))
    certified = runs[runs["status"] == "certified"]
    counts = {str(condition): len(once(cells)) for condition, cells in certified.groupby("condition")}
    conditions = sorted(
        runs.drop_duplicates("condition").to_dict("records"), key=lambda record: _order(record, axes)
    )
    return ResultTable(
        names=(*(axis.title for axis in axes), "Congestion control"),
        values=tuple(measure.label for measure in measures),
        rows=tuple(
            _row(
                each,
                axes,
                measures,
                by_condition.get(each["condition"], {}),
                counts.get(each["condition"], 0),
            )
            for each in conditions
        ),
    )


def asked_table(answer: Answer) -> ResultTable:
    """Set what was asked and what came of it as a table: a row per condition, phase and group of flows.

    The last column is how far a row is ahead of the next, or behind the best.
    """
    varied_cca = any(row.variant and row.variant != row.group for row in answer.rows)
    return ResultTable(
        names=(*answer.axes, *(("Varied",) if varied_cca else ()), "Phase", "Flows"),
        values=(*(measure.label for measure in answer.measures), "Ahead of the next, or behind the best"),
        rows=tuple(
            ResultRow(
                names=(*row.place, *((row.variant,) if varied_cca else ()), row.phase, _flows(row)),
                values=(
                    *(_estimate(row.values.get(measure.column), measure) for measure in answer.measures),
                    _led(answer.leads.get(index)),
                ),
                runs=max((found.n for found in row.values.values()), default=0),
                excluded=row.excluded,
            )
            for index, row in enumerate(answer.rows)
        ),
        caption=_GROUPS + (_DRAWN if any(row.same_draws for row in answer.rows) else ""),
    )


def _flows(row: AnswerRow) -> str:
    return f"{row.how_many} × {row.name}" if row.n_flows > 1 else row.name


def _estimate(found: Interval | None, measure: Measure) -> Result:
    if found is None:
        return Result(mean=ABSENT, limits="")
    value, low, high = (_shown(each, measure) for each in (found.value, found.low, found.high))
    assert value is not None
    return Result(
        mean=mean(value, low, high, finest=measure.finest),
        limits=limits(value, low, high, finest=measure.finest),
    )


def _led(lead: Lead | None) -> Result:
    if lead is None:
        return Result(mean=ABSENT, limits="")
    measure = lead.over.measures[lead.column]
    apart = lead.difference
    found = _estimate(apart, measure)
    sign = "+" if apart.value > 0 else ""
    over = lead.over.name if lead.together else lead.over.rival
    said = {
        "ahead": f"ahead of {over}",
        "behind": f"behind {over}",
        "alike": f"{WITHIN} of {over}",
        "unclear": f"not clear from {over}",
    }
    if shows_nothing(*(_shown(each, measure) for each in (apart.value, apart.low, apart.high))):
        return Result(mean="", limits=f"the same as {over}")
    sure = SAME if lead.exact else found.limits
    return Result(mean=f"{sign}{found.mean} {measure.unit}", limits=f"{sure} {said[lead.verdict]}")


def _names(record: _Record, axes: Sequence[Axis]) -> tuple[str, ...]:
    return (*(str(record[f"axis_{axis.key}"]) for axis in axes), str(record["ccas"]))


def _order(record: _Record, axes: Sequence[Axis]) -> tuple[int | str, ...]:
    *texts, ccas = _names(record, axes)
    return (*(axis.texts.index(text) for axis, text in zip(axes, texts, strict=True)), ccas)


def _row(
    record: _Record,
    axes: Sequence[Axis],
    measures: Sequence[Measure],
    by_metric: Mapping[str, _Record],
    runs: int,
) -> ResultRow:
    return ResultRow(
        names=_names(record, axes),
        values=tuple(_result(by_metric[measure.column], measure, runs) for measure in measures),
        runs=runs,
        excluded=max((int(summary["excluded"]) for summary in by_metric.values()), default=0),
    )


def _result(summary: _Record, measure: Measure, runs: int) -> Result:
    """A mean that is of some of the runs alone says so: the others may have done worse than any."""
    value, low, high = (_shown(summary[column], measure) for column in ("mean", "low", "high"))
    if value is None:
        return Result(mean=ABSENT, limits="")
    known = int(summary["n"])
    some = f" in {known} of {runs} runs" if known < runs else ""
    sure = limits(value, low, high, finest=measure.finest)
    return Result(mean=mean(value, low, high, finest=measure.finest), limits=f"{sure}{some}")


def _shown(value: float | None, measure: Measure) -> float | None:
    return None if value is None or pd.isna(value) else float(value) * measure.factor

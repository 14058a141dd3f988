"""The table of results: one row per condition, each metric with its interval."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from fabbbr_analysis.figures.conditions import Axis, varied
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure
from fabbbr_analysis.wording import ABSENT, limits, mean

_Record: TypeAlias = Mapping[Hashable, Any]
"""A row of a table by column; pandas knows no more about its types."""

_COLUMNS = (
    "goodput_bps",
    "utilisation",
    "retransmit_ratio",
    "goodput_forward_bps",
    "goodput_reverse_bps",
    "rtt_median_s",
    "ping_idle_median_s",
    "ping_median_s",
    "ping_p99_s",
    "queue_median_bdp",
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
    """The interval; empty when there is no mean."""


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """One condition."""

    names: tuple[str, ...]
    values: tuple[Result, ...]
    runs: int
    excluded: int


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """Heads and rows, as text."""

    names: tuple[str, ...]
    values: tuple[str, ...]
    rows: tuple[ResultRow, ...]


def result_table(runs: pd.DataFrame, summary: pd.DataFrame) -> ResultTable:
    """Set the long summary as a table; metrics that no run has are left out."""
    axes = varied(runs)
    present = set(summary.loc[summary["mean"].notna(), "metric"])
    measures = [BY_COLUMN[column] for column in _COLUMNS if column in present]
    by_condition: dict[str, dict[str, _Record]] = {}
    for record in summary.to_dict("records"):
        by_condition.setdefault(str(record["condition"]), {})[str(record["metric"])] = record
    conditions = sorted(
        runs.drop_duplicates("condition").to_dict("records"), key=lambda record: _order(record, axes)
    )
    return ResultTable(
        names=(*(axis.title for axis in axes), "Congestion control"),
        values=tuple(measure.label for measure in measures),
        rows=tuple(
            _row(each, axes, measures, by_condition.get(each["condition"], {})) for each in conditions
        ),
    )


def _names(record: _Record, axes: Sequence[Axis]) -> tuple[str, ...]:
    return (*(str(record[f"axis_{axis.key}"]) for axis in axes), str(record["ccas"]))


def _order(record: _Record, axes: Sequence[Axis]) -> tuple[int | str, ...]:
    *texts, ccas = _names(record, axes)
    return (*(axis.texts.index(text) for axis, text in zip(axes, texts, strict=True)), ccas)


def _row(
    record: _Record, axes: Sequence[Axis], measures: Sequence[Measure], by_metric: Mapping[str, _Record]
) -> ResultRow:
    return ResultRow(
        names=_names(record, axes),
        values=tuple(_result(by_metric[measure.column], measure) for measure in measures),
        runs=max((int(summary["n"]) for summary in by_metric.values()), default=0),
        excluded=max((int(summary["excluded"]) for summary in by_metric.values()), default=0),
    )


def _result(summary: _Record, measure: Measure) -> Result:
    value, low, high = (_shown(summary[column], measure) for column in ("mean", "low", "high"))
    if value is None:
        return Result(mean=ABSENT, limits="")
    return Result(mean=mean(value, low, high), limits=limits(value, low, high))


def _shown(value: float | None, measure: Measure) -> float | None:
    return None if value is None or pd.isna(value) else float(value) * measure.factor

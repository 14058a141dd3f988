"""The part of a run's section that says what the testbed adds: the same cells there and in the guest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from fabbbr.counts import counted
from fabbbr_analysis.figures import added
from fabbbr_analysis.figures.measures import BY_COLUMN
from fabbbr_analysis.report.slots import Option, Slot, embed
from fabbbr_analysis.summary import compare, summarise
from fabbbr_analysis.wording import interval, listing

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_Means: TypeAlias = Mapping[tuple[str, str], Mapping[Hashable, Any]]
"""Metric and condition → the row of the summary."""
VERDICTS = ("changed", "unclear", "unchanged")


@dataclass(frozen=True, kw_only=True)
class AddedRow:
    """One metric at one condition, as text: each mean with its interval, and the difference."""

    condition: str
    metric: str
    verdict: str
    there: str
    emulated: str
    added: str
    """There less emulated."""
    runs: str


@dataclass(frozen=True, kw_only=True)
class Added:
    """What a testbed adds to the emulation."""

    place: str
    """The backend of the run."""
    result: str
    """In one line."""
    figure: Slot
    rows: tuple[AddedRow, ...]


def what_is_added(run_set: RunSet, slot_id: str) -> Added | None:
    """Compare a run with its cells in the guest; None where these are not there."""
    table = comparison(run_set)
    if table is None or run_set.beside is None:
        return None
    place = run_set.manifest.backend
    there, emulated = _means(run_set), _means(run_set.beside)
    return Added(
        place=place,
        result=_result(table, place),
        figure=_slot(run_set, place, slot_id),
        rows=tuple(_row(row, there, emulated) for row in table.to_dict("records")),
    )


def _means(run_set: RunSet) -> _Means:
    records = summarise(run_set.runs, added.COLUMNS).to_dict("records")
    return {(str(record["metric"]), str(record["condition"])): record for record in records}


def comparison(run_set: RunSet) -> pd.DataFrame | None:
    """As :func:`fabbbr_analysis.summary.compare`, a the testbed and b the guest; None without a guest."""
    if run_set.beside is None or not added.shared(run_set):
        return None
    table = compare(run_set, run_set.beside, metrics=added.COLUMNS)
    return table[table["verdict"].isin(VERDICTS)].reset_index(drop=True)


def _result(table: pd.DataFrame, place: str) -> str:
    tally = Counter(table["verdict"])
    said = [f"{tally[verdict]} {verdict}" for verdict in VERDICTS if tally[verdict]]
    compared = counted(len(table), "comparison")
    return f"Of {compared} of a metric at a condition between {place} and the guest: {listing(said)}."


def _slot(run_set: RunSet, place: str, slot_id: str) -> Slot:
    figure = added.draw(run_set)
    return Slot(
        id=slot_id,
        title=f"{place} beside the guest",
        caption=(
            f"Means on {place} and of the same cells in the guest, which has the path and nothing else, "
            "with 95 % intervals."
        ),
        alt=(
            f"Chart of goodput, retransmissions and RTT on {place} and in the guest. "
            "The table below has the numbers."
        ),
        height=int(figure.layout.height),
        options=(Option(label="", data=embed(figure)),),
        selector="At",
        scale_toggle=False,
        wide=True,
    )


def _row(row: Mapping[Hashable, Any], there: _Means, emulated: _Means) -> AddedRow:
    metric, condition = str(row["metric"]), str(row["condition"])
    measure = BY_COLUMN[metric]

    def mean(side: _Means) -> str:
        record = side[metric, condition]
        return interval(*(_scaled(record[each], measure.factor) for each in ("mean", "low", "high")))

    difference = (row[each] for each in ("difference", "difference_low", "difference_high"))
    return AddedRow(
        condition=condition,
        metric=measure.label,
        verdict=str(row["verdict"]),
        there=mean(there),
        emulated=mean(emulated),
        added=interval(*(_scaled(each, measure.factor) for each in difference)),
        runs=f"{row['n_a']}, {row['n_b']}",
    )


def _scaled(value: Any, factor: float) -> float | None:  # noqa: ANN401 - what pandas holds
    return None if pd.isna(value) else float(value) * factor

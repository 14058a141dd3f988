"""Table ``groups`` → the rows of an answer: each group in each phase that counts, and intervals over runs."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fabbbr_analysis import stats
from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.figures.conditions import Axis, variants
from fabbbr_analysis.figures.measures import Measure
from fabbbr_analysis.phases import WHOLE_RUN
from fabbbr_analysis.stats import Interval

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

GOODPUT = "goodput_per_flow_bps"
OF_ALL = "goodput_bps"
COMPLETION = "completion_median_s"
TAIL = "completion_p95_s"
ALL_DONE = "completion_all_s"
RTT = "rtt_median_s"
_START_UP = 1
_RAN = 0.5
"""A group counts in a phase when it ran for this part of it, in this part of the runs."""
_OF_RIVALS = frozenset({"convergence_s"})
"""Of the flows that take what they can get, together."""
OF_SEVERAL = frozenset({OF_ALL, TAIL, "completion_p99_s", ALL_DONE, "slowdown_p95"})
"""What of a single flow is no more than what it has."""
OF_CAPACITY = "of_capacity"
"""Of a rate that changes or is varied: nobody has in mind what a trace carried in a phase, and of two rates
the faster one carries more."""
_SHARES = frozenset({"share", "retransmit_ratio", "spurious_ratio"})

MEASURES: tuple[Measure, ...] = (
    Measure(column=GOODPUT, slug="goodput_per_flow", title="Goodput a flow", unit="Mbit/s", factor=1e-6),
    Measure(column=OF_ALL, slug="goodput", title="Goodput of all", unit="Mbit/s", factor=1e-6),
    Measure(column=OF_CAPACITY, slug="of_capacity", title="Of the capacity", unit="%", factor=100),
    Measure(column="share", slug="share", title="Share", unit="%", factor=100),
    Measure(column=COMPLETION, slug="completion", title="Completion, median", unit="s", may_be_brief=True),
    Measure(
        column=TAIL,
        slug="completion_p95",
        title="Completion, 95th percentile",
        unit="s",
        may_be_brief=True,
    ),
    Measure(
        column="completion_p99_s",
        slug="completion_p99",
        title="Completion, 99th percentile",
        unit="s",
        may_be_brief=True,
    ),
    Measure(column=ALL_DONE, slug="completion_all", title="All completed after", unit="s", may_be_brief=True),
    Measure(column="slowdown_median", slug="slowdown", title="Times the ideal, median", unit=""),
    Measure(column="slowdown_p95", slug="slowdown_p95", title="Times the ideal, 95th percentile", unit=""),
    Measure(column=RTT, slug="rtt", title="Median RTT", unit="ms", factor=1e3),
    Measure(column="queue_delay_median_s", slug="queue", title="Queueing delay", unit="ms", factor=1e3),
    Measure(column="retransmit_ratio", slug="retransmit_ratio", title="Retransmitted", unit="%", factor=100),
    Measure(column="spurious_ratio", slug="spurious", title="Spurious", unit="%", factor=100, rare=True),
    Measure(column="queue_marks", slug="marks", title="Packets marked, all groups", unit=""),
    Measure(column="ce_segments", slug="echoes", title="Segments echoed as marked", unit=""),
    Measure(column="recovery_s", slug="recovery", title="Link filled again after", unit="s"),
    Measure(column="queue_settled_s", slug="settled", title="Queue settled after", unit="s"),
    Measure(column="convergence_s", slug="convergence", title="Converged after", unit="s"),
)
"""What an answer can show of a group in a phase, in this order."""
BY_COLUMN = {measure.column: measure for measure in MEASURES}


def rows_of(run_set: RunSet, axes: Sequence[Axis]) -> list[AnswerRow]:
    """Return the rows by place and phase, in the order of conditions and groups."""
    return _rows(run_set, axes, _shown)


def whole_runs_of(run_set: RunSet, axes: Sequence[Axis]) -> list[AnswerRow]:
    """Rows of whole runs, through which all groups ran while steps changed their path."""
    return _rows(run_set, axes, _stepped) if "step" in set(run_set.groups["begins_with"]) else []


def in_units_of_all(rows: Sequence[AnswerRow]) -> list[AnswerRow]:
    """The same rows, with the unit of times that suits all times of their kind in any of them."""
    brief = [measure.column for measure in MEASURES if measure.may_be_brief]
    times = [row.values[column].value for row in rows for column in brief if column in row.values]
    measures = {column: measure.suited(times) for column, measure in BY_COLUMN.items()}
    return [replace(row, measures=measures) for row in rows]


def in_order(rows: Iterable[AnswerRow], axes: Sequence[Axis]) -> list[AnswerRow]:
    """By place, then by phase."""
    return sorted(rows, key=lambda row: _order(row, axes))


def _rows(
    run_set: RunSet, axes: Sequence[Axis], shown: Callable[[pd.DataFrame], Iterator[pd.DataFrame]]
) -> list[AnswerRow]:
    groups = run_set.groups
    runs = run_set.runs.assign(variant=variants(run_set.runs))
    varied_rate = "rate_bps" in runs and runs["rate_bps"].nunique() > 1
    found: list[AnswerRow] = []
    for condition, cells in runs.groupby("condition", sort=False):
        certified = cells[cells["status"] == "certified"]
        facts = {
            "condition": str(condition),
            "place": tuple(str(cells[f"axis_{axis.key}"].iloc[0]) for axis in axes),
            "variant": str(cells["variant"].iloc[0]),
            "repetitions": len(certified),
            "excluded": len(cells) - len(certified),
            "same_draws": any(
                run_set.plan[cell].shares_draws for cell in certified["cell_id"] if cell in run_set.plan
            ),
        }
        repetitions = dict(zip(certified["cell_id"], certified["repetition"], strict=True))
        own = groups[groups["cell_id"].isin(certified["cell_id"])]
        own = own.assign(
            position=own.groupby("cell_id")["group"].transform(lambda names: names.factorize()[0]),
            repetition=own["cell_id"].map(repetitions),
            of_capacity=_of_capacity(own, certified, every=varied_rate),
        )
        found += [_row(rows, facts) for rows in shown(own)]
    return in_order(found, axes)


def _of_capacity(groups: pd.DataFrame, cells: pd.DataFrame, *, every: bool) -> pd.Series[float]:
    """Goodput over the most that it can be, in cells whose rate changes while flows run, or in all."""
    varying = cells[every | cells["rate_changes"].fillna(value=False).astype(bool)]["cell_id"]
    goodput, ceiling = (groups[name].astype("float64") for name in ("goodput_bps", "ceiling_bps"))
    return (goodput / ceiling).where(groups["cell_id"].isin(varying))


def _order(row: AnswerRow, axes: Sequence[Axis]) -> tuple[int, ...]:
    place = (axis.texts.index(text) for axis, text in zip(axes, row.place, strict=True))
    return (*place, row.number)


def _shown(groups: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows of each phase and group that count.

    Of flows with a duration, the phases after start-up through which the group ran for half of the time; of
    flows with a size the whole run, in which all of them start. A run that is over before its start-up has
    only that.
    """
    later = groups["phase"] > _START_UP
    if not later.any():
        later = groups["phase"] == WHOLE_RUN
    sized = groups["sized"].astype(bool)
    lasts_s = groups["phase_end_s"].astype("float64") - groups["phase_start_s"].astype("float64")
    # Of a group that left before, the last bytes may still come: it is no rival any more. Behind a queue that
    # stands still they may take long, in some run.
    ran = ~(groups["active_s"].astype("float64") < _RAN * lasts_s)
    mostly = ran.groupby([groups["phase"], groups["group"]]).transform("mean") >= _RAN
    chosen = groups[(later & ~sized & ran & mostly) | ((groups["phase"] == WHOLE_RUN) & sized)]
    for _, rows in chosen.groupby(["phase", "group"], sort=False):
        yield rows


def _stepped(groups: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Where groups come and go, what each had of the whole run says when it ran, and not what it is."""
    if "step" in set(groups["begins_with"]) and "flows" not in set(groups["begins_with"]):
        whole = groups[(groups["phase"] == WHOLE_RUN) & ~groups["sized"].astype(bool)]
        yield from (rows for _, rows in whole.groupby("group", sort=False))


def _row(rows: pd.DataFrame, facts: Mapping[str, Any]) -> AnswerRow:
    first = rows.iloc[0]
    said = f"{facts['condition']}\0{first['phase']}\0{first['group']}"
    told = [measure for measure in MEASURES if not (first["self_limited"] and measure.column in _OF_RIVALS)]
    present = _by_run(rows, [measure.column for measure in told])
    # Where nothing random has happened the runs are one in this phase, and one has no interval.
    same = all(len(set(values.values())) == 1 for values in present.values())
    counted = 1 if same else len(rows)
    return AnswerRow(
        phase=str(first["phase_name"]),
        number=int(first["phase"]),
        begins_with=str(first["begins_with"]),
        position=int(first["position"]),
        group=str(first["group"]),
        cca="" if pd.isna(first["cca"]) else str(first["cca"]),
        contest=str(first["competes_in"]),
        n_flows=int(rows["n_flows"].max()),
        least_flows=int(rows["n_flows"].min()),
        sized=bool(first["sized"]),
        self_limited=bool(first["self_limited"]),
        values={
            column: _mean(list(values.values())[:counted], column, said, _most(rows, column))
            for column, values in present.items()
        },
        measures=BY_COLUMN,
        fair_share=None if pd.isna(first["fair_share"]) else float(first["fair_share"]),
        by_run=present,
        **facts,
    )


def _by_run(rows: pd.DataFrame, columns: Sequence[str]) -> dict[str, dict[int, float]]:
    """Column → repetition → value; no column that a run lacks: those that have it may have done well."""
    values = rows[columns].to_numpy(dtype="float64", na_value=math.nan).T
    numbers = rows["repetition"].astype(int).tolist()
    return {
        column: dict(zip(numbers, of_runs.tolist(), strict=True))
        for column, of_runs in zip(columns, values, strict=True)
        if not np.isnan(of_runs).any()
    }


def _most(rows: pd.DataFrame, column: str) -> float:
    """What the measure cannot exceed: of goodput, what the group's path carries."""
    if column == OF_CAPACITY:
        return max(1.0, float(rows[column].max()))
    if not column.startswith("goodput") or rows["ceiling_bps"].isna().any():
        return math.inf
    return max(float(rows["ceiling_bps"].max()), float(rows[column].max()))


def _mean(sample: Sequence[float], column: str, said: str, most: float) -> Interval:
    """The same draws whatever else is in the table."""
    generator = np.random.default_rng([1, zlib.crc32(f"{said}\0{column}".encode())])
    if column in _SHARES:
        return stats.bootstrap_interval(sample, generator=generator, within=(0.0, 1.0))
    # A delay may come out some µs below 0, because ss rounds.
    return stats.mean_within(sample, within=(min(0.0, *sample), most), generator=generator)

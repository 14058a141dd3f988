"""What a rate costs: how much is sent again, how long packets queue, how late the last transfer is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabbbr_analysis import stats
from fabbbr_analysis.answers.outcomes import value
from fabbbr_analysis.answers.records import AnswerRow, Lead, contests_of
from fabbbr_analysis.answers.rows import ALL_DONE
from fabbbr_analysis.answers.sentences import has_phases, where
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.wording import capital, listing, tie

_TIMES, _OF_TIME = 3.0, 1.5
"""So many times as much is told, where the intervals leave no doubt of it; and so many times as long."""
_LISTED = 4


@dataclass(frozen=True, kw_only=True)
class _Cost:
    column: str
    worth_saying: float
    """In the unit of the column: what is less is no cost."""
    differs: str
    """As a sentence begins, after its place."""
    said: str
    """Of the first, by its name and value; of others, these alone follow."""
    times: float = _TIMES


_SENT_AGAIN = _Cost(
    column="retransmit_ratio",
    worth_saying=0.01,
    differs="retransmissions differ",
    said="{name} sends {value} of its bytes again",
)
_QUEUEING = _Cost(
    column="queue_delay_median_s",
    worth_saying=2e-3,
    differs="queues differ",
    said="with {name} packets wait {value}",
)

_STRAGGLING = _Cost(
    column=ALL_DONE,
    worth_saying=0.0,
    differs="the time until all transfers are done differs",
    said="with {name} it takes {value}",
    times=_OF_TIME,
)


def told_of_costs(rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis]) -> list[str]:
    """Say each of the comparison in which they are farthest apart, if they are far apart in any."""
    compared = [[rows[index] for index in contest] for contest in contests_of(rows, leads)]
    # Those beside one another share a queue, and of a step it is said for each how long packets queue.
    apart = [rivals for rivals in compared if _has_queues_of_its_own(rivals)]
    # Of several that start together the last one may decide: the one in the middle says nothing of it.
    several = [rivals for rivals in compared if all(row.n_flows > 1 for row in rivals)]
    said = (
        _told(_STRAGGLING, several, rows, axes),
        _told(_SENT_AGAIN, compared, rows, axes),
        _told(_QUEUEING, apart, rows, axes),
    )
    return [tie(sentence) for sentence in said if sentence]


def _has_queues_of_its_own(rivals: Sequence[AnswerRow]) -> bool:
    return len({row.condition for row in rivals}) == len(rivals) and rivals[0].begins_with != "step"


def _told(
    cost: _Cost, compared: Sequence[Sequence[AnswerRow]], rows: Sequence[AnswerRow], axes: Sequence[Axis]
) -> str:
    measured = [
        sorted(rivals, key=lambda row: row.values[cost.column].value, reverse=True)
        for rivals in compared
        if all(cost.column in row.values for row in rivals)
    ]
    far = [ranked for ranked in measured if _far_apart(cost, ranked[0], ranked[-1])]
    if not far:
        return ""
    most = max(far, key=lambda each: each[0].values[cost.column].value - each[-1].values[cost.column].value)
    together = len({row.condition for row in most}) == 1
    told = most if len(most) <= _LISTED else (most[0], most[-1])
    names = [row.name for row in told] if together else [*_names(told, rows)]
    first, *others = (value(row, cost.column) for row in told)
    each = [f"{name} {said}" for name, said in zip(names[1:], others, strict=True)]
    begin = f"{where(most[0], axes, phased=has_phases(rows), variant=together)}{cost.differs}"
    most_of = " most" if len(measured) > 1 else ""
    said = cost.said.format(name=names[0], value=first)
    return f"{capital(begin)}{most_of}: {said}, {listing(each)}."


def _names(told: Sequence[AnswerRow], rows: Sequence[AnswerRow]) -> Iterator[str]:
    """As what is varied, unless a group stays as it is and only what runs beside it varies."""
    several = {row.group for row in rows if row.condition == told[0].condition} > {told[0].group}
    stays = several and len({row.cca for row in told}) == 1
    for row in told:
        yield f"{row.name} beside {row.variant}" if stays else row.rival


def _far_apart(cost: _Cost, most: AnswerRow, least: AnswerRow) -> bool:
    return most.values[cost.column].value >= cost.worth_saying and _surely_as_much(cost, most, least)


def _surely_as_much(cost: _Cost, most: AnswerRow, least: AnswerRow) -> bool:
    """By the interval of what is beyond that in each run, or by both intervals where they ran apart."""
    column = cost.column
    beyond = [high - cost.times * low for high, low in most.paired(least, column)]
    if len(beyond) > 1:
        at_least = stats.mean_interval(beyond).low
        return at_least is not None and at_least > 0
    high, low = most.values[column], least.values[column]
    surely = high.value if high.low is None else high.low
    return surely > cost.times * (low.value if low.high is None else low.high)

"""What a rate costs: which of those that are compared sends more of its bytes again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fabbbr_analysis.answers.outcomes import value
from fabbbr_analysis.answers.records import AnswerRow, Lead
from fabbbr_analysis.answers.sentences import has_phases, where
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.wording import listing, tie

_COLUMN = "retransmit_ratio"
_WORTH_SAYING = 0.01
"""Of what is sent."""
_TIMES = 3.0
"""So many times as much is told, where the intervals leave no doubt of it."""
_LISTED = 4


def told_of_retransmissions(
    rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis]
) -> list[str]:
    """Say it of the comparison in which they are farthest apart, if they are far apart in any."""
    compared = _compared(rows, leads)
    far = [ranked for ranked in compared if _far_apart(ranked[0], ranked[-1])]
    if not far:
        return []
    most = max(far, key=lambda ranked: _mean(ranked[0]) - _mean(ranked[-1]))
    together = len({row.condition for row in most}) == 1
    told = most if len(most) <= _LISTED else (most[0], most[-1])
    names = [row.name for row in told] if together else [*_names(told, rows)]
    first, *others = (value(row.values[_COLUMN], _COLUMN) for row in told)
    each = [f"{name} {said}" for name, said in zip(names[1:], others, strict=True)]
    place = where(most[0], axes, phased=has_phases(rows), variant=together)
    differ = f"{place}retransmissions differ" if place else "Retransmissions differ"
    of_several = " most" if len(compared) > 1 else ""
    return [tie(f"{differ}{of_several}: {names[0]} sends {first} of its bytes again, {listing(each)}.")]


def _names(told: Sequence[AnswerRow], rows: Sequence[AnswerRow]) -> Iterator[str]:
    """As what is varied, unless a group stays as it is and only what runs beside it varies."""
    several = {row.group for row in rows if row.condition == told[0].condition} > {told[0].group}
    stays = several and len({row.cca for row in told}) == 1
    for row in told:
        yield f"{row.name} beside {row.variant}" if stays else row.rival


def _compared(rows: Sequence[AnswerRow], leads: Mapping[int, Lead]) -> list[list[AnswerRow]]:
    """The rows of each comparison that all have the measure, the one that sends most again first."""
    found: dict[tuple[object, ...], list[AnswerRow]] = {}
    for index, lead in leads.items():
        found.setdefault(lead.among(rows[index]), []).append(rows[index])
    return [
        sorted(rivals, key=_mean, reverse=True)
        for rivals in found.values()
        if all(_COLUMN in row.values for row in rivals)
    ]


def _mean(row: AnswerRow) -> float:
    return row.values[_COLUMN].value


def _far_apart(most: AnswerRow, least: AnswerRow) -> bool:
    high, low = most.values[_COLUMN], least.values[_COLUMN]
    surely = high.value if high.low is None else high.low
    at_most = low.value if low.high is None else low.high
    return high.value >= _WORTH_SAYING and surely > _TIMES * at_most

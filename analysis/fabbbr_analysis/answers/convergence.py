"""How soon Jain's index over the flows stays high once another group has come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabbbr.counts import counted
from fabbbr_analysis.answers.outcomes import value
from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.answers.sentences import where
from fabbbr_analysis.fairness import CONVERGED_JAIN, CONVERGED_S
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.wording import distinct, listing, tie

_COLUMN = "convergence_s"
_PLACES = 3


def told_of_convergence(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """Say it of each phase that begins with flows, at each place, if it happens anywhere in that phase."""
    came = [row for row in rows if row.begins_with == "flows" and not row.self_limited and not row.sized]
    told = []
    for number in distinct(row.number for row in came):
        phase = [row for row in came if row.number == number]
        if any(_COLUMN in row.values for row in phase):
            told += [tie(said) for said in _of_phase(phase, axes)]
    return told


def _of_phase(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> Iterator[str]:
    places = distinct(row.place for row in rows)
    # Two words on one more place would be no shorter than what it has.
    told = len(places) if len(places) == _PLACES + 1 else _PLACES
    for place in places[:told]:
        here = [row for row in rows if row.place == place]
        # Of each congestion control: every group of a cell has the same.
        each = {row.rival if row.variant else "": row for row in here}
        even = {name: row for name, row in each.items() if _COLUMN in row.values}
        parts = [
            f"after {value(row, _COLUMN)}{f' with {name}' if name else ''}"
            for name, row in sorted(even.items(), key=lambda item: item[1].values[_COLUMN].value)
        ]
        never = [name for name in each if name not in even]
        parts += [f"in some run not at all{f' with {listing(never)}' if any(never) else ''}"] if never else []
        reached = f"Jain's index over flows reaches {CONVERGED_JAIN:g} and stays there for {CONVERGED_S:g} s"
        yield f"{where(here[0], axes, phased=True)}{reached} {listing(parts)}."
    if len(places) > told:
        yield f"The table has {counted(len(places) - told, 'more place')} where flows came."

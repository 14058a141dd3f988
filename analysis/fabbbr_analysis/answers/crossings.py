"""Where along an axis the lead changes hands, all else held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fabbbr_analysis.answers.records import AnswerRow, Lead, contests_of
from fabbbr_analysis.answers.sentences import has_phases
from fabbbr_analysis.answers.tallies import during
from fabbbr_analysis.figures.conditions import Axis, place_in_words, places_in_words, value_alone
from fabbbr_analysis.figures.measures import in_a_sentence
from fabbbr_analysis.wording import listing, tie

_TOLD = 3


@dataclass(frozen=True)
class _Won:
    """A contest with a clear winner: the best, ahead of each other."""

    best: AnswerRow
    name: str
    together: bool

    def line(self, position: int) -> tuple[object, ...]:
        """What contests share that differ along one axis alone."""
        row = self.best
        held = (*row.place[:position], *row.place[position + 1 :])
        return held, row.variant if self.together else "", row.number, row.sized, row.contest, self.together


@dataclass(frozen=True)
class _Crossing:
    """The last contest that one wins, and the first that another does."""

    before: _Won
    after: _Won


def told_of_crossings(
    rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis]
) -> list[str]:
    """Say along which axis of numbers the lead goes from one to another, once and clearly, and where."""
    won, phased = list(_won(rows, leads)), has_phases(rows)
    numeric = [position for position, axis in enumerate(axes) if axis.shown is not None]
    found = {position: _crossings(won, axes[position], position) for position in numeric}
    return [tie(_said(axes, position, each, phased=phased)) for position, each in found.items() if each]


def _won(rows: Sequence[AnswerRow], leads: Mapping[int, Lead]) -> Iterator[_Won]:
    for contest in contests_of(rows, leads):
        verdicts = Counter(leads[index].verdict for index in contest)
        if verdicts["ahead"] == 1 and verdicts["behind"] == len(contest) - 1:
            best = next(index for index in contest if leads[index].verdict == "ahead")
            yield _Won(rows[best], leads[best].called(rows[best]), leads[best].together)


def _crossings(won: Sequence[_Won], axis: Axis, position: int) -> list[_Crossing]:
    """One for each line along which the winner changes once."""
    lines: dict[tuple[object, ...], list[_Won]] = {}
    for each in won:
        lines.setdefault(each.line(position), []).append(each)
    found = []
    for line in lines.values():
        line.sort(key=lambda each: axis.texts.index(each.best.place[position]))
        changes = [pair for pair in pairwise(line) if pair[0].name != pair[1].name]
        found += [_Crossing(*changes[0])] if len(changes) == 1 else []
    return found


def _said(axes: Sequence[Axis], position: int, crossings: Sequence[_Crossing], *, phased: bool) -> str:
    """One sentence on one axis; ``crossings`` has one at least."""
    where: dict[str, list[_Crossing]] = {}
    for each in crossings:
        where.setdefault(_change(axes[position], position, each), []).append(each)
    told = [
        _told(change, _where(axes, position, lines, phased=phased))
        for change, lines in list(where.items())[:_TOLD]
    ]
    left = sum(map(len, list(where.values())[_TOLD:]))
    told += [f"at {left if left > 1 else 'one'} more it does otherwise"] if left else []
    return f"Along the {in_a_sentence(axes[position].title)} the lead changes: {'; '.join(told)}."


def _told(change: str, where: str) -> str:
    return f"at {where}, {change}" if where else change


def _change(axis: Axis, position: int, crossing: _Crossing) -> str:
    last, first = (each.best.place[position] for each in (crossing.before, crossing.after))
    # What changes with the axis needs its name.
    until, since = (
        place_in_words([axis], [text]) if axis.others else value_alone(axis, text) for text in (last, first)
    )
    until = f"{'at' if last == axis.texts[0] else 'up to'} {until}"
    since = f"at {since}" if first == axis.texts[-1] else f"from {since} on"
    return f"{crossing.before.name} is ahead {until} and {crossing.after.name} {since}"


def _where(axes: Sequence[Axis], position: int, crossings: Sequence[_Crossing], *, phased: bool) -> str:
    """All that is held along these lines; empty where nothing else varies."""
    held = [place for place in range(len(axes)) if place != position]
    places_by: dict[str, list[tuple[str, ...]]] = {}
    for each in crossings[:_TOLD]:
        row = each.before.best
        told = [f"with {row.variant}"] if each.before.together and row.variant else []
        told += [during(row)] if phased else []
        places_by.setdefault(" ".join(told), []).append(tuple(row.place[place] for place in held))
    said = [
        " ".join(filter(None, (places_in_words([axes[place] for place in held], places), told)))
        for told, places in places_by.items()
    ]
    left = len(crossings) - _TOLD
    return listing([*said, f"{left} more"] if left > 0 else said)

"""How much of what varies is enough: from which value on, or up to which, the mean is nearly the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabbbr_analysis.answers.effects import TOLD_ELSEWHERE, is_one_at_each_place
from fabbbr_analysis.answers.leads import contending, decides_apart
from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.answers.rows import COMPLETION, GOODPUT, OF_ALL
from fabbbr_analysis.figures.conditions import Axis, places_in_words
from fabbbr_analysis.figures.measures import in_a_sentence
from fabbbr_analysis.summary import UNCHANGED_WITHIN, WITHIN
from fabbbr_analysis.wording import distinct, listing, tie

_NEARLY = 1 - UNCHANGED_WITHIN
"""A value is enough when what it gives is this part of the best; of times, when it takes so much longer."""
_FEWEST = 3
"""Of two values the change from one to the other says it all."""
_LISTED = 4
_MEASURED = {GOODPUT: "goodput", OF_ALL: "goodput of all flows", COMPLETION: "completion time"}


@dataclass(frozen=True)
class Stretch:
    """The values of an axis that are enough, by their places in its order: ``first`` to ``last``."""

    first: int
    last: int
    of: int
    """How many values the axis has."""

    @classmethod
    def where_enough(cls, values: Sequence[float], column: str) -> Stretch:
        """The longest at which the mean is nearly the best; of two as long that of larger values."""
        shorter = column == COMPLETION
        best = min(values) if shorter else max(values)
        good = [value * _NEARLY <= best if shorter else value >= best * _NEARLY for value in values]
        found, first = cls(0, -1, len(good)), 0
        for place, each in enumerate(good):
            if not each:
                first = place + 1
            elif place - first >= found.last - found.first:
                found = cls(first, place, len(good))
        return found

    @property
    def is_first(self) -> bool:
        """Whether the first value is enough."""
        return self.first == 0

    @property
    def is_last(self) -> bool:
        """Whether the last value is enough."""
        return self.last == self.of - 1

    @property
    def says_nothing(self) -> bool:
        """Whether it is everywhere, or at one end alone: of more there may always be more."""
        if self.is_first and self.is_last:
            return True
        return self.first == self.last and (self.is_first or self.is_last)

    def said(self, texts: Sequence[str]) -> str:
        """Where that is, in words."""
        first, last = texts[self.first], texts[self.last]
        if self.is_first and self.is_last:
            return "everywhere"
        if self.first == self.last:
            return f"only at {first}"
        if self.is_last:
            return f"from {first} on"
        return f"up to {last}" if self.is_first else f"from {first} to {last}"


def told_of_enough(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """Say it along each numeric axis of each congestion control that ran alone.

    Of one of them along the only axis it is said where the places are compared.
    """
    own = contending(rows)
    if len({row.sized for row in own}) != 1 or not is_one_at_each_place(own):
        return []
    if len(axes) == 1 and len({row.rival for row in own}) == 1:
        return []
    said = (_along(axis, place, own, axes) for place, axis in enumerate(axes) if _is_told(axis, axes))
    return [tie(sentence) for sentence in said if sentence]


def _is_told(axis: Axis, axes: Sequence[Axis]) -> bool:
    elsewhere = axis.condition is not None and axis.condition.column in TOLD_ELSEWHERE and len(axes) == 1
    return axis.shown is not None and len(axis.texts) >= _FEWEST and not elsewhere


def _along(axis: Axis, place: int, rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> str:
    """Empty where the axis changes nothing for anybody, or all are best at one end and only there."""
    column = decides_apart(rows)
    found = {
        rival: _stretches(axis, place, [row for row in rows if row.rival == rival], column)
        for rival in distinct(row.rival for row in rows)
    }
    kinds = {stretch for stretches in found.values() for stretch in stretches.values() if stretch is not None}
    if not kinds or (len(kinds) == 1 and kinds.pop().says_nothing):
        return ""
    held = [each for each in axes if each != axis]
    rivals_by: dict[str, list[str]] = {}
    for rival, stretches in found.items():
        if any(stretch is not None for stretch in stretches.values()):
            rivals_by.setdefault(listing(list(_places(axis, held, stretches))), []).append(rival)
    told = [f"{listing(rivals)} {words}" for words, rivals in list(rivals_by.items())[:_LISTED]]
    left = [rival for rivals in list(rivals_by.values())[_LISTED:] for rival in rivals]
    told += [f"{len(left)} more otherwise"] if left else []
    name = in_a_sentence(axis.title)
    return f"Along the {name}, mean {_MEASURED[column]} is {WITHIN} of its best: {'; '.join(told)}."


def _stretches(
    axis: Axis, place: int, rows: Sequence[AnswerRow], column: str
) -> dict[tuple[str, ...], Stretch | None]:
    """By the values of the other axes; None at those at which some value of this one was not measured."""
    means: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        at = means.setdefault((*row.place[:place], *row.place[place + 1 :]), {})
        if column in row.values:
            at[row.place[place]] = row.values[column].value
    return {
        held: Stretch.where_enough([at[text] for text in axis.texts], column)
        if len(at) == len(axis.texts)
        else None
        for held, at in means.items()
    }


def _places(
    axis: Axis, held: Sequence[Axis], stretches: Mapping[tuple[str, ...], Stretch | None]
) -> Iterator[str]:
    """Where it is enough, by where the other axes are; of many places the widest and the narrowest."""
    by_words: dict[str, list[tuple[str, ...]]] = {}
    for place, stretch in stretches.items():
        if stretch is not None:
            by_words.setdefault(stretch.said(axis.texts), []).append(place)
    if len(by_words) == 1 and None not in stretches.values():
        yield from by_words
    elif len(stretches) <= _LISTED:
        for words, places in by_words.items():
            yield f"{words} at {places_in_words(held, places)}"
    else:
        known = [stretch for stretch in stretches.values() if stretch is not None]
        in_order = sorted(known, key=lambda each: each.last - each.first)
        yield f"{in_order[-1].said(axis.texts)} at best"
        yield f"{in_order[0].said(axis.texts)} at worst"

"""The levels of an axis that a claim speaks of: every loss, buffers up to 1 BDP, whichever BBR was run.

Which levels there are is read from the runs: those of the condition in whose place the levels stand, its
other coordinates as they are (``where`` says otherwise). What a claim needs of them (four buffers, an RTT of
27 ms or more) and what its reader must know (2 % loss is missing) is said here too, as checks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from fabbbr_analysis.claims.axes import axis, coordinate
from fabbbr_analysis.claims.expression import Bound, InCondition, Variable
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.sample import Array, Key, MissingConditionError, key_of

_Found: TypeAlias = tuple[float, ...]
"""Levels that were run, ascending."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A range of levels; an edge that is None is open."""

    low: float | None = None
    high: float | None = None
    above: bool = False
    """The low edge itself is outside."""
    below: bool = False
    """The high edge itself is outside."""

    def __contains__(self, level: float) -> bool:
        over = self.low is None or (level > self.low if self.above else level >= self.low)
        under = self.high is None or (level < self.high if self.below else level <= self.high)
        return over and under

    def phrase(self, column: str) -> str:
        """Name the range; nothing when it is all."""
        words, (low, high) = axis(column), (self.low, self.high)
        if low is not None and high is not None:
            return f"{words.noun} {low * words.scale:g} to {words.value(high)}"
        if low is not None:
            edge = words.value(low)
            return f"{words.noun} above {edge}" if self.above else f"{words.noun} {edge} or more"
        if high is not None:
            edge = words.value(high)
            return f"{words.noun} below {edge}" if self.below else f"{words.noun} {edge} or less"
        return ""


class LevelCheck(ABC):
    """What a claim needs of the levels that were run, or what its reader must know of them."""

    @abstractmethod
    def __call__(self, found: _Found, levels: Levels, place: str, means: Means) -> None:
        """Remark on ``means``, or raise MissingConditionError; ``place`` names what was searched."""


@dataclass(frozen=True)
class Count(LevelCheck):
    """Needs so many levels."""

    least: int

    def __call__(self, found: _Found, levels: Levels, place: str, means: Means) -> None:  # noqa: ARG002
        if len(found) < self.least:
            message = f"{self.least} conditions of {place} are needed, found {len(found)}"
            raise MissingConditionError(message)


@dataclass(frozen=True)
class OneWithin(LevelCheck):
    """Needs a level in a range."""

    span: Span

    def __call__(self, found: _Found, levels: Levels, place: str, means: Means) -> None:  # noqa: ARG002
        if not any(level in self.span for level in found):
            named = place.removesuffix(levels.phrase()).removesuffix(" at ")
            message = f"no certified run of {named} at {self.span.phrase(levels.axis)}"
            raise MissingConditionError(message)


@dataclass(frozen=True)
class Expected(LevelCheck):
    """Remarks on levels of the paper that are missing."""

    expected: tuple[float, ...]

    def __call__(self, found: _Found, levels: Levels, place: str, means: Means) -> None:  # noqa: ARG002
        words = axis(levels.axis)
        spoken_of = [level for level in self.expected if level in levels.span]
        absent = [words.value(level) for level in spoken_of if key_of(level)[0] not in found]
        if absent:
            means.remark(f"without {', '.join(absent)} {words.noun}")


@dataclass(frozen=True)
class PapersEnd(LevelCheck):
    """Remarks on levels that stop before the paper's do."""

    end: Literal["smallest", "largest"]
    level: float

    def __call__(self, found: _Found, levels: Levels, place: str, means: Means) -> None:  # noqa: ARG002
        if not found:
            return
        words = axis(levels.axis)
        reached = found[0] if self.end == "smallest" else found[-1]
        short = reached > self.level if self.end == "smallest" else reached < self.level
        if short:
            name = words.smallest if self.end == "smallest" else words.largest
            means.remark(
                f"the {name} {words.noun} is {words.value(reached)}, the paper's {words.value(self.level)}"
            )


@dataclass(frozen=True)
class Several(LevelCheck):
    """Remarks when there is a single level."""

    def __call__(self, found: _Found, levels: Levels, place: str, means: Means) -> None:
        if len(found) == 1:
            means.remark(f"{place} with {coordinate(levels.axis, found[0])} only")


@dataclass(frozen=True)
class Levels(Variable):
    """Levels of a numeric axis, ascending."""

    axis: str
    span: Span = Span()
    named: tuple[float, ...] = ()
    """Levels that are read whether they were run or not: without them the claim is not judged."""
    given: tuple[tuple[str, str | float], ...] | None = None
    checks: tuple[LevelCheck, ...] = ()
    end: Literal["smallest", "largest"] | None = None
    """The one at this end alone."""
    candidates: tuple[float, ...] = ()
    """Of these, those that were run; nothing means all."""

    def at_least(self, level: float) -> Levels:
        """Keep those from ``level`` on."""
        return replace(self, span=replace(self.span, low=level))

    def above(self, level: float) -> Levels:
        """Keep those above ``level``."""
        return replace(self, span=replace(self.span, low=level, above=True))

    def at_most(self, level: float) -> Levels:
        """Keep those up to ``level``."""
        return replace(self, span=replace(self.span, high=level))

    def below(self, level: float) -> Levels:
        """Keep those below ``level``."""
        return replace(self, span=replace(self.span, high=level, below=True))

    def among(self, *levels: float) -> Levels:
        """Keep those of ``levels`` that were run, and remark on the others."""
        return replace(self, candidates=levels).expecting(*levels)

    def smallest(self) -> Levels:
        """Keep the smallest alone."""
        return replace(self, end="smallest")

    def largest(self) -> Levels:
        """Keep the largest alone."""
        return replace(self, end="largest")

    def including(self, *levels: float) -> Levels:
        """Add levels without which the claim is not judged."""
        return replace(self, named=(*self.named, *levels))

    def where(self, **coordinates: str | float) -> Levels:
        """Take the levels that were run where these coordinates are so, whatever the others are."""
        return replace(self, given=tuple(coordinates.items()))

    def needing(self, count: int) -> Levels:
        """Need so many of them."""
        return self._with(Count(count))

    def needing_one(self, *, at_least: float | None = None, at_most: float | None = None) -> Levels:
        """Need one within a range."""
        return self._with(OneWithin(Span(low=at_least, high=at_most)))

    def expecting(self, *levels: float) -> Levels:
        """Remark when these are missing."""
        return self._with(Expected(levels))

    def starting_at(self, level: float) -> Levels:
        """Remark when the smallest is larger than the paper's."""
        return self._with(PapersEnd("smallest", level))

    def ending_at(self, level: float) -> Levels:
        """Remark when the largest is smaller than the paper's."""
        return self._with(PapersEnd("largest", level))

    def preferably_several(self) -> Levels:
        """Remark when there is one alone."""
        return self._with(Several())

    def _with(self, check: LevelCheck) -> Levels:
        return replace(self, checks=(*self.checks, check))

    def asked(self) -> tuple[str, ...]:
        """Axes of ``where``."""
        return tuple(name for name, _ in self.given or ())

    def of(self, means: Means, bound: Bound | None = None) -> Array:  # noqa: ARG002
        """Give the level that is bound."""
        if self not in (bound or {}):
            message = f"{self}: no condition beside it speaks of these levels"
            raise ValueError(message)
        return np.asarray((bound or {})[self], dtype=np.float64)

    def levels(self, condition: InCondition, means: Means, bound: Bound) -> tuple[str | float, ...]:
        """List them, ascending."""
        pattern = condition.pattern(bound) if self.given is None else dict(self.given)
        run = _run(means.keys(condition.quantity), condition.quantity.by, self.axis, pattern)
        found = tuple(sorted(level for level in run if not isinstance(level, str) and self._speaks_of(level)))
        for check in self.checks:
            check(found, self, self.place(condition, bound), means)
        every = tuple(sorted({*found, *(key_of(level)[0] for level in self.named)}))
        return every if self.end is None else every[:1] if self.end == "smallest" else every[-1:]

    def _speaks_of(self, level: float) -> bool:
        candidates = {key_of(each)[0] for each in self.candidates}
        return level in self.span and (not candidates or level in candidates)

    def phrase(self) -> str:
        """Name the range and what is named besides."""
        words = axis(self.axis)
        named = (
            f"{words.noun} {' and '.join(words.value(level) for level in self.named)}" if self.named else ""
        )
        return " and ".join(part for part in (self.span.phrase(self.axis), named) if part)

    def place(self, condition: InCondition, bound: Bound) -> str:
        """Name the conditions among which the levels are looked for."""
        if self.given is None:
            return condition.phrase(bound)
        given = dict(self.given)
        parts = [
            coordinate(column, given[column]) if column in given else self.phrase() * (column == self.axis)
            for column in condition.quantity.by
        ]
        return " at ".join(part for part in parts if part)


@dataclass(frozen=True)
class OneOf(Variable):
    """Those of some names that were run: one that was run must have the condition that is asked for."""

    axis: str
    candidates: tuple[str, ...]
    given: tuple[tuple[str, str | float], ...] = ()

    def where(self, **coordinates: str | float) -> OneOf:
        """Count as run only what was run where these coordinates are so."""
        return replace(self, given=tuple(coordinates.items()))

    def asked(self) -> tuple[str, ...]:
        """Axes of ``where``."""
        return tuple(name for name, _ in self.given)

    def of(self, means: Means, bound: Bound | None = None) -> Array:  # noqa: ARG002
        """Refuse: a name is no number."""
        message = f"{self} is no number"
        raise TypeError(message)

    def levels(self, condition: InCondition, means: Means, bound: Bound) -> tuple[str | float, ...]:
        """List them in the order of the candidates, and remark on the others; raise when none was run."""
        run = _run(means.keys(condition.quantity), condition.quantity.by, self.axis, dict(self.given))
        found = tuple(name for name in self.candidates if name in run)
        if not found:
            message = f"no certified run of {self.place(condition, bound)}"
            raise MissingConditionError(message)
        absent = [name for name in self.candidates if name not in run]
        if absent:
            means.remark(f"judged for {', '.join(found)} only, without {', '.join(absent)}")
        return found

    def phrase(self) -> str:
        """Name them."""
        return " or ".join(self.candidates)

    def place(self, condition: InCondition, bound: Bound) -> str:  # noqa: ARG002
        """Name them and where they would have to be run."""
        return " at ".join((self.phrase(), *(coordinate(*each) for each in self.given)))


@dataclass(frozen=True)
class Names(Variable):
    """Each name on an axis that was run."""

    axis: str

    def of(self, means: Means, bound: Bound | None = None) -> Array:  # noqa: ARG002
        """Refuse: a name is no number."""
        message = f"{self} is no number"
        raise TypeError(message)

    def levels(self, condition: InCondition, means: Means, bound: Bound) -> tuple[str | float, ...]:
        """List them by name."""
        run = _run(means.keys(condition.quantity), condition.quantity.by, self.axis, condition.pattern(bound))
        return tuple(sorted(str(name) for name in run))

    def phrase(self) -> str:
        """All are meant."""
        return ""


def _run(
    keys: Sequence[Key], by: tuple[str, ...], column: str, pattern: dict[str, str | float]
) -> set[str | float]:
    """Levels of ``column`` in the conditions that agree with the pattern."""
    wanted = {by.index(name): key_of(value)[0] for name, value in pattern.items() if name != column}
    return {
        key[by.index(column)] for key in keys if all(key[place] == value for place, value in wanted.items())
    }


def every(column: str) -> Levels:
    """Each level of an axis that was run, to be narrowed: ``every("rtt_s").at_least(0.006)``."""
    return Levels(column)


def every_name(column: str) -> Names:
    """Each name on an axis that was run: ``every_name("cca")``."""
    return Names(column)


def only(column: str, *levels: float) -> Levels:
    """Exactly these levels: without one of them the claim is not judged."""
    return Levels(column, Span(low=np.inf), levels)


def one_of(*names: str, column: str = "cca") -> OneOf:
    """Those of ``names`` that were run."""
    return OneOf(column, names)

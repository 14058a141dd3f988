"""Numbers that a paper published, in a formula beside ours: at the condition that is bound, exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fabbbr_analysis.claims.axes import coordinate
from fabbbr_analysis.claims.expression import Bound, Coordinate, Expression, Variable, as_expression
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.sample import Array, Key, MissingConditionError, key_of

Numbers: TypeAlias = Callable[[], Mapping[Key, float]]
"""Condition → number, read the first time that a claim is judged by it; called once for each condition."""


@dataclass(frozen=True, kw_only=True)
class FromPaper:
    """Numbers of a paper, told apart by the columns ``by``: ``FABRIC["bbr1", RATE, RTT]`` is one of them."""

    words: str
    by: tuple[str, ...]
    numbers: Numbers

    def __getitem__(self, coordinates: tuple[Coordinate, ...]) -> Expression:
        return AsPublished(self, coordinates)


@dataclass(frozen=True)
class AsPublished(Expression):
    """A published number in a condition; its levels are bound by what is measured beside it."""

    quantity: FromPaper
    coordinates: tuple[Coordinate, ...]

    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Look it up; raise MissingConditionError when nothing was published there."""
        known = bound or {}
        key = key_of(*(known[each] if isinstance(each, Variable) else each for each in self.coordinates))
        number = self.quantity.numbers().get(key)
        if number is None:
            where = " at ".join(coordinate(*pair) for pair in zip(self.quantity.by, key, strict=True))
            message = f"{self.quantity.words}: nothing was published of {where}"
            raise MissingConditionError(message)
        return as_expression(number).of(means)

    def __str__(self) -> str:
        return self.quantity.words

"""Formulas as values: arithmetic on condition means that can be evaluated, walked and printed.

An expression may speak of *levels* ("each buffer up to 1 BDP") without saying which; a word of the
vocabulary, such as ``least``, binds them one after the other. Rules of the room:

1. Nothing here knows runs or tables: an expression reads :class:`Means` and nothing else.
2. Evaluation is elementwise, so means may be single numbers or one number per resample.
3. Levels are bound, and conditions read, in the order of the expression, from left to right: the resamples
   are drawn in that order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fabbbr_analysis.claims.axes import axis, coordinate
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.observed import Observable
from fabbbr_analysis.claims.sample import Array, MissingConditionError, key_of

Number: TypeAlias = int | float
Operand: TypeAlias = "Expression | Number"


@dataclass(frozen=True)
class Expression(ABC):
    """A number for the means over runs, or an array of numbers for the means of resamples."""

    @abstractmethod
    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Evaluate; ``bound`` says what the levels spoken of are. Raise MissingConditionError."""

    def operands(self) -> tuple[Expression, ...]:
        """List what it is made of, in the order of reading."""
        return ()

    def conditions(self) -> Iterator[InCondition]:
        """All conditions in it, in the order of reading."""
        for operand in self.operands():
            yield from operand.conditions()

    def open_conditions(self) -> Iterator[InCondition]:
        """Conditions whose levels are left to be bound from outside."""
        for operand in self.operands():
            yield from operand.open_conditions()

    def __add__(self, other: Operand) -> Expression:
        return Binary("+", self, as_expression(other))

    def __radd__(self, other: Operand) -> Expression:
        return Binary("+", as_expression(other), self)

    def __sub__(self, other: Operand) -> Expression:
        return Binary("-", self, as_expression(other))

    def __rsub__(self, other: Operand) -> Expression:
        return Binary("-", as_expression(other), self)

    def __mul__(self, other: Operand) -> Expression:
        return Binary("×", self, as_expression(other))

    def __rmul__(self, other: Operand) -> Expression:
        return Binary("×", as_expression(other), self)

    def __truediv__(self, other: Operand) -> Expression:
        return Binary("/", self, as_expression(other))

    def __abs__(self) -> Expression:
        return Function("abs", self)


class Variable(Expression):
    """The levels of one axis that a formula speaks of; in arithmetic, the level that is bound."""

    axis: str

    @abstractmethod
    def levels(self, condition: InCondition, means: Means, bound: Bound) -> tuple[str | float, ...]:
        """List the levels that were run where ``condition`` speaks of them; note what a reader must know.

        Raises
        ------
        MissingConditionError
            Levels without which the claim cannot be judged were not run.
        """

    @abstractmethod
    def phrase(self) -> str:
        """Name the levels; nothing when all are meant."""

    def asked(self) -> tuple[str, ...]:
        """Axes that it asks for besides its own."""
        return ()

    def place(self, condition: InCondition, bound: Bound) -> str:
        """Name the conditions among which the levels are looked for."""
        return condition.phrase(bound)

    def __str__(self) -> str:
        return self.phrase() or axis(self.axis).noun


Bound: TypeAlias = Mapping[Variable, str | float]
Coordinate: TypeAlias = "str | float | Variable"


@dataclass(frozen=True)
class Constant(Expression):
    """A number."""

    number: float

    def of(self, means: Means, bound: Bound | None = None) -> Array:  # noqa: ARG002
        """Give the number."""
        return np.asarray(self.number, dtype=np.float64)

    def __str__(self) -> str:
        return f"{self.number:g}"


def as_expression(operand: Operand) -> Expression:
    """Let numbers stand in formulas."""
    return operand if isinstance(operand, Expression) else Constant(operand)


@dataclass(frozen=True)
class InCondition(Expression):
    """A quantity in one condition, or in each of those that its levels speak of."""

    quantity: Observable
    coordinates: tuple[Coordinate, ...]

    def __post_init__(self) -> None:
        """Refuse coordinates that are not those of the quantity: a slip in a formula shows on import."""
        by = self.quantity.by
        fits = len(self.coordinates) == len(by) and all(
            each.axis == column and set(each.asked()) <= set(by)
            for each, column in zip(self.coordinates, by, strict=True)
            if isinstance(each, Variable)
        )
        if not fits:
            message = f"{self.quantity.words} is by {', '.join(self.quantity.by)}; got {self.coordinates}"
            raise ValueError(message)

    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Read the mean."""
        key = [self._bound(each, means, bound or {}) for each in self.coordinates]
        return means.mean(self.quantity, tuple(key))

    def _bound(self, each: Coordinate, means: Means, bound: Bound) -> str | float:
        if not isinstance(each, Variable):
            return each
        if each in bound:
            return bound[each]
        levels = each.levels(self, means, bound)
        if not levels:
            message = f"no certified run of {each.place(self, bound)}"
            raise MissingConditionError(message)
        if len(levels) > 1:
            message = f"{self}: {len(levels)} levels of {each.axis}; say which: least, most, average, …"
            raise ValueError(message)
        return levels[0]

    def conditions(self) -> Iterator[InCondition]:
        """Itself."""
        yield self

    def open_conditions(self) -> Iterator[InCondition]:
        """Itself, when it speaks of levels."""
        if any(isinstance(each, Variable) for each in self.coordinates):
            yield self

    def unbound(self, bound: Bound) -> Variable | None:
        """Find the first of its levels that is not bound."""
        return next((v for v in self.coordinates if isinstance(v, Variable) and v not in bound), None)

    def pattern(self, bound: Bound) -> dict[str, str | float]:
        """Axis → coordinate, as far as it is known."""
        known = {
            column: bound.get(each) if isinstance(each, Variable) else each
            for column, each in zip(self.quantity.by, self.coordinates, strict=True)
        }
        return {column: key_of(value)[0] for column, value in known.items() if value is not None}

    def phrase(self, bound: Bound | None = None) -> str:
        """Name the condition, or those that it speaks of."""
        parts = [
            _phrase(column, each, bound or {})
            for column, each in zip(self.quantity.by, self.coordinates, strict=True)
        ]
        return " at ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.quantity.words}({self.phrase()})"


def _phrase(column: str, each: Coordinate, bound: Bound) -> str:
    if not isinstance(each, Variable):
        return coordinate(column, each)
    return coordinate(column, bound[each]) if each in bound else each.phrase()


_SYMBOLS = {"+": np.add, "-": np.subtract, "×": np.multiply, "/": np.divide}
_FUNCTIONS = {"abs": np.abs, "log": np.log10}


@dataclass(frozen=True)
class Binary(Expression):
    """Arithmetic on two expressions."""

    symbol: str
    left: Expression
    right: Expression

    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Compute, the left side first."""
        left = self.left.of(means, bound)
        return np.asarray(_SYMBOLS[self.symbol](left, self.right.of(means, bound)), dtype=np.float64)

    def operands(self) -> tuple[Expression, ...]:
        """Both sides."""
        return self.left, self.right

    def __str__(self) -> str:
        left, right = (f"({each})" if isinstance(each, Binary) else str(each) for each in self.operands())
        return f"{left} {self.symbol} {right}"


@dataclass(frozen=True)
class Function(Expression):
    """A function of one expression."""

    name: str
    inner: Expression

    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Compute."""
        return np.asarray(_FUNCTIONS[self.name](self.inner.of(means, bound)), dtype=np.float64)

    def operands(self) -> tuple[Expression, ...]:
        """What it is a function of."""
        return (self.inner,)

    def __str__(self) -> str:
        return f"{self.name}({self.inner})"


def bindings(expression: Expression, means: Means, bound: Bound) -> list[Bound]:
    """Bind the levels of an expression in all ways that were run.

    Raises
    ------
    MissingConditionError
        None was.
    """
    nothing: list[str] = []
    found = list(_bindings(expression, means, bound, nothing))
    if not found:
        raise MissingConditionError(nothing[0])
    return found


def _bindings(expression: Expression, means: Means, bound: Bound, nothing: list[str]) -> Iterator[Bound]:
    spoken = ((each, each.unbound(bound)) for each in expression.open_conditions())
    condition, variable = next((pair for pair in spoken if pair[1] is not None), (None, None))
    if condition is None or variable is None:
        yield bound
        return
    levels = variable.levels(condition, means, bound)
    if not levels:
        nothing.append(f"no certified run of {variable.place(condition, bound)}")
    for level in levels:
        yield from _bindings(expression, means, {**bound, variable: level}, nothing)


def quantities_in(expression: Expression) -> tuple[Observable, ...]:
    """List the quantities in an expression, in the order of reading, each once."""
    return tuple(dict.fromkeys(condition.quantity for condition in expression.conditions()))

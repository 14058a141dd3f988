"""The words in which claims are said: least, most, average, median, spread, share, slope, reach and others.

A ratio, a share, a difference or a distance is arithmetic on expressions (``/``, ``-``, ``abs``). A word
binds the levels that its operands speak of: ``least(GOODPUT["bbr1", LOSS] / GOODPUT["cubic", LOSS])`` is the
smallest ratio over losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from fabbbr_analysis.claims.expression import Bound, Expression, Function, InCondition, bindings
from fabbbr_analysis.claims.levels import Levels
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.sample import Array, MissingConditionError


def _spread(values: Array) -> Array:
    return np.asarray(np.max(values, axis=0) - np.min(values, axis=0), dtype=np.float64)


_OVER_CONDITIONS: dict[str, Callable[[Array], Array]] = {
    "least": lambda values: np.asarray(np.min(values, axis=0), dtype=np.float64),
    "most": lambda values: np.asarray(np.max(values, axis=0), dtype=np.float64),
    "average": lambda values: np.asarray(np.mean(values, axis=0), dtype=np.float64),
    "median": lambda values: np.asarray(np.median(values, axis=0), dtype=np.float64),
    "spread": _spread,
}


@dataclass(frozen=True)
class Closed(Expression):
    """An expression that binds all levels which its operands speak of."""

    def open_conditions(self) -> Iterator[InCondition]:
        """None are left."""
        return iter(())


@dataclass(frozen=True)
class OverConditions(Closed):
    """One number of many conditions, elementwise; each condition counts once."""

    word: str
    inner: tuple[Expression, ...]
    positive: Expression | None = None
    """Leave out conditions in which this is zero, in the mean or in a resample."""

    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Reduce over all conditions of all operands."""
        values = [value for each in self.inner for value in self._values(each, means, bound or {})]
        if not values:
            message = f"{self.positive} is zero in every condition"
            raise MissingConditionError(message)
        return _OVER_CONDITIONS[self.word](np.stack(np.broadcast_arrays(*values)))

    def _values(self, inner: Expression, means: Means, bound: Bound) -> Iterator[Array]:
        for each in bindings(inner, means, bound):
            value = inner.of(means, each)
            if self.positive is None or np.all(self.positive.of(means, each) > 0):
                yield value

    def operands(self) -> tuple[Expression, ...]:
        """What it is reduced of."""
        return self.inner

    def __str__(self) -> str:
        where = f" where {self.positive} > 0" if self.positive is not None else ""
        return f"{self.word}({', '.join(map(str, self.inner))}{where})"


@dataclass(frozen=True)
class Lesser(Closed):
    """The lesser of two numbers, of which the reader is told both: for a claim that either may keep."""

    first: Expression
    second: Expression

    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Compute both, the first one first."""
        values = [each.of(means, bound) for each in self.operands()]
        if all(value.ndim == 0 for value in values):
            means.remark(f"the two are {values[0]:.3g} and {values[1]:.3g}")
        return np.asarray(np.minimum(*values), dtype=np.float64)

    def operands(self) -> tuple[Expression, ...]:
        """Both."""
        return self.first, self.second

    def __str__(self) -> str:
        return f"lesser of {self.first} and {self.second}"


@dataclass(frozen=True)
class AlongLevels(Closed):
    """One number of how a quantity goes with the levels of one axis."""

    word: str
    ordinate: Expression
    abscissa: Expression

    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Compute from the ordinates in the order of the levels."""
        bound_levels = bindings(self.ordinate, means, bound or {})
        abscissa = np.array([float(self.abscissa.of(means, each)) for each in bound_levels])
        ordinate = np.stack([self.ordinate.of(means, each) for each in bound_levels])
        return np.asarray(_ALONG_LEVELS[self.word](abscissa, ordinate), dtype=np.float64)

    def operands(self) -> tuple[Expression, ...]:
        """Both coordinates."""
        return self.ordinate, self.abscissa

    def __str__(self) -> str:
        return f"{self.word}({self.ordinate} over {self.abscissa})"


def _slope(x: Array, y: Array) -> Array:
    """Least squares over the conditions."""
    centred = x - x.mean()
    return np.asarray(np.tensordot(centred, y - y.mean(axis=0), axes=1) / (centred**2).sum())


def _linearity(x: Array, y: Array) -> Array:
    """R² of the line by least squares."""
    explained = _slope(x, y) ** 2 * ((x - x.mean()) ** 2).sum()
    return np.asarray(explained / ((y - y.mean(axis=0)) ** 2).sum(axis=0))


def _rank_correlation(x: Array, y: Array) -> Array:
    """Spearman's rho: Pearson's of the ranks, equal values having the mean of theirs."""
    ranks = rankdata(y, axis=0)
    centred, places = ranks - ranks.mean(axis=0), rankdata(x) - (x.size + 1) / 2
    return np.asarray(
        np.tensordot(places, centred, axes=1) / np.sqrt((places**2).sum() * (centred**2).sum(axis=0))
    )


def _smallest_rise(x: Array, y: Array) -> Array:  # noqa: ARG001
    """Negative when it falls somewhere."""
    return np.asarray(np.min(np.diff(y, axis=0), axis=0))


_ALONG_LEVELS: dict[str, Callable[[Array, Array], Array]] = {
    "slope": _slope,
    "linearity": _linearity,
    "rank correlation": _rank_correlation,
    "smallest rise": _smallest_rise,
}


@dataclass(frozen=True)
class Reach(Closed):
    """The largest level at which a quantity still keeps a value; 0 when it does at none."""

    quantity: Expression
    keeps: float
    over: Levels

    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Find it elementwise."""
        reached = [
            np.where(self.quantity.of(means, each) >= self.keeps, self.over.of(means, each), 0.0)
            for each in bindings(self.quantity, means, bound or {})
        ]
        return np.asarray(np.max(reached, axis=0), dtype=np.float64)

    def operands(self) -> tuple[Expression, ...]:
        """What it is read from."""
        return (self.quantity,)

    def __str__(self) -> str:
        return f"largest {self.over} with {self.quantity} ≥ {self.keeps:g}"


@dataclass(frozen=True)
class ShareWithin(Closed):
    """The share of the conditions in which a quantity is a limit or less, each condition counting once."""

    quantity: Expression
    limit: float

    def of(self, means: Means, bound: Bound | None = None) -> Array:
        """Count elementwise."""
        values = [self.quantity.of(means, each) for each in bindings(self.quantity, means, bound or {})]
        within = np.stack(np.broadcast_arrays(*values)) <= self.limit
        return np.asarray(np.mean(within, axis=0), dtype=np.float64)

    def operands(self) -> tuple[Expression, ...]:
        """What is counted."""
        return (self.quantity,)

    def __str__(self) -> str:
        return f"share of conditions with {self.quantity} ≤ {self.limit:g}"


def least(*inner: Expression, positive: Expression | None = None) -> Expression:
    """Smallest over all conditions, those left out in which ``positive`` is zero."""
    return OverConditions("least", inner, positive)


def most(*inner: Expression, positive: Expression | None = None) -> Expression:
    """Largest over all conditions, those left out in which ``positive`` is zero."""
    return OverConditions("most", inner, positive)


def average(*inner: Expression) -> Expression:
    """Mean over conditions, each counting once."""
    return OverConditions("average", inner)


def median(*inner: Expression) -> Expression:
    """Median over conditions, each counting once."""
    return OverConditions("median", inner)


def lesser(first: Expression, second: Expression) -> Expression:
    """The lesser of two numbers; a remark names both."""
    return Lesser(first, second)


def spread(*inner: Expression) -> Expression:
    """Largest minus smallest over all conditions."""
    return OverConditions("spread", inner)


def share(of: Expression, *, at_most: float) -> Expression:
    """Share of the conditions in which ``of`` is ``at_most`` or less."""
    return ShareWithin(of, at_most)


def log(inner: Expression) -> Expression:
    """Decimal logarithm."""
    return Function("log", inner)


def slope(ordinate: Expression, *, over: Expression) -> Expression:
    """Slope over the levels by least squares."""
    return AlongLevels("slope", ordinate, over)


def linearity(ordinate: Expression, *, over: Expression) -> Expression:
    """R² of a line over the levels: 1 is a straight line."""
    return AlongLevels("linearity", ordinate, over)


def rank_correlation(ordinate: Expression, *, over: Expression) -> Expression:
    """Spearman's rho with ``over``: 1 when both order the conditions alike, -1 when the other way round."""
    return AlongLevels("rank correlation", ordinate, over)


def monotone(ordinate: Expression, *, over: Expression) -> Expression:
    """Smallest rise from one level to the next: above 0 exactly when it rises everywhere."""
    return AlongLevels("smallest rise", ordinate, over)


def reach(quantity: Expression, *, keeps: float, over: Levels) -> Expression:
    """Largest level at which ``quantity`` is still ``keeps`` or more."""
    return Reach(quantity, keeps, over)

"""Statistics over runs: the run is the unit, because the seconds inside one are autocorrelated.

Every function takes one value per run. Absent values are refused, never dropped: whoever calls decides what
an absent value means. One run gives a value without an interval; randomness is passed in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from fabbbr.errors import AnalysisError

Array: TypeAlias = NDArray[np.float64]

_SAME = 1e-12
"""Relative difference below which two values are one."""

CONFIDENCE = 0.95
RESAMPLES = 10_000
FEWEST_RESAMPLED = 5
"""Runs from which on a bootstrap of a mean reaches its percentiles: see ``expanded_percentiles``."""
_LARGEST_EXPONENT = 700.0
"""Of what a float still holds."""
_VALUES_AT_ONCE = 1 << 16
"""Of resamples: half a megabyte of them, however many runs there are."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A value with its confidence interval; ``low`` and ``high`` are None when the runs do not give one."""

    value: float
    low: float | None
    high: float | None
    n: int
    """Runs; of the smaller sample when there are two."""
    method: str
    confidence: float = CONFIDENCE


def mean(runs: Array) -> Array:
    """Mean over the last axis."""
    return np.asarray(runs.mean(axis=-1), dtype=np.float64)


def sample(values: ArrayLike) -> Array:
    """One finite value per run; raise AnalysisError when there is none or one is absent."""
    array = np.asarray(values, dtype=np.float64).ravel()
    if array.size == 0:
        message = "there is no run to take statistics of"
        raise AnalysisError(message)
    if not np.isfinite(array).all():
        message = (
            f"{int((~np.isfinite(array)).sum())} of {array.size} runs have no value; leave them out by name"
        )
        raise AnalysisError(message)
    return array


def mean_interval(values: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """Mean over runs with Student's t interval: for means that are roughly normal.

    >>> interval = mean_interval([9.0, 10.0, 11.0])
    >>> interval.value, round(interval.low, 2), round(interval.high, 2)
    (10.0, 7.52, 12.48)
    """
    runs = sample(values)
    value, n = float(runs.mean()), runs.size
    if n < 2:
        return Interval(value=value, low=None, high=None, n=n, method="t", confidence=confidence)
    spread = 0.0 if is_constant(runs) else float(runs.std(ddof=1))
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * spread / math.sqrt(n)
    return Interval(value=value, low=value - half, high=value + half, n=n, method="t", confidence=confidence)


def bootstrap_interval(
    values: ArrayLike,
    *,
    generator: np.random.Generator,
    confidence: float = CONFIDENCE,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Mean over runs by expanded percentile bootstrap, 10 000 resamples: for what piles up at a bound.

    ``within``: the least and the most that the quantity can be.
    """
    runs = sample(values)
    value, n, method = float(runs.mean()), runs.size, "expanded percentile"
    if n < 2:
        return Interval(value=value, low=None, high=None, n=n, method=method, confidence=confidence)
    draws = means_of_resamples(runs, generator)
    low, high = expanded_percentiles(draws, value=value, n=n, confidence=confidence)
    least, most = within
    return Interval(
        value=value, low=max(low, least), high=min(high, most), n=n, method=method, confidence=confidence
    )


def mean_within(
    values: ArrayLike,
    *,
    within: tuple[float, float],
    generator: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Mean over runs with Student's t interval, or another where t leaves what the quantity can be.

    ``within``: the least and the most that it can be, as 0 and infinity of a count. From five runs on it is
    the bootstrap's. With fewer, resamples hold too little and their logarithms reach too far: it is t's, cut
    at the bounds, which covers what t covers, for the truth lies within them.

    >>> generator = np.random.default_rng(1)
    >>> mean_within([9.0, 10.0, 11.0], within=(0.0, math.inf), generator=generator).low > 0
    True
    >>> few = mean_within([0.0, 1.0, 20.0], within=(0.0, math.inf), generator=generator)
    >>> few.method, few.low, round(few.high)
    ('t, cut', 0.0, 35)
    """
    least, most = within
    plain = mean_interval(values, confidence=confidence)
    if plain.low is None or plain.high is None or (least <= plain.low and plain.high <= most):
        return plain
    if plain.n < FEWEST_RESAMPLED:
        return replace(plain, low=max(plain.low, least), high=min(plain.high, most), method="t, cut")
    return bootstrap_interval(values, generator=generator, confidence=confidence, within=within)


def resamples(runs: Array, generator: np.random.Generator, count: int = RESAMPLES) -> Array:
    """``count`` samples of the size of ``runs``, drawn from it with replacement: shape (count, n)."""
    return runs[generator.integers(0, runs.size, size=(count, runs.size))]


def means_of_resamples(runs: Array, generator: np.random.Generator, count: int = RESAMPLES) -> Array:
    """Mean of each of ``resamples``, which are drawn some at a time: shape (count,), and the same numbers."""
    at_once = max(1, _VALUES_AT_ONCE // runs.size)
    drawn = [min(at_once, count - start) for start in range(0, count, at_once)]
    return np.concatenate([mean(resamples(runs, generator, some)) for some in drawn])


def expanded_percentiles(
    draws: ArrayLike, *, value: float, n: int, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Percentile interval of bootstrap draws around ``value``, widened for few runs (Hesterberg 2015, 3.3).

    The plain percentile interval of a mean is too narrow by √((n-1)/n) and by z instead of t. Taking
    the percentiles at Φ(±√(n/(n-1)) t) undoes both, and changes nothing for large n. ``n`` counts the
    runs of the smallest condition.

    No draw lies beyond the outermost run, and that one alone is drawn with probability n⁻ⁿ. Where the
    percentile asked for is rarer (at 95 % with four runs or fewer), the limits are at least t standard errors
    away, the error being that of the draws, which √(n/(n-1)) makes unbiased: else the interval of two runs
    would miss the truth every second time. What is above 0 in every draw is taken to be so, and its error
    that of the logarithm.
    """
    drawn = np.asarray(draws, dtype=np.float64)
    t = float(stats.t.ppf((1 + confidence) / 2, n - 1))
    unbiased = math.sqrt(n / (n - 1))
    beyond = float(stats.norm.sf(unbiased * t))
    low, high = (float(each) for each in np.quantile(drawn, [beyond, 1 - beyond]))
    if beyond >= n**-n:
        return low, high
    if value > 0 and float(drawn.min()) > 0:
        factor = math.exp(min(t * unbiased * float(np.log(drawn).std()), _LARGEST_EXPONENT))
        return min(low, value / factor), max(high, value * factor)
    half = t * unbiased * float(drawn.std())
    return min(low, value - half), max(high, value + half)


def ratio_of_means_interval(
    numerator: ArrayLike,
    denominator: ArrayLike,
    *,
    generator: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Ratio of two independent means, by expanded percentile bootstrap.

    Raises
    ------
    AnalysisError
        The denominator has a run at or below zero, so the ratio has no bounded interval.
    """
    above, below = sample(numerator), sample(denominator)
    if (below <= 0).any():
        message = (
            "the ratio of means needs a denominator above zero in every run; compare differences instead"
        )
        raise AnalysisError(message)
    value, n = float(above.mean() / below.mean()), min(above.size, below.size)
    method = "expanded percentile"
    if n < 2:
        return Interval(value=value, low=None, high=None, n=n, method=method, confidence=confidence)
    draws = means_of_resamples(above, generator) / means_of_resamples(below, generator)
    low, high = expanded_percentiles(draws, value=value, n=n, confidence=confidence)
    if (above >= 0).all():
        low = max(low, 0.0)
    return Interval(value=value, low=low, high=high, n=n, method=method, confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference of means, by Welch: the runs of the two sides vary each in their own way."""

    value: float
    error: float
    """Standard error; 0 where no run varies."""
    freedom: float
    """Degrees of freedom; infinite where no run varies."""

    @classmethod
    def of(cls, value: float, squares: Sequence[float], freedoms: Sequence[float]) -> Difference:
        """A value whose squared error is a sum of ``squares``, each with its freedom (Satterthwaite 1946)."""
        below = sum(square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True))
        freedom = sum(squares) ** 2 / below if below > 0 else math.inf
        return cls(value=value, error=math.sqrt(sum(squares)), freedom=freedom)

    @classmethod
    def mean_of(cls, differences: Sequence[Difference], *, independent: bool = True) -> Difference:
        """The mean of differences.

        Where they are not independent its error is the mean of theirs: however they hang together, it is not
        larger.
        """
        n, value = len(differences), sum(each.value for each in differences) / len(differences)
        if not independent:
            error = sum(each.error for each in differences) / n
            return cls(value=value, error=error, freedom=min(each.freedom for each in differences))
        return cls.of(
            value, [(each.error / n) ** 2 for each in differences], [each.freedom for each in differences]
        )

    def over(self, divisor: float) -> Difference:
        """The same in units of ``divisor``, above 0."""
        return replace(self, value=self.value / divisor, error=self.error / divisor)

    @property
    def p(self) -> float:
        """Two-sided, of no difference; 0 or 1 where no run varies."""
        if self.error == 0:
            return float(self.value == 0)
        return float(2 * stats.t.sf(abs(self.value) / self.error, self.freedom))

    def limits(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Ends of the interval."""
        half = float(stats.t.ppf((1 + confidence) / 2, self.freedom)) * self.error if self.error else 0.0
        return self.value - half, self.value + half


def difference(a: ArrayLike, b: ArrayLike) -> Difference | None:
    """mean(a) - mean(b) of independent runs; None with a single run on a side.

    >>> difference([3.0, 3.0], [1.0, 1.0])
    Difference(value=2.0, error=0.0, freedom=inf)
    """
    sides = sample(a), sample(b)
    if min(side.size for side in sides) < 2:
        return None
    squares = [0.0 if is_constant(side) else float(side.var(ddof=1)) / side.size for side in sides]
    same = is_constant(np.concatenate(sides))
    value = 0.0 if same else float(sides[0].mean() - sides[1].mean())
    return Difference.of(value, squares, [side.size - 1 for side in sides])


def log_ratio(a: ArrayLike, b: ArrayLike) -> Difference | None:
    """ln(mean(a) / mean(b)) of independent runs, to the first order; None with a single run on a side.

    Both means are above 0. Of several such, the mean is the logarithm of the geometric mean of the ratios.

    >>> found = log_ratio([2.0, 2.0], [1.0, 1.0])
    >>> round(math.exp(found.value), 6), found.error
    (2.0, 0.0)
    """
    sides = sample(a), sample(b)
    if min(side.size for side in sides) < 2:
        return None
    squares = [
        0.0 if is_constant(side) else float(side.var(ddof=1)) / side.size / float(side.mean()) ** 2
        for side in sides
    ]
    value = math.log(float(sides[0].mean()) / float(sides[1].mean()))
    return Difference.of(value, squares, [side.size - 1 for side in sides])


def paired_difference(pairs: Sequence[tuple[float, float]]) -> Difference | None:
    """mean(a) - mean(b) of runs that share what was drawn, by Student; None with a single pair.

    >>> paired_difference([(2.0, 1.0), (14.0, 13.0)])
    Difference(value=1.0, error=0.0, freedom=inf)
    """
    if len(pairs) < 2:
        return None
    parts = np.asarray([a - b for a, b in pairs], dtype=float)
    error = 0.0 if is_constant(parts) else float(parts.std(ddof=1)) / math.sqrt(len(parts))
    return Difference(value=float(parts.mean()), error=error, freedom=len(parts) - 1 if error else math.inf)


def paired_change(pairs: Sequence[tuple[float, float]]) -> Difference | None:
    """mean(a) / mean(b) - 1 of runs that share what was drawn; None with a single run of b above 0.

    The error is the jackknife's (Miller 1974): where few large runs decide, the first order is too sure.

    >>> found = paired_change([(2.0, 1.0), (4.0, 2.0), (60.0, 30.0)])
    >>> found.value, found.error
    (1.0, 0.0)
    """
    a, b = np.asarray(pairs, dtype=float).reshape(-1, 2).T
    if (b > 0).sum() < 2:
        return None
    times = float(a.mean()) / float(b.mean())
    without_one = (a.sum() - a) / (b.sum() - b)
    same = np.ptp(without_one) <= _SAME * abs(times)
    error = 0.0 if same else float(without_one.std()) * math.sqrt(len(pairs) - 1)
    return Difference(value=times - 1, error=error, freedom=len(pairs) - 1 if error else math.inf)


def paired_log_ratio(pairs: Sequence[tuple[float, float]]) -> Difference | None:
    """ln(mean(a) / mean(b)), as :func:`paired_change`, to the first order; all of a are above 0 too.

    >>> found = paired_log_ratio([(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)])
    >>> round(math.exp(found.value), 6), found.error
    (2.0, 0.0)
    """
    change = paired_change(pairs)
    if change is None:
        return None
    return replace(change, value=math.log1p(change.value), error=change.error / (1 + change.value))


def difference_of_means(a: ArrayLike, b: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """mean(a) - mean(b) of independent runs, with Welch's t interval.

    >>> difference_of_means([3.0, 3.0], [1.0, 1.0])
    Interval(value=2.0, low=2.0, high=2.0, n=2, method='Welch t', confidence=0.95)
    """
    first, second = sample(a), sample(b)
    found, n = difference(first, second), min(first.size, second.size)
    low, high = (None, None) if found is None else found.limits(confidence)
    value = float(first.mean() - second.mean()) if found is None else found.value
    return Interval(value=value, low=low, high=high, n=n, method="Welch t", confidence=confidence)


def cliffs_delta(a: ArrayLike, b: ArrayLike) -> float:
    """P(a > b) - P(a < b) over all pairs of runs, in [-1, 1] (Cliff 1993).

    >>> cliffs_delta([3, 4], [1, 2]), cliffs_delta([1, 2], [1, 2])
    (1.0, 0.0)
    """
    first, second = sample(a), sample(b)
    return float(np.sign(first[:, None] - second[None, :]).mean())


def welch_p(a: ArrayLike, b: ArrayLike) -> float | None:
    """Two-sided p of equal means (Welch); None with a single run, exact 0 or 1 when no run varies."""
    found = difference(a, b)
    return None if found is None else found.p


def is_constant(values: Array) -> bool:
    """Whether the runs agree to the last digits: virtual time repeats so well, and a t test divides by it."""
    return bool(np.ptp(values) <= _SAME * abs(float(np.mean(values))))


def holm(p_values: ArrayLike) -> Array:
    """P values adjusted for testing them all (Holm 1979), in the order given.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted

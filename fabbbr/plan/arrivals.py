"""Flows that come at random: when each starts and how large it is, drawn from a seed.

A Poisson process: gaps are independent and exponential. Instants and sizes are drawn by streams of their own,
by inverting the distribution's function, so that other sizes leave the instants as they are. Pure.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, expm1, log, log1p
from statistics import NormalDist

from fabbbr import limits
from fabbbr.errors import PlanError, SpecError
from fabbbr.foreign import shown
from fabbbr.spec.experiment import ArrivalProcess, SizeDistribution
from fabbbr.units import NANOSECONDS_PER_SECOND, Duration, Size

_HALF_A_STEP = 2.0**-54
"""Of ``random()``, which can be 0: with it a draw is within 0 and 1, and neither."""
_MOST_DIGITS = 15
_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One flow."""

    at: Duration
    """Since the process began."""
    size: Size


def arrivals(
    process: ArrivalProcess, sizes: Sequence[int] | None, *, seed: str, duration: Duration
) -> Iterator[Arrival]:
    """All that come within ``duration``, in order; equal arguments give equal arrivals.

    ``sizes`` is what stands in the file that the process names. Raises PlanError when that was not read.
    """
    size_of = _quantile(process.size, sizes)
    instants, draws = random.Random(f"{seed} instants"), random.Random(f"{seed} sizes")  # noqa: S311 - no secret
    at_s = 0.0
    while True:
        at_s -= log1p(-instants.random()) / process.rate.per_s
        at = Duration(round(at_s * NANOSECONDS_PER_SECOND))
        if at >= duration:
            return
        yield Arrival(at=at, size=Size(max(round(size_of(draws.random() + _HALF_A_STEP)), 1)))


_Function = Callable[[float], float]


def _quantile(sizes: SizeDistribution, listed: Sequence[int] | None) -> _Function:
    """From a probability to the size in bytes that it belongs to."""
    if sizes.file is not None:
        if listed is None:
            message = f"arrivals.size.file: {sizes.file} was not read; pass its contents to the plan"
            raise PlanError(message)
        return lambda u: float(listed[int(u * len(listed))])
    assert sizes.mean is not None
    if sizes.distribution == "fixed":
        mean = float(sizes.mean.bytes)
        return lambda _: mean
    below, inverse = _distribution(sizes, float(sizes.mean.bytes))
    reached = below(float(sizes.most.bytes)) if sizes.most is not None else 1.0
    return lambda u: inverse(u * reached)


def _distribution(sizes: SizeDistribution, mean: float) -> tuple[_Function, _Function]:
    """The distribution function and its inverse."""
    if sizes.distribution == "lognormal":
        sigma = sizes.sigma or 0.0
        middle = log(mean) - sigma**2 / 2
        return (
            lambda size: _NORMAL.cdf((log(size) - middle) / sigma),
            lambda u: exp(middle + sigma * _NORMAL.inv_cdf(u)),
        )
    if sizes.distribution == "pareto":
        shape = sizes.shape or 0.0
        least = mean * (shape - 1) / shape
        return lambda size: 1 - (least / size) ** shape, lambda u: least * (1 - u) ** (-1 / shape)
    return lambda size: -expm1(-size / mean), lambda u: -mean * log1p(-u)


def parse_sizes(text: str, *, source: str) -> tuple[int, ...]:
    """Read a file of sizes, a whole number of bytes per line; raise SpecError with the line that is none."""
    sizes: list[int] = []
    for number, line in enumerate(io.StringIO(text), start=1):
        word = line.strip()
        fits = word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS
        if not fits or int(word) == 0:
            message = f"{source}:{number}: {shown(line.rstrip())} is not a whole number of bytes above 0"
            raise SpecError(message)
        sizes.append(int(word))
    if not sizes:
        message = f"{source} has no sizes; write a number of bytes on each line"
        raise SpecError(message)
    if len(sizes) > limits.SIZES:
        message = f"{source} has {len(sizes)} sizes; at most {limits.SIZES}, cut it"
        raise SpecError(message)
    return tuple(sizes)

"""How often the intervals of claims hold the truth: python -m benchmarks.coverage [TRIALS].

Means of so many normal values, by the bootstrap alone and as claims are judged (docs/decisions/0013).
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy import stats as distributions

from benchmarks.table import Table
from fabbbr_analysis.stats import CONFIDENCE, Array, expanded_percentiles, means_of_resamples

_RUNS = (2, 3, 4, 5, 10, 20)
_TRUTH = 10.0


def by_bootstrap_alone(runs: Array, draws: Array) -> tuple[float, float]:
    """The percentiles that few runs ask for, of draws none of which lies beyond the outermost run."""
    t = float(distributions.t.ppf((1 + CONFIDENCE) / 2, runs.size - 1))
    beyond = float(distributions.norm.sf(np.sqrt(runs.size / (runs.size - 1)) * t))
    low, high = np.quantile(draws, [beyond, 1 - beyond])
    return float(low), float(high)


def as_judged(runs: Array, draws: Array) -> tuple[float, float]:
    """What a verdict rests on."""
    return expanded_percentiles(draws, value=float(runs.mean()), n=runs.size)


def coverage(n: int, trials: int, interval: Callable[[Array, Array], tuple[float, float]]) -> float:
    """The share of trials of ``n`` runs whose interval holds the mean that they were drawn with."""
    drawn = np.random.default_rng(n)
    held = 0
    for _ in range(trials):
        runs = drawn.normal(_TRUTH, 1.0, n)
        low, high = interval(runs, means_of_resamples(runs, drawn))
        held += low <= _TRUTH <= high
    return held / trials


def main() -> None:
    """Print the table."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    title = f"Intervals of 95 % that hold the truth, {trials} trials"
    table = Table(title=title, head=("runs", "bootstrap alone", "as judged"))
    for n in _RUNS:
        shares = (coverage(n, trials, interval) for interval in (by_bootstrap_alone, as_judged))
        table.add(str(n), *(f"{share:.1%}" for share in shares))
    print(table.plain())


if __name__ == "__main__":
    main()

"""The result in sentences, each made from numbers and worth no more than their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from fabbbr_analysis.figures.conditions import Axis, mixes, place_in_words, varied
from fabbbr_analysis.figures.measures import BY_COLUMN, in_a_sentence
from fabbbr_analysis.wording import distinct, interval, listing, number, tie

HELD_UP = 0.9
"""A congestion control holds up while its mean keeps this share of what it has at the mildest condition."""
_METRIC = "goodput_bps"
_WORTH_SAYING = 1.05


@dataclass(frozen=True, kw_only=True)
class _Mean:
    """Mean goodput of one congestion control at one place; None where there is no interval."""

    cca: str
    place: tuple[str, ...]
    """The text of each axis."""
    mean: float
    low: float | None
    high: float | None
    exact: bool
    """The same in all runs."""

    def __str__(self) -> str:
        """As in a sentence, in the unit shown."""
        measure = BY_COLUMN[_METRIC]
        low, high = (None if end is None else end * measure.factor for end in (self.low, self.high))
        mean = self.mean * measure.factor
        return f"{number(mean) if self.exact else interval(mean, low, high)} {measure.unit}"

    def clearly_above(self, other: _Mean) -> bool:
        """Whether the intervals do not overlap."""
        return self.surely_over(other) > 1

    def surely_over(self, other: _Mean) -> float:
        """Return the ratio that even the near ends of both intervals have; 0 without intervals.

        The ratio of the means itself is largest where a mean is small and
        uncertain, which is no strong result.
        """
        low = self.mean if self.exact else self.low
        high = other.mean if other.exact else other.high
        if low is None or high is None or high <= 0:
            return 0.0
        return low / high


def findings(runs: pd.DataFrame, summary: pd.DataFrame) -> list[str]:
    """Say the strongest results of one experiment: the widest gap, and who holds up how far.

    ``summary`` is the long table of ``fabbbr_analysis.summary.summarise`` over ``runs``. Nothing where there
    is nothing to compare.
    """
    axes = varied(runs)
    means = _means(runs, summary, axes)
    if not means:
        return []
    return [tie(said) for said in (_widest_gap(means, axes), _endurance(means, axes)) if said]


def goodput_of(runs: pd.DataFrame, summary: pd.DataFrame) -> str:
    """Say the range of the goodput: the result where nothing was compared."""
    means = _means(runs, summary, varied(runs))
    return tie(_range(means)) if means else "No certified run has a goodput, so there is no result."


def _means(runs: pd.DataFrame, summary: pd.DataFrame, axes: Sequence[Axis]) -> list[_Mean]:
    ccas = dict(zip(runs["condition"], mixes(runs), strict=True))
    goodput = summary[(summary["metric"] == _METRIC) & summary["mean"].notna()]
    return [
        _Mean(
            cca=str(ccas[row["condition"]]),
            place=tuple(str(row[f"axis_{axis.key}"]) for axis in axes),
            mean=float(row["mean"]),
            low=None if pd.isna(row["low"]) else float(row["low"]),
            high=None if pd.isna(row["high"]) else float(row["high"]),
            exact=bool(row["exact"]),
        )
        for row in goodput.to_dict("records")
    ]


def _widest_gap(means: Sequence[_Mean], axes: Sequence[Axis]) -> str | None:
    gaps = []
    for place in distinct(mean.place for mean in means):
        here = sorted((each for each in means if each.place == place), key=lambda each: each.mean)
        worst, best = here[0], here[-1]
        if worst.mean > 0 and best.clearly_above(worst):
            gaps.append((best, worst))
    if not gaps:
        return None
    best, worst = max(gaps, key=lambda gap: gap[0].surely_over(gap[1]))
    ratio = best.mean / worst.mean
    if ratio < _WORTH_SAYING:
        return None
    where = f"At {place_in_words(axes, best.place)}, " if axes else ""
    times = number(ratio, significant=2)
    return f"{where}{best.cca} carries {best}, {worst.cca} {worst}: {times} times as much."


def _endurance(means: Sequence[_Mean], axes: Sequence[Axis]) -> str | None:
    """Say how far along the one numeric axis each congestion control keeps its goodput."""
    axis = axes[0] if len(axes) == 1 else None
    if axis is None or axis.condition is None or axis.condition.column not in ("loss_ratio", "rtt_s"):
        return None
    reach: dict[str, list[str]] = {}
    for cca in sorted({each.cca for each in means}):
        own = {each.place[0]: each.mean for each in means if each.cca == cca}
        if axis.texts[0] not in own:
            return None
        reach.setdefault(_holds_until(own, axis), []).append(cca)
    ordered = sorted(reach, key=axis.texts.index, reverse=True)
    parts = [f"{_up_to(text, axis)} with {listing(reach[text])}" for text in ordered]
    return (
        f"As the {in_a_sentence(axis.title)} rises from {axis.texts[0]}, at least {HELD_UP * 100:g} % of the "
        f"goodput is left {listing(parts)}."
    )


def _holds_until(means: dict[str, float], axis: Axis) -> str:
    """Return the last value before the first at which too little is left."""
    last = axis.texts[0]
    for text in axis.texts:
        if text not in means:
            continue
        if means[text] < HELD_UP * means[axis.texts[0]]:
            break
        last = text
    return last


def _up_to(text: str, axis: Axis) -> str:
    if text == axis.texts[0]:
        return f"nowhere above {text}"
    return f"all the way to {text}" if text == axis.texts[-1] else f"up to {text}"


def _range(means: Sequence[_Mean]) -> str:
    ccas = listing(sorted({each.cca for each in means}))
    lowest, highest = min(means, key=lambda each: each.mean), max(means, key=lambda each: each.mean)
    if len(means) == 1:
        return f"{ccas}: goodput {lowest}."
    return f"{ccas}: mean goodput from {lowest} to {highest}."

"""From a formula and its runs to a verdict. The rule in words: ``docs/claims.md``."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from fabbbr_analysis.claims.expression import quantities_in
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.observed import Observable, Observations
from fabbbr_analysis.claims.records import (
    Arithmetic,
    Band,
    Claim,
    Part,
    PartVerdict,
    Verdict,
    VerdictText,
)
from fabbbr_analysis.claims.sample import MissingConditionError, Sample
from fabbbr_analysis.claims.ways import Way
from fabbbr_analysis.stats import CONFIDENCE, expanded_percentiles

RULES_VERSION = 2
"""Raised by one whenever the same runs may get another verdict, value or interval.

That is when a formula, a band, what a quantity is, the resampling or the rule below changes. Words, new
claims and new experiments leave it as it is.
"""

_WORST_FIRST: tuple[VerdictText, ...] = (
    "not reproduced",
    "not run",
    "inconclusive",
    "compatible",
    "reproduced",
)

_UNDECIDED: tuple[VerdictText, ...] = ("inconclusive", "compatible")

_WHY: dict[VerdictText, str] = {
    "reproduced": "inside the band {band}",
    "compatible": "over an edge of the band {band}, and narrower than it",
    "inconclusive": "wider than the band {band}: more repetitions are needed",
    "not reproduced": "outside the band {band}",
}


_NOTHING_RANDOM = "the runs are all the same, so they say as much as one: nothing in them is random"


def decide(band: Band, *, value: float, low: float, high: float) -> VerdictText:
    """Compare an interval with the pass band."""
    if band.holds(value) and band.holds(low, slack=band.slack) and band.holds(high, slack=band.slack):
        return "reproduced"
    if _misses(band, low, high):
        return "not reproduced"
    return "compatible" if high - low <= band.width else "inconclusive"


def _misses(band: Band, low: float, high: float) -> bool:
    below = band.low is not None and high < band.low
    above = band.high is not None and low > band.high
    return below or above


def confidence_of(looks: int) -> float:
    """The level of each interval when claims are judged ``looks`` times as the run grows.

    The errors of all looks together are at most those of one look at 95 % (Bonferroni), whenever it ends.

    >>> confidence_of(0), confidence_of(1), confidence_of(4)
    (0.95, 0.95, 0.9875)
    """
    return 1 - (1 - CONFIDENCE) / max(looks, 1)


def judge_part(
    part: Part | Arithmetic, observations: Observations, generator: np.random.Generator
) -> PartVerdict:
    """Judge one part of a claim."""
    if isinstance(part, Arithmetic):
        return _calculated(part)
    remarks: tuple[str, ...] = ()
    try:
        samples = {each: observations[each.experiment].sample(each) for each in quantities_in(part.formula)}
        remarks = tuple(dict.fromkeys(each for sample in samples.values() for each in sample.remarks))
        looks = max(observations[each.experiment].looks for each in samples)
        return _measured(part, samples, remarks, generator, confidence_of(looks))
    except MissingConditionError as error:
        return _not_run(part, "; ".join([str(error), *remarks]), None)


def _calculated(part: Arithmetic) -> PartVerdict:
    value = part.value
    verdict: VerdictText = "reproduced" if part.band.holds(value) else "not reproduced"
    reason = f"{part.quantity}: {value:.4g} by calculation, {_WHY[verdict].format(band=part.band)}"
    return PartVerdict(
        quantity=part.quantity, verdict=verdict, value=value, low=None, high=None, n=None, band=part.band,
        reason=reason,
    )  # fmt: skip


def _measured(
    part: Part,
    samples: Mapping[Observable, Sample],
    remarks: Sequence[str],
    generator: np.random.Generator,
    confidence: float,
) -> PartVerdict:
    means = Means(samples=samples)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(part.formula.of(means))
        n, fewest = means.smallest()
        if n < 2:
            return _not_run(part, f"{fewest} has a single certified run, and an interval needs two", n)
        draws = part.formula.of(Means.resampled(samples, generator))
    low, high = expanded_percentiles(draws, value=value, n=n, confidence=confidence)
    if not all(map(math.isfinite, (value, low, high))):
        return _not_run(part, "the formula divides by a condition that delivered nothing", n)
    verdict = decide(part.band, value=value, low=low, high=high)
    alone = (_NOTHING_RANDOM,) if low == high else ()
    reason = (
        f"{part.quantity}: {value:.3g}, {confidence * 100:.4g} % interval {low:.3g} to {high:.3g}, "
        f"{_WHY[verdict].format(band=part.band)}"
    )
    return PartVerdict(
        quantity=part.quantity, verdict=verdict, value=value, low=low, high=high, n=n, band=part.band,
        reason=reason, conditions=means.conditions(), remarks=(*remarks, *means.remarks, *alone),
    )  # fmt: skip


def _not_run(part: Part, reason: str, n: int | None) -> PartVerdict:
    return PartVerdict(
        quantity=part.quantity, verdict="not run", value=None, low=None, high=None, n=n, band=part.band,
        reason=reason,
    )  # fmt: skip


def judge_claim(
    claim: Claim,
    observations: Observations,
    *,
    seed: int,
    remarks: Sequence[str] = (),
    losses: Way | None = None,
) -> Verdict:
    """Judge all parts of a claim; the worst decides, because a claim says all of them.

    The resamples depend on ``seed`` and the claim alone, so that judging other claims too changes nothing.
    """
    generator = np.random.default_rng([seed, zlib.crc32(claim.id.encode())])
    found = [(part, judge_part(part, observations, generator)) for part in claim.parts]
    kept = [judged for part, judged in found if not _left_out(part, judged)]
    left_out = [
        f"not tested: {judged.quantity} ({judged.reason})"
        for part, judged in found
        if _left_out(part, judged)
    ]
    deciding = min(kept, key=lambda judged: _WORST_FIRST.index(judged.verdict))
    if deciding.verdict == "not run":
        left_out = []
    notes = dict.fromkeys([note for judged in kept for note in judged.remarks] + left_out + list(remarks))
    return Verdict(
        id=claim.id,
        experiment=claim.experiment,
        verdict=deciding.verdict,
        quantity=deciding.quantity,
        value=deciding.value,
        low=deciding.low,
        high=deciding.high,
        band=str(deciding.band),
        band_low=deciding.band.low,
        band_high=deciding.band.high,
        published=claim.published,
        n=deciding.n,
        strength=claim.strength,
        predicate=claim.predicate,
        reason="; ".join([deciding.reason, *notes]),
        rules_version=RULES_VERSION,
        undecided=_worth_repeating(deciding, kept),
        losses=losses,
        details=tuple(kept) if len(kept) > 1 else (),
    )


def _worth_repeating(deciding: PartVerdict, parts: Sequence[PartVerdict]) -> tuple[str, ...]:
    """Conditions of all parts that are undecided; none when the worst part decides the claim."""
    if deciding.verdict not in _UNDECIDED:
        return ()
    return tuple(
        dict.fromkeys(name for part in parts if part.verdict in _UNDECIDED for name in part.conditions)
    )


def _left_out(part: Part | Arithmetic, judged: PartVerdict) -> bool:
    return isinstance(part, Part) and part.optional and judged.verdict == "not run"

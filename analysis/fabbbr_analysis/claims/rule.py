"""From a formula and its runs to a verdict. The rule in words: ``docs/claims.md``."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from fabbbr_analysis.claims.expression import quantities_in
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.observed import Evidence, Observable
from fabbbr_analysis.claims.records import (
    Arithmetic,
    Band,
    Claim,
    Finding,
    Part,
    Verdict,
    VerdictText,
)
from fabbbr_analysis.claims.sample import MissingConditionError, Sample
from fabbbr_analysis.stats import expanded_percentiles

RULES_VERSION = 1
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

_WHY: dict[VerdictText, str] = {
    "reproduced": "inside the band {band}",
    "compatible": "over an edge of the band {band}, and narrower than it",
    "inconclusive": "wider than the band {band}: more repetitions are needed",
    "not reproduced": "outside the band {band}",
}


def decide(band: Band, *, value: float, low: float, high: float) -> VerdictText:
    """Compare a 95 % interval with the pass band."""
    if band.holds(value) and band.holds(low, slack=band.slack) and band.holds(high, slack=band.slack):
        return "reproduced"
    if _misses(band, low, high):
        return "not reproduced"
    return "compatible" if high - low <= band.width else "inconclusive"


def _misses(band: Band, low: float, high: float) -> bool:
    below = band.low is not None and high < band.low
    above = band.high is not None and low > band.high
    return below or above


def find(part: Part | Arithmetic, evidence: Evidence, generator: np.random.Generator) -> Finding:
    """Judge one part of a claim."""
    if isinstance(part, Arithmetic):
        return _calculated(part)
    remarks: tuple[str, ...] = ()
    try:
        samples = {each: evidence[each.experiment].sample(each) for each in quantities_in(part.formula)}
        remarks = tuple(dict.fromkeys(each for sample in samples.values() for each in sample.remarks))
        return _measured(part, samples, remarks, generator)
    except MissingConditionError as error:
        return _not_run(part, "; ".join([str(error), *remarks]), None)


def _calculated(part: Arithmetic) -> Finding:
    value = part.value
    verdict: VerdictText = "reproduced" if part.band.holds(value) else "not reproduced"
    reason = f"{part.quantity}: {value:.4g} by calculation, {_WHY[verdict].format(band=part.band)}"
    return Finding(
        quantity=part.quantity, verdict=verdict, value=value, low=None, high=None, n=None, band=part.band,
        reason=reason,
    )  # fmt: skip


def _measured(
    part: Part, samples: Mapping[Observable, Sample], remarks: Sequence[str], generator: np.random.Generator
) -> Finding:
    means = Means(samples=samples)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(part.formula.of(means))
        n, fewest = means.smallest()
        if n < 2:
            return _not_run(part, f"{fewest} has a single certified run, and an interval needs two", n)
        draws = part.formula.of(Means.resampled(samples, generator))
    low, high = expanded_percentiles(draws, n=n)
    if not all(map(math.isfinite, (value, low, high))):
        return _not_run(part, "the formula divides by a condition that delivered nothing", n)
    verdict = decide(part.band, value=value, low=low, high=high)
    reason = (
        f"{part.quantity}: {value:.3g}, 95 % interval {low:.3g} to {high:.3g}, "
        f"{_WHY[verdict].format(band=part.band)}"
    )
    return Finding(
        quantity=part.quantity, verdict=verdict, value=value, low=low, high=high, n=n, band=part.band,
        reason=reason, remarks=(*remarks, *means.remarks),
    )  # fmt: skip


def _not_run(part: Part, reason: str, n: int | None) -> Finding:
    return Finding(
        quantity=part.quantity, verdict="not run", value=None, low=None, high=None, n=n, band=part.band,
        reason=reason,
    )  # fmt: skip


def judge_claim(claim: Claim, evidence: Evidence, *, seed: int, remarks: Sequence[str] = ()) -> Verdict:
    """Judge all parts of a claim; the worst decides, because a claim says all of them.

    The resamples depend on ``seed`` and the claim alone, so that judging other claims too changes nothing.
    """
    generator = np.random.default_rng([seed, zlib.crc32(claim.id.encode())])
    found = [(part, find(part, evidence, generator)) for part in claim.parts]
    kept = [finding for part, finding in found if not _left_out(part, finding)]
    left_out = [
        f"not tested: {finding.quantity} ({finding.reason})"
        for part, finding in found
        if _left_out(part, finding)
    ]
    deciding = min(kept, key=lambda finding: _WORST_FIRST.index(finding.verdict))
    if deciding.verdict == "not run":
        left_out = []
    notes = dict.fromkeys([note for finding in kept for note in finding.remarks] + left_out + list(remarks))
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
        details=tuple(kept) if len(kept) > 1 else (),
    )


def _left_out(part: Part | Arithmetic, finding: Finding) -> bool:
    return isinstance(part, Part) and part.optional and finding.verdict == "not run"

"""What the papers say, as formulas with pass bands, judged on runs.

A claim is judged on certified runs only, whole runs at the receiver unless its formula says otherwise,
and only with two repetitions or more. Rule and register: ``docs/claims.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from fabbbr.model import BbrProfile
from fabbbr.units import Rate
from fabbbr_analysis.claims.expression import quantities_in
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.observed import Evidence, Observable, Observed, RunSet, experiment_id
from fabbbr_analysis.claims.papers import cardwell, gate, hsiao, kfoury, knit6, ware
from fabbbr_analysis.claims.quantities import BBR2_BY_DEFAULT, bbr2_variants
from fabbbr_analysis.claims.records import (
    Arithmetic,
    Band,
    Claim,
    Finding,
    Part,
    Verdict,
    VerdictText,
)
from fabbbr_analysis.claims.rule import RULES_VERSION, judge_claim
from fabbbr_analysis.claims.sample import MissingConditionError, Sample

__all__ = [
    "RULES_VERSION",
    "Arithmetic",
    "Band",
    "Claim",
    "Finding",
    "Means",
    "MissingConditionError",
    "Part",
    "Sample",
    "Verdict",
    "VerdictText",
    "all_claims",
    "judge",
]

_SERVED_BY = {"cardwell.f7": "cardwell.f6"}
"""Experiments whose runs are those of another: Figs. 6 and 7 draw the same two runs."""

_PAPER_RATE = {
    "cardwell.f10": Rate.parse("100 Mbit/s"),
    "hm.figure8": Rate.parse("100 Mbit/s"),
    "knit6.e1": Rate.parse("10 Gbit/s"),
    "knit6.e2": Rate.parse("10 Gbit/s"),
    "knit6.e3": Rate.parse("10 Gbit/s"),
    "knit6.e5": Rate.parse("10 Gbit/s"),
    "knit6.e6": Rate.parse("10 Gbit/s"),
    **dict.fromkeys(("kfoury.5.2", "kfoury.5.4", "kfoury.5.5a", "kfoury.5.6"), Rate.parse("1 Gbit/s")),
    "ware.1v1": Rate.parse("10 Mbit/s"),
    "ware.1v16": Rate.parse("10 Mbit/s"),
    "ware.cap": Rate.parse("10 Mbit/s"),
}


def all_claims() -> tuple[Claim, ...]:
    """Every claim that is code, paper by paper, and the gate of our own BBRv2 and BBRv3."""
    return (
        *cardwell.CLAIMS,
        *hsiao.CLAIMS,
        *knit6.CLAIMS,
        *kfoury.CLAIMS,
        *ware.CLAIMS,
        *gate.CLAIMS,
    )


def judge(run_sets: Sequence[RunSet], *, seed: int = 1) -> list[Verdict]:
    """Judge every claim on the runs given.

    A claim whose experiment was run several times gets a verdict for each run set, in the order given;
    one whose experiment was not run gets ``not run``. ``seed`` decides the bootstrap resamples.
    """
    claims = all_claims()
    wanted = [each for claim in claims for each in _quantities(claim)]
    observed = [Observed(run_set, wanted) for run_set in run_sets]
    return [verdict for claim in claims for verdict in _judge_one(claim, observed, seed)]


def _quantities(claim: Claim) -> list[Observable]:
    return [each for part in claim.parts if isinstance(part, Part) for each in quantities_in(part.formula)]


def _judge_one(claim: Claim, observed: Sequence[Observed], seed: int) -> list[Verdict]:
    experiment = _SERVED_BY.get(claim.experiment, claim.experiment)
    own = [each for each in observed if experiment_id(each.run_set.experiment) == experiment]
    if not own:
        return [judge_claim(claim, _evidence(observed), seed=seed)]
    return [
        judge_claim(
            claim,
            _evidence([each, *observed]),
            seed=seed,
            remarks=[*_scaling(each.run_set, experiment), *_variants(claim, each.run_set)],
        )
        for each in own
    ]


def _evidence(observed: Sequence[Observed]) -> Evidence:
    """Take the first run set of each experiment."""
    evidence = Evidence()
    for each in observed:
        evidence.setdefault(experiment_id(each.run_set.experiment), each)
    return evidence


def _variants(claim: Claim, run_set: RunSet) -> list[str]:
    """Remark on a BBRv2 that is not profile v2alpha alone, unless the claim names its profile."""
    run = bbr2_variants(run_set.certified)
    if run in ((), (BBR2_BY_DEFAULT,)) or claim.id.rpartition(".")[2] in get_args(BbrProfile):
        return []
    others = f"; {', '.join(run[1:])} was run too and is not judged" if run[1:] else ""
    return [f"bbr2 is {run[0]}{others}"]


def _scaling(run_set: RunSet, experiment: str) -> list[str]:
    """Remark on runs whose rate is not the paper's."""
    paper, runs = _PAPER_RATE.get(experiment), run_set.certified
    if paper is None or runs.empty:
        return []
    others = sorted({int(rate) for rate in runs["rate_bps"].dropna()} - {paper.bps})
    if not others:
        return []
    return [f"scaled: run at {', '.join(str(Rate(rate)) for rate in others)}, the paper at {paper}"]

"""What the papers say, as formulas with pass bands, judged on runs.

A claim is judged on certified runs only, whole runs at the receiver unless its formula says otherwise,
and only with two repetitions or more. Rule and register: ``docs/claims.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from fabbbr.model import BbrProfile
from fabbbr.units import Rate
from fabbbr_analysis import references
from fabbbr_analysis.claims.expression import quantities_in
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.observed import Observable, Observations, Observed, RunSet
from fabbbr_analysis.claims.papers import all_claims
from fabbbr_analysis.claims.quantities import BBR2_BY_DEFAULT, bbr2_variants
from fabbbr_analysis.claims.records import (
    Arithmetic,
    Band,
    Claim,
    Part,
    PartVerdict,
    Verdict,
    VerdictText,
    side_by_side,
)
from fabbbr_analysis.claims.rule import RULES_VERSION, judge_claim
from fabbbr_analysis.claims.sample import MissingConditionError, Sample
from fabbbr_analysis.claims.ways import each_way, way_of

__all__ = [
    "RULES_VERSION",
    "Arithmetic",
    "Band",
    "Claim",
    "Means",
    "MissingConditionError",
    "Observed",
    "Part",
    "PartVerdict",
    "Sample",
    "Verdict",
    "VerdictText",
    "all_claims",
    "judge",
    "judge_observed",
    "observe",
    "side_by_side",
]


def judge(run_sets: Sequence[RunSet], *, seed: int = 1) -> list[Verdict]:
    """Judge every claim on the runs given.

    A claim whose experiment was run several times gets a verdict for each run set, in the order given, and
    for each way in which its runs lose packets; one whose experiment was not run gets ``not run``. ``seed``
    decides the bootstrap resamples. :func:`side_by_side` pairs the two ways.
    """
    return judge_observed([one for run_set in run_sets for one in observe(run_set)], seed=seed)


def observe(run_set: RunSet) -> list[Observed]:
    """Look at a run set as all claims will, apart for each way in which its runs lose packets.

    What was read once is not read again when it is judged again.
    """
    wanted = [each for claim in all_claims() for each in _quantities(claim)]
    return [Observed(one, wanted) for one in each_way(run_set)]


def judge_observed(observed: Sequence[Observed], *, seed: int = 1) -> list[Verdict]:
    """Judge every claim on run sets that were observed, as :func:`judge` does."""
    return [verdict for claim in all_claims() for verdict in _judge_one(claim, observed, seed)]


def _quantities(claim: Claim) -> list[Observable]:
    return [each for part in claim.parts if isinstance(part, Part) for each in quantities_in(part.formula)]


def _experiment_of_runs(claim: Claim) -> str:
    """Name the experiment whose runs a claim is judged on; Cardwell's Fig. 7 draws those of Fig. 6."""
    asked = [each.experiment for each in _quantities(claim)]
    return claim.experiment if claim.experiment in asked or not asked else asked[0]


def _judge_one(claim: Claim, observed: Sequence[Observed], seed: int) -> list[Verdict]:
    experiment = _experiment_of_runs(claim)
    own = [each for each in observed if each.run_set.experiment == experiment]
    if not own:
        return [judge_claim(claim, Observations(), seed=seed)]
    return [
        judge_claim(
            claim,
            _by_experiment(each, observed),
            seed=seed,
            remarks=[*_scaling(each.run_set, experiment), *_variants(claim, each.run_set)],
            losses=way_of(each.run_set),
        )
        for each in own
    ]


def _by_experiment(own: Observed, observed: Sequence[Observed]) -> Observations:
    """Take ``own`` and the first run set of each other experiment that loses in the same way."""
    way, observations = way_of(own.run_set), Observations()
    observations.settings = " --set path.offloads=true" if way == "super-packets" else ""
    for each in (own, *(each for each in observed if way_of(each.run_set) == way)):
        observations.setdefault(each.run_set.experiment, each)
    return observations


def _variants(claim: Claim, run_set: RunSet) -> list[str]:
    """Remark on a BBRv2 that is not profile v2alpha alone, unless the claim names its profile."""
    run = bbr2_variants(run_set.certified)
    if run in ((), (BBR2_BY_DEFAULT,)) or claim.id.rpartition(".")[2] in get_args(BbrProfile):
        return []
    others = f"; {', '.join(run[1:])} was run too and is not judged" if run[1:] else ""
    return [f"bbr2 is {run[0]}{others}"]


def _scaling(run_set: RunSet, experiment: str) -> list[str]:
    """Remark on runs whose rate is not the paper's."""
    paper, runs = references.paper_rate(experiment), run_set.certified
    if paper is None or runs.empty:
        return []
    others = sorted({int(rate) for rate in runs["rate_bps"].dropna()} - {paper.bps})
    if not others:
        return []
    return [f"scaled: run at {', '.join(str(Rate(rate)) for rate in others)}, the paper at {paper}"]

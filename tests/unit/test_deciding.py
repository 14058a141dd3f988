"""A run that grows until its claims are decided: when it looks, what it adds, and how often it errs."""

import dataclasses
import itertools
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_runs import Runs, run_rows, verdicts

from fabbbr import deciding
from fabbbr.errors import StoreError, UsageError
from fabbbr.execute import Summary
from fabbbr.laboratory import Request, open_or_create, planned, selected
from fabbbr.plan.looks import looks
from fabbbr_analysis.claims import Band
from fabbbr_analysis.claims.rule import confidence_of, decide
from fabbbr_analysis.stats import expanded_percentiles, means_of_resamples

TEXT = """id: small
title: t
slice: two_site
path: {rate: 10 Mbit/s, rtt: 20 ms, loss: $loss}
flows: [{cca: cubic, duration: 1 s}]
vary: {loss: [1 %, 2 %]}
repeat: 2
claims: [C10.1]
"""


@given(st.integers(1, 100), st.integers(1, 1000))
def test_looks_are_few_at_least_doubled_but_for_the_last_and_end_at_the_limit(first, more):
    at = looks(first, first + more)
    assert (at[0], at[-1]) == (first, first + more)
    assert all(later == 2 * earlier for earlier, later in itertools.pairwise(at[:-1]))
    assert at == tuple(sorted(set(at)))


@pytest.mark.parametrize("most", [5, 4, 0, -1])
def test_a_limit_that_adds_nothing_is_refused(most):
    with pytest.raises(UsageError, match=f"--most {most}: the run begins with 5"):
        looks(5, most)


def test_several_looks_err_as_seldom_together_as_one_and_peeking_does_not():
    """A mean that lies just outside its band: how often is it told to be inside?"""
    band, seeds = Band(low=1.0, ceiling=3.0), np.random.SeedSequence(5).spawn(400)
    fixed, peeking = (5, 10, 20, 40), tuple(range(5, 41))

    def errs(seed, at, confidence):
        drawn = np.random.default_rng(seed)
        runs = 1.0 - 1e-9 + 0.1 * drawn.standard_normal(at[-1])
        for n in at:
            some = runs[:n]
            low, high = expanded_percentiles(
                means_of_resamples(some, drawn, 500), value=float(some.mean()), n=n, confidence=confidence
            )
            if decide(band, value=float(some.mean()), low=low, high=high) == "reproduced":
                return True
        return False

    of_four = sum(errs(seed, fixed, confidence_of(len(fixed))) for seed in seeds)
    of_all = sum(errs(seed, peeking, 0.95) for seed in seeds[:100])
    # One-sided 2.5 % each: 10 of 400 are expected at most, 18 with three standard errors on top.
    assert of_four <= 18
    assert of_all > 10  # of 100: what a rule that peeks would get


def edge(looks=()):
    """Fig. 10, where only the losses of C10.2 are near the edge of a band."""
    curve = {1e-5: 91.0, 1e-4: 91.0, 1e-3: 90.8, 1e-2: 90.0, 0.05: 86.4, 0.10: 79.0, 0.15: 65.6, 0.25: 0.5}
    rows = run_rows([{"ccas": "bbr1", "loss_ratio": p, "goodput_bps": g * 1e6} for p, g in curve.items()])
    return Runs("cardwell_f10", rows, manifest=types.SimpleNamespace(looks=looks))


def test_an_undecided_claim_names_the_conditions_that_it_rests_on_and_a_decided_one_none():
    found = verdicts(edge())
    assert found["C10.2"].verdict in ("compatible", "inconclusive")
    # Of the losses in order, 0.001, 10 and 15 %.
    assert set(found["C10.2"].undecided) <= {"condition 0", "condition 5", "condition 6"}
    assert "condition 6" in found["C10.2"].undecided
    assert (found["C10.3"].verdict, found["C10.3"].undecided) == ("reproduced", ())


def test_intervals_of_a_run_with_several_looks_are_wider_and_say_so():
    once, several = (verdicts(edge(looks))["C10.3"] for looks in ((), (5, 10, 20, 40)))
    assert several.low < once.low <= once.high < several.high
    assert "95 % interval" in once.reason
    assert "98.75 % interval" in several.reason


@dataclasses.dataclass
class Fake:
    """Carries out requests on paper, and says of each look what the test wants."""

    says: list
    ran: list = dataclasses.field(default_factory=list)

    def __call__(self, request):
        plan = planned(request)
        folder = open_or_create(request, plan)
        self.ran.append([cell.id for cell in selected(request, plan.cells)])
        return folder, Summary()

    def verdicts(self, folder):
        conditions = self.says.pop(0)
        return (types.SimpleNamespace(id="C10.1", verdict="inconclusive", undecided=conditions),)


@pytest.fixture
def begin(tmp_path, monkeypatch):
    (tmp_path / "small.yaml").write_text(TEXT, encoding="utf-8")
    request = Request(experiment=str(tmp_path / "small.yaml"), out=tmp_path / "run")

    def begun(says, most=None, **more):
        fake = Fake(says)
        monkeypatch.setattr(deciding, "_verdicts", fake.verdicts)
        asked = dataclasses.replace(request, **more)
        return fake, list(deciding.until_decided(asked, most, run=fake))

    return begun


FIRST = {"loss=1%,r1", "loss=1%,r2", "loss=2%,r1", "loss=2%,r2"}


def test_only_conditions_of_undecided_claims_get_more(begin):
    fake, found = begin([("loss=2%",), ()])
    assert set(fake.ran[0]) == FIRST
    assert set(fake.ran[1]) - FIRST == {"loss=2%,r3", "loss=2%,r4"}
    assert [look.repetitions for look in found] == [2, 4]


def test_it_ends_at_the_limit(begin):
    fake, found = begin([("loss=2%",), ("loss=2%",)], most=3)
    assert [(look.number, look.of, look.repetitions) for look in found] == [(1, 2, 2), (2, 2, 3)]
    assert len(fake.ran[1]) == 5


def test_an_interrupted_run_goes_on_without_looking_where_it_was(begin):
    begin([("loss=2%",), ()])  # as if it had ended amid its second look
    fake, found = begin([()])
    assert [look.number for look in found] == [2]
    assert set(fake.ran[-1]) - FIRST == {"loss=2%,r3", "loss=2%,r4"}


def test_looking_more_often_than_planned_is_refused(begin):
    begin([()], most=4)
    with pytest.raises(StoreError, match=r"after 2, 4 repetitions.*--most 4 .*another --out"):
        begin([()], most=3)


def test_a_longer_run_without_the_option_keeps_its_looks(begin, tmp_path):
    _, found = begin([()], most=4)
    request = Request(experiment=str(tmp_path / "small.yaml"), out=tmp_path / "run", repeat=9)
    assert open_or_create(request, planned(request)).manifest.looks == found[0].folder.manifest.looks


def test_an_experiment_without_claims_cannot_be_decided(begin, tmp_path):
    (tmp_path / "small.yaml").write_text(TEXT.replace("claims: [C10.1]\n", ""), encoding="utf-8")
    with pytest.raises(UsageError, match=r"small.yaml names no claims.*--repeat"):
        begin([])

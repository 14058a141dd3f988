"""The words of the claims on samples whose answer is known, and the levels of which they speak."""

import ast
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import linregress, spearmanr

from fabbbr_analysis.claims import papers
from fabbbr_analysis.claims.beside import FromPaper
from fabbbr_analysis.claims.expression import quantities_in
from fabbbr_analysis.claims.levels import every, every_name, one_of, only
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.quantities import column
from fabbbr_analysis.claims.sample import MissingConditionError, Sample, key_of
from fabbbr_analysis.claims.vocabulary import (
    average,
    least,
    lesser,
    linearity,
    log,
    median,
    monotone,
    most,
    rank_correlation,
    reach,
    share,
    slope,
    spread,
)

SPEED = column("speed", "some.experiment", ("cca", "loss_ratio"), "speed_bps")
LOSS = every("loss_ratio")
FAST = {("bbr1", 0.01): 8.0, ("bbr1", 0.1): 6.0, ("bbr1", 0.2): 2.0}
SLOW = {("cubic", 0.01): 4.0, ("cubic", 0.1): 1.0}
DRAWN = {("bbr1", 0.01): 4.0, ("bbr1", 0.1): 6.0, ("bbr1", 0.2): 2.5}
PAPER = FromPaper(words="the paper's speed", by=("cca", "loss_ratio"), numbers=lambda: DRAWN)


def means(values, quantity=SPEED, reduce=lambda runs: runs.mean(axis=-1)):
    runs = {key_of(*key): np.array([float(value)]) for key, value in values.items()}
    return Means(samples={quantity: Sample(axes=quantity.by, runs=runs)}, reduce=reduce)


def value(formula, values=FAST | SLOW):
    return float(formula.of(means(values)))


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (SPEED["bbr1", 0.1], 6.0),
        (1 - SPEED["bbr1", 0.1] / 12, 0.5),
        (abs(SPEED["cubic", 0.1] - SPEED["bbr1", 0.1]), 5.0),
        (least(SPEED["bbr1", LOSS]), 2.0),
        (most(SPEED["bbr1", LOSS.above(0.01)]), 6.0),
        (spread(SPEED["bbr1", LOSS.at_most(0.1)], SPEED["cubic", LOSS]), 7.0),
        (average(SPEED["bbr1", LOSS.below(0.2)]), 7.0),
        (median(SPEED["bbr1", LOSS]), 6.0),
        (median(SPEED["cubic", LOSS]), 2.5),
        (lesser(SPEED["bbr1", 0.1], SPEED["cubic", 0.01]), 4.0),
        (lesser(SPEED["cubic", 0.01], SPEED["bbr1", 0.1]), 4.0),
        (least(SPEED[every_name("cca"), LOSS]), 1.0),
        (most(SPEED["bbr1", LOSS.where(cca="cubic")] / SPEED["cubic", LOSS.where(cca="cubic")]), 6.0),
        (most(SPEED["bbr1", LOSS] / (1 - LOSS)), 8.0 / 0.99),
        (most(SPEED["bbr1", only("loss_ratio", 0.1, 0.2)]), 6.0),
        (SPEED["bbr1", LOSS.largest()] / SPEED["bbr1", LOSS.smallest()], 0.25),
        (reach(SPEED["bbr1", LOSS], keeps=6.0, over=LOSS), 0.1),
        (reach(SPEED["bbr1", LOSS], keeps=9.0, over=LOSS), 0.0),
        (monotone(SPEED["bbr1", LOSS], over=LOSS), -4.0),
        (least(SPEED["bbr1", 0.2], SPEED["cubic", 0.1]), 1.0),
        (median(SPEED["bbr1", LOSS], SPEED["cubic", LOSS]), 4.0),
        (median(abs(SPEED["bbr1", LOSS] - PAPER["bbr1", LOSS])), 0.5),
        (share(SPEED["bbr1", LOSS], at_most=6.0), 2 / 3),
        (share(abs(SPEED["bbr1", LOSS] / PAPER["bbr1", LOSS] - 1), at_most=0.2), 2 / 3),
        (rank_correlation(SPEED["bbr1", LOSS], over=PAPER["bbr1", LOSS]), 0.5),
        (most(SPEED["bbr1", LOSS.among(0.1, 0.2, 0.3)]), 6.0),
    ],
    ids=str,
)
def test_a_formula_is_what_its_words_say(formula, expected):
    assert value(formula) == pytest.approx(expected)


curves = st.lists(st.floats(0.1, 10.0), min_size=3, max_size=8, unique=True)


@given(curve=curves)
def test_words_along_levels_agree_with_their_namesakes(curve):
    levels = [0.01 * (place + 1) for place in range(len(curve))]
    values = {("bbr1", level): each for level, each in zip(levels, curve, strict=True)}
    line = linregress(levels, curve)
    speed = SPEED["bbr1", LOSS]
    assert value(slope(speed, over=LOSS), values) == pytest.approx(line.slope, rel=1e-6, abs=1e-6)
    assert value(linearity(speed, over=LOSS), values) == pytest.approx(line.rvalue**2, abs=1e-6)
    rho = spearmanr(levels, curve).statistic
    assert value(rank_correlation(speed, over=LOSS), values) == pytest.approx(rho, abs=1e-12)
    assert (value(monotone(speed, over=LOSS), values) > 0) == (curve == sorted(curve))


@given(values=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=8))
def test_ranks_of_equal_values_are_shared(values):
    """Published numbers have ties, which levels have not."""
    (ours, theirs), levels = zip(*values, strict=True), [0.01 * (n + 1) for n in range(len(values))]
    assume(len(set(ours)) > 1 and len(set(theirs)) > 1)
    drawn = {key_of("bbr1", level): float(each) for level, each in zip(levels, theirs, strict=True)}
    paper = FromPaper(words="theirs", by=("cca", "loss_ratio"), numbers=lambda: drawn)
    run = {("bbr1", level): each for level, each in zip(levels, ours, strict=True)}
    rho = value(rank_correlation(SPEED["bbr1", LOSS], over=paper["bbr1", LOSS]), run)
    assert rho == pytest.approx(spearmanr(ours, theirs).statistic, abs=1e-12)


@given(curve=curves, factor=st.floats(0.5, 2.0))
def test_the_slope_of_logarithms_is_an_exponent(curve, factor):
    levels = [0.01 * (place + 1) for place in range(len(curve))]
    values = {("bbr1", level): 3 * level**-factor for level in levels}
    assert value(slope(log(SPEED["bbr1", LOSS]), over=log(LOSS)), values) == pytest.approx(-factor)


def test_a_word_works_elementwise():
    """What the bootstrap relies on: two resamples at once give what each gives alone."""
    speed = SPEED["bbr1", LOSS]
    formula = least(speed / SPEED["bbr1", 0.01]) + rank_correlation(speed, over=LOSS)
    formula += median(abs(speed - PAPER["bbr1", LOSS])) + share(speed, at_most=6.5)
    scales = np.array([1.0, 1.3])
    together = formula.of(means(FAST, reduce=lambda runs: scales * runs.mean(axis=-1) ** scales))
    alone = [
        float(formula.of(means(FAST, reduce=lambda runs, s=s: s * runs.mean(axis=-1) ** s))) for s in scales
    ]
    np.testing.assert_allclose(together, alone)


def test_conditions_are_read_in_the_order_of_the_sentence():
    """The resamples are drawn in that order, so that a verdict is repeatable."""
    read = means(FAST | SLOW)
    small = LOSS.where(cca="cubic")
    least(SPEED["bbr1", small] / SPEED["cubic", small]).of(read)
    assert [key for _, key in read.read] == [("bbr1", 0.01), ("cubic", 0.01), ("bbr1", 0.1), ("cubic", 0.1)]


def test_where_a_divisor_is_zero_there_is_no_ratio():
    values = FAST | {("cubic", 0.01): 0.0, ("cubic", 0.1): 2.0, ("cubic", 0.2): 1.0}
    kernels = SPEED["cubic", LOSS]
    with np.errstate(divide="ignore"):
        assert value(most(SPEED["bbr1", LOSS] / kernels, positive=kernels), values) == 3.0


def test_where_every_divisor_is_zero_there_is_nothing_to_judge():
    kernels = SPEED["cubic", 0.1]
    formula = most(SPEED["bbr1", 0.1] * 2, positive=kernels)
    with pytest.raises(
        MissingConditionError, match=r"speed\(cubic at loss 10 %\) is zero in every condition"
    ):
        formula.of(means({("bbr1", 0.1): 1.0, ("cubic", 0.1): 0.0}))


# Levels


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (SPEED["bbr1", 0.5], "no certified run of bbr1 at loss 50 %"),
        (least(SPEED["bbr2", LOSS.at_most(0.1)]), "no certified run of bbr2 at loss 10 % or less"),
        (least(SPEED["bbr1", LOSS.above(0.2)]), "no certified run of bbr1 at loss above 20 %"),
        (least(SPEED["bbr1", LOSS.including(0.5)]), "no certified run of bbr1 at loss 50 %"),
        (least(SPEED["bbr1", LOSS.needing(4)]), "4 conditions of bbr1 are needed, found 3"),
        (
            least(SPEED["bbr1", LOSS.at_least(0.1).needing_one(at_least=0.3)]),
            "no certified run of bbr1 at loss 30 % or more",
        ),
        (least(SPEED[one_of("bbr2", "bbr3"), 0.1]), "no certified run of bbr2 or bbr3"),
        (least(SPEED[one_of("bbr1", "cubic"), 0.2]), "no certified run of cubic at loss 20 %"),
        (least(SPEED["bbr1", LOSS.where(cca="reno")]), "no certified run of reno"),
        (SPEED["reno", LOSS.largest()], "no certified run of reno"),
        (least(SPEED["bbr1", LOSS.among(0.3)]), "no certified run of bbr1"),
        (
            most(SPEED["cubic", LOSS] / PAPER["cubic", LOSS]),
            "the paper's speed: nothing was published of cubic at loss 1 %",
        ),
    ],
    ids=str,
)
def test_what_is_missing_is_named(formula, said):
    with pytest.raises(MissingConditionError) as error:
        formula.of(means(FAST | SLOW))
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("levels", "remarks"),
    [
        (LOSS.expecting(0.01, 0.02, 0.05), ["without 2 %, 5 % loss"]),
        (LOSS.expecting(0.01), []),
        (LOSS.among(0.01, 0.1, 0.5), ["without 50 % loss"]),
        (LOSS.among(0.01, 0.1, 0.5).at_most(0.1), []),
        (LOSS.starting_at(0.001).ending_at(0.2), ["the smallest loss is 1 %, the paper's 0.1 %"]),
        (LOSS.ending_at(0.5), ["the largest loss is 20 %, the paper's 50 %"]),
        (LOSS.above(0.1).preferably_several(), ["bbr1 at loss above 10 % with loss 20 % only"]),
        (LOSS.preferably_several(), []),
    ],
    ids=str,
)
def test_what_a_reader_must_know_is_remarked_once(levels, remarks):
    seen = means(FAST)
    (least(SPEED["bbr1", levels]) + most(SPEED["bbr1", levels])).of(seen)
    assert seen.remarks == remarks


def test_those_that_were_run_are_judged_and_the_others_named():
    seen = means(FAST | SLOW)
    assert float(most(SPEED[one_of("bbr2", "bbr1"), 0.1]).of(seen)) == 6.0
    assert seen.remarks == ["judged for bbr1 only, without bbr2"]


def test_who_was_run_may_be_asked_of_one_place():
    seen = means(FAST | SLOW)
    heavy = one_of("bbr1", "cubic").where(loss_ratio=0.2)
    assert float(least(SPEED[heavy, 0.2]).of(seen)) == 2.0
    assert seen.remarks == ["judged for bbr1 only, without cubic"]


@pytest.mark.parametrize(
    "coordinates",
    [
        ("bbr1",),
        ("bbr1", every("rtt_s")),
        (LOSS, "bbr1"),
        ("bbr1", 0.1, 1),
        ("bbr1", LOSS.where(ccas="bbr2")),
    ],
)
def test_coordinates_that_are_not_those_of_the_quantity_are_refused_when_they_are_written(coordinates):
    with pytest.raises(ValueError, match="speed is by cca, loss_ratio"):
        SPEED[coordinates]


def test_a_level_that_stands_alone_is_refused():
    with pytest.raises(ValueError, match="no condition beside it speaks of these levels"):
        most(SPEED["bbr1", LOSS] / (1 - LOSS.below(0.1))).of(means(FAST))


def test_levels_without_a_word_are_refused():
    with pytest.raises(ValueError, match="3 levels of loss_ratio; say which"):
        SPEED["bbr1", LOSS].of(means(FAST))


# Formulas as values


def test_a_formula_can_be_compared_walked_and_printed():
    def formula():
        mild = LOSS.at_most(0.1)
        return least(SPEED["bbr1", mild] / SPEED["cubic", mild]) - 1

    assert formula() == formula()
    assert hash(formula()) == hash(formula())
    assert quantities_in(formula()) == (SPEED,)
    assert [condition.coordinates[0] for condition in formula().conditions()] == ["bbr1", "cubic"]
    assert str(formula()) == "least(speed(bbr1 at loss 10 % or less) / speed(cubic at loss 10 % or less)) - 1"


def test_a_formula_may_speak_of_two_quantities():
    other = dataclasses.replace(SPEED, experiment="another.experiment")
    both = means(FAST)
    samples = {**both.samples, **means({("bbr1", 0.1): 3.0}, quantity=other).samples}
    formula = SPEED["bbr1", 0.1] / other["bbr1", 0.1]
    assert float(formula.of(Means(samples=samples))) == 2.0
    with pytest.raises(
        MissingConditionError, match=r"no certified run of bbr1 at loss 20 % in another\.experiment"
    ):
        (SPEED["bbr1", 0.2] / other["bbr1", 0.2]).of(Means(samples=samples))


def test_a_number_of_a_claim_takes_at_most_five_lines():
    """What is longer has lost its names: a quantity, a formula or its levels want one."""
    for module in Path(papers.__path__[0]).glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
        numbers = [call for call in calls if getattr(call.func, "id", "") in ("Part", "Arithmetic")]
        long = [ast.unparse(call) for call in numbers if call.end_lineno - call.lineno >= 5]
        assert (module.name, long) == (module.name, [])
        assert numbers or module.name == "__init__.py"


def test_of_two_numbers_the_reader_is_told_both():
    read = means(FAST | SLOW)
    lesser(most(SPEED["bbr1", LOSS]), median(SPEED["cubic", LOSS])).of(read)
    assert read.remarks == ["the two are 8 and 2.5"]

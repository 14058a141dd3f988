"""``fabbbr gate``: what stops a change, and how often it does so for nothing."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import AnalysisError
from fabbbr_analysis import regressions

CONDITIONS = 8


@dataclasses.dataclass
class Runs:
    certified: pd.DataFrame
    shares_draws: bool = False


def runs(generator, *, repeat=5, factor=1.0, spread=0.01, only=None, column="goodput_bps", level=10e6):
    """Conditions whose metric varies by ``spread``; ``factor`` moves all of them, or ``only`` one."""
    rows = [
        {
            "condition": f"c{place}",
            column: level * (place + 1)
            * (factor if only in (None, place) else 1.0)
            * (1 + spread * generator.standard_normal()),
        }
        for place in range(CONDITIONS)
        for _ in range(repeat)
    ]  # fmt: skip
    return Runs(pd.DataFrame(rows))


def stopped(base, run, **options):
    return not regressions.alarms(regressions.find(base, run, **options)).empty


def test_reruns_without_a_change_keep_to_the_budget_of_false_alarms():
    generator = np.random.default_rng(1)
    budget, tables = 0.1, 400
    alarms = sum(
        stopped(runs(generator), runs(generator), budget=budget, tolerance=1e-9) for _ in range(tables)
    )

    # Half of the moves are for the better; three standard deviations of the binomial count above that.
    assert alarms <= tables * budget / 2 + 3 * np.sqrt(tables * budget / 2)
    assert alarms > 0, "a gate that never stops anything keeps any budget"


def test_what_came_at_random_in_all_conditions_alike_is_one_piece_of_news():
    """The flows of a repetition are heavier in all conditions at once, and the base had others."""
    generator = np.random.default_rng(4)
    budget, tables = 0.1, 300

    def drawn():
        heavier = np.tile(1 + 0.05 * generator.standard_normal(5), CONDITIONS)
        found = runs(generator, spread=0.001)
        found.certified["goodput_bps"] *= heavier
        return found

    def alarms(shares_draws):
        pairs = [(drawn(), drawn()) for _ in range(tables)]
        return sum(
            stopped(
                *(dataclasses.replace(side, shares_draws=shares_draws) for side in pair),
                budget=budget,
                tolerance=1e-9,
            )
            for pair in pairs
        )

    most = tables * budget / 2 + 3 * np.sqrt(tables * budget / 2)
    assert alarms(shares_draws=True) <= most
    assert alarms(shares_draws=False) > most, "so many come where conditions are taken to be independent"


@pytest.mark.parametrize(("factor", "found"), [(0.97, True), (1.0, False)])
def test_runs_of_equal_seeds_that_drew_the_same_are_compared_pair_by_pair(factor, found):
    """What was drawn moves the runs of a condition ten times as far as the change does."""
    generator = np.random.default_rng(5)
    seeds = [100 * place + number for place in range(CONDITIONS) for number in range(5)]
    heavier = np.tile(1 + 0.3 * generator.standard_normal(5), CONDITIONS)
    sides = [runs(generator, spread=0.001), runs(generator, factor=factor, spread=0.001)]
    for side in sides:
        came = side.certified["goodput_bps"] * heavier
        side.certified = side.certified.assign(seed=seeds, goodput_bps=came)
    shared = [dataclasses.replace(side, shares_draws=True) for side in sides]
    shuffled = dataclasses.replace(shared[1], certified=shared[1].certified.sample(frac=1, random_state=1))
    assert stopped(*shared) == stopped(shared[0], shuffled) == found
    assert not stopped(*sides)
    other = [seed + 1000 for seed in seeds]
    elsewhere = dataclasses.replace(shared[1], certified=shared[1].certified.assign(seed=other))
    assert not stopped(shared[0], elsewhere)


def test_three_percent_less_everywhere_is_found_although_no_condition_shows_it_by_itself():
    generator = np.random.default_rng(2)
    for _ in range(50):
        found = regressions.find(runs(generator, spread=0.02), runs(generator, factor=0.97, spread=0.02))

        first = found.iloc[0]
        assert (first["condition"], first["metric"]) == ("all conditions", "goodput_bps")
        assert first["verdict"] == "worse"


def test_a_change_in_one_condition_names_it():
    generator = np.random.default_rng(3)
    found = regressions.find(runs(generator), runs(generator, factor=0.7, only=3))

    worse = found[(found["verdict"] == "worse") & (found["condition"] != "all conditions")]
    assert list(worse["condition"]) == ["c3"]
    assert worse.iloc[0]["change"] == pytest.approx(-0.3, abs=0.03)


@pytest.mark.parametrize(
    ("column", "level", "factor", "verdict"),
    [
        ("goodput_bps", 10e6, 0.8, "worse"),
        ("goodput_bps", 10e6, 1.2, "better"),
        ("rtt_median_s", 0.05, 1.2, "worse"),
        ("rtt_median_s", 0.05, 0.8, "better"),
        ("retransmit_ratio", 0.01, 1.5, "worse"),
        ("queue_median_bytes", 90_000.0, 0.5, "better"),
        ("completion_mean_s", 2.0, 1.3, "worse"),
    ],
)
def test_which_way_is_worse(column, level, factor, verdict):
    generator = np.random.default_rng(4)
    base, run = (runs(generator, column=column, level=level, factor=each) for each in (1.0, factor))

    found = regressions.find(base, run)

    assert found.iloc[0]["verdict"] == verdict
    assert regressions.alarms(found).empty == (verdict == "better")


def test_what_nobody_minds_is_no_change_however_sure_it_is():
    generator = np.random.default_rng(5)
    base, run = runs(generator, spread=0), runs(generator, spread=0, factor=0.995)

    assert not stopped(base, run)
    assert stopped(base, run, tolerance=0.001)


def test_a_difference_below_a_packet_is_none_even_if_it_doubles_the_queue():
    generator = np.random.default_rng(6)
    column = {"column": "queue_median_bytes", "level": 100.0}

    assert not stopped(runs(generator, **column), runs(generator, factor=2.0, **column))


def test_a_metric_that_was_zero_and_is_not_any_more_stops():
    generator = np.random.default_rng(7)
    base = runs(generator, column="retransmit_ratio", level=0.0, spread=0)
    run = runs(generator, column="retransmit_ratio", level=0.01, spread=0)

    found = regressions.alarms(regressions.find(base, run))

    assert len(found) == CONDITIONS
    assert found["change"].isna().all()


def test_a_condition_that_lost_its_certified_runs_stops():
    generator = np.random.default_rng(8)
    base, run = runs(generator), runs(generator)
    run.certified = run.certified[run.certified["condition"] != "c2"]

    found = regressions.alarms(regressions.find(base, run))

    assert list(found["condition"]) == ["c2"]
    assert list(found["verdict"]) == ["missing"]


def test_few_runs_are_judged_together_alone():
    generator = np.random.default_rng(9)
    found = regressions.find(runs(generator, repeat=3), runs(generator, repeat=3, factor=0.5, only=0))

    assert set(found["condition"]) == {"all conditions"}


def test_runs_with_nothing_to_compare_are_refused_with_the_remedy():
    generator = np.random.default_rng(10)
    with pytest.raises(AnalysisError, match="--repeat 5"):
        regressions.find(runs(generator, repeat=1), runs(generator))


@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(0.5, 2.0))
def test_the_order_of_runs_and_conditions_does_not_matter(seed, factor):
    generator = np.random.default_rng(seed)
    base, run = runs(generator), runs(generator, factor=factor)
    shuffled = Runs(run.certified.sample(frac=1, random_state=seed % 1000))

    one, other = (regressions.find(base, each).set_index(["condition", "metric"]) for each in (run, shuffled))

    assert (one["verdict"] == other.loc[one.index, "verdict"]).all()
    assert np.allclose(one["change"], other.loc[one.index, "change"])

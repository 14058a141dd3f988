"""Statistics over runs: coverage on known distributions, exact cases, invariances."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from scipy.stats import t as student

from fabbbr.errors import AnalysisError
from fabbbr_analysis import stats

runs = st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), min_size=2, max_size=8)


def generator():
    return np.random.default_rng(7)


def coverage(interval_of, truth, draw, trials=300):
    rng = np.random.default_rng(2024)
    intervals = [interval_of(draw(rng)) for _ in range(trials)]
    return sum(each.low <= truth <= each.high for each in intervals) / trials


@pytest.mark.parametrize("n", [2, 5, 20])
def test_t_interval_covers_a_normal_mean_at_its_confidence(n):
    # 300 trials: the standard error of 0.95 is 0.013
    rate = coverage(stats.mean_interval, 3.0, lambda rng: rng.normal(3.0, 2.0, n))
    assert 0.91 <= rate <= 0.99


@pytest.mark.parametrize("n", [5, 10])
def test_expanded_percentiles_cover_where_plain_ones_fall_short(n):
    def plain(values):
        draws = stats.resamples(values, generator()).mean(axis=-1)
        low, high = np.quantile(draws, [0.025, 0.975])
        return stats.Interval(value=float(values.mean()), low=low, high=high, n=n, method="percentile")

    def expanded(values):
        return stats.bootstrap_interval(values, generator=generator())

    def draw(rng):
        return rng.normal(10, 1, n)

    assert 0.91 <= coverage(expanded, 10, draw) <= 0.99
    assert coverage(plain, 10, draw) < coverage(expanded, 10, draw)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("confidence", [0.95, 0.9875])
def test_an_interval_covers_as_often_as_it_says_however_few_runs_there_are(n, confidence):
    def interval(values):
        return stats.bootstrap_interval(values, generator=generator(), confidence=confidence)

    # Three standard errors of 400 trials, and what is known of percentile intervals of five runs.
    assert coverage(interval, 10, lambda rng: rng.normal(10, 1, n)) >= confidence - 0.05


def test_ratio_interval_covers_the_ratio_of_means():
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        interval = stats.ratio_of_means_interval(
            rng.normal(20, 2, 6), rng.normal(10, 1, 6), generator=generator()
        )
        hits += interval.low <= 2.0 <= interval.high
    assert 0.90 <= hits / 200 <= 0.995


def test_welch_interval_covers_a_difference_with_unequal_spreads():
    rng = np.random.default_rng(6)
    intervals = [stats.difference_of_means(rng.normal(5, 3, 5), rng.normal(2, 0.5, 8)) for _ in range(400)]
    rate = sum(each.low <= 3 <= each.high for each in intervals) / 400
    assert 0.92 <= rate <= 0.98


@pytest.mark.parametrize(
    "interval",
    [
        stats.mean_interval([4.0]),
        stats.bootstrap_interval([4.0], generator=generator()),
        stats.ratio_of_means_interval([4.0], [1.0], generator=generator()),
        stats.difference_of_means([5.0], [1.0, 1.0]),
    ],
)
def test_one_run_gives_a_value_and_no_interval(interval):
    assert (interval.value, interval.low, interval.high, interval.n) == (4.0, None, None, 1)


def test_equal_runs_give_an_interval_of_no_width():
    interval = stats.bootstrap_interval([3.0] * 5, generator=generator())
    assert (interval.low, interval.value, interval.high) == (3.0, 3.0, 3.0)


@given(values=runs, shift=st.floats(-1e6, 1e6), scale=st.floats(0.1, 100))
def test_t_interval_moves_with_its_runs(values, shift, scale):
    before = stats.mean_interval(values)
    after = stats.mean_interval([scale * value + shift for value in values])
    slack = 1e-6 * (1 + abs(shift) + scale * max(map(abs, values)))
    assert after.low == pytest.approx(scale * before.low + shift, abs=slack)
    assert after.high == pytest.approx(scale * before.high + shift, abs=slack)


@given(values=st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=8))
def test_what_is_above_zero_in_every_run_has_an_interval_above_zero(values):
    interval = stats.bootstrap_interval(values, generator=generator())
    assert 0 < interval.low <= interval.value <= interval.high


@given(values=st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_bootstrap_intervals_stay_within_what_can_be(values):
    interval = stats.bootstrap_interval(values, generator=generator(), within=(0.0, 1.0))
    assert 0 <= interval.low <= interval.high <= 1


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=8))
def test_bootstrap_intervals_of_enough_runs_stay_within_them(values):
    interval = stats.bootstrap_interval(values, generator=generator())
    rounding = 1e-12 * max(map(abs, values))
    assert min(values) - rounding <= interval.low <= interval.high <= max(values) + rounding


@given(values=runs)
def test_the_same_generator_state_gives_the_same_interval(values):
    first, second = (stats.bootstrap_interval(values, generator=generator()) for _ in range(2))
    assert first == second


@given(a=runs, b=runs)
def test_differences_change_sign_with_their_order(a, b):
    forth, back = stats.difference_of_means(a, b), stats.difference_of_means(b, a)
    assert (forth.value, forth.low, forth.high) == pytest.approx((-back.value, -back.high, -back.low))
    assert stats.cliffs_delta(a, b) == -stats.cliffs_delta(b, a)


@pytest.mark.parametrize(("spread", "n"), [(0.1, 3), (0.1, 5), (0.5, 5), (0.5, 10)])
def test_a_change_of_what_was_drawn_alike_is_no_surer_than_it_says(spread, n):
    """Pairs whose size is drawn, and which differ by two percent of it: 5 % are mistaken for a change."""
    generator, tables = np.random.default_rng(7), 4000
    mistaken = 0
    for _ in range(tables):
        size = np.exp(spread * generator.standard_normal(n))
        a, b = (size * (1 + 0.02 * generator.standard_normal(n)) for _ in "ab")
        found = stats.paired_change(list(zip(a, b, strict=True)))
        mistaken += found.p < 0.05
    assert 0.04 < mistaken / tables < 0.07


@given(a=runs, b=runs)
def test_cliffs_delta_is_mann_whitneys_u_rescaled(a, b):
    u = mannwhitneyu(a, b).statistic
    assert stats.cliffs_delta(a, b) == pytest.approx(2 * u / (len(a) * len(b)) - 1)


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.05], [0.05]),
        ([0.01, 0.02, 0.03, 0.04], [0.04, 0.06, 0.06, 0.06]),
        ([0.9, 0.01], [0.9, 0.02]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([], []),
    ],
)
def test_holm_matches_cases_worked_by_hand(p_values, adjusted):
    np.testing.assert_allclose(stats.holm(p_values), adjusted)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values):
    adjusted = stats.holm(p_values)
    assert (adjusted >= np.asarray(p_values)).all()
    assert (np.diff(adjusted[np.argsort(p_values, kind="stable")]) >= 0).all()


def test_welch_p_of_runs_that_do_not_vary_is_exact():
    assert stats.welch_p([1.0, 1.0], [1.0, 1.0]) == 1.0
    assert stats.welch_p([1.0, 1.0], [2.0, 2.0]) == 0.0
    assert stats.welch_p([1.0], [2.0, 2.0]) is None


@pytest.mark.parametrize(
    ("values", "said"), [([], "no run"), ([1.0, float("nan")], "1 of 2 runs"), ([math.inf], "1 of 1 runs")]
)
def test_absent_values_are_refused_and_not_dropped(values, said):
    with pytest.raises(AnalysisError, match=said):
        stats.mean_interval(values)


def test_a_ratio_to_runs_at_zero_is_refused():
    with pytest.raises(AnalysisError, match="above zero"):
        stats.ratio_of_means_interval([1.0, 2.0], [0.0, 1.0], generator=generator())


def test_a_sample_that_does_not_vary_is_compared_with_one_that_does():
    p = stats.welch_p([1.0, 1.0, 1.0], [2.0, 2.1, 2.3])
    moved = np.array([2.0, 2.1, 2.3]) - 1.0
    t = moved.mean() / (moved.std(ddof=1) / np.sqrt(3))  # one-sample t: the other side has no error
    assert p == pytest.approx(2 * student.sf(t, 2))

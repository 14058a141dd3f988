"""Numbers as a person reads them."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabbbr_analysis.wording import interval, limits, mean, number

reals = st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-4)


def read(text: str) -> float:
    return float(text.replace("\u202f", "").replace("−", "-"))


@given(value=reals)
def test_a_number_as_written_is_right_to_three_digits(value):
    assert read(number(value)) == pytest.approx(value, rel=5.1e-3)


@given(value=reals, half=st.floats(1e-3, 1e6))
def test_an_interval_is_written_to_a_twentieth_of_its_width_or_four_digits(value, half):
    low, high = value - half, value + half
    assume(half > 1e-6 * max(abs(low), abs(high)))
    scale = max(abs(low), abs(high))
    shown = [read(text) for text in limits(value, low, high).strip("[]").split(", ")]
    slack = max(0.051 * half, min(5.1e-4 * scale, 0.51 * half))
    assert shown == pytest.approx([low, high], abs=slack)
    assert shown[0] < shown[1]
    assert read(mean(value, low, high)) == pytest.approx(value, abs=slack)


@pytest.mark.parametrize(
    ("value", "low", "high", "written"),
    [
        (0.254843, 0.0023937, 27.131, "0.25 [0.00, 27.13]"),
        (0.0031, 0.0, 0.9, "0.0031 [0, 0.9000]"),
        (-0.2, -30.0, 0.1, "−0.20 [−30.00, 0.10]"),
        (15.0, 0.0, 48.0, "15 [0, 48]"),
        (0.0, 0.0, 27.0, "0 [0, 27]"),
    ],
)
def test_an_interval_that_reaches_far_to_one_side_leaves_its_value_to_be_seen(value, low, high, written):
    assert interval(value, low, high) == written


def test_numbers_on_both_sides_of_a_power_of_ten_have_as_many_digits():
    assert [number(each, significant=2) for each in (0.984, 0.9975, 1.02)] == ["0.98", "1.0", "1.0"]
    assert [number(each) for each in (9.996, 99.96, 999.6)] == ["10.0", "100", "1\u202f000"]


def test_what_is_absent_is_a_dash_and_never_a_zero():
    assert interval(None, None, None) == number(None) == number(float("nan")) == "–"
    assert "no interval" in interval(5.0, None, None)


@pytest.mark.parametrize(
    ("value", "half", "written"),
    [
        (22.8504, 0.0009, "22.8504 [22.8495, 22.8513]"),
        (14.0034, 0.0041, "14.003 [13.999, 14.007]"),
        (2823.04, 0.4, "2\u202f823.0 [2\u202f822.6, 2\u202f823.4]"),
        (0.054327, 0.000004, "0.054327 [0.054323, 0.054331]"),
        (9.3571, 0.0011, "9.357 [9.356, 9.358]"),
        (5.0, 1e-9, "5.00 (in all runs)"),
        (2822.574208, 4e-6, "2\u202f823 (in all runs)"),
    ],
)
def test_an_interval_that_is_narrow_has_its_width_all_the_same(value, half, written):
    assert interval(value, value - half, value + half) == written

"""Numbers as a person reads them."""

import pytest
from hypothesis import given
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
    scale = max(abs(low), abs(high))
    shown = [read(text) for text in limits(value, low, high).strip("[]").split(", ")]
    slack = max(0.051 * half, 5.1e-4 * scale, 0.5 if scale > 1e4 else 0)
    assert shown == pytest.approx([low, high], abs=slack)
    assert read(mean(value, low, high)) == pytest.approx(value, abs=slack)


def test_what_is_absent_is_a_dash_and_never_a_zero():
    assert interval(None, None, None) == number(None) == number(float("nan")) == "–"
    assert "no interval" in interval(5.0, None, None)

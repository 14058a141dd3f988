"""Jain's index and convergence, on small tables whose answers are plain."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import flow_rows, interval_rows, of

from fabbbr_analysis.arrivals import Arrival
from fabbbr_analysis.fairness import convergence_s, jain

goodputs = st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=30)


@given(goodputs)
def test_jain_lies_between_one_over_n_and_one(values):
    assert 1 / len(values) - 1e-9 <= jain(values) <= 1 + 1e-9


@given(goodputs, st.floats(1e-6, 1e6))
def test_jain_does_not_depend_on_the_unit(values, scale):
    assert jain([scale * v for v in values]) == pytest.approx(jain(values))


@given(st.integers(1, 20), st.integers(0, 20))
def test_jain_of_k_equal_flows_beside_idle_ones_is_k_over_n(k, idle):
    assert jain([5.0] * k + [0.0] * idle) == pytest.approx(k / (k + idle))


@given(st.lists(st.floats(0.1, 1e3), min_size=2, max_size=30))
def test_jain_is_the_coefficient_of_variation_in_disguise(values):
    x = np.array(values)
    assert jain(x) == pytest.approx(1 / (1 + (x.std() / x.mean()) ** 2))


def test_jain_of_nothing_is_none():
    assert jain([]) is None
    assert jain([0.0, 0.0]) is None


def test_jain_of_groups_hides_what_jain_of_flows_shows():
    flows = flow_rows(1e6, 9e6, 5e6, 5e6, groups=["a", "a", "b", "b"])
    found = of(flows)
    assert found["jain_groups"] == pytest.approx(1.0)
    assert found["jain_flows"] == pytest.approx(400 / (4 * 132))


def test_one_flow_and_one_group_have_no_fairness():
    found = of(flow_rows(1e6))
    assert (found["jain_flows"], found["jain_groups"], found["convergence_s"]) == (None, None, None)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ([100] * 10, 0.0),
        # Jain's index is 0.9 where one of two has half of what the other has: from half a second before.
        ([0, 0, 0, 100, 100, 100, 100, 100, 100, 100], 2.5),
        ([0, 0, 0, 100, 100, 100, 0, 100, 100, 100], None),  # four fair seconds are not five
        ([0] * 5 + [100] * 5, 4.5),
        ([0] * 6 + [100] * 4, None),
        ([0] * 10, None),
    ],
)
def test_convergence_is_the_first_of_five_fair_seconds(second, expected):
    found = of(flow_rows(1.0, 1.0), interval_rows({0: [100] * 10, 1: second}))["convergence_s"]
    assert found == (None if expected is None else pytest.approx(expected))


def test_no_grid_of_seconds_decides_when_flows_converge():
    """What begins 0.3 s later is found 0.3 s later; by whole seconds from its start it would be a second."""
    late = [find(shift_s) for shift_s in (0.0, 0.3, 0.6, 0.9)]
    assert late == pytest.approx([2.5, 2.8, 3.1, 3.4])


def find(shift_s):
    """Of two flows that share evenly from 3 s and a shift on, by their samples; before it one has nothing."""
    t_s = np.arange(0.0, 12.05, 0.1)
    even = Arrival(t_s=t_s, total_bytes=1e6 * t_s)
    newcomer = Arrival(t_s=t_s, total_bytes=1e6 * np.maximum(t_s - 3.0 - shift_s, 0.0))
    return convergence_s([even, newcomer], since_s=0.0)


def test_convergence_counts_from_the_start_of_the_last_flow():
    flows = flow_rows(1.0, 1.0, starts=[0.0, 3.5])
    found = of(flows, interval_rows({0: [100] * 20, 1: [0, 0, *[100] * 15]}))
    assert found["convergence_s"] == pytest.approx(1.5)


def test_convergence_needs_intervals_of_a_second():
    intervals = pd.DataFrame(
        {"flow": [0, 1], "stream": 1, "side": "receiver", "start_s": 0.0, "end_s": 10.0, "bytes": 100}
    )
    assert of(flow_rows(1.0, 1.0), intervals)["convergence_s"] is None

"""The life of a slice: what may follow what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.sandbox.control.states import GONE, STATES, TRANSITIONS, NotNowError, after

STEPS = sorted({step for _, step in TRANSITIONS})


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        (["demand"], "Configuring"),
        (["demand", "done"], "StableOK"),
        (["demand", "failed"], "StableError"),
        (["demand", "done", "modify", "done"], "ModifyOK"),
        (["demand", "done", "modify", "failed", "accept"], "StableError"),
        (["demand", "done", "modify", "done", "accept", "renew"], "Configuring"),
        (["demand", "failed", "modify", "done", "accept"], "StableOK"),
        (["demand", "expire", "closed"], "Dead"),
        (["demand", "done", "modify", "done", "close", "closed"], "Dead"),
    ],
)
def test_way_through_the_states(steps, state):
    now = "Nascent"
    for step in steps:
        now = after(now, step)
    assert now == state


@pytest.mark.parametrize(
    ("state", "step"),
    [
        ("Configuring", "modify"),
        ("Modifying", "modify"),
        ("ModifyOK", "modify"),
        ("Configuring", "close"),
        ("Modifying", "close"),
        ("Configuring", "renew"),
        ("Dead", "renew"),
        ("Dead", "expire"),
        ("Closing", "expire"),
        ("StableOK", "accept"),
    ],
)
def test_step_that_fabric_refuses(state, step):
    with pytest.raises(NotNowError, match=step):
        after(state, step)


@given(st.lists(st.sampled_from(STEPS), max_size=40))
def test_a_dead_slice_stays_dead_and_every_living_one_can_expire(steps):
    now = "Nascent"
    for step in steps:
        try:
            following = after(now, step)
        except NotNowError:
            following = now
        assert following in STATES
        assert now != "Dead" or following == "Dead"
        assert now in GONE or after(now, "expire") == "Closing"
        now = following

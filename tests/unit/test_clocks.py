"""The clock of another machine: what is measured is right within its bound."""

import subprocess

import pytest
from golden_cell import CELL
from hypothesis import given
from hypothesis import strategies as st
from places import GUEST

from fabbbr.backends.channel import CommandChannel
from fabbbr.backends.clocks import measure
from fabbbr.backends.machine import Machine
from fabbbr.job.build import prepare

AHEAD_S = 1000.0


@given(
    ahead_s=st.floats(-1e6, 1e6),
    delays_s=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=64, max_size=64),
)
def test_whatever_the_way_takes_in_either_direction_the_offset_is_right_within_its_bound(ahead_s, delays_s):
    now, ways = [0.0], iter(delays_s)

    def ask():
        there, back = next(ways)
        now[0] += there
        told = now[0] + ahead_s
        now[0] += back
        return told

    offset = measure(ask, own=lambda: now[0])
    assert offset.bound_s == pytest.approx(min(map(sum, delays_s)) / 2, abs=1e-9)
    assert abs(offset.offset_s - ahead_s) <= offset.bound_s + 1e-8


def test_the_clock_of_a_process_in_a_time_name_space_is_measured_right_within_its_bound(tmp_path):
    shifted = ("unshare", "--time", f"--monotonic={AHEAD_S:g}", "--fork", "--")
    if subprocess.run((*shifted, "true"), capture_output=True, check=False).returncode != 0:
        pytest.skip("time name spaces need root and a kernel that has them")
    machine = Machine("far", CommandChannel(shifted, str(tmp_path)), prepare(CELL, GUEST).job, "task")
    machine.put_agent()
    offset = machine.clock()
    machine.hang_up()
    assert 0 < offset.bound_s < 1
    assert abs(offset.offset_s - AHEAD_S) <= offset.bound_s + 1e-8

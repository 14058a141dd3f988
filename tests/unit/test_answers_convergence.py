"""How soon Jain's index stays high once another group has come, and when nothing can be said of that."""

import any_results
import pytest
from plain_answers import Told, group, said

from fabbbr_analysis.answers import answer

REACHED = "Jain's index over flows reaches 0.9 and stays there for 5 s"


def came(told, cca, place, after_s):
    """Two groups, of which one came: when they have converged, by run; None where they do not."""
    axes = {"cca": cca, "buffer": place}
    groups = [
        group(name, [4e7, 4.1e7, 4.2e7], cca=cca, begins_with="flows", convergence_s=after_s)
        for name in ("first", "late")
    ]
    told.condition(f"{axes}", *groups, ccas=cca, axes=axes, phase="from 10 s")


def test_each_place_says_how_soon_with_which_congestion_control_the_soonest_first():
    told = Told()
    for place in ("1 BDP", "2 BDP"):
        came(told, "cubic", place, [9.0, 10.0, 11.0])
        came(told, "bbr1", place, [0.9, 1.0, 1.1])
        came(told, "bbr2", place, [1.0, None, 2.0])
    headline = list(map(said, told.answer().headline))
    for place in ("1 BDP", "2 BDP"):
        assert (
            f"At a buffer of {place}, in the phase “from 10 s”, {REACHED} after 1.00 [0.75, 1.25] s "
            "with bbr1, after 10.0 [7.5, 12.5] s with cubic and in some run not at all with bbr2."
        ) in headline


def test_where_nobody_ever_converges_nothing_is_said():
    told = Told()
    came(told, "cubic", "1 BDP", [None, None, None])
    came(told, "bbr1", "1 BDP", [None, None, None])
    assert not any("Jain" in each for each in told.answer().headline)


def test_of_one_congestion_control_it_is_not_named():
    told = Told()
    groups = [
        group(name, [4e7, 4.1e7, 4.2e7], cca="cubic", begins_with="flows", convergence_s=2.0)
        for name in ("first", "late")
    ]
    told.condition("x", *groups, ccas="cubic", phase="from 10 s")
    assert f"In the phase “from 10 s”, {REACHED} after 2.00 " in said(told.answer().headline[-1])


def test_a_call_beside_them_does_not_converge():
    call = group("call", 1e5, cca=None, self_limited=True, convergence_s=2.0)
    flows = group("download", [4e7, 4.1e7, 4.2e7], cca="cubic", convergence_s=2.0)
    rows = Told().condition("x", flows, call, ccas="cubic").answer().rows
    assert [(row.group, "convergence_s" in row.values) for row in rows] == [
        ("download", True),
        ("call", False),
    ]


LATE = """id: late
title: Who comes later
slice: two_site
path: {rate: 5 Mbit/s, rtt: 20 ms}
flows:
%s
repeat: 2
"""


@pytest.mark.parametrize(
    ("flows", "warned"),
    [
        (["{cca: bbr1, duration: 60 s}", "{cca: cubic, start: 8 s, duration: 50 s, label: newcomer}"], True),
        (["{cca: bbr1, duration: 60 s}", "{cca: cubic, start: 30 s, duration: 30 s}"], False),
        (["{cca: bbr1, duration: 60 s}", "{cca: cubic, start: 500 ms, duration: 50 s}"], False),
        (["{cca: bbr1, duration: 60 s}", "{cca: cubic, start: 8 s, size: 1 MB}"], False),
        (["{ping: 100 ms}", "{cca: cubic, start: 5 s, duration: 30 s}"], False),
        (["{udp: 100 kbit/s, duration: 60 s}", "{cca: bbr1, start: 5 s, duration: 50 s}"], False),
    ],
)
def test_a_group_that_comes_within_the_start_up_is_warned_of(tmp_path, flows, warned):
    text = LATE % "\n".join(f"  - {flow}" for flow in flows)
    told = [
        each for each in answer(any_results.run_set(text, tmp_path, seed=1)).warnings if "start-up" in each
    ]
    assert bool(told) is warned, told
    if warned:
        assert said(told[0]) == (
            "newcomer starts after 8 s, within the start-up that is left out, so nothing is said of what "
            "follows its start; fabbbr report RUN --warm-up 4s ends the start-up before, without running "
            "anything again."
        )

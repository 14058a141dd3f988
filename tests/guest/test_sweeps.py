"""Sweeps in which a key or a group is for some conditions alone: each is certified and has what is for it."""

import pytest
from guest.cells import experiment, run

pytestmark = pytest.mark.guest


def test_hosts_negotiate_ecn_where_the_queue_marks_alone(tmp_path):
    swept = run(
        tmp_path,
        experiment(
            "marking",
            path="rate: 10 Mbit/s, rtt: 20 ms, buffer: 4 BDP, aqm: $aqm, ecn: true, ce_threshold: 1 ms",
            flows="{cca: dctcp, duration: 3 s}",
            more="vary: {aqm: [taildrop, red, codel]}",
        ),
    )
    assert swept.wrong() == {}
    told = swept.set.runs.set_index("axis_aqm")["ecn"]
    assert told.to_dict() == {"taildrop": False, "red": True, "codel": True}
    for aqm, negotiated in told.items():
        # Where nobody negotiates it DCTCP does what Reno does, and ss says so.
        assert ("dctcp:fallback_mode" in swept.raw("sockets.h1.txt", f"aqm={aqm},r1")) != negotiated
    (marks,) = swept.set.groups.query("cell_id == 'aqm=codel,r1' and phase == 0")["queue_marks"]
    assert marks > 0


def test_a_group_of_no_flows_is_not_there_and_changes_nothing_for_the_others(tmp_path):
    """Without its rivals a flow has the link for itself; where they are first in the file, too."""
    swept = run(
        tmp_path,
        experiment(
            "rivals",
            slice_="dumbbell",
            path="rate: 10 Mbit/s, rtt: 20 ms, buffer: 1 BDP",
            flows="{cca: cubic, count: $n, duration: 3 s, stagger: 100 ms, label: rivals}, "
            "{cca: reno, duration: 3 s, label: mine}",
            more="vary: {n: [0, 1, 3]}\nwarm_up: 1 s",
        ),
    )
    assert swept.wrong() == {}
    flows = swept.set.flows
    assert flows.groupby("cell_id").size().to_dict() == {"n=0,r1": 1, "n=1,r1": 2, "n=3,r1": 4}
    mine = flows[flows["group"] == "mine"].set_index("cell_id")["goodput_bps"]
    assert mine["n=0,r1"] > 0.9 * 10e6 * 1448 / 1514
    assert mine["n=0,r1"] > mine["n=1,r1"] > mine["n=3,r1"]

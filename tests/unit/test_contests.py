"""Which groups of flows compete: those that share a bottleneck queue, or share one with the same others."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measured import cell as of_two
from measured import flow_rows, of
from plain_answers import Told, group, said

from fabbbr.plan.opening import open_plan
from fabbbr_analysis.contests import contests, one_contest

TEXT = """id: made
title: made for a test
slice: {slice}
path: {{rate: 40 Mbit/s, rtt: 20 ms, buffer: 100 packets}}
flows: [{flows}]
repeat: 1
"""
LOT = "{name: parking_lot, hops: 3}"
BACK = "direction: reverse"


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contests")

    def plan(slice_, **groups):
        flows = ", ".join(
            f"{{cca: cubic, duration: 5 s, label: {label}{', ' if how else ''}{how}}}"
            for label, how in groups.items()
        )
        file = folder / "made.yaml"
        file.write_text(TEXT.format(slice=slice_, flows=flows), encoding="utf-8")
        return open_plan(str(file), seed=1).cells[0]

    return plan


@pytest.mark.parametrize(
    ("slice_", "groups", "told"),
    [
        ("two_site", {"a": "", "b": ""}, {"a": "trunk", "b": "trunk"}),
        ("two_site", {"down": "", "up": BACK}, {"down": "trunk", "up": "trunk back"}),
        ("two_site", {"a": BACK, "b": BACK}, {"a": "trunk back", "b": "trunk back"}),
        (LOT, {"a": "from: x1", "b": "from: x3"}, {"a": "hop1", "b": "hop3"}),
        (
            LOT,
            {"long": "from: h1", "a": "from: x1", "b": "from: x3"},
            dict.fromkeys(("long", "a", "b"), "hop1, hop2, hop3"),
        ),
        (
            LOT,
            {"long": "from: h1", "back": "from: y2, to: x2"},
            {"long": "hop1, hop2, hop3", "back": "hop2 back"},
        ),
    ],
)
def test_groups_compete_where_they_meet_and_where_their_rivals_meet_others(planned, slice_, groups, told):
    cell = planned(slice_, **groups)
    assert contests(cell) == told
    assert one_contest(cell, cell.flows) == (len(set(told.values())) == 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(("h1", "x1", "x2", "x3", "r1", "y1", "y2", "y3")), min_size=2, max_size=6))
def test_who_shares_a_queue_with_somebody_shares_the_contest(planned, senders):
    partner = {"h1": "r1", "r1": "h1", **{f"x{n}": f"y{n}" for n in (1, 2, 3)}}
    partner |= {f"y{n}": f"x{n}" for n in (1, 2, 3)}
    cell = planned(LOT, **{f"g{n}": f"from: {name}, to: {partner[name]}" for n, name in enumerate(senders)})
    found = contests(cell)
    meets = {
        f"g{n}": {
            (hop, name[0] in "hx")
            for hop in ("hop1", "hop2", "hop3")
            if name in ("h1", "r1") or name[1:] == hop[3:]
        }
        for n, name in enumerate(senders)
    }
    for one, other in ((a, b) for a in meets for b in meets):
        if meets[one] & meets[other]:
            assert found[one] == found[other]
        if found[one] == found[other]:
            assert {forward for _, forward in meets[one]} == {forward for _, forward in meets[other]}


def both_ways():
    there, back = of_two(flows=2).flows
    back = back.model_copy(update={"sender": "h2", "receiver": "h1", "group": "back"})
    return of_two(flows=2).model_copy(update={"flows": (there, back)})


def test_jain_is_of_flows_that_compete():
    rates = flow_rows(3e6, 1e6, groups=["g", "back"])
    assert of(rates)["jain_flows"] == pytest.approx(0.8)
    found = of(rates, of_cell=both_ways())
    assert (found["jain_flows"], found["jain_groups"], found["convergence_s"]) == (None, None, None)


DOWN, UP = [9e6, 9.1e6, 9.2e6], [1e6, 1.1e6, 0.9e6]


def opposite(downs, *, ups="cubic"):
    """``downs``: congestion control → what the download gets; ``ups`` runs beside it, or the same does."""
    told = Told()
    for cca, rates in downs.items():
        other = ups or cca
        told.condition(
            f"cca={cca}",
            group("down", rates, cca=cca, competes_in="trunk"),
            group("up", UP, cca=other, competes_in="trunk back"),
            ccas=f"{cca},{other}",
            axes={"cca": cca},
        )
    return told


def test_flows_that_go_opposite_ways_are_no_rivals():
    found = opposite({"bbr1": DOWN}).answer()
    assert dict(found.leads) == {}
    assert not any("times as much" in sentence for sentence in found.headline)


def test_what_serves_a_group_beside_others_elsewhere_is_told_as_a_choice():
    (told,) = map(said, opposite({"a": DOWN, "b": [5e6, 5.1e6, 4.9e6]}).answer().headline)
    assert told.startswith("Beside up (cubic), down has 9.10 [8.85, 9.35] Mbit/s with a and 5.00")
    assert "a is ahead of b" in told
    assert told.endswith(
        "The other group has 1.00 [0.75, 1.25] Mbit/s beside a and 1.00 [0.75, 1.25] beside b."
    )


def test_where_both_ways_run_the_same_each_way_is_compared_by_itself():
    found = opposite({"a": DOWN, "b": [5e6, 5.1e6, 4.9e6]}, ups=None).answer()
    assert {found.rows[index].group for index in found.leads} == {"down", "up"}
    assert all(found.rows[index].contest == lead.over.contest for index, lead in found.leads.items())


def test_what_is_left_is_told_of_rivals_and_of_those_elsewhere_apart():
    told = Told()
    for cca, ours, theirs in (("a", DOWN, UP), ("b", [5e6, 5.1e6, 4.9e6], [5e6, 4.9e6, 5.1e6])):
        told.condition(
            f"cca={cca}",
            group("ours", ours, cca=cca, competes_in="trunk back"),
            group("down", [40e6, 41e6, 42e6], cca="cubic", competes_in="trunk"),
            group("theirs", theirs, cca="cubic", competes_in="trunk back"),
            ccas=f"{cca},cubic",
            axes={"cca": cca},
        )
    (choice, *_) = map(said, told.answer().headline)
    assert choice.endswith(
        " theirs (cubic) has 1.00 [0.75, 1.25] Mbit/s beside a and 5.00 [4.75, 5.25] beside b. "
        "down (cubic) has 41.0 [38.5, 43.5] Mbit/s beside a and 41.0 [38.5, 43.5] beside b."
    )

"""Which queue the bursts before the flows measure, and between whom."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import GUEST

from fabbbr.job.build import prepare
from fabbbr.job.cabling import lay_cables
from fabbbr.job.reached import reached_back, reached_there
from fabbbr.plan.opening import open_plan

TEXT = """id: made
title: made for a test
slice: {slice}
path: {{rate: 40 Mbit/s, rtt: 20 ms, buffer: 100 packets, {path}}}
flows: [{flows}]
repeat: 1
{more}
"""
LONG = "{cca: cubic, duration: 5 s, from: h1}"


def flows(*senders):
    return ", ".join(f"{{cca: cubic, duration: 5 s, from: {sender}, label: {sender}}}" for sender in senders)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reached")

    def plan(slice_="two_site", path="ecn: false", flows=LONG, more=""):
        file = folder / "made.yaml"
        text = TEXT.format(slice=slice_, path=path, flows=flows, more=more)
        file.write_text(text, encoding="utf-8")
        return open_plan(str(file), seed=1).cells[0]

    return plan


LOT = {"slice_": "{name: parking_lot, hops: 3}"}
SLOW_LAST = "links: {hop3: {rate: 10 Mbit/s}}"


@pytest.mark.parametrize(
    ("asked", "link", "pair", "paced_bps"),
    [
        ({}, "trunk", ("h1", "h2"), None),
        ({"flows": LONG.replace("from: h1", "direction: reverse")}, "trunk", ("h1", "h2"), None),
        (LOT, "hop1", ("h1", "r1"), None),
        (LOT | {"flows": flows("x2", "x1")}, "hop1", ("x1", "y1"), None),
        (LOT | {"more": SLOW_LAST, "flows": flows("h1", "x3", "x1")}, "hop1", ("x1", "y1"), None),
        (LOT | {"more": SLOW_LAST}, "hop3", ("h1", "r1"), 40_000_000),
        (
            LOT | {"more": "links: {hop2: {rate: 20 Mbit/s}, hop3: {rate: 10 Mbit/s}}"},
            "hop3",
            ("h1", "r1"),
            20_000_000,
        ),
    ],
)
def test_the_first_bottleneck_is_measured_where_no_slower_one_hides_it(planned, asked, link, pair, paced_bps):
    cell = planned(**asked)
    reached = reached_there(cell, lay_cables(cell, GUEST))
    assert (reached.link, (reached.sender, reached.receiver)) == (link, pair)
    assert (reached.paced_by.bps if reached.paced_by else None) == paced_bps


BOTH = "reverse: 5 Mbit/s"


@pytest.mark.parametrize(
    ("asked", "link", "pair"),
    [
        ({"path": BOTH}, "trunk", ("h2", "h1")),
        (LOT | {"path": BOTH}, "hop3", ("r1", "h1")),
        (LOT | {"path": BOTH, "flows": flows("h1", "x1")}, "hop1", ("y1", "x1")),
        (LOT | {"more": "links: {hop2: {reverse: 5 Mbit/s}}"}, "hop2", ("r1", "h1")),
        (LOT | {"path": BOTH, "more": "links: {hop1: {reverse: 1 Mbit/s}}"}, "hop1", ("r1", "h1")),
    ],
)
def test_the_way_back_is_measured_where_it_shows(planned, asked, link, pair):
    cell = planned(**asked)
    reached = reached_back(cell, lay_cables(cell, GUEST))
    assert (reached.link, (reached.sender, reached.receiver)) == (link, pair)
    assert prepare(cell, GUEST).expected.burst_back.queue.reverse


def test_aggregates_make_what_arrives_behind_a_way_back_uneven_by_as_long_as_they_wait(planned):
    cell = planned(slice_="dumbbell", path=f"{BOTH}, ack_aggregation: {{least: 1 ms, most: 8 ms}}")
    probe = prepare(cell, GUEST).expected.burst_back
    assert (probe.held_s, prepare(cell, GUEST).expected.burst.held_s) == (0.008, 0.0)


def test_what_comes_to_a_way_back_in_aggregates_is_not_measured(planned):
    cell = planned(path=f"{BOTH}, ack_aggregation: 2 ms")
    assert prepare(cell, GUEST).job.burst_back is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from((5, 10, 20, 40)), min_size=2, max_size=4),
    st.lists(st.sampled_from((1, 2, 4)), min_size=4, max_size=4),
    st.sets(st.integers(0, 4)),
)
def test_whoever_receives_a_burst_sees_the_queue_that_is_measured(planned, rates, backs, chosen):
    hops = range(1, len(rates) + 1)
    links = ", ".join(
        f"hop{hop}: {{rate: {rates[hop - 1]} Mbit/s, reverse: {backs[hop - 1]} Mbit/s}}" for hop in hops
    )
    senders = ["h1", *(f"x{hop}" for hop in hops)]
    cell = planned(
        slice_=f"{{name: parking_lot, hops: {len(rates)}}}",
        flows=flows(*([sender for place, sender in enumerate(senders) if place in chosen] or ["h1"])),
        more=f"links: {{{links}}}",
    )
    cabling = lay_cables(cell, GUEST)
    for reached, back in ((reached_there(cell, cabling), False), (reached_back(cell, cabling), True)):
        crossed = cabling.links_between(reached.sender, reached.receiver)
        own = [(name, backs if back else rates) for name in crossed if name.startswith("hop")]
        way = [(name, each[int(name[3:]) - 1]) for name, each in own]
        place = [name for name, _ in way].index(reached.link)
        assert way[place][1] == min(rate for _, rate in way), "nothing slower hides it"
        before = [rate for _, rate in way[:place]]
        assert (reached.paced_by is None) == (not before)
        if before:
            assert reached.paced_by.bps == min(before) * 1_000_000 > reached.queue.rate.bps

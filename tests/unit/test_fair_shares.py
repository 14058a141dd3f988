"""What limits itself: it asks for less than its fair share of every queue that it crosses."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.plan import definitions, expand
from fabbbr.spec import read
from fabbbr_analysis.fair_shares import fair_share, limiting_themselves

CUBIC = "cca: cubic, duration: 20 s"


def limited(*flows, more="", slice_="two_site", path="rate: 20 Mbit/s, rtt: 20 ms"):
    """Of each flow whether it limits itself."""
    listed = ", ".join(f"{{{flow}}}" for flow in flows)
    text = f"id: x\ntitle: X\nslice: {slice_}\npath: {{{path}}}\nflows: [{listed}]\nrepeat: 1\n{more}\n"
    (cell,) = expand.cells(read.parse(text, source="f.yaml"), definitions.load, seed=1)
    found = limiting_themselves(cell)
    return [flow.index in found for flow in cell.flows]


@pytest.mark.parametrize(
    ("flow", "more", "alone"),
    [
        ("", "", False),
        ("pacing: 15 Mbit/s", "", True),
        ("pacing: 20 Mbit/s", "", False),
        ("pacing: 25 Mbit/s", "", False),
        ("pacing: 5 Mbit/s, streams: 4", "", False),
        ("pacing: 5 Mbit/s, streams: 3", "", True),
        ("pacing: 25 Mbit/s", "steps: [{at: 10 s, rate: 50 Mbit/s}]", True),
        ("pacing: 25 Mbit/s", "steps: [{at: 10 s, rate: 10 Mbit/s}]", False),
        ("maxrate: 15 Mbit/s", "", True),
        ("maxrate: 20 Mbit/s, pacing: 1 Gbit/s", "", True),
        ("maxrate: 21 Mbit/s", "", False),
        ("video: {bitrate: 4 Mbit/s}", "", True),
    ],
)
def test_one_that_is_alone_does_where_it_is_paced_to_less_than_the_link_ever_carries(flow, more, alone):
    assert limited(f"{CUBIC}, {flow}" if flow else CUBIC, more=more) == [alone]


def test_a_socket_paces_payload_and_fq_frames():
    """Of a link of 20 Mbit/s 19.13 are payload."""
    for rate, alone in (("19.1 Mbit/s", True), ("19.2 Mbit/s", False)):
        assert limited(f"{CUBIC}, pacing: {rate}") == [alone]
        assert limited(f"{CUBIC}, maxrate: {rate}") == [True]


def test_those_that_together_ask_for_more_than_the_link_has_do_not():
    assert limited(f"{CUBIC}, count: 2, pacing: 9.5 Mbit/s") == [True, True]
    assert limited(f"{CUBIC}, count: 2, pacing: 12 Mbit/s") == [False, False]


def test_beside_one_that_takes_what_it_can_get_half_is_fair():
    assert limited(CUBIC, f"{CUBIC}, pacing: 9 Mbit/s") == [False, True]
    assert limited(CUBIC, f"{CUBIC}, pacing: 12 Mbit/s") == [False, False]
    assert limited(f"{CUBIC}, streams: 3", f"{CUBIC}, pacing: 6 Mbit/s") == [False, False]


def test_what_others_leave_is_shared_by_those_that_want_it():
    """Fifteen are left of 20, and two want them."""
    paced = f"{CUBIC}, pacing: 7 Mbit/s"
    assert limited("udp: 5 Mbit/s, duration: 20 s", CUBIC, paced) == [True, False, True]
    assert limited("udp: 9 Mbit/s, duration: 20 s", CUBIC, paced) == [True, False, False]


def test_those_that_run_at_another_time_and_transfers_take_nothing():
    paced = f"{CUBIC}, pacing: 12 Mbit/s"
    assert limited(paced, "cca: cubic, start: 20 s, duration: 9 s") == [True, False]
    assert limited(paced, "cca: cubic, start: 19 s, duration: 9 s") == [False, False]
    assert limited(paced, "cca: cubic, size: 30 MB") == [True, False]


def test_it_has_to_ask_for_less_at_every_queue_that_it_crosses():
    lot = {"slice_": "parking_lot"}
    crowd = f"{CUBIC}, from: x2, count: 3"
    assert limited(f"{CUBIC}, from: h1, pacing: 7 Mbit/s", **lot) == [True]
    assert limited(f"{CUBIC}, from: h1, pacing: 7 Mbit/s", crowd, **lot)[0] is False
    assert limited(f"{CUBIC}, from: x1, pacing: 7 Mbit/s", crowd, **lot)[0] is True


def test_those_that_go_the_other_way_share_no_queue():
    back = f"{CUBIC}, direction: reverse"
    assert limited(f"{CUBIC}, pacing: 12 Mbit/s", back) == [True, False]
    slow = "rate: 20 Mbit/s, rtt: 20 ms, reverse: 5 Mbit/s"
    assert limited(CUBIC, f"{back}, pacing: 6 Mbit/s", path=slow) == [False, False]
    assert limited(CUBIC, f"{back}, pacing: 4 Mbit/s", path=slow) == [False, True]


demands = st.lists(st.floats(0, 1e3) | st.just(math.inf), min_size=1, max_size=20)


@given(st.floats(1, 1e3), demands)
def test_all_together_take_what_there_is_or_all_that_they_ask_for(capacity, asked):
    share = fair_share(capacity, asked)
    taken = sum(min(each, share) for each in asked)
    if math.isinf(share):
        assert taken <= capacity * (1 + 1e-9)
    else:
        assert taken == pytest.approx(capacity)

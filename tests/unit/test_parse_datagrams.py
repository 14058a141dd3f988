"""What both ends of a flow of UDP tell of its datagrams: each of them, and all together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import ParseError
from fabbbr_analysis.parse.datagrams import Told, datagrams_of

GAP_NS = 10**7


def with_transits(transits_ms, *, numbers=None, sent=None, ahead_ms=0):
    """What is made of datagrams that came in this order, by a receiver whose clock is so much ahead."""
    numbers = list(range(len(transits_ms))) if numbers is None else numbers
    receiver = Told(
        received=len(numbers),
        numbers=numbers,
        transits_ns=[(each + ahead_ms) * 10**6 for each in transits_ms],
    )
    sender = Told(sent=len(numbers) if sent is None else sent, gap_ns=GAP_NS)
    return datagrams_of(sender, receiver, source="c, flow-0.server.json")


def test_jitter_is_the_mean_change_of_transit_of_the_whole_flow():
    told = with_transits([10, 12, 12, 9])
    assert told.jitter_s == pytest.approx((2 + 0 + 3) / 3 * 1e-3)
    assert (told.sent, told.lost, told.reordered) == (4, 0, 0)


def test_what_waited_early_counts_however_long_all_is_quiet_after_it():
    """The running mean of RFC 3550 forgets within some fifty, so that its last value says little."""
    told = with_transits([10, 110] * 50 + [10] * 900)
    assert told.jitter_s == pytest.approx(0.01, rel=0.01)
    assert told.pdv_p95_s == pytest.approx(0.0), "a twentieth waited, and no more"
    assert with_transits([10, 110] * 51 + [10] * 900).pdv_p95_s == pytest.approx(0.1)


def test_of_none_and_of_one_there_is_no_change():
    none, one = with_transits([], sent=3), with_transits([7])
    assert (none.lost, none.jitter_s, none.pdv_p95_s) == (3, None, None)
    assert (one.lost, one.jitter_s, one.pdv_p95_s) == (0, None, 0.0)


@given(st.lists(st.integers(1, 10**4), min_size=2), st.integers(-(10**6), 10**6))
def test_jitter_and_pdv_do_not_hang_on_the_clocks_and_lie_within_what_came(transits_ms, ahead_ms):
    told, elsewhere = with_transits(transits_ms), with_transits(transits_ms, ahead_ms=ahead_ms)
    assert (elsewhere.jitter_s, elsewhere.pdv_p95_s) == (told.jitter_s, told.pdv_p95_s)
    assert elsewhere.each.equals(told.each)
    spread_s = (max(transits_ms) - min(transits_ms)) * 1e-3
    assert 0 <= told.jitter_s <= spread_s * (1 + 1e-9)
    waits_s = sorted((each - min(transits_ms)) * 1e-3 for each in transits_ms)
    within = sum(wait_s <= told.pdv_p95_s * (1 + 1e-9) for wait_s in waits_s)
    assert within >= 0.95 * len(waits_s)
    assert sum(wait_s < told.pdv_p95_s * (1 - 1e-9) for wait_s in waits_s) < 0.95 * len(waits_s)


def test_what_comes_after_a_higher_number_is_reordered():
    told = with_transits([5, 5, 9, 5], numbers=[0, 2, 1, 3])
    assert (told.reordered, told.lost) == (1, 0)


def test_each_has_its_instant_and_its_wait_and_one_that_never_came_has_none():
    told = with_transits([15, 10, 12], numbers=[0, 3, 1], sent=5)
    assert told.lost == 2
    assert told.each["number"].to_pylist() == [0, 1, 2, 3, 4]
    assert told.each["sent_s"].to_pylist() == pytest.approx([0, 0.01, 0.02, 0.03, 0.04])
    waits_s = told.each["pdv_s"].to_pylist()
    assert (waits_s[2], waits_s[4]) == (None, None)
    assert [waits_s[0], waits_s[1], waits_s[3]] == pytest.approx([0.005, 0.002, 0])


def test_of_one_that_comes_twice_the_first_counts_and_none_comes_back_from_the_lost():
    told = with_transits([10, 12, 30], numbers=[0, 1, 1], sent=3)
    assert (told.lost, told.each["pdv_s"].to_pylist()) == (1, [0.0, pytest.approx(0.002), None])


@given(st.integers(1, 60).flatmap(lambda sent: st.tuples(st.just(sent), st.permutations(range(sent)))),
       st.integers(0, 60), st.data())  # fmt: skip
def test_what_all_suffer_is_what_each_does(all_sent, lost, data):
    sent, order = all_sent
    came = order[: max(sent - lost, 0)]
    transits_ms = data.draw(st.lists(st.integers(1, 500), min_size=len(came), max_size=len(came)))
    told = with_transits(transits_ms, numbers=list(came), sent=sent)
    waits_s = told.each["pdv_s"].to_pylist()
    assert len(waits_s) == sent
    assert waits_s.count(None) == told.lost == sent - len(came)
    assert told.pdv_p95_s in waits_s


@pytest.mark.parametrize(
    ("told", "sent"),
    [
        (Told(received=1, numbers=[7], transits_ns=[1]), 7),
        (Told(received=2, numbers=[0, 1], transits_ns=[1]), 7),
    ],
)
def test_datagrams_that_nobody_sent_or_without_a_transit_are_an_error_that_names_the_file(told, sent):
    with pytest.raises(ParseError, match=r"^c, flow-0\.server\.json: .* run the cell again$"):
        datagrams_of(Told(sent=sent, gap_ns=GAP_NS), told, source="c, flow-0.server.json")


def test_of_an_older_run_the_sums_are_its_own_and_none_is_known_by_itself():
    receiver = Told(received=8, reordered=1, jitter_mean_s=0.001, pdv_p95_s=0.02)
    told = datagrams_of(Told(sent=10), receiver, source="x")
    assert (told.sent, told.lost, told.reordered) == (10, 2, 1)
    assert (told.jitter_s, told.pdv_p95_s, len(told.each)) == (0.001, 0.02, 0)

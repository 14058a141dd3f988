"""The programs of the agent for UDP and videos on loopback, and the reader of what they print.

The instants at which they send are of :mod:`guest.test_agent_ends`, on a clock that waits for nobody.
"""

import json

import pytest
from agent_ends import told_by_both
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.agent.datagrams import Arrived
from fabbbr.agent.video import Player
from fabbbr_analysis.parse.transfer import parse_transfer

SOURCES = ("c, flow-0.client.json", "c, flow-0.server.json")


def parsed(sender, receiver):
    return parse_transfer(sender, receiver, sources=SOURCES)


def test_each_datagram_is_counted_at_both_ends():
    receive = ("--payload", 100, "--patience-ns", 10**8)
    send = ("--payload", 100, "--count", 40, "--gap-ns", 1e6, "--lateness-ns", 10**12)
    told = told_by_both("datagrams", receive, send)
    sent, received = (json.loads(end)["datagrams"] for end in told)
    assert (sent["sent"], received["received"]) == (40, 40)
    ends = parsed(*told)
    assert (ends.datagrams.sent, ends.datagrams.lost, ends.datagrams.reordered) == (40, 0, 0)
    assert ends.sender.sent.bytes == ends.receiver.received.bytes == 4000
    assert sum(ends.receiver.intervals["bytes"].to_pylist()) == 4000


def test_what_was_watched_of_a_video_is_what_came_of_its_chunks():
    player = ("--chunk-bytes", 10_000, "--chunk-ns", 10**8, "--buffer-ns", 3 * 10**8)
    told = told_by_both(
        "video", ("--duration-ns", 10**9, *player), ("--duration-ns", 10**9, "--congestion", "cubic")
    )
    ends = parsed(*told)
    assert ends.receiver.received.bytes == sum(ends.chunks["bytes"].to_pylist()) > 0


def test_a_chunk_that_is_whole_at_the_instant_it_was_asked_for_has_no_rate():
    """As in virtual time, without a delay on the way."""
    chunk = {
        "asked_s": 12.5,
        "first_s": 12.5,
        "whole_s": 12.5,
        "bytes": 500,
        "level_s": 0.0,
        "stalled_s": 0.0,
    }
    stream = {"port": 1, "bytes": 500, "ended_s": 12.5, "samples": []}
    document = {"transfer": 1, "started_s": 12.0, "streams": [stream]}
    ends = parsed(
        json.dumps(document | {"side": "send"}).encode(),
        json.dumps(document | {"side": "receive", "chunks": [chunk]}).encode(),
    )
    assert ends.chunks["download_bps"].to_pylist() == [None]


def test_a_play_that_runs_dry_stalls_until_the_next_chunk():
    player = Player(2.0, 4.0)
    assert player.room_at(0.0) == 0.0
    assert player.stalled_s(1.0) == 0.0  # nothing has been played yet
    player.take(1.0)
    assert player.level_s(2.0) == pytest.approx(1.0)
    assert player.room_at(2.0) == 2.0
    assert player.stalled_s(4.5) == pytest.approx(1.5)
    player.take(4.5)
    player.take(4.5)
    assert player.room_at(4.5) == pytest.approx(6.5)


@given(st.lists(st.floats(0.01, 5), max_size=30), st.floats(0.5, 3), st.floats(0, 9))
def test_played_and_stalled_make_up_the_time_since_the_first_chunk(downloads, chunk_s, more_s):
    player, now, stalled, first = Player(chunk_s, chunk_s + more_s), 0.0, 0.0, None
    for took_s in downloads:
        now = player.room_at(now) + took_s
        stalled += player.stalled_s(now)
        player.take(now)
        first = now if first is None else first
        assert player.level_s(now) <= chunk_s + more_s + 1e-9
    if first is not None:
        played = len(downloads) * chunk_s - player.level_s(now)
        assert played + stalled == pytest.approx(now - first)


def with_transits(transits_ms, ahead_ms=0):
    """What a receiver tells whose clock is so much ahead; the first came first."""
    arrived = Arrived(0.0)
    for number, transit_ms in enumerate(transits_ms):
        sent_ns = number * 10**7
        arrived.take(number, sent_ns, sent_ns + (transit_ms + ahead_ms) * 10**6)
    return arrived.told()


def test_jitter_is_the_mean_change_of_transit_of_the_whole_flow():
    told = with_transits([10, 12, 12, 9])
    assert told["jitter_mean_s"] == pytest.approx((2 + 0 + 3) / 3 * 1e-3)
    assert (told["received"], told["reordered"]) == (4, 0)


def test_what_waited_early_counts_however_long_all_is_quiet_after_it():
    """The running mean of RFC 3550 forgets within some fifty, so that its last value says little."""
    told = with_transits([10, 110] * 50 + [10] * 900)
    assert told["jitter_mean_s"] == pytest.approx(0.01, rel=0.01)
    assert told["pdv_p95_s"] == pytest.approx(0.0), "a twentieth waited, and no more"
    assert with_transits([10, 110] * 51 + [10] * 900)["pdv_p95_s"] == pytest.approx(0.1)


def test_of_none_and_of_one_there_is_no_change():
    assert (with_transits([])["jitter_mean_s"], with_transits([])["pdv_p95_s"]) == (None, None)
    assert (with_transits([7])["jitter_mean_s"], with_transits([7])["pdv_p95_s"]) == (None, 0.0)


@given(st.lists(st.integers(1, 10**4), min_size=2), st.integers(-(10**6), 10**6))
def test_jitter_and_pdv_do_not_hang_on_the_clocks_and_lie_within_what_came(transits_ms, ahead_ms):
    told = with_transits(transits_ms)
    elsewhere = with_transits(transits_ms, ahead_ms)
    assert all(elsewhere[key] == told[key] for key in ("jitter_mean_s", "pdv_p95_s"))
    spread_s = (max(transits_ms) - min(transits_ms)) * 1e-3
    assert 0 <= told["jitter_mean_s"] <= spread_s * (1 + 1e-9)
    waits_s = sorted((each - min(transits_ms)) * 1e-3 for each in transits_ms)
    within = sum(wait_s <= told["pdv_p95_s"] * (1 + 1e-9) for wait_s in waits_s)
    assert within >= 0.95 * len(waits_s)
    assert sum(wait_s < told["pdv_p95_s"] * (1 - 1e-9) for wait_s in waits_s) < 0.95 * len(waits_s)


def test_what_comes_after_a_higher_number_is_reordered():
    arrived = Arrived(0.0)
    for number in (0, 2, 1, 3):
        arrived.take(number, 0, number)
    assert arrived.told()["reordered"] == 1

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


def test_the_receiver_notes_which_came_in_their_order_and_how_long_they_were_on_their_way():
    arrived = Arrived(ahead_s=2.0)
    for number, took_ns in ((0, 30), (2, 10), (1, 25)):
        arrived.take(number, 10**9 * number, 10**9 * number + took_ns)
    told = arrived.told()
    assert (told["received"], told["numbers"], told["transits_ns"]) == (3, [0, 2, 1], [30, 10, 25])
    assert (told["first_s"], told["last_s"]) == pytest.approx((-2.0, -1.0))

"""The programs of the agent for UDP and videos on loopback, and the reader of what they print."""

import contextlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fabbbr
from fabbbr.agent.datagrams import Arrived
from fabbbr.agent.video import Player
from fabbbr_analysis.parse.transfer import parse_transfer

LIMIT_S = 20
SOURCES = ("c, flow-0.client.json", "c, flow-0.server.json")


@contextlib.contextmanager
def end(program, *words):
    process = subprocess.Popen(
        [sys.executable, "-S", "-m", f"agent.{program}", *map(str, words)],
        cwd=Path(fabbbr.__file__).parent,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def listening(port):
    table = Path("/proc/net/tcp").read_text().splitlines()
    return any(f":{port:04X} " in line and " 0A " in line for line in table)


def free_port():
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def both(program, receive, send):
    port = free_port()
    with end(program, "receive", "--port", port, *receive) as receiver:
        deadline = time.monotonic() + LIMIT_S
        while not listening(port):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        words = ("send", "--port", port, "--address", "127.0.0.1", "--cport", free_port(), *send)
        with end(program, *words) as sender:
            told = [process.communicate(timeout=LIMIT_S)[0] for process in (sender, receiver)]
            assert (sender.returncode, receiver.returncode) == (0, 0)
    return [json.loads(each) for each in told], parse_transfer(*told, sources=SOURCES)


def test_each_datagram_leaves_at_its_instant_and_is_counted_at_both_ends():
    receive = ("--payload", 100, "--patience-ns", 10**8)
    send = ("--payload", 100, "--count", 40, "--gap-ns", 1e7, "--lateness-ns", 10**9)
    (sender, receiver), ends = both("datagrams", receive, send)
    assert (sender["datagrams"]["sent"], receiver["datagrams"]["received"]) == (40, 40)
    assert (ends.datagrams.sent, ends.datagrams.lost, ends.datagrams.reordered) == (40, 0, 0)
    assert ends.sender.sent.bytes == ends.receiver.received.bytes == 4000
    assert sum(ends.receiver.intervals["bytes"].to_pylist()) == 4000
    # 40 datagrams, one every 10 ms.
    assert ends.receiver.received.seconds == pytest.approx(0.4, rel=0.1)


def test_a_video_is_asked_for_chunk_by_chunk_when_there_is_room():
    player = ("--chunk-bytes", 10_000, "--chunk-ns", 10**8, "--buffer-ns", 3 * 10**8)
    _, ends = both(
        "video",
        ("--duration-ns", 10**9, *player),
        ("--duration-ns", 10**9, "--congestion", "cubic"),
    )
    chunks = ends.chunks.to_pylist()
    # Three at once fill the buffer, then one each 100 ms until the second is over.
    assert [round(chunk["asked_s"], 1) for chunk in chunks] == pytest.approx(
        [0, 0, 0, *(0.1 * k for k in range(1, 10))], abs=0.05
    )
    assert {chunk["bytes"] for chunk in chunks} == {10_000}
    assert sum(chunk["stalled_s"] for chunk in chunks) == 0
    assert ends.receiver.received.bytes == 10_000 * len(chunks)


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


def test_jitter_is_the_mean_change_of_transit_with_weight_one_sixteenth():
    arrived = Arrived(0.0)
    for number, transit_ms in enumerate([10, 12, 12]):
        arrived.take(number, number * 10**7, number * 10**7 + transit_ms * 10**6)
    told = arrived.told()
    # RFC 3550, 6.4.1: J + (|D| - J) / 16, of D = 2 ms and then 0.
    assert told["jitter_s"] == pytest.approx(2e-3 / 16 * 15 / 16)
    assert (told["received"], told["reordered"]) == (3, 0)


def test_what_comes_after_a_higher_number_is_reordered():
    arrived = Arrived(0.0)
    for number in (0, 2, 1, 3):
        arrived.take(number, 0, number)
    assert arrived.told()["reordered"] == 1

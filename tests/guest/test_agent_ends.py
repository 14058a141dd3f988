"""Both ends of the agent's own programs on a virtual clock, where every instant is known beforehand."""

import json
import sys
from pathlib import Path

import pytest
from guest import two_ends
from guest.cells import in_guest
from guest.two_ends import CHUNK_BYTES, DATAGRAMS, GAP_S, ONE_WAY_S, PACE_BPS, PACED_BYTES, PAYLOAD_BYTES

from fabbbr_analysis.parse.transfer import parse_transfer

pytestmark = pytest.mark.guest

SOURCES = ("c, flow-0.client.json", "c, flow-0.server.json")
TESTS = Path(__file__).parents[1]
WINDOW_BYTES = 10 * 65_483
"""The first ten segments, of loopback's size, leave without a pace."""


@pytest.fixture(scope="module")
def ends():
    """Scenario → the documents of sender and receiver, or of a receiver alone."""
    done = in_guest(sys.executable, "-m", two_ends.__name__, cwd=TESTS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def parsed(documents):
    return parse_transfer(*(json.dumps(each).encode() for each in documents), sources=SOURCES)


def instant(seconds):
    """What programs compute takes a guest's clock some microseconds."""
    return pytest.approx(seconds, abs=200e-6)


def test_each_datagram_leaves_at_its_instant_and_takes_as_long(ends):
    flow = parsed(ends["datagrams"])
    assert (flow.datagrams.sent, flow.datagrams.lost, flow.datagrams.reordered) == (DATAGRAMS, 0, 0)
    assert flow.sender.sent.bytes == flow.receiver.received.bytes == DATAGRAMS * PAYLOAD_BYTES
    assert sum(flow.receiver.intervals["bytes"].to_pylist()) == DATAGRAMS * PAYLOAD_BYTES
    assert flow.receiver.received.seconds == instant(DATAGRAMS * GAP_S)
    assert flow.datagrams.jitter_s == instant(0)
    assert flow.datagrams.pdv_p95_s == instant(0)
    assert ends["datagrams"][0]["datagrams"]["late_s"] == instant(0)


def chunks_asked_s():
    """The first when the connection stands at the receiver, the next when it is whole; three fill the buffer.

    Then one whenever a chunk's time has been played since the first was whole.
    """
    first = 3 * ONE_WAY_S
    at_once = [first + k * 2 * ONE_WAY_S for k in range(3)]
    full = at_once[1]
    later = [full + k * two_ends.CHUNK_S for k in range(1, 99)]
    return at_once + [asked for asked in later if asked < first + two_ends.VIDEO_S]


def test_a_video_is_asked_for_chunk_by_chunk_when_there_is_room(ends):
    flow = parsed(ends["video"])
    chunks = flow.chunks.to_pylist()
    assert [chunk["asked_s"] for chunk in chunks] == [instant(asked) for asked in chunks_asked_s()]
    assert {chunk["bytes"] for chunk in chunks} == {CHUNK_BYTES}
    assert {chunk["stalled_s"] for chunk in chunks} == {0}
    assert [chunk["whole_s"] - chunk["asked_s"] for chunk in chunks] == [instant(2 * ONE_WAY_S)] * len(chunks)
    assert flow.receiver.received.bytes == CHUNK_BYTES * len(chunks)


def test_a_paced_flow_takes_its_bytes_over_its_pace(ends):
    flow = parsed(ends["paced"])
    assert flow.receiver.received.bytes == PACED_BYTES
    soonest_s = 8 * (PACED_BYTES - WINDOW_BYTES) / PACE_BPS
    assert soonest_s < flow.receiver.received.seconds < 8 * PACED_BYTES / PACE_BPS + 3 * ONE_WAY_S
    # The receiver closes when it has all, and the sender hears of it one way later.
    assert flow.sender.sent.seconds - flow.receiver.received.seconds == instant(ONE_WAY_S)


def test_a_flow_that_is_stopped_tells_what_arrived_and_sends_no_more(ends):
    flow = parsed(ends["stopped_flow"])
    assert (flow.sender.outcome, flow.receiver.outcome) == ("interrupted", "interrupted")
    assert flow.sender.error == "interrupted by signal 15"
    assert 0 < flow.receiver.received.bytes < 10_000_000


def test_a_sample_counts_what_came_in_the_middle_of_a_block(ends):
    (receiver,) = ends["middle_of_a_block"]
    (stream,) = receiver["streams"]
    assert [sample["bytes"] for sample in stream["samples"]] == [1000, 10_000]
    assert stream["samples"][0]["at_s"] - stream["established_s"] == instant(1)
    # What followed the first thousand bytes after 1.5 s; the handshake's last packet and they came together.
    assert stream["ended_s"] - stream["established_s"] == instant(1.5)


@pytest.mark.parametrize(("scenario", "came"), [("stopped_before_a_byte", 0), ("stopped_in_a_block", 1000)])
def test_a_receiver_that_is_stopped_in_the_middle_of_a_block_tells_what_came(ends, scenario, came):
    (document,) = ends[scenario]
    assert document["error"] == "interrupted by signal 15"
    assert [stream["bytes"] for stream in document["streams"]] == [came]

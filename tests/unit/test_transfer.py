"""The agent's own sender and receiver on loopback, and the reader of what they print.

How long they take is of :mod:`guest.test_agent_ends`, on a clock that waits for nobody.
"""

import contextlib
import json
import selectors
import socket

import pytest
from agent_ends import both_ends, end, free_port, receiver_of, told
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.agent.transfer import Outgoing
from fabbbr.errors import ParseError
from fabbbr_analysis.parse.transfer import parse_transfer

SOURCES = ("cell c, flow-0.client.json", "cell c, flow-0.server.json")


def parsed(sender, receiver):
    return parse_transfer(told(sender), told(receiver), sources=SOURCES)


@pytest.mark.parametrize(
    ("size", "streams"), [(1, 1), (1_000_003, 1), (1_000_003, 3), (2, 3), (50_000_000, 2)]
)
def test_the_receiver_gets_exactly_the_bytes_asked_for(size, streams):
    with both_ends(size, streams=streams) as (sender, receiver):
        ends = parsed(sender, receiver)
        assert (sender.returncode, receiver.returncode) == (0, 0)
    assert (ends.sender.outcome, ends.receiver.outcome) == ("completed", "completed")
    assert ends.sender.sent.bytes == ends.receiver.received.bytes == size
    assert sum(ends.receiver.intervals["bytes"].to_pylist()) == size
    assert sum(ends.sender.intervals["bytes"].to_pylist()) == size


def test_the_flow_ends_at_the_receiver_before_the_sender_hears_of_it():
    with both_ends(1_000_000) as (sender, receiver):
        ends = parsed(sender, receiver)
    assert 0 < ends.receiver.received.seconds < ends.sender.sent.seconds


def test_a_receiver_that_gets_more_than_was_asked_for_says_so():
    with receiver_of(10) as (receiver, sender):
        sender.send(bytes(11))
        assert "more than was asked" in json.loads(told(receiver))["error"]


def test_a_stream_among_several_whose_socket_takes_nothing_waits_for_it():
    """As when the kernel has no memory for it, though it said that there is room."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as connection,
        server.accept()[0],
    ):
        connection.settimeout(0.0)
        stream = Outgoing(connection, 1, 1 << 40)
        sent = -1
        while stream.bytes > sent:
            sent = stream.bytes
            assert stream.advance() == selectors.EVENT_WRITE
        assert sent > 0


def test_a_flow_that_nobody_receives_says_so():
    words = ("--port", free_port(), "--parallel", 1, "--address", "127.0.0.1", "--cport", free_port())
    with end("transfer", "send", *words, "--bytes", 10, "--congestion", "cubic") as sender:
        ends = parse_transfer(told(sender), b"", sources=SOURCES)
    assert (ends.sender.outcome, ends.sender.error) == ("error", "Connection refused")
    assert (ends.receiver.outcome, ends.receiver.received) == ("no_output", None)


def test_a_congestion_control_that_the_kernel_lacks_is_named():
    with both_ends(10, congestion="nosuch") as (sender, _):
        ends = parse_transfer(told(sender), b"", sources=SOURCES)
    assert ends.sender.outcome == "error"
    assert "nosuch" in ends.sender.error


def document(side, **changes):
    stream = {"port": 1, "bytes": 500, "ended_s": 12.5, "samples": [{"at_s": 12.75, "bytes": 500}]}
    started_s = 10.0 if side == "send" else None
    return json.dumps(
        {"transfer": 1, "side": side, "started_s": started_s, "streams": [stream]} | changes
    ).encode()


def test_times_of_both_ends_count_from_the_first_syn():
    ends = parse_transfer(document("send"), document("receive"), sources=SOURCES)
    assert ends.receiver.received.seconds == 2.5
    (interval,) = ends.receiver.intervals.to_pylist()
    assert (interval["start_s"], interval["end_s"], interval["throughput_bps"]) == (0.0, 2.75, 8 * 500 / 2.75)
    assert interval["retransmits"] is None


def test_without_the_sender_nothing_is_known_of_times():
    ends = parse_transfer(b"", document("receive"), sources=SOURCES)
    assert (ends.sender.outcome, ends.receiver.received) == ("no_output", None)
    assert len(ends.receiver.intervals) == 0


@pytest.mark.parametrize(
    ("receiver", "words"),
    [
        (b'{"transfer": 1, "side": "rec', "not what a sized flow prints"),
        (b'{"start": {}, "intervals": []}', "not what a sized flow prints"),
        (document("send"), "the other end's"),
        (
            document("receive", streams=[{"port": 7, "bytes": 5, "samples": [{"at_s": 9.0, "bytes": 5}]}]),
            "port 7: samples must not go back",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_name_of_the_file(receiver, words):
    with pytest.raises(ParseError, match="run the cell again") as caught:
        parse_transfer(document("send"), receiver, sources=SOURCES)
    assert words in str(caught.value)
    assert SOURCES[1] in str(caught.value)


@given(sender=st.binary() | st.just(document("send")), receiver=st.binary() | st.just(document("receive")))
def test_any_bytes_are_read_or_refused_and_nothing_else(sender, receiver):
    with contextlib.suppress(ParseError):
        parse_transfer(sender, receiver, sources=SOURCES)

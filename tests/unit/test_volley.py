"""Volleys of datagrams on loopback."""

import socket
import sys
import time

import pytest

from fabbbr.agent import volley
from fabbbr.agent.stamps import SO_TIMESTAMPNS

_SO_RCVBUFFORCE = 33


@pytest.fixture
def ends():
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        try:
            receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 26)
        except PermissionError:
            pytest.skip("a buffer for so many datagrams is root's to ask for")
        receiver.bind(("127.0.0.1", 0))
        sender.connect(receiver.getsockname())
        yield sender, receiver


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 3000])
def test_all_arrive_in_order_with_their_numbers_and_the_time(ends, count):
    sender, receiver = ends
    before_ns = time.time_ns()
    volley.send(sender, 7, count, 100)
    arrivals = list(volley.received(receiver))
    assert [number for number, _ in arrivals] == list(range(7, 7 + count))
    stamps = [stamp for _, stamp in arrivals]
    assert stamps == sorted(stamps)
    assert all(before_ns <= stamp <= time.time_ns() for stamp in stamps)
    assert list(volley.received(receiver)) == []


@pytest.mark.parametrize("size", [4, 5, 1472, 8972])
def test_each_has_the_size_asked_for_and_zeros_behind_its_number(ends, size):
    sender, receiver = ends
    volley.send(sender, 2, 2, size)
    assert [receiver.recv(65_536) for _ in range(2)] == [
        number.to_bytes(4, sys.byteorder) + bytes(size - 4) for number in (2, 3)
    ]


def test_a_socket_that_cannot_send_says_why(ends):
    sender, receiver = ends
    with pytest.raises(OSError, match="Message too long"):
        volley.send(sender, 0, 3, 100_000)
    assert list(volley.received(receiver)) == []

"""Many numbered datagrams in a few system calls, each of which costs a guest as much as several packets."""

import array
import ctypes
import errno
import os
import socket
from typing import Any, Iterator, Tuple

from .stamps import STAMP_BYTES, stamp_ns

_NUMBER_BYTES = 4
_AT_ONCE = 1024
"""The kernel takes no more."""
_CONTROL_BYTES = socket.CMSG_SPACE(STAMP_BYTES)
_HEADER_BYTES = socket.CMSG_LEN(0)
_libc = ctypes.CDLL(None, use_errno=True)


class _Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Header(ctypes.Structure):
    """``struct msghdr``."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("parts", ctypes.c_void_p),
        ("part_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class _Message(ctypes.Structure):
    """``struct mmsghdr``."""

    _fields_ = [("header", _Header), ("length", ctypes.c_uint)]


def send(sender: socket.socket, first: int, count: int, payload_bytes: int) -> None:
    """Send ``count`` datagrams by a connected socket: the number of each, from ``first`` on, and zeros up to its size."""
    numbers = array.array("I", range(first, first + count))
    zeros = ctypes.create_string_buffer(payload_bytes)
    rest = _Part(ctypes.addressof(zeros), payload_bytes - _NUMBER_BYTES)
    parts = (_Part * (2 * count))()
    messages = (_Message * count)()
    for number, message in enumerate(messages):
        parts[2 * number : 2 * number + 2] = [_place(numbers, number), rest]
        at = ctypes.addressof(parts) + 2 * number * ctypes.sizeof(_Part)
        message.header = _Header(parts=at, part_count=2)
    sent = 0
    while sent < count:
        sent += _exchange(_libc.sendmmsg, sender, messages, sent, 0)


def received(receiver: socket.socket) -> Iterator[Tuple[int, int]]:
    """Number and time stamp, in nanoseconds, of each datagram that has come, to a socket with SO_TIMESTAMPNS."""
    numbers = array.array("I", bytes(_NUMBER_BYTES * _AT_ONCE))
    parts = (_Part * _AT_ONCE)(*(_place(numbers, number) for number in range(_AT_ONCE)))
    controls = ctypes.create_string_buffer(_CONTROL_BYTES * _AT_ONCE)
    messages = (_Message * _AT_ONCE)()
    for number, message in enumerate(messages):
        at = ctypes.addressof(parts) + number * ctypes.sizeof(_Part)
        control = ctypes.addressof(controls) + number * _CONTROL_BYTES
        message.header = _Header(parts=at, part_count=1, control=control)
    while True:
        for message in messages:
            message.header.control_length = _CONTROL_BYTES
        try:
            came = _exchange(_libc.recvmmsg, receiver, messages, 0, socket.MSG_DONTWAIT, None)
        except BlockingIOError:
            return
        for number in range(came):
            yield numbers[number], stamp_ns(controls, number * _CONTROL_BYTES + _HEADER_BYTES)


def _place(numbers: "array.array[int]", number: int) -> _Part:
    return _Part(numbers.buffer_info()[0] + _NUMBER_BYTES * number, _NUMBER_BYTES)


def _exchange(call: Any, connection: socket.socket, messages: Any, start: int, *more: Any) -> int:
    """How many messages, from the one at ``start`` on, were sent or have come; raise OSError as a socket does."""
    count = min(len(messages) - start, _AT_ONCE)
    place = ctypes.byref(messages, start * ctypes.sizeof(_Message))
    done: int = call(connection.fileno(), place, count, *more)
    if done < 0:
        number = ctypes.get_errno()
        if number == errno.EINTR:
            return 0
        raise OSError(number, os.strerror(number))
    return done

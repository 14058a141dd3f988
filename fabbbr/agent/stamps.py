"""The time stamps that the kernel gives to what comes in, and the clock that they are of."""

import ctypes
import struct
import time
from typing import Any

from .instants import Timespec

SO_TIMESTAMPNS = 35
"""Of a socket whose packets are to have one, as the only ancillary data."""
_STAMP = struct.Struct("=qq")
STAMP_BYTES = _STAMP.size
_libc = ctypes.CDLL(None)


def stamp_ns(ancillary: Any, offset: int = 0) -> int:
    """A stamp among ancillary data."""
    seconds, nanoseconds = _STAMP.unpack_from(ancillary, offset)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def now_ns() -> int:
    """What a stamp of this instant would be; a float has only a quarter of a microsecond of it."""
    now = Timespec()
    _libc.clock_gettime(time.CLOCK_REALTIME, ctypes.byref(now))
    return int(now.seconds) * 1_000_000_000 + int(now.nanoseconds)

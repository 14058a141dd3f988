"""Waiting for an instant of the monotonic clock."""

import ctypes
import errno
import os
import time

_TIMER_ABSTIME = 1
_libc = ctypes.CDLL(None)


class Timespec(ctypes.Structure):
    """``struct timespec``."""

    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def sleep_until(instant: float) -> None:
    """Return at ``instant``, or at once when it is over.

    ``time.sleep`` is asked for a while, from a clock that was read a little earlier and is only so fine: on a
    virtual clock what was rounded would show in every later instant.
    """
    seconds, nanoseconds = divmod(max(round(instant * 1e9), 0), 1_000_000_000)
    due = Timespec(seconds, nanoseconds)
    while True:
        code = _libc.clock_nanosleep(time.CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(due), None)
        if code == 0:
            return
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))

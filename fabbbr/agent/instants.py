"""Waiting for an instant of the monotonic clock."""

import ctypes
import errno
import os
import signal
import time
from typing import Optional

_TIMER_ABSTIME = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Timespec(ctypes.Structure):
    """``struct timespec``."""

    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class _TimerSetting(ctypes.Structure):
    """``struct itimerspec``."""

    _fields_ = [("interval", Timespec), ("value", Timespec)]


class Alarm:
    """A file that can be read from an instant on, for whoever waits for connections too; as exact as :func:`sleep_until`."""

    def __init__(self) -> None:
        self._descriptor = _done(_libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC))

    def fileno(self) -> int:
        """The file descriptor."""
        return self._descriptor

    def set(self, instant: Optional[float]) -> None:
        """From ``instant`` on, or at once when that is over; None for never."""
        # Zero would mean never.
        due = Timespec(0, 0) if instant is None else _timespec(max(instant, 1e-9))
        setting = ctypes.byref(_TimerSetting(Timespec(0, 0), due))
        _done(_libc.timerfd_settime(self._descriptor, _TIMER_ABSTIME, setting, None))


def woken_by_signals() -> int:
    """A file that can be read once a signal has come, for whoever waits for files too.

    What handles the signal may run just before the wait; without such a file that would then go on for ever.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    return woken


def sleep_until(instant: float) -> None:
    """Return at ``instant``, or at once when it is over.

    ``time.sleep`` is asked for a while, from a clock that was read a little earlier and is only so fine: on a
    virtual clock what was rounded would show in every later instant.
    """
    due = _timespec(instant)
    while True:
        code = _libc.clock_nanosleep(time.CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(due), None)
        if code == 0:
            return
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))


def _timespec(instant: float) -> Timespec:
    return Timespec(*divmod(max(round(instant * 1e9), 0), 1_000_000_000))


def _done(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer

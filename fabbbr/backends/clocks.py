"""By how much the clock of another machine differs from ours: the best of many exchanges."""

from __future__ import annotations

import time
from collections.abc import Callable

from fabbbr.testbed import ClockOffset

_EXCHANGES = 64


def measure(ask: Callable[[], float], *, own: Callable[[], float] = time.monotonic) -> ClockOffset:
    """Compare clocks: ``ask`` tells the other one's seconds, ``own`` ours.

    However long an answer takes, the other clock was read between question and answer: their middle is off
    by at most half of the time between them.
    """
    exchanges = []
    for _ in range(_EXCHANGES):
        asked = own()
        told = ask()
        answered = own()
        exchanges.append((answered - asked, told - (asked + answered) / 2))
    took, offset = min(exchanges)
    return ClockOffset(offset_s=offset, bound_s=took / 2)

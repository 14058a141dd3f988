"""The library in the guest image that makes iperf3 cheap there, and when it is used."""

from __future__ import annotations

from fabbbr.backends.guest.image.root import WAKEUPS_LIBRARY
from fabbbr.testbed import ClockKind


def environment(clock: ClockKind) -> dict[str, str]:
    """What to add to iperf3's environment: nothing in real time, where the root may be the host's own."""
    return {"LD_PRELOAD": WAKEUPS_LIBRARY} if clock == "virtual" else {}

"""The time that waiting takes, so that tests need not wait."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Protocol


class Clock(Protocol):
    """What waits asks and does."""

    def now(self) -> datetime:
        """The time of day, with its zone."""

    def monotonic(self) -> float:
        """Seconds that nobody sets back."""

    def sleep(self, seconds: float) -> None:
        """Do nothing for so long."""


class WallClock:
    """This machine's."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Seconds since some instant."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Do nothing for so long."""
        time.sleep(seconds)

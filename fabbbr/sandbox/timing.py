"""The double's clock: instants are the machine's own, only the waits of the testbed are shortened."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timezone


@dataclass(frozen=True, kw_only=True)
class Clock:
    """``scale`` is the share of FABRIC's own waiting times that passes here; 1 is as on FABRIC."""

    scale: float

    def now(self) -> datetime:
        """The instant, in UTC."""
        return datetime.now(timezone.utc)

    def real_s(self, testbed_s: float) -> float:
        """How long, in seconds, what takes ``testbed_s`` on FABRIC takes here."""
        return testbed_s * self.scale

    def wait(self, testbed_s: float, until: threading.Event) -> bool:
        """Wait as long as FABRIC would take; True when ``until`` was set meanwhile."""
        return until.wait(self.real_s(testbed_s))

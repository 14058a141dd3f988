"""The barrier of a job in parts: files in the folder of this part, which the coordinator reads and writes.

``ready.<stage>`` says that this part is ready. ``go.<stage>`` is the answer: the instant on this machine's
monotonic clock at which every part begins the stage, or 0 for at once. Each is one line and appears whole.
"""

import os
import time
from typing import Optional

from .lines import read_line, write_line
from .timeline import Barrier

_POLL_S = 0.01


class LateError(OSError):
    """A stage was to begin at an instant that had passed."""


class Meeting(Barrier):
    """Waits in ``folder``."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def wait(self, stage: str) -> None:
        """Return when the coordinator has said go."""
        self._instant(stage)

    def start(self, stage: str) -> float:
        """Return at the common instant; raise LateError when it passed before it was told."""
        instant = self._instant(stage)
        pause = instant - time.monotonic()
        if pause < 0:
            raise LateError("this machine was told %.3f s late when %s begins" % (-pause, stage))
        time.sleep(pause)
        return instant

    def met(self, stage: str) -> bool:
        """Say ready once; whether the coordinator has said go."""
        ready = os.path.join(self._folder, "ready." + stage)
        if not os.path.exists(ready):
            write_line(ready, "%.9f" % time.monotonic())
        return self._told(stage) is not None

    def _instant(self, stage: str) -> float:
        while not self.met(stage):
            time.sleep(_POLL_S)
        told = self._told(stage)
        assert told is not None
        return told

    def _told(self, stage: str) -> Optional[float]:
        line = read_line(os.path.join(self._folder, "go." + stage))
        return None if line is None else float(line)

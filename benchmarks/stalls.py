"""Processes of a test run stop at random and go on a moment later, as those of a much too busy machine.

What depends on the machine's clock then fails within one round, and not in one of a hundred. A guest's clock
is virtual, and stands still meanwhile.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

_STOPPED_S = (0.1, 1.0)
_BETWEEN_S = (0.05, 0.3)
_NOT_OURS = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE)
"""Whom a test has stopped shall stay stopped."""


def _stall(ancestor: int, ended: threading.Event) -> None:
    draw = random.Random()  # noqa: S311 - no secret
    while not ended.wait(draw.uniform(*_BETWEEN_S)):
        with contextlib.suppress(psutil.NoSuchProcess):
            below = psutil.Process(ancestor).children(recursive=True)
            running = [process for process in below if process.status() not in _NOT_OURS]
            if running:
                process = draw.choice(running)
                process.suspend()
                ended.wait(draw.uniform(*_STOPPED_S))
                process.resume()


@contextmanager
def stalls(ancestor: int) -> Iterator[None]:
    """One process below ``ancestor`` after the other stops for 0.1 to 1 s, for as long as the block lasts."""
    ended = threading.Event()
    thread = threading.Thread(target=_stall, args=(ancestor, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()

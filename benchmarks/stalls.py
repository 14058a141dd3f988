"""Processes of a test run stop at random and go on a moment later, as those of a much too busy machine.

What depends on the machine's clock then fails within one round, and not in one of a hundred. A guest's clock
is virtual, and stands still meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STOPPED_S = (0.1, 1.0)
_BETWEEN_S = (0.05, 0.3)


def _states() -> dict[int, tuple[int, str]]:
    """Parent and state of every process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            found[int(folder.name)] = (int(parent), state)
    return found


def running_below(ancestor: int) -> list[int]:
    """Those that have ``ancestor`` among their parents, and that nobody has stopped."""
    states, below, grown = _states(), {ancestor}, True
    while grown:
        more = {process for process, (parent, _) in states.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return [process for process in below - {ancestor} if states[process][1] not in "TtZ"]


def _stall(ancestor: int, ended: threading.Event) -> None:
    draw = random.Random()  # noqa: S311 - no secret
    while not ended.wait(draw.uniform(*_BETWEEN_S)):
        running = running_below(ancestor)
        if not running:
            continue
        process = draw.choice(running)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
            ended.wait(draw.uniform(*_STOPPED_S))
            os.kill(process, signal.SIGCONT)


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

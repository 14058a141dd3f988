"""Ends guests whose runner is gone.

Run as a process of its own by :class:`Keeper`: it reads ``+ GROUP FOLDER`` and ``- GROUP`` lines, and when its
standard input closes, be it that the runner finished or was killed with -9, it kills every process group that is
still listed and removes its folder. A guest is several processes, and killing only the first would leave the rest.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable


def keep(lines: Iterable[str]) -> None:
    """Follow ``lines`` to their end, then clean up."""
    alive: dict[int, str] = {}
    for line in lines:
        sign, group, *folder = line.rstrip("\n").split(" ", 2)
        if sign == "+":
            alive[int(group)] = folder[0]
        else:
            alive.pop(int(group), None)
    for left, left_folder in alive.items():
        kill_group(left)
        shutil.rmtree(left_folder, ignore_errors=True)


def kill_group(group: int) -> None:
    """Kill a process group; that it is gone already is fine."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


class Keeper:
    """The runner's end of the pipe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            (sys.executable, "-S", __file__),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def add(self, group: int, folder: str) -> None:
        """From now on ``group`` dies with this process."""
        self._say(f"+ {group} {folder}\n")

    def remove(self, group: int) -> None:
        """The group has ended."""
        self._say(f"- {group} \n")

    def close(self) -> None:
        """End the keeper."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(line)
            self._process.stdin.flush()


if __name__ == "__main__":
    keep(sys.stdin)

"""Ends guests whose runner is gone, and removes what they left.

The kernel kills a guest whose runner has died (:func:`die_with_runner`), whatever else was killed. The keeper
sees to the rest: the processes that a guest leaves behind, and its folder. It is a process of its own, run by
:class:`Keeper`: it reads ``["+", GROUP, FOLDER]`` and ``["-", GROUP]``, one JSON array per line, and when its
standard input closes, be it that the runner finished or was killed with -9, it kills every process group that
is still listed and removes its folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable

_PR_SET_PDEATHSIG = 1
_CLOSE_S = 10.0
_libc = ctypes.CDLL(None)


def keep(lines: Iterable[str]) -> None:
    """Follow ``lines`` to their end, then clean up."""
    alive: dict[int, str] = {}
    for line in lines:
        sign, group, *folder = json.loads(line)
        if sign == "+":
            alive[group] = folder[0]
        else:
            alive.pop(group, None)
    for left, left_folder in alive.items():
        kill_group(left)
        shutil.rmtree(left_folder, ignore_errors=True)


def kill_group(group: int) -> None:
    """Kill a process group; that it is gone already is fine."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def die_with_runner(runner: int) -> None:
    """Called between fork and exec: from now on the kernel kills this process when ``runner`` dies.

    To the kernel the parent is the thread that forked, so that thread must wait for this process.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != runner:
        os._exit(1)


class Keeper:
    """The runner's end of the pipe. A keeper that was killed is replaced by one that gets the same lines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[int, str] = {}
        self._process = _started()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def add(self, group: int, folder: str) -> None:
        """From now on ``group`` ends, and ``folder`` goes, with this process."""
        with self._lock:
            self._kept[group] = folder
            self._say("+", group, folder)

    def remove(self, group: int) -> None:
        """The group has ended."""
        with self._lock:
            if self._kept.pop(group, None) is not None:
                self._say("-", group)

    def close(self) -> None:
        """End the keeper."""
        _end(self._process)

    def _say(self, *words: str | int) -> None:
        try:
            _tell(self._process, *words)
        except BrokenPipeError:
            _end(self._process)
            self._process = _started()
            for group, folder in self._kept.items():
                _tell(self._process, "+", group, folder)


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        (sys.executable, "-S", __file__),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )


def _tell(process: subprocess.Popen[bytes], *words: str | int) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(words).encode() + b"\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Its work is done, or it is gone; one that was stopped does neither and is killed."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout=_CLOSE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    keep(sys.stdin)

"""For how long a guest wanted its CPU and others had it.

A guest is given up when it spins or hangs, and not because its machine is busy: its limits count the wall
time without that for which the scheduler of the host made it wait.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_NS_PER_S = 1_000_000_000


def processes(pid: int, proc: Path = Path("/proc")) -> list[int]:
    """A guest's kernel, and the processes of it that there are."""
    children = _read(proc / f"{pid}/task/{pid}/children").split()
    return [pid, *map(int, children)]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


class Denied:
    """Adds up the time of a guest's kernel and of all its processes, also of those that have ended.

    Where the host does not count it (``/proc/PID/schedstat`` is of Linux with CONFIG_SCHED_INFO), there is
    none: the limits count wall time then.
    """

    def __init__(self, pid: int, *, proc: Path = Path("/proc")) -> None:
        self._pid = pid
        self._proc = proc
        self._alive: dict[int, _Times] = {}
        self._ended = _Times(0, 0)

    @property
    def ran_s(self) -> float:
        """How long they ran, in wall seconds, when :meth:`seconds` looked last.

        They share one CPU: so long at least nobody else had it. But kernel and process may wait at the same
        time, and then what is added up is more than the time that went by.
        """
        return sum((times.ran_ns for times in self._alive.values()), self._ended.ran_ns) / _NS_PER_S

    def seconds(self) -> float:
        """How long they waited so far, in wall seconds; never less than before."""
        alive = {process: self._of(process) for process in processes(self._pid, self._proc)}
        for process, before in self._alive.items():
            # One that is gone, or another process under its number.
            if process not in alive or alive[process].waited_ns < before.waited_ns:
                self._ended = self._ended.with_those(before)
        self._alive = alive
        return sum((times.waited_ns for times in alive.values()), self._ended.waited_ns) / _NS_PER_S

    def _of(self, process: int) -> _Times:
        """The first two numbers of ``schedstat``; the kernel's documentation: scheduler/sched-stats."""
        numbers = _read(self._proc / f"{process}/schedstat").split()
        return _Times(int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else _Times(0, 0)


class _Times(NamedTuple):
    """Of a process: on a CPU, and on the queue of one."""

    ran_ns: int
    waited_ns: int

    def with_those(self, other: _Times) -> _Times:
        return _Times(self.ran_ns + other.ran_ns, self.waited_ns + other.waited_ns)

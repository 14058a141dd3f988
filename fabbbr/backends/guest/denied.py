"""For how long a guest wanted its CPU and others had it.

A guest is given up when it spins or hangs, and not because its machine is busy: its limits count the wall
time without that for which the scheduler of the host made it wait.
"""

from __future__ import annotations

from pathlib import Path

_NS_PER_S = 1_000_000_000


class Denied:
    """Adds up the waiting of a guest's kernel and of all its processes, also of those that have ended.

    Where the host does not count it (``/proc/PID/schedstat`` is of Linux with CONFIG_SCHED_INFO), there is
    none: the limits count wall time then.
    """

    def __init__(self, pid: int, *, proc: Path = Path("/proc")) -> None:
        self._pid = pid
        self._proc = proc
        self._waited_ns: dict[str, int] = {}
        self._ended_ns = 0
        self._ran_ns = 0

    @property
    def ran_s(self) -> float:
        """How long one of them ran, in wall seconds, when :meth:`seconds` looked last.

        So long at least nobody had the guest's CPU: kernel and process may wait at the same time, and then
        what is added up is more than the time that went by.
        """
        return self._ran_ns / _NS_PER_S

    def seconds(self) -> float:
        """So far, in wall seconds; never less than before."""
        counted = dict(self._counted())
        self._ran_ns = max(self._ran_ns, *(ran for ran, _ in counted.values()))
        waited = {process: waited for process, (_, waited) in counted.items()}
        for process, before_ns in self._waited_ns.items():
            # One that is gone, or another process under its number.
            if waited.get(process, -1) < before_ns:
                self._ended_ns += before_ns
        self._waited_ns = waited
        return (self._ended_ns + sum(waited.values())) / _NS_PER_S

    def _counted(self) -> list[tuple[str, tuple[int, int]]]:
        """Process → nanoseconds on a CPU, and on the queue of one."""
        kernel = str(self._pid)
        children = self._read(f"{kernel}/task/{kernel}/children").split()
        return [(process, self._of(process)) for process in (kernel, *children)]

    def _of(self, process: str) -> tuple[int, int]:
        """The first two numbers of ``schedstat``; the kernel's documentation: scheduler/sched-stats."""
        numbers = self._read(f"{process}/schedstat").split()
        return (int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else (0, 0)

    def _read(self, name: str) -> str:
        try:
            return (self._proc / name).read_text(encoding="ascii")
        except OSError:
            return ""

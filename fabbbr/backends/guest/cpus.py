"""Which CPU a guest is pinned to, and when it goes to another.

Pinned to one CPU a guest is several times faster: its processes hand over all the time. But what is pinned
the scheduler cannot move: runs that are started side by side, by one user or by many, would wait for each
other on the first CPUs of a machine while others idle. So a guest that has to wait goes where nobody is.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fabbbr.backends.allotted import usable_cpus
from fabbbr.backends.guest.denied import processes

_WAITS = 0.2
"""Of its time: less is what the small jobs of a system take."""
_IDLES = 0.9
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Use:
    """What became of a guest's time so far, in seconds."""

    wall_s: float
    ran_s: float
    waited_s: float
    """Of all its processes; they wait for each other too."""

    def denied_since(self, before: Use) -> float:
        """Which share of the time since then others had its CPU."""
        went_by_s = self.wall_s - before.wall_s
        not_run_s = went_by_s - (self.ran_s - before.ran_s)
        return min(not_run_s, self.waited_s - before.waited_s) / went_by_s


def idle_s() -> dict[int, float]:
    """CPU → seconds that it idled since the machine was booted (proc_stat(5)); empty where nobody says."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    counted = [line.split() for line in lines if line.startswith("cpu") and not line.startswith("cpu ")]
    # The fourth and fifth number: with nothing to do, and with nothing to do but to wait for a disk.
    return {int(name[3:]): sum(map(int, ticks[3:5])) / _TICKS_PER_S for name, *ticks in counted}


class Cpus:
    """The CPUs that the guests of one runner may have; its threads share it."""

    def __init__(self, idle: Callable[[], dict[int, float]] = idle_s) -> None:
        usable = usable_cpus()
        # Runners that start side by side do not all begin with the same one.
        first = os.getpid() % len(usable)
        self._in_order = usable[first:] + usable[:first]
        self._guests: Counter[int] = Counter()
        self._idle = idle
        self._lock = threading.Lock()

    @contextmanager
    def pinned(self) -> Iterator[Pinned]:
        """A CPU for one guest for as long as the block lasts: one with as few others of ours as can be."""
        with self._lock:
            cpu = min(self._in_order, key=self._guests.__getitem__)
            self._guests[cpu] += 1
        pinned = Pinned(self, cpu)
        try:
            yield pinned
        finally:
            with self._lock:
                self._guests[pinned.cpu] -= 1

    def idle_s(self) -> dict[int, float]:
        """As :func:`idle_s`."""
        return self._idle()

    def instead_of(self, cpu: int, idle: set[int]) -> int:
        """One of the idle ones for a guest that waits for ``cpu``; ``cpu`` where we use them all."""
        with self._lock:
            better = next((one for one in self._in_order if one in idle and not self._guests[one]), cpu)
            if better != cpu:
                self._guests[cpu] -= 1
                self._guests[better] += 1
                # The next guest should not have to find out again.
                self._in_order.remove(cpu)
                self._in_order.append(cpu)
        return better


class Pinned:
    """The CPU of one guest."""

    def __init__(self, cpus: Cpus, cpu: int) -> None:
        self.cpu = cpu
        self._cpus = cpus
        self._before: Use | None = None
        self._idle_before: tuple[float, dict[int, float]] | None = None

    def reconsider(self, pid: int, use: Use) -> None:
        """Move the guest whose kernel is ``pid`` when it had to wait since the last call but one."""
        before, self._before = self._before, use
        if before is None or use.denied_since(before) < _WAITS:
            self._idle_before = None
            return
        idle_before, self._idle_before = self._idle_before, (time.monotonic(), self._cpus.idle_s())
        if idle_before is not None:
            self._go(pid, _idle(idle_before, self._idle_before))

    def _go(self, pid: int, idle: set[int]) -> None:
        kernel, *others = processes(pid)
        if not others:
            # Where Linux does not tell of them, they would stay behind.
            return
        better = self._cpus.instead_of(self.cpu, idle)
        if better != self.cpu:
            self.cpu = better
            self._idle_before = None
            # The kernel first: what it starts from then on goes along.
            _pin(kernel, better)
            for process in processes(pid)[1:]:
                _pin(process, better)


def _idle(before: tuple[float, dict[int, float]], now: tuple[float, dict[int, float]]) -> set[int]:
    """The CPUs that had hardly anything to do between two looks."""
    went_by_s = now[0] - before[0]
    return {cpu for cpu, idle in now[1].items() if idle - before[1].get(cpu, idle) > _IDLES * went_by_s}


def _pin(process: int, cpu: int) -> None:
    # It may have ended, and the CPU may have been taken from us.
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {cpu})

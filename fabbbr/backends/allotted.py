"""How much of its machine this process may use: CPUs, how many of them at once, and memory.

In a container one sees all CPUs and all memory of its machine. Docker's ``--cpus`` and ``--memory`` and the
limits of Kubernetes are those of a control group: affinity and ``/proc/meminfo`` say nothing of them. As many
guests as the machine has CPUs would slow each other down, and what takes more memory than the group has is
killed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from fabbbr.backends.control_groups import folders, lines

_PROC = Path("/proc")
_NO_LIMIT = ("max", "-1")
_LIMITS = ("memory.max", "memory.high", "memory.limit_in_bytes")
_USED = ("memory.current", "memory.usage_in_bytes")
_CACHED = (("total_inactive_file", "total_active_file"), ("inactive_file", "active_file"))
"""In ``memory.stat``: of version 1 with all that is below the group, of version 2."""


def usable_cpus() -> list[int]:
    """The CPUs this process may run on."""
    return sorted(os.sched_getaffinity(0))


def cpus_at_once(proc: Path = _PROC) -> int:
    """As many as it may run on, and as its quota is worth, rounded up: at least one."""
    return max(1, min([len(usable_cpus()), *(math.ceil(quota) for quota in _quotas(proc))]))


def free_memory_bytes(proc: Path = _PROC) -> float:
    """What may still be taken, of the machine and of every group: infinite where nothing is said.

    What a group keeps of files on disk counts as free: the kernel gives it up when memory is wanted.
    """
    left = (_left_bytes(folder) for folder in folders("memory", proc))
    return max(0.0, min([_available_bytes(proc), *left]))


def processes_at_once(bytes_each: float, proc: Path = _PROC) -> int:
    """As many as there are CPUs and memory for: at least one."""
    with_memory = free_memory_bytes(proc) / bytes_each
    return max(1, math.floor(min(cpus_at_once(proc), with_memory)))


def _quotas(proc: Path) -> Iterator[float]:
    """In CPUs, of the control group of this process and of all that it is in."""
    quotas = (_quota(folder) for folder in folders("cpu", proc))
    return (quota for quota in quotas if quota is not None)


def _quota(folder: Path) -> float | None:
    """What a group may use of each period; None without a limit."""
    words = " ".join(lines(folder / "cpu.max")).split() or [
        *lines(folder / "cpu.cfs_quota_us"), *lines(folder / "cpu.cfs_period_us")
    ]  # fmt: skip
    if len(words) != 2 or words[0] in _NO_LIMIT:
        return None
    quota, period = map(int, words)
    return quota / period


def _available_bytes(proc: Path) -> float:
    """``MemAvailable`` of proc_meminfo(5), which is in KiB."""
    for line in lines(proc / "meminfo"):
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return float(int(amount.split()[0]) << 10)
    return math.inf


def _left_bytes(folder: Path) -> float:
    """What a group may still take."""
    limits, used = _numbers(folder, _LIMITS), _numbers(folder, _USED)
    if not limits or not used:
        return math.inf
    return min(limits) - used[0] + _cached_bytes(folder)


def _numbers(folder: Path, names: tuple[str, ...]) -> list[int]:
    """What those of these files say that there are, and that say a number."""
    words = (" ".join(lines(folder / name)) for name in names)
    return [int(word) for word in words if word.isdecimal()]


def _cached_bytes(folder: Path) -> int:
    split = (line.partition(" ") for line in lines(folder / "memory.stat"))
    said = {name: amount for name, _, amount in split if amount.isdecimal()}
    for names in _CACHED:
        if all(name in said for name in names):
            return sum(int(said[name]) for name in names)
    return 0

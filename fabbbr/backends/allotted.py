"""Which CPUs this process may use, and how many of them at once.

In a container one sees all CPUs of its machine and may use any, but no more than some at a time: Docker's
``--cpus`` and a limit of Kubernetes are quotas of a control group, and affinity says nothing of them. As
many guests as the machine has CPUs would slow each other down and use up the container's memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_NO_LIMIT = ("max", "-1")


def usable_cpus() -> list[int]:
    """The CPUs this process may run on."""
    return sorted(os.sched_getaffinity(0))


def cpus_at_once(proc: Path = Path("/proc")) -> int:
    """As many as it may run on, and as its quota is worth, rounded up: at least one."""
    return max(1, min([len(usable_cpus()), *(math.ceil(quota) for quota in _quotas(proc))]))


def _quotas(proc: Path) -> Iterator[float]:
    """In CPUs, of the control group of this process and of all that it is in."""
    groups = dict(_groups(proc))
    for mount in _mounts(proc):
        group = groups.get(mount.controller)
        if group is not None:
            for folder in _folders(mount, group):
                quota = _quota(folder)
                if quota is not None:
                    yield quota


class _Mount(NamedTuple):
    """A tree of control groups that can say what the CPU's quotas are."""

    controller: str
    """Empty for version 2, whose tree has all of them."""
    root: PurePosixPath
    """Which group stands at the mount point: in a container it may be that of the container."""
    point: Path


def _groups(proc: Path) -> Iterator[tuple[str, PurePosixPath]]:
    """Controller → group of this process (cgroups(7): ``hierarchy:controllers:path``)."""
    for line in _lines(proc / "self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, PurePosixPath(path)


def _mounts(proc: Path) -> Iterator[_Mount]:
    """By ``mountinfo`` (proc_pid_mountinfo(5)), whose words end at `` - `` and go on with the kind."""
    for line in _lines(proc / "self/mountinfo"):
        place, _, kind = line.partition(" - ")
        root, point = (_plain(word) for word in place.split()[3:5])
        name, _, options = kind.split(maxsplit=2)
        if name == "cgroup2":
            yield _Mount("", PurePosixPath(root), Path(point))
        elif name == "cgroup" and "cpu" in options.split(","):
            yield _Mount("cpu", PurePosixPath(root), Path(point))


def _folders(mount: _Mount, group: PurePosixPath) -> Iterator[Path]:
    """From the process's own group up to the one that is mounted."""
    # A group that is not below it is told as another container sees it: ours is what stands there.
    below = group.relative_to(mount.root).parts if group.is_relative_to(mount.root) else ()
    for depth in range(len(below), -1, -1):
        yield mount.point.joinpath(*below[:depth])


def _quota(folder: Path) -> float | None:
    """What a group may use of each period; None without a limit."""
    words = " ".join(_lines(folder / "cpu.max")).split() or [
        *_lines(folder / "cpu.cfs_quota_us"), *_lines(folder / "cpu.cfs_period_us")
    ]  # fmt: skip
    if len(words) != 2 or words[0] in _NO_LIMIT:
        return None
    quota, period = map(int, words)
    return quota / period


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []


def _plain(word: str) -> str:
    """A folder as it is: ``mountinfo`` writes a blank in octal."""
    return word.replace("\\040", " ")

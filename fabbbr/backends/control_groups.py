"""Where control groups say what this process may use: cgroups(7), version 1 and 2.

In a container one sees all of its machine; its group, and those around it, say how much of that is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

Controller: TypeAlias = Literal["cpu", "memory"]


def folders(controller: Controller, proc: Path) -> Iterator[Path]:
    """Of the group of this process, and of all that it is in; none where there are no groups."""
    groups = dict(_groups(proc))
    for mount in _mounts(proc, controller):
        group = groups.get(mount.controller)
        if group is not None:
            yield from _up_from(group, mount)


def lines(file: Path) -> list[str]:
    """Of a file; none where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []


class _Mount(NamedTuple):
    """A tree of control groups that knows the controller."""

    controller: str
    """Empty for version 2, whose tree has all of them."""
    root: PurePosixPath
    """Which group stands at the mount point: in a container it may be that of the container."""
    point: Path


def _groups(proc: Path) -> Iterator[tuple[str, PurePosixPath]]:
    """Controller → group of this process (cgroups(7): ``hierarchy:controllers:path``)."""
    for line in lines(proc / "self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, PurePosixPath(path)


def _mounts(proc: Path, controller: Controller) -> Iterator[_Mount]:
    """By ``mountinfo`` (proc_pid_mountinfo(5)), whose words end at `` - `` and go on with the kind."""
    for line in lines(proc / "self/mountinfo"):
        place, _, kind = line.partition(" - ")
        root, point = (_plain(word) for word in place.split()[3:5])
        name, _, options = kind.split(maxsplit=2)
        if name == "cgroup2":
            yield _Mount("", PurePosixPath(root), Path(point))
        elif name == "cgroup" and controller in options.split(","):
            yield _Mount(controller, PurePosixPath(root), Path(point))


def _up_from(group: PurePosixPath, mount: _Mount) -> Iterator[Path]:
    """From the process's own group up to the one that is mounted."""
    # A group that is not below it is told as another container sees it: ours is what stands there.
    below = group.relative_to(mount.root).parts if group.is_relative_to(mount.root) else ()
    for depth in range(len(below), -1, -1):
        yield mount.point.joinpath(*below[:depth])


def _plain(word: str) -> str:
    """A folder as it is: ``mountinfo`` writes a blank in octal."""
    return word.replace("\\040", " ")

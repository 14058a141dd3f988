"""Where a guest's memory stands: in a nameless file, in a folder that its kernel takes from TMPDIR.

The file grows as the guest uses its memory. Where it finds no room the guest dies, and where it may not be
executed it does not start; so a folder is chosen that has room and may. It counts as memory that we use, for
a limit on a container too.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fabbbr.backends.allotted import cpus_at_once, free_memory_bytes
from fabbbr.backends.guest.kernel.build import kernels_folder
from fabbbr.errors import EnvironmentUnfitError

LEAST_BYTES = 256 << 20
"""A small cell uses half of it; what a large one uses is known when it has used it."""
_OWN_BYTES = 320 << 20
"""What fabbbr itself takes while it makes tables and a report of some cells."""
_TMPFS = Path("/dev/shm")  # noqa: S108


def memory_folder() -> Path:
    """The first of TMPDIR, /dev/shm, /tmp and the cache that will do; else raise EnvironmentUnfitError."""
    found = {folder: unfit(folder) for folder in _candidates()}
    for folder, why in found.items():
        if why is None:
            return folder
    reasons = "; ".join(f"{folder} {why}" for folder, why in found.items())
    message = (
        f"no folder will do for the memory of a guest: {reasons}; set TMPDIR to one with "
        f"{LEAST_BYTES >> 20} MB, or enlarge /dev/shm (docker run --shm-size=4g)"
    )
    raise EnvironmentUnfitError(message)


def guests_at_once(bytes_each: float) -> int:
    """As many as there are CPUs for, and room for: at least one."""
    return max(1, min(cpus_at_once(), guests_with_room(bytes_each)))


def guests_with_room(bytes_each: float) -> int:
    """As many as that folder has room for, and what we may use of memory."""
    room = min(shutil.disk_usage(memory_folder()).free, free_memory_bytes() - _OWN_BYTES)
    return max(0, math.floor(room / bytes_each))


def _candidates() -> Iterator[Path]:
    given = os.environ.get("TMPDIR")
    if given:
        yield Path(given).absolute()
    yield from (_TMPFS, Path(tempfile.gettempdir()), kernels_folder().parent)


def unfit(folder: Path) -> str | None:
    """Why a guest's memory cannot stand there; None when it can."""
    try:
        state = os.statvfs(folder)
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    if state.f_flag & os.ST_NOEXEC:
        return "is mounted noexec"
    if state.f_flag & os.ST_RDONLY or not os.access(folder, os.W_OK | os.X_OK):
        return "cannot be written"
    free = state.f_bavail * state.f_frsize
    return None if free >= LEAST_BYTES else f"has {free >> 20} MB free"

"""Where a guest's memory stands: in a nameless file, in a folder that its kernel takes from TMPDIR.

The file grows as the guest uses its memory. Where it finds no room the guest dies, and where it may not be
executed it does not start; so a folder is chosen that has room and may.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fabbbr.backends.guest.kernel.build import kernels_folder
from fabbbr.errors import EnvironmentUnfitError

LEAST_BYTES = 256 << 20
"""A small cell uses 90 MB; what a large one uses is known when it has used it."""
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

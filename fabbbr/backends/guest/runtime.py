"""Folders for temporary files of guests, which go with who made them.

Their maker holds a lock on each, of which the kernel lets go when that process ends, however it ends: one
without a lock was left behind, and the next run removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fabbbr.errors import EnvironmentUnfitError

_PREFIX = "fabbbr_"
_ALWAYS = "/tmp"  # noqa: S108
_PLAIN = re.compile(r"[\w/.,:@%+-]{1,200}", re.ASCII)
"""What the kernel's command line and the guest's fstab take as it is."""


@contextlib.contextmanager
def runtime_folder() -> Iterator[Path]:
    """A new folder, removed at the end; raise EnvironmentUnfitError where none can be made."""
    path, lock = _made()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove the folders that runners left behind when they were killed."""
    for path in (path for folder in _candidates() for path in folder.glob(f"{_PREFIX}*")):
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.geteuid():
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _made() -> tuple[Path, int]:
    """A folder and the lock on it: made again when a sweep came between the two."""
    parent = _parent()
    while True:
        path = None
        try:
            path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            if path is not None:
                shutil.rmtree(path, ignore_errors=True)
                if isinstance(error, FileNotFoundError):
                    continue
            message = (
                f"no folder for temporary files can be made in {parent}: {error.strerror}; "
                "set TMPDIR to one where it can"
            )
            raise EnvironmentUnfitError(message) from error
        if _held(lock, path):
            return path, lock
        os.close(lock)


def _held(lock: int, path: Path) -> bool:
    """Take the lock; False when somebody else has it, or had it and removed the folder.

    Where the file system has no locks nobody gets one, and no folder is swept.
    """
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return not _swept(lock, path)


def _swept(lock: int, path: Path) -> bool:
    try:
        return path.stat().st_ino != os.fstat(lock).st_ino
    except FileNotFoundError:
        return True


def _parent() -> Path:
    """The first that the guest can start from."""
    noexec = None
    for folder in _candidates():
        try:
            noexec = bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)
        except OSError:
            continue
        if not noexec:
            return folder
    places = " nor in ".join(map(str, _candidates()))
    why = "they are mounted noexec" if noexec else "no such folder"
    message = f"no folder for temporary files can be had in {places}: {why}; set TMPDIR to one that will do"
    raise EnvironmentUnfitError(message)


def _candidates() -> tuple[Path, ...]:
    default = tempfile.gettempdir()
    return tuple(dict.fromkeys(Path(path) for path in (default, _ALWAYS) if _PLAIN.fullmatch(path)))

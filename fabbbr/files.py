"""Files in folders that may come from somebody else: read within bounds, and never through a link."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fabbbr.errors import FabbbrError, SpecError, StoreError, refusal
from fabbbr.foreign import inline

LARGEST_RECORD_BYTES = 128 << 20
"""Of run.json, a manifest, an index or an experiment file. A plan of 10 000 cells is 40 MB; parsing takes ten
times as much memory, which a laptop still has."""
LARGEST_RAW_BYTES = 4 << 30
"""Of a raw file: an hour of ss for 100 flows at 100 ms is 2.5 GB. Hashing the most
takes ten seconds, not for ever."""

_CHUNK = 1 << 20
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


STATE_REMEDY = "set XDG_STATE_HOME to a folder of yours that can be written"


def state_folder() -> Path:
    """Where fabbbr keeps what it remembers for this user; raise StoreError when there is no place for it."""
    given = os.environ.get("XDG_STATE_HOME", "")
    root = given if os.path.isabs(given) else os.path.expanduser("~/.local/state")  # noqa: PTH111, PTH117 - strings
    if not os.path.isabs(root):  # noqa: PTH117 - a relative one is the folder of whoever wrote the experiment
        message = f"you have no home folder; {STATE_REMEDY}"
        raise StoreError(message)
    return Path(root) / "fabbbr"


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return _sha256_in(file)


def sha256_of_own(path: Path, *, limit: int) -> str:
    """Hex digest of a file inside a run folder; StoreError as for :func:`read_own`."""
    with _opened(path, limit) as file:
        return _sha256_in(file)


def read_own(path: Path, *, limit: int) -> bytes:
    """The bytes of a file inside a run folder.

    Raises StoreError, which names the file, when it cannot be read, has more than ``limit`` bytes, or is a
    link, a folder, a pipe or a device.
    """
    with _opened(path, limit) as file:
        return file.read(os.fstat(file.fileno()).st_size)


@contextmanager
def _opened(path: Path, limit: int) -> Iterator[BinaryIO]:
    try:
        found = path.lstat()
        require(path, found, stat.S_IFREG)
        if found.st_size > limit:
            message = (
                f"{inline(str(path))} has {found.st_size} bytes, where fabbbr never writes "
                f"more than {limit}; remove it"
            )
            raise StoreError(message)
        # What takes the file's place meanwhile is not followed or waited for either.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            yield file
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> FabbbrError:
    """Why something inside a run folder cannot be read, and what to do."""
    said = f"cannot read {inline(str(path))}"
    error.filename = None
    known = refusal(error, said)
    return known or StoreError(
        f"{said}: {error.strerror}; make it readable, or take the folder from where it came again"
    )


def _sha256_in(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def require(path: Path, found: os.stat_result, kind: int) -> None:
    """Raise StoreError unless ``found`` (by lstat) is of the kind ``stat.S_IFREG`` or ``stat.S_IFDIR``."""
    actual = stat.S_IFMT(found.st_mode)
    if actual != kind:
        wanted = "a folder" if kind == stat.S_IFDIR else "a file"
        message = (
            f"{inline(str(path))} is {_KINDS.get(actual, 'something else')} and not {wanted}: "
            "inside a run folder fabbbr follows no link and waits for nothing; remove it"
        )
        raise StoreError(message)


def require_folder(path: Path) -> None:
    """Raise StoreError when ``path`` is something else than a folder, or a link to one; it may be missing."""
    with contextlib.suppress(FileNotFoundError):
        require(path, path.lstat(), stat.S_IFDIR)


def refuse_link(path: Path) -> None:
    """Raise StoreError when something is to be written at ``path`` and a link stands there."""
    if os.path.islink(path):  # noqa: PTH114 - that of a path raises in a folder that may not be searched
        message = (
            f"{inline(str(path))} is a symbolic link: fabbbr does not write where it points to; remove it"
        )
        raise StoreError(message)


def write_atomically(
    path: Path,
    text: str | bytes,
    *,
    mode: int | None = None,
    remedy: str = "free some space or choose another --out",
) -> None:
    """Replace ``path`` by ``text``; after a crash it holds the old bytes or the new, never half of them.

    ``mode`` (default: what the umask leaves of 666) is that of the file from its first byte on. Raises
    StoreError, with ``remedy``, when it cannot be written.
    """
    refuse_link(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with _new(partial, mode) as file:
            file.write(text.encode() if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        message = f"cannot write {path}: {error.strerror}; {remedy}"
        raise StoreError(message) from error


def _new(path: Path, mode: int | None) -> BinaryIO:
    """A file that was not there; what a killed process of the same number left, or a link, is taken away."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags, 0o666 if mode is None else mode), "wb")
    if mode is not None:
        os.fchmod(file.fileno(), mode)  # whatever the umask took away
    return file


def read_named(path: Path, *, most: int, said: str) -> bytes:
    """The bytes of a file that somebody named: it may be a pipe, a device or far too long.

    Raises SpecError when it cannot be read, is no file, or has more than ``most`` bytes (``said``: whose
    limit that is).
    """
    try:
        # Without O_NONBLOCK a pipe that nobody writes to would hold the opening itself.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - a descriptor
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                message = f"cannot read {path}: it is no file; name one"
                raise SpecError(message)
            content = file.read(most + 1)
    except (OSError, ValueError) as error:
        message = f"cannot read {path}: {getattr(error, 'strerror', error)}; name an existing file"
        raise SpecError(message) from error
    if len(content) > most:
        message = f"{path}: more than {most} bytes, {said}; shorten it"
        raise SpecError(message)
    return content

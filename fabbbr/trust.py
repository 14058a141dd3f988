"""Which slice files and modules may run: code that came with an experiment has the rights of the caller.

What somebody said yes to is remembered by the file's place and the digest of its bytes, in the user's state
folder. A memory that is damaged, or that others may write, counts for nothing: at worst one is asked again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from fabbbr import files
from fabbbr.errors import StoreError, UntrustedError
from fabbbr.files import read_own, unreadable, write_atomically
from fabbbr.foreign import inline
from fabbbr.record import Record

_LARGEST_BYTES = 8 << 20
Kind = Literal["slice", "module"]
_SAID: dict[Kind, str] = {
    "slice": "a slice file is Python that runs with all your rights, and this one",
    "module": "a module's Makefile runs with all your rights, its code in a kernel, and this one",
}


@dataclass(frozen=True, kw_only=True)
class Code:
    """A file as it would run."""

    place: str
    """Absolute, links followed, so that a file has one place; what is not UTF-8 is spelt out."""
    sha256: str
    """Of the very bytes that would run."""
    kind: Kind = field(default="slice", compare=False)


@dataclass(kw_only=True)
class Trust:
    """Decides for one call; by default only what was said yes to before may run."""

    anything: bool = False
    """Every file may run, for this call; nothing is remembered."""
    ask: Callable[[Code], bool] | None = None
    """Puts the question to somebody. None: there is nobody to ask."""
    note: Callable[[str], None] = lambda _: None
    """Is told what went wrong with the memory; the question does not depend on it."""
    _agreed: set[Code] = field(default_factory=set, init=False)

    def require(self, path: Path, content: bytes, kind: Kind = "slice") -> None:
        """Raise UntrustedError unless ``content``, which was read from ``path``, may run."""
        place = os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")
        code = Code(place=place, sha256=hashlib.sha256(content).hexdigest(), kind=kind)
        if self.anything or code in self._agreed:
            return
        if not self._remembers(code):
            self._ask(code)
        self._agreed.add(code)

    def _remembers(self, code: Code) -> bool:
        try:
            return code.sha256 in _read(memory_path()).slices.get(code.place, ())
        except StoreError as error:
            self.note(f"what you trusted before is not known: {error}")
            return False

    def _ask(self, code: Code) -> None:
        if self.ask is None or not self.ask(code):
            message = (
                f"{inline(code.place)}: {_SAID[code.kind]} "
                f"(sha256 {code.sha256}) is not trusted; read it, then give --trust (in Python: trust=True)"
            )
            raise UntrustedError(message)
        try:
            _remember(code)
        except StoreError as error:
            self.note(f"your answer is not remembered: {error}")


class _Memory(Record):
    """The file ``trusted.json``."""

    slices: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Place → digests of the contents that may run there."""


def memory_path() -> Path:
    """Where answers are kept; raise StoreError when the user has no folder for it."""
    return files.state_folder() / "trusted.json"


def _read(path: Path) -> _Memory:
    """What is remembered; raise StoreError when it is damaged or not the caller's alone."""
    if not os.path.lexists(path):
        return _Memory()
    try:
        found = path.lstat()
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            message = f"{inline(str(path))} can be written by others; remove it"
            raise StoreError(message)
        return _Memory.model_validate_json(read_own(path, limit=_LARGEST_BYTES))
    except OSError as error:
        raise unreadable(path, error) from error
    except ValidationError as error:
        message = f"{inline(str(path))} is damaged: {error.errors()[0]['msg']}; the next yes replaces it"
        raise StoreError(message) from None


def _remember(code: Code) -> None:
    """Add an answer to those of all other processes; raise StoreError when it cannot be kept."""
    path = memory_path()
    with _alone(path.with_name("trusted.lock")):
        try:
            known = _read(path).slices
        except StoreError:
            known = {}
        digests = dict.fromkeys((*known.get(code.place, ()), code.sha256))
        memory = _Memory(slices={**known, code.place: tuple(digests)})
        write_atomically(path, memory.model_dump_json(indent=1) + "\n", mode=0o600, remedy=files.STATE_REMEDY)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold ``lock`` for the block, after whoever holds it now: for as long as it takes to write a file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(lock, flags, 0o600)
    except OSError as error:
        message = f"cannot write {inline(str(lock))}: {error.strerror}; {files.STATE_REMEDY}"
        raise StoreError(message) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    except OSError as error:
        message = f"cannot lock {inline(str(lock))}: {error.strerror}; {files.STATE_REMEDY}"
        raise StoreError(message) from error
    finally:
        os.close(descriptor)

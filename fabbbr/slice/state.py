"""What is remembered of a slice: a small file for each, in the user's state folder.

It says what was asked and how far that has come, never a secret. Lost, it costs no more than the
measurements: the testbed knows the slice by its name.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, ValidationError

from fabbbr.errors import StoreError, UsageError
from fabbbr.files import STATE_REMEDY, read_own, state_folder, write_atomically
from fabbbr.foreign import inline
from fabbbr.record import Record
from fabbbr.reserve.records import NicKind, Reservation
from fabbbr.reserve.refusals import require_name
from fabbbr.reserve.reservation import Wide
from fabbbr.spec.experiment import SliceChoice

Phase = Literal["asked", "submitted", "up", "reached", "prepared", "measured"]
"""What was done last. ``asked``: submitted perhaps, nobody said so yet."""
PHASES: tuple[Phase, ...] = get_args(Phase)
_LARGEST_BYTES = 8 << 20


class Wish(Record):
    """A slice as the user asked for it."""

    backend: str
    options: dict[str, str] = Field(default_factory=dict)
    """Of the backend, as the path of its inventory."""
    definition: SliceChoice
    sites: tuple[str, ...] = ()
    """As given: sites, ``place=site``, or ``random``."""
    rtt_s: float | None = None
    avoid: tuple[str, ...] = ()
    seed: int = 1
    nic: NicKind = "NIC_Basic"
    wide: Wide = "L2STS"
    size: str = "default"
    image: str = "default_ubuntu_24"
    lease_s: float = 24 * 3600.0


class MeasuredPair(Record):
    """The path between two hosts with nothing emulated on it."""

    sender: str
    receiver: str
    rtt_s: float | None
    """The least of the pings; None when none came back."""
    lost: float
    """Share of the pings."""
    rate_bps: float | None = None
    """What a TCP flow got at the receiver, after TCP's headers; None: not measured."""
    said: str = ""
    """Why something was not measured."""


class SliceState(Record):
    """The file of a slice."""

    format: Literal[1] = 1
    wish: Wish
    reservation: Reservation
    id: str | None = None
    phase: Phase = "asked"
    prepared: bool = False
    """Whether Ansible was run; one may leave it out."""
    lease_end: datetime | None = None
    """As the testbed said last."""
    pairs: tuple[MeasuredPair, ...] = ()

    def reached(self, phase: Phase) -> bool:
        """Whether this was done."""
        return PHASES.index(self.phase) >= PHASES.index(phase)


def folder() -> Path:
    """Where the files are; raise StoreError when the user has no place for them."""
    return state_folder() / "slices"


def names() -> tuple[str, ...]:
    """Of all slices that are remembered, sorted."""
    return tuple(sorted(path.stem for path in folder().glob("[!.]*.json")))


def load(name: str) -> SliceState | None:
    """What is remembered; None when that is nothing. Raise StoreError when it is damaged."""
    require_name(name)
    path = folder() / f"{name}.json"
    if not os.path.lexists(path):
        return None
    try:
        return SliceState.model_validate_json(read_own(path, limit=_LARGEST_BYTES))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        message = (
            f"{inline(str(path))} is damaged or of another version ({where}: {first['msg']}); move it away: "
            f"'fabbbr slice show {name} --backend …' finds the slice without it"
        )
        raise StoreError(message) from None


def save(state: SliceState) -> SliceState:
    """Remember; raise StoreError when that is not possible. Returns what was given."""
    path = folder() / f"{state.reservation.name}.json"
    _make(path.parent)
    write_atomically(path, state.model_dump_json(indent=1) + "\n", mode=0o600, remedy=STATE_REMEDY)
    return state


def forget(name: str) -> None:
    """Remove the file."""
    (folder() / f"{name}.json").unlink(missing_ok=True)


@contextlib.contextmanager
def only_worker(name: str) -> Iterator[None]:
    """In this block no other process changes the slice; raise UsageError when one does already."""
    require_name(name)
    path = folder() / f".{name}.lock"
    _make(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(descriptor, path):
            message = f"another fabbbr is at work on slice {name}; wait for it, or end it"
            raise UsageError(message)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, path: Path) -> bool:
    """Whether the lock is ours, and the file still the one that others would open."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_ino == path.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def _make(where: Path) -> None:
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make {inline(str(where))}: {error.strerror}; {STATE_REMEDY}"
        raise StoreError(message) from error

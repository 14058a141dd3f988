"""The run folder: raw files first, a hashed manifest, then one atomic rename.

Layout and raw file names: ``docs/run-folder.md``. A cell folder either is whole or does not exist; work
in progress lives in ``.partial/`` and is removed when the run is entered again. Everything that can change a
number is under a digest: raw files in their manifest, manifests and ``run.json`` in themselves. A folder may
come from somebody else, so no link in it is followed and nothing in it is read without bounds.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TypeVar

from pydantic import ValidationError

from fabbbr import seal
from fabbbr.errors import StoreError
from fabbbr.files import (
    LARGEST_RAW_BYTES,
    LARGEST_RECORD_BYTES,
    read_own,
    refuse_link,
    require_folder,
    sha256_of_own,
    unreadable,
    write_atomically,
)
from fabbbr.foreign import inline
from fabbbr.manifest import FORMAT_VERSION, CellManifest, RunManifest
from fabbbr.model import Cell
from fabbbr.older import in_todays_shape

RUN, EXPERIMENT, MANIFEST = "run.json", "experiment.yaml", "manifest.json"
CELLS, RAW = "cells", "raw"
MODULES = "modules"
"""Below it, by the first 16 digits of their digest, the sources of the congestion controls that ran."""
BESIDE = "guest"
"""Below a run from elsewhere: the run folder of the same cells in the guest."""
_WRITTEN = (".lock", ".partial", "failed", CELLS, "tables", MODULES, BESIDE, RUN, EXPERIMENT)
"""What a run writes in its folder."""
_SEALED_FROM = 2
"""Format in which manifests began to carry a digest of themselves."""

_FORMAT = re.compile(rb'"format_version": ?([0-9]{1,9})')

_Manifest = TypeVar("_Manifest", RunManifest, CellManifest)


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the run folder ``path``, which is made if need be, for as long as the block lasts.

    The kernel lets go of it when this process ends, however it ends. Raise StoreError when another run holds
    it, or when nothing can be written there.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        for place in (*(path / name for name in _WRITTEN), *(path / "failed").glob("*")):
            refuse_link(place)
        lock = _lock_file(path / ".lock")
    except OSError as error:
        message = f"cannot write to {path}: {error.strerror}; choose another --out"
        raise StoreError(message) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another fabbbr runs in {path}: wait for it, or choose another --out"
            raise StoreError(message) from None
        yield


def _lock_file(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o666), "rb+", buffering=0)


@dataclass(frozen=True)
class Stored:
    """What is known of a manifest as a file."""

    sha256: str
    """Of all its bytes."""
    has_digest: bool
    """False in format 1: damage that leaves it valid is not noticed."""


@dataclass(frozen=True)
class StoredCell:
    """A whole cell on disk."""

    folder: Path
    manifest: CellManifest
    stored: Stored

    @property
    def id(self) -> str:
        """The cell's id."""
        return self.manifest.cell.id

    def raw(self, name: str) -> Path:
        """Path of the raw file ``name``; it may not exist."""
        return self.folder / RAW / name

    def damage(self, *, hashes: bool = True) -> list[str]:
        """What differs from the manifest: missing, unknown and, with ``hashes`` only, altered files."""
        try:
            found = {f"{RAW}/{path.name}": path for path in _listed(self.folder / RAW)}
            strangers = [path.name for path in _listed(self.folder) if path.name not in (MANIFEST, RAW)]
        except StoreError as error:
            return [f"{inline(self.id)}: {error}"]
        problems = [
            f"{name} is not in the manifest"
            for name in (*sorted(strangers), *sorted(found.keys() - self.manifest.files.keys()))
        ]
        for name, expected in sorted(self.manifest.files.items()):
            if name not in found:
                problems.append(f"{name} is missing")
            elif hashes:
                problems += _altered(found[name], name, expected)
        return [f"{inline(self.id)}: {inline(problem)}" for problem in problems]


class RunFolder:
    """A run folder that exists. Use :meth:`create` or :meth:`open`."""

    def __init__(self, path: Path, manifest: RunManifest, stored: Stored) -> None:
        self.path = path
        self.manifest = manifest
        self.stored = stored

    @classmethod
    def create(cls, path: Path, manifest: RunManifest, experiment_text: str) -> RunFolder:
        """Make the folder, or give the one there a new plan; raise StoreError when it cannot be written.

        A crash between two writes leaves a folder that verifies: ``run.json`` knows the experiment file
        before and after, and a folder without ``run.json`` is none yet.
        """
        try:
            require_folder(path / CELLS)
            (path / CELLS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"cannot create {path}: {error.strerror}; choose another --out"
            raise StoreError(message) from error
        file, copy = path / RUN, path / EXPERIMENT
        is_new = not file.exists()
        # Of a folder of format 1 the copy's digest is not known yet.
        is_unknown = not is_new and not manifest.experiment_sha256 and copy.exists()
        known = [sha256_of_own(copy, limit=LARGEST_RECORD_BYTES)] if is_unknown else []
        given = hashlib.sha256(experiment_text.encode()).hexdigest()
        versions = tuple(dict.fromkeys((*manifest.experiment_sha256, *known, given)))
        if is_new:
            write_atomically(copy, experiment_text)
        write_atomically(file, _sealed(manifest.model_copy(update={"experiment_sha256": versions})))
        if not is_new:
            write_atomically(copy, experiment_text)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run folder; raise StoreError when it is none, damaged, or from a newer fabbbr."""
        file = path / RUN
        if not os.path.lexists(file):
            message = f"{path} is not a run folder: it has no {RUN}"
            raise StoreError(message)
        return cls(path, *_read(RunManifest, file))

    def beside(self) -> RunFolder | None:
        """The run of the same cells in the guest; None where there is none. Raise as :meth:`open`."""
        path = self.path / BESIDE
        if not os.path.lexists(path / RUN):
            return None
        require_folder(path)
        return RunFolder.open(path)

    @property
    def partial(self) -> Path:
        """Where cells are while they run."""
        return self.path / ".partial"

    def has(self, cell_id: str) -> bool:
        """Whether the cell is there and whole."""
        return holds(self.path, cell_id)

    @cached_property
    def planned(self) -> dict[str, Cell]:
        """The cells of the plan by their ids."""
        return {cell.id: cell for cell in self.manifest.cells}

    def names(self) -> list[str]:
        """What stands in ``cells/``, in order; raise StoreError when that cannot be read."""
        if not os.path.lexists(self.path / CELLS):
            message = f"{self.path} has no cells folder: there is nothing left of the run"
            raise StoreError(message)
        return [path.name for path in _listed(self.path / CELLS)]

    def cell(self, cell_id: str) -> StoredCell:
        """Read one cell; raise StoreError when its manifest is missing, damaged, or of another cell."""
        folder = self.path / CELLS / cell_id
        require_folder(folder)
        manifest, stored = _read(CellManifest, folder / MANIFEST)
        mistake = self._mix_up(cell_id, manifest)
        if mistake is not None:
            message = f"cell {inline(cell_id)} {mistake}"
            raise StoreError(message)
        return StoredCell(folder, manifest, stored)

    def _mix_up(self, cell_id: str, manifest: CellManifest) -> str | None:
        """Why a manifest is not the one of this cell of this run."""
        found, planned = manifest.cell, self.planned.get(cell_id)
        if found.id != cell_id:
            return f"says that it is {inline(found.id)}: it was renamed or copied"
        if planned is None:
            return f"is not in the plan of {RUN}"
        if planned != found:
            different = [name for name in Cell.model_fields if getattr(planned, name) != getattr(found, name)]
            return f"is another than the one planned in {RUN}, by its {', '.join(different)}"
        here = (self.manifest.backend, self.manifest.clock)
        there = (manifest.provenance.testbed.backend, manifest.provenance.testbed.clock)
        # Format 1 did not always say which clock it was.
        if self.stored.has_digest and here != there:
            return f"ran in {' on clock '.join(there)}, and this run is one in {' on clock '.join(here)}"
        return None

    def cells(self) -> Iterator[StoredCell]:
        """The whole cells, in the order of their ids; raise StoreError at the first that is damaged."""
        return (self.cell(name) for name in self.names())

    def begin(self, cell_id: str) -> Path:
        """An empty work folder for the cell, with ``raw/`` in it."""
        work = self.partial / cell_id
        require_folder(self.partial)
        shutil.rmtree(work, ignore_errors=True)
        try:
            (work / RAW).mkdir(parents=True)
        except OSError as error:
            message = f"cannot create {work}: {error.strerror}; free some space or choose another --out"
            raise StoreError(message) from error
        return work

    def keep_module(self, sha256: str, contents: Mapping[str, bytes]) -> None:
        """Keep the sources of a congestion control that cells run, unless they are there."""
        final = self.path / MODULES / sha256[:16]
        if os.path.lexists(final):
            return
        staged = self.partial / f"module-{sha256[:16]}"
        require_folder(self.partial)
        shutil.rmtree(staged, ignore_errors=True)
        try:
            for name, content in contents.items():
                (staged / name).parent.mkdir(parents=True, exist_ok=True)
                (staged / name).write_bytes(content)
            require_folder(final.parent)
            final.parent.mkdir(exist_ok=True)
            staged.rename(final)
        except OSError as error:
            message = f"cannot write {final}: {error.strerror}; free some space or choose another --out"
            raise StoreError(message) from error

    def kept_module(self, sha256: str) -> dict[str, bytes] | None:
        """The sources that are kept of a module, by name and in order; None where there are none.

        Raises StoreError for what cannot be read, or is a link.
        """
        folder = self.path / MODULES / sha256[:16]
        if not os.path.lexists(folder):
            return None
        require_folder(folder.parent)
        require_folder(folder)
        files = [Path(place) / name for place, _, names in os.walk(folder) for name in names]
        named = {file.relative_to(folder).as_posix(): file for file in files}
        return {name: read_own(named[name], limit=LARGEST_RECORD_BYTES) for name in sorted(named)}

    def discard(self, cell_id: str) -> None:
        """Drop the work folder of a cell that will not be finished."""
        shutil.rmtree(self.partial / cell_id, ignore_errors=True)

    def commit(self, cell_id: str, manifest: CellManifest) -> StoredCell:
        """Write the manifest and give the work folder its final name."""
        work, final = self.partial / cell_id, self.path / CELLS / cell_id
        old = self.partial / f"{cell_id}.old"
        write_atomically(work / MANIFEST, _sealed(manifest))
        try:
            if os.path.lexists(final):
                # By a rename: half a cell must not be seen, whenever this process is killed.
                final.rename(old)
            work.rename(final)
        except OSError as error:
            message = (
                f"cannot keep cell {cell_id} as {final}: {error.strerror}; free some "
                f"space or choose another --out"
            )
            raise StoreError(message) from error
        shutil.rmtree(old, ignore_errors=True)
        return self.cell(cell_id)


def holds(path: Path, cell_id: str) -> bool:
    """Whether the run folder ``path``, which may not be there yet, has the whole cell."""
    return (path / CELLS / cell_id / MANIFEST).exists()


def hashes_of_raw_files(work: Path) -> dict[str, str]:
    """Name below ``work`` → sha256 of every file in ``work/raw``; raise StoreError for an unreadable one."""
    return {
        f"{RAW}/{path.name}": sha256_of_own(path, limit=LARGEST_RAW_BYTES) for path in _listed(work / RAW)
    }


def _listed(folder: Path) -> list[Path]:
    """What is in a folder, in order; raise StoreError when it is none, or a link to one."""
    try:
        require_folder(folder)
        return sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error


def _altered(path: Path, name: str, expected: str) -> list[str]:
    try:
        found = sha256_of_own(path, limit=LARGEST_RAW_BYTES)
    except StoreError as error:
        return [str(error)]
    return [] if found == expected else [f"{name} does not match its sha256"]


def _sealed(manifest: RunManifest | CellManifest) -> str:
    return seal.sealed(manifest.model_dump_json(indent=1))


def _read(kind: type[_Manifest], file: Path) -> tuple[_Manifest, Stored]:
    text = read_own(file, limit=LARGEST_RECORD_BYTES)
    try:
        record, has_digest = seal.opened(text)
        format_version = _format_of(record)
        if format_version > FORMAT_VERSION:
            message = (
                f"{inline(str(file))} was written by a newer fabbbr (format "
                f"{format_version}): update this one"
            )
            raise StoreError(message)
        shaped = in_todays_shape(record, format_version)
        manifest = _validated(kind, shaped, has_digest=has_digest)
    except ValueError as error:
        remedy = (
            "; take it from where it came again, or remove it and run again" if kind is RunManifest else ""
        )
        message = f"{inline(str(file))} is damaged or was edited: {error}{remedy}"
        raise StoreError(message) from None
    return manifest, Stored(hashlib.sha256(text).hexdigest(), has_digest)


def _format_of(record: bytes) -> int:
    """The first that is said about the format, which an unknown newer one says too; 0 when nothing is."""
    said = _FORMAT.search(record)
    return int(said[1]) if said is not None else 0


def _validated(kind: type[_Manifest], record: bytes, *, has_digest: bool) -> _Manifest:
    """The record as a manifest; raise ValueError when it is none."""
    try:
        manifest = kind.model_validate_json(record)
    except ValidationError as error:
        first = error.errors()[0]
        place = inline(".".join(str(part) for part in first["loc"])) or "the whole file"
        message = f"{place}: {first['msg']}"
        raise ValueError(message) from None
    if manifest.format_version >= _SEALED_FROM and not has_digest:
        message = "it has no digest"
        raise ValueError(message)
    return manifest

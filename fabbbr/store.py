"""The run folder: raw files first, a hashed manifest, then one atomic rename.

Layout and raw file names: ``docs/run-folder.md``. A cell folder either is whole or does not exist; work
in progress lives in ``.partial/`` and is removed when the run is entered again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from fabbbr.errors import StoreError
from fabbbr.model import FORMAT_VERSION, CellManifest, RunManifest

_CHUNK = 1 << 20
_Manifest = TypeVar("_Manifest", RunManifest, CellManifest)


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def write_atomically(path: Path, text: str) -> None:
    """Replace ``path`` by ``text``; after a crash it holds the old text or the new, never half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        message = f"cannot write {path}: {error.strerror}; free some space or choose another --out"
        raise StoreError(message) from error


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the run folder ``path``, which is made if need be, for as long as the block lasts.

    The kernel lets go of it when this process ends, however it ends. Raise StoreError when another run holds it,
    or when nothing can be written there.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / ".lock").open("w")
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


@dataclass(frozen=True)
class StoredCell:
    """A whole cell on disk."""

    folder: Path
    manifest: CellManifest

    @property
    def id(self) -> str:
        """The cell's id."""
        return self.manifest.cell.id

    def raw(self, name: str) -> Path:
        """Path of the raw file ``name``; it may not exist."""
        return self.folder / "raw" / name

    def damage(self) -> list[str]:
        """What differs from the manifest: missing, altered or unknown raw files."""
        found = {
            str(path.relative_to(self.folder)) for path in (self.folder / "raw").rglob("*") if path.is_file()
        }
        problems = [
            f"{self.id}: {name} is not in the manifest" for name in sorted(found - self.manifest.files.keys())
        ]
        for name, expected in sorted(self.manifest.files.items()):
            if name not in found:
                problems.append(f"{self.id}: {name} is missing")
            elif sha256_of(self.folder / name) != expected:
                problems.append(f"{self.id}: {name} does not match its sha256")
        return problems


class RunFolder:
    """A run folder that exists. Use :meth:`create` or :meth:`open`."""

    def __init__(self, path: Path, manifest: RunManifest) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def create(cls, path: Path, manifest: RunManifest, experiment_text: str) -> RunFolder:
        """Make the folder and write ``run.json``; raise StoreError if it holds another run."""
        try:
            (path / "cells").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"cannot create {path}: {error.strerror}; choose another --out"
            raise StoreError(message) from error
        write_atomically(path / "experiment.yaml", experiment_text)
        write_atomically(path / "run.json", manifest.model_dump_json(indent=1))
        return cls(path, manifest)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run folder; raise StoreError when it is none, damaged, or from a newer fabbbr."""
        file = path / "run.json"
        try:
            text = file.read_bytes()
        except FileNotFoundError:
            message = f"{path} is not a run folder: it has no run.json"
            raise StoreError(message) from None
        except OSError as error:
            message = f"cannot read {file}: {error.strerror}"
            raise StoreError(message) from error
        return cls(path, _validated(RunManifest, text, file))

    @property
    def partial(self) -> Path:
        """Where cells are while they run."""
        return self.path / ".partial"

    def has(self, cell_id: str) -> bool:
        """Whether the cell is there and whole."""
        return (self.path / "cells" / cell_id / "manifest.json").exists()

    def cell(self, cell_id: str) -> StoredCell:
        """Read one cell; raise StoreError when its manifest is missing or damaged."""
        folder = self.path / "cells" / cell_id
        file = folder / "manifest.json"
        try:
            text = file.read_bytes()
        except OSError as error:
            message = f"cell {cell_id}: cannot read {file}: {error.strerror}; remove the folder and run again"
            raise StoreError(message) from error
        return StoredCell(folder, _validated(CellManifest, text, file))

    def cells(self) -> Iterator[StoredCell]:
        """The whole cells, in the order of their ids."""
        for file in sorted((self.path / "cells").glob("*/manifest.json")):
            yield self.cell(file.parent.name)

    def begin(self, cell_id: str) -> Path:
        """An empty work folder for the cell, with ``raw/`` in it."""
        work = self.partial / cell_id
        shutil.rmtree(work, ignore_errors=True)
        try:
            (work / "raw").mkdir(parents=True)
        except OSError as error:
            message = f"cannot create {work}: {error.strerror}"
            raise StoreError(message) from error
        return work

    def discard(self, cell_id: str) -> None:
        """Drop the work folder of a cell that will not be finished."""
        shutil.rmtree(self.partial / cell_id, ignore_errors=True)

    def commit(self, cell_id: str, manifest: CellManifest) -> StoredCell:
        """Write the manifest and give the work folder its final name."""
        work, final = self.partial / cell_id, self.path / "cells" / cell_id
        write_atomically(work / "manifest.json", manifest.model_dump_json(indent=1))
        try:
            if final.exists():
                shutil.rmtree(final)
            work.rename(final)
        except OSError as error:
            message = f"cannot keep cell {cell_id} as {final}: {error.strerror}"
            raise StoreError(message) from error
        return StoredCell(final, manifest)


def hashes_of_raw_files(work: Path) -> dict[str, str]:
    """Relative path → sha256 of every file under ``work/raw``."""
    return {
        str(path.relative_to(work)): sha256_of(path)
        for path in sorted((work / "raw").rglob("*"))
        if path.is_file()
    }


def _validated(kind: type[_Manifest], text: bytes, file: Path) -> _Manifest:
    try:
        manifest = kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole file"
        message = f"{file} is damaged at {place}: {first['msg']}"
        raise StoreError(message) from None
    if manifest.format_version > FORMAT_VERSION:
        message = f"{file} was written by a newer fabbbr (format {manifest.format_version})"
        raise StoreError(message)
    return manifest

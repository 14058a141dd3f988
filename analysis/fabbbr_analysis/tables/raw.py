"""The raw files of a cell, as the readers of tables find them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fabbbr.store import StoredCell


def source_of(stored: StoredCell, name: str) -> str:
    """Name a raw file in a message."""
    return f"cell {stored.id}, {name}"


def read_raw(stored: StoredCell, name: str) -> bytes:
    """Return the content of a raw file; a file that is not there says nothing."""
    path = stored.raw(name)
    return path.read_bytes() if path.exists() else b""


def samples_of(stored: StoredCell, kind: str, suffix: str) -> Iterator[Path]:
    """Find what the sampler ``kind`` left, a file per node."""
    return iter(sorted((stored.folder / "raw").glob(f"{kind}.*{suffix}")))

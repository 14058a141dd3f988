"""``tables/index.json``: what the tables were made from, and their digests: others are noticed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabbbr import seal
from fabbbr.errors import StoreError
from fabbbr.files import LARGEST_RECORD_BYTES, read_own, require_folder, sha256_of_own

_INDEX = "index.json"


def write(tables: Path, made_from: Mapping[str, Any]) -> None:
    """Write the index of the tables that are in the folder."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_of_own(path, limit=path.stat().st_size)}
        for path in sorted(tables.glob("*.parquet"))
    }
    text = json.dumps({**made_from, "tables": files}, indent=1, sort_keys=True)
    (tables / _INDEX).write_text(seal.sealed(text + "\n"), encoding="utf-8")


def is_current(tables: Path, made_from: Mapping[str, Any]) -> bool:
    """Whether the tables were made from just this, and are still what they were."""
    index = _read(tables)
    return index is not None and {**index, **made_from} == index and not _altered(tables, index)


def altered(tables: Path) -> list[str]:
    """What is wrong with the tables, one line each: those that are not what was written.

    Nothing when there are no tables.
    """
    try:
        require_folder(tables)
    except StoreError as error:
        return [str(error)]
    if not tables.exists():
        return []
    index = _read(tables)
    names = [_INDEX] if index is None else _altered(tables, index)
    return [f"tables/{name} is not what was written; fabbbr report makes the tables again" for name in names]


def _read(tables: Path) -> dict[str, Any] | None:
    """The index; None when there is none, or it is not what was written."""
    try:
        record, has_digest = seal.opened(read_own(tables / _INDEX, limit=LARGEST_RECORD_BYTES))
    except (StoreError, ValueError):
        return None
    return json.loads(record) if has_digest else None


def _altered(tables: Path, index: Mapping[str, Any]) -> list[str]:
    return [name for name, written in index["tables"].items() if not _is(tables / name, written)]


def _is(path: Path, written: Mapping[str, Any]) -> bool:
    try:
        return bool(sha256_of_own(path, limit=written["bytes"]) == written["sha256"])
    except StoreError:
        return False

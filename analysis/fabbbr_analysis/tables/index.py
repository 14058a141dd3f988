"""``tables/index.json``: what the tables were made from, and their digests: others are noticed.

Of what a cell has for itself, its own record says that (see ``pieces``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabbbr import seal
from fabbbr.errors import StoreError
from fabbbr.files import LARGEST_RECORD_BYTES, read_own, require_folder, sha256_of_own
from fabbbr_analysis.tables import pieces

INDEX = "index.json"


def write(work: Path, made_from: Mapping[str, Any]) -> None:
    """Write the index of the tables that are in the folder ``work``."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_of_own(path, limit=path.stat().st_size)}
        for path in sorted(work.glob("*.parquet"))
    }
    text = json.dumps({**made_from, "tables": files}, indent=1, sort_keys=True)
    (work / INDEX).write_text(seal.sealed(text + "\n"), encoding="utf-8")


def is_current(tables: Path, made_from: Mapping[str, Any]) -> bool:
    """Whether the tables were made from just this, and are still what they were.

    Nothing is said of the parts of the cells.
    """
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
    return [
        f"tables/{name} is not what was written; fabbbr report makes the tables again"
        for name in _names_altered(tables)
    ]


def _names_altered(tables: Path) -> list[str]:
    # Parts of cells that are made while others run have no index yet.
    if not any(tables.glob("*.*")):
        return []
    index = _read(tables)
    if index is None:
        return [INDEX]
    parts = (name for cell_id in index["cells"] for name in pieces.altered(tables, cell_id))
    return [*_altered(tables, index), *parts]


def _read(tables: Path) -> dict[str, Any] | None:
    """The index; None when there is none, or it is not what was written."""
    try:
        record, has_digest = seal.opened(read_own(tables / INDEX, limit=LARGEST_RECORD_BYTES))
    except (StoreError, ValueError):
        return None
    return json.loads(record) if has_digest else None


def _altered(tables: Path, index: Mapping[str, Any]) -> list[str]:
    noted = index["tables"].items()
    return [name for name, written in noted if not pieces.is_written(tables / name, written)]

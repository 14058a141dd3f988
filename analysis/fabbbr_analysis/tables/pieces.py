"""A cell's part of the tables, made once: a file per table of samples, and a sealed record of its other rows.

``tables/<table>/<cell id>.parquet`` and ``tables/made/<cell id>.json``. The record comes last, and says from
which manifest the part was made and what the files must be: a part without it, or with another, is none.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fabbbr import seal
from fabbbr.errors import StoreError
from fabbbr.files import LARGEST_RECORD_BYTES, read_own, require_folder, sha256_of_own
from fabbbr.store import StoredCell
from fabbbr_analysis.tables.cell import as_frames, read_cell
from fabbbr_analysis.tables.columns import INTERVALS, TABLES_VERSION
from fabbbr_analysis.tables.sampled import sampled_tables

MADE = "made"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A cell's rows in the tables that are not of samples: column → value."""

    cell: dict[str, Any]
    metrics: dict[str, Any]
    flows: list[dict[str, Any]]
    groups: list[dict[str, Any]]


@cache
def sample_schemas() -> dict[str, pa.Schema]:
    """Tables that have a file per cell, and their columns."""
    return {"intervals": INTERVALS} | {name: table.schema for name, table in sampled_tables().items()}


def sample_path(tables: Path, name: str, cell_id: str) -> Path:
    """Say where a cell's rows of a table of samples are."""
    return tables / name / f"{cell_id}.parquet"


def make(stored: StoredCell, tables: Path, work: Path) -> None:
    """Read a cell's raw files and put its part into ``tables``; ``work`` is an empty folder beside it.

    Raises ParseError when a raw file cannot be read, OSError when the part cannot be written.
    """
    from fabbbr_analysis.groups import of_groups
    from fabbbr_analysis.metrics import of_cell

    read = read_cell(stored)
    frames = as_frames(read)
    summary = Summary(
        cell=read["cells"].to_pylist()[0],
        metrics=of_cell(frames, stored.manifest.cell),
        flows=read["flows"].to_pylist(),
        groups=of_groups(frames, stored.manifest.cell),
    )
    # Until the new record is there, the part counts as not made.
    _record_path(tables, stored.id).unlink(missing_ok=True)
    files = {name: _keep(read[name], sample_path(tables, name, stored.id), work) for name in sample_schemas()}
    record = {
        "tables_version": TABLES_VERSION,
        "manifest": stored.stored.sha256,
        "files": files,
        **asdict(summary),
    }
    text = seal.sealed(json.dumps(record, indent=1) + "\n")
    written = work / f"{MADE}.json"
    written.write_text(text, encoding="utf-8")
    _put(written, _record_path(tables, stored.id))


def _keep(rows: pa.Table, final: Path, work: Path) -> dict[str, Any]:
    """Write a file and say what it is. Statistics and Arrow's own schema would be a third of it."""
    written = work / f"{final.parent.name}.parquet"
    pq.write_table(rows, written, compression="zstd", write_statistics=False, store_schema=False)
    size = written.stat().st_size
    said = {"bytes": size, "sha256": sha256_of_own(written, limit=size)}
    _put(written, final)
    return said


def _put(written: Path, final: Path) -> None:
    require_folder(final.parent)
    final.parent.mkdir(parents=True, exist_ok=True)
    written.replace(final)


def summary_of(tables: Path, cell_id: str) -> Summary:
    """Read a cell's other rows; raise StoreError when the record is not what was written."""
    record = _record(tables, cell_id)
    if record is None:
        message = f"{_record_path(tables, cell_id)} is not what was written; the next fabbbr report mends it"
        raise StoreError(message)
    return Summary(**{field.name: record[field.name] for field in fields(Summary)})


def is_made(tables: Path, cell_id: str, manifest_sha256: str) -> bool:
    """Whether the cell's part is there, made from just this manifest, and still what was written."""
    record = _record(tables, cell_id)
    if record is None or record["tables_version"] != TABLES_VERSION or record["manifest"] != manifest_sha256:
        return False
    return not any(_altered_files(tables, cell_id, record))


def altered(tables: Path, cell_id: str) -> list[str]:
    """Name the files of a cell's part that are not what was written, relative to ``tables``."""
    record = _record(tables, cell_id)
    if record is None:
        return [f"{MADE}/{_record_path(tables, cell_id).name}"]
    return list(_altered_files(tables, cell_id, record))


def sweep(tables: Path, keep: Callable[[str], bool]) -> None:
    """Take the parts of all cells away but those that ``keep`` wants, and whatever else stands among them."""
    for name, suffix in {MADE: ".json", **dict.fromkeys(sample_schemas(), ".parquet")}.items():
        folder = tables / name
        if folder.is_symlink() or not folder.is_dir():
            clear(folder)
            continue
        for path in folder.iterdir():
            if path.suffix != suffix or not keep(path.name.removesuffix(suffix)):
                clear(path)


def clear(place: Path) -> None:
    """Take away whatever stands there; a link itself, and not what it points to."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def is_written(path: Path, written: dict[str, Any]) -> bool:
    """Whether a file has the ``bytes`` and the ``sha256`` that were noted."""
    try:
        return bool(sha256_of_own(path, limit=written["bytes"]) == written["sha256"])
    except StoreError:
        return False


def _record_path(tables: Path, cell_id: str) -> Path:
    return tables / MADE / f"{cell_id}.json"


def _record(tables: Path, cell_id: str) -> dict[str, Any] | None:
    """The record; None when there is none, or it is not what was written."""
    path = _record_path(tables, cell_id)
    try:
        require_folder(path.parent)
        record, has_digest = seal.opened(read_own(path, limit=LARGEST_RECORD_BYTES))
    except (StoreError, ValueError):
        return None
    return json.loads(record) if has_digest else None


def _altered_files(tables: Path, cell_id: str, record: dict[str, Any]) -> Iterator[str]:
    for name in sample_schemas():
        path = sample_path(tables, name, cell_id)
        written = record["files"].get(name)
        if written is None or path.parent.is_symlink() or not is_written(path, written):
            yield f"{name}/{path.name}"

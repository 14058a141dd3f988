"""Run folder → ``tables/*.parquet``, a cell at a time: memory is bounded by the largest cell.

The tables are a cache of what the raw files say. They are rebuilt when a cell was added, removed or run again, or
when this package reads raw files differently; from the same cells they have the same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from fabbbr.errors import AnalysisError
from fabbbr.store import RunFolder, sha256_of
from fabbbr_analysis.cell_tables import CellTables, as_frames, read_cell
from fabbbr_analysis.columns import (
    FLOWS,
    INTERVALS,
    QUEUES,
    SOCKETS,
    TABLES_VERSION,
    cells_schema,
    runs_schema,
)

__all__ = ["CellTables", "Progress", "build_tables", "table_path"]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of cells read so far and the number of all."""

_INDEX = "index.json"
_STREAMED = {"flows": FLOWS, "intervals": INTERVALS, "sockets": SOCKETS, "queues": QUEUES}
"""Written cell by cell; ``cells`` and ``runs`` have one row a cell and are written at the end."""


def table_path(run: Path, name: str) -> Path:
    """Say where a table of the run folder is."""
    return run / "tables" / f"{name}.parquet"


def build_tables(folder: RunFolder, *, progress: Progress | None = None) -> Path:
    """Make ``tables/`` of a run folder unless it is up to date; return its path.

    Raises ParseError when a raw file cannot be read and AnalysisError when the tables cannot be written; the tables
    that were there before then stay.
    """
    final = folder.path / "tables"
    index = _index(folder)
    if _is_current(final / _INDEX, index):
        return final
    with _replacing(final) as work:
        _write(folder, work, progress)
        (work / _INDEX).write_text(json.dumps(index, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return final


def _index(folder: RunFolder) -> dict[str, Any]:
    """Describe what the tables depend on: manifests hold the hashes of the raw files."""
    manifests = sorted((folder.path / "cells").glob("*/manifest.json"))
    return {
        "tables_version": TABLES_VERSION,
        "cells": {path.parent.name: sha256_of(path) for path in manifests},
    }


def _is_current(file: Path, index: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(file.read_text(encoding="utf-8")) == index)
    except (OSError, ValueError):
        return False


@contextmanager
def _replacing(final: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of ``final`` at the end, or vanishes on an error."""
    work = final.with_name(f".tables.{os.getpid()}.partial")
    old = final.with_name(f".tables.{os.getpid()}.old")
    try:
        work.mkdir()
        yield work
        if final.exists():
            final.rename(old)
        work.rename(final)
    except OSError as error:
        message = f"cannot write {final}: {error.strerror}; free some space or make the folder writable"
        raise AnalysisError(message) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _write(folder: RunFolder, work: Path, progress: Progress | None) -> None:
    from fabbbr_analysis.metrics import of_cell

    axes = dict.fromkeys(key for cell in folder.manifest.cells for key in cell.axes)
    total = sum(1 for _ in (folder.path / "cells").glob("*/manifest.json"))
    cells: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    with ExitStack() as stack:
        writers = {name: _writer(work / f"{name}.parquet", schema) for name, schema in _STREAMED.items()}
        for writer in writers.values():
            stack.enter_context(writer)
        for done, stored in enumerate(folder.cells(), start=1):
            tables = read_cell(stored)
            for name, writer in writers.items():
                if len(tables[name]):
                    writer.write_table(tables[name], row_group_size=len(tables[name]))
            metrics = of_cell(as_frames(tables), stored.manifest.cell)
            cells += tables["cells"].to_pylist()
            runs.append(cells[-1] | metrics)
            axes.update(dict.fromkeys(stored.manifest.cell.axes))
            if progress is not None:
                progress(done, total)
    schema = cells_schema(axes)
    metric_names = [name for name in (runs[0] if runs else {}) if name not in cells[0]]
    _write_rows(work / "cells.parquet", cells, schema)
    _write_rows(work / "runs.parquet", runs, runs_schema(schema, metric_names))


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd")


def _write_rows(path: Path, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> None:
    with _writer(path, schema) as writer:
        writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))

"""Run folder → ``tables/*.parquet``, a cell at a time: memory is bounded by the largest cell.

The tables are a cache of what the raw files say. They are rebuilt when a cell was added, removed or run
again, when the plan changed, when this package reads raw files differently, or when they are not the bytes
that were written; from the same cells they have the same bytes. A damaged cell is in none of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from fabbbr.errors import AnalysisError
from fabbbr.files import require_folder
from fabbbr.inspection import Inspection, inspect
from fabbbr.store import RunFolder
from fabbbr_analysis.tables import index
from fabbbr_analysis.tables.cell import CellTables, as_frames, read_cell
from fabbbr_analysis.tables.columns import (
    FLOWS,
    INTERVALS,
    TABLES_VERSION,
    cells_schema,
    runs_schema,
)
from fabbbr_analysis.tables.sampled import sampled_tables

__all__ = ["CellTables", "Progress", "build_tables", "table_path"]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of cells read so far and the number of all."""


def table_path(run: Path, name: str) -> Path:
    """Say where a table of the run folder is."""
    return run / "tables" / f"{name}.parquet"


def build_tables(folder: RunFolder, *, progress: Progress | None = None) -> Inspection:
    """Make ``tables/`` of a run folder unless it is up to date; return what was found wrong with the folder.

    Raw files are hashed before tables are made of them. Raises ParseError when one that is whole cannot be
    read, AnalysisError when the tables cannot be written (those that were there before then stay), and
    StoreError when ``tables`` is a link.
    """
    final = folder.path / "tables"
    require_folder(final)
    found = inspect(folder, raw_files=False)
    if index.is_current(final, _made_from(found)):
        return found
    found = inspect(folder, raw_files=True)
    made_from = _made_from(found)
    if not index.is_current(final, made_from):
        with _replacing(final) as work:
            _write(folder, found.whole, work, progress)
            index.write(work, made_from)
    return found


def _made_from(found: Inspection) -> dict[str, Any]:
    """What the tables depend on: the plan names the axes, manifests hold the hashes of the raw files."""
    return {"tables_version": TABLES_VERSION, "run": found.run_sha256, "cells": dict(found.whole)}


@contextmanager
def _replacing(final: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of ``final`` at the end, or vanishes on an error."""
    work = final.with_name(f".tables.{os.getpid()}.partial")
    old = final.with_name(f".tables.{os.getpid()}.old")
    try:
        for place in (work, old):
            _clear(place)
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


def _clear(place: Path) -> None:
    """Take away what a killed process with the same number left, or a link that stands there."""
    if place.is_symlink():
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)


def _write(folder: RunFolder, whole: Mapping[str, str], work: Path, progress: Progress | None) -> None:
    from fabbbr_analysis.metrics import of_cell

    axes = dict.fromkeys(key for cell in folder.manifest.cells for key in cell.axes)
    cells: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    with ExitStack() as stack:
        writers = {name: _writer(work / f"{name}.parquet", schema) for name, schema in _streamed().items()}
        for writer in writers.values():
            stack.enter_context(writer)
        for done, cell_id in enumerate(whole, start=1):
            stored = folder.cell(cell_id)
            tables = read_cell(stored)
            for name, writer in writers.items():
                if len(tables[name]):
                    writer.write_table(tables[name], row_group_size=len(tables[name]))
            metrics = of_cell(as_frames(tables), stored.manifest.cell)
            cells += tables["cells"].to_pylist()
            runs.append(cells[-1] | metrics)
            axes.update(dict.fromkeys(stored.manifest.cell.axes))
            if progress is not None:
                progress(done, len(whole))
    schema = cells_schema(axes)
    metric_names = [name for name in (runs[0] if runs else {}) if name not in cells[0]]
    _write_rows(work / "cells.parquet", cells, schema)
    _write_rows(work / "runs.parquet", runs, runs_schema(schema, metric_names))


def _streamed() -> dict[str, pa.Schema]:
    """Tables that are written cell by cell; ``cells`` and ``runs``, one row per cell, come last."""
    sampled = {name: table.schema for name, table in sampled_tables().items()}
    return {"flows": FLOWS, "intervals": INTERVALS, **sampled}


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd")


def _write_rows(path: Path, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> None:
    with _writer(path, schema) as writer:
        writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))

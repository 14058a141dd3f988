"""Run folder → ``tables/``, a cell at a time: each cell's part is made once, memory is that of one cell.

The tables are a cache of what the raw files say. A cell's part (see ``pieces``) is made again when the cell
was run again, when this package reads raw files differently, or when it is not the bytes that were written.
The tables that have rows of all cells (``cells``, ``flows``, ``groups``, ``runs``) are put together from the
parts; of the same cells they have the same bytes. A damaged cell is in none of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from fabbbr.errors import AnalysisError, StoreError
from fabbbr.files import require_folder
from fabbbr.inspection import Inspection, inspect, summary_of
from fabbbr.store import RunFolder
from fabbbr_analysis.tables import index, pieces
from fabbbr_analysis.tables.cell import CellTables
from fabbbr_analysis.tables.columns import FLOWS, GROUPS, TABLES_VERSION, cells_schema, runs_schema
from fabbbr_analysis.tables.pieces import sample_path, sample_schemas

__all__ = [
    "CellTables",
    "Progress",
    "build_tables",
    "make_part",
    "sample_path",
    "sample_schemas",
    "table_path",
    "tables_of",
]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of cells read so far and the number of all that must be read."""

_OF_ALL_CELLS = ("cells", "flows", "groups", "runs")
_CELLS_AT_ONCE = 256
"""How many cells' rows are held while a table of all cells is written; a row group each."""


def tables_of(run: Path) -> Path:
    """Say where the tables of a run folder are."""
    return run / "tables"


def table_path(run: Path, name: str) -> Path:
    """Say where a table of the run folder is: a file, or a folder with a file per cell."""
    return tables_of(run) / (f"{name}.parquet" if name in _OF_ALL_CELLS else name)


def build_tables(folder: RunFolder, *, progress: Progress | None = None) -> Inspection:
    """Bring ``tables/`` of a run folder up to date; return what was found wrong with the folder.

    Only of cells whose part is missing or stale raw files are read, and hashed before. Raises ParseError when
    one that is whole cannot be read, AnalysisError when the tables cannot be written (those of all cells that
    were there before then stay), and StoreError when ``tables`` is a link.
    """
    final = tables_of(folder.path)
    require_folder(final)
    found = inspect(folder, raw_files=False)
    made = {cell_id for cell_id, sha256 in found.whole.items() if pieces.is_made(final, cell_id, sha256)}
    if _is_current(final, found, made):
        return found
    found = inspect(folder, raw_files=True, unhashed=made)
    if not _is_current(final, found, made):
        _write(folder, found, made, progress)
    return found


def make_part(folder: RunFolder, cell_id: str) -> None:
    """Make the part of one cell, as soon as it is whole; tables of all cells are left as they are.

    Raises as :func:`build_tables`, and StoreError when the cell is damaged.
    """
    final = tables_of(folder.path)
    require_folder(final)
    stored = folder.cell(cell_id)
    problems = tuple(stored.damage())
    if problems:
        raise StoreError(summary_of(problems))
    with _working(final) as work:
        pieces.make(stored, final, work)


def _is_current(final: Path, found: Inspection, made: Collection[str]) -> bool:
    return all(cell_id in made for cell_id in found.whole) and index.is_current(final, _made_from(found))


def _made_from(found: Inspection) -> dict[str, Any]:
    """What the tables depend on: the plan names the axes, manifests hold the hashes of the raw files."""
    return {"tables_version": TABLES_VERSION, "run": found.run_sha256, "cells": dict(found.whole)}


@contextmanager
def _working(final: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``final``; what is left in it at the end vanishes."""
    work = final.with_name(f".tables.{os.getpid()}.partial")
    try:
        # What a killed process with the same number left, or a link that stands there.
        pieces.clear(work)
        work.mkdir()
        yield work
    except OSError as error:
        message = f"cannot write {final}: {error.strerror}; free some space or make the folder writable"
        raise AnalysisError(message) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write(folder: RunFolder, found: Inspection, made: Collection[str], progress: Progress | None) -> None:
    final = tables_of(folder.path)
    missing = [cell_id for cell_id in found.whole if cell_id not in made]
    with _working(final) as work:
        pieces.sweep(final, lambda cell_id: _has_part(folder, found, cell_id))
        for done, cell_id in enumerate(missing, start=1):
            pieces.make(folder.cell(cell_id), final, work)
            if progress is not None:
                progress(done, len(missing))
        _put_together(folder, list(found.whole), work)
        index.write(work, _made_from(found))
        final.mkdir(exist_ok=True)
        _clear_around(final)
        for name in (*(table_path(folder.path, name).name for name in _OF_ALL_CELLS), index.INDEX):
            (work / name).replace(final / name)


def _has_part(folder: RunFolder, found: Inspection, cell_id: str) -> bool:
    """Whether a cell may have a part: one that came since may, whose tables another process makes."""
    return cell_id in found.whole or (cell_id not in found.damaged and folder.has(cell_id))


def _clear_around(final: Path) -> None:
    """Take away what is no part of a cell: the index with its tables, and strangers."""
    parts = {pieces.MADE, *sample_schemas()}
    for path in final.iterdir():
        if path.name not in parts:
            pieces.clear(path)


def _put_together(folder: RunFolder, cell_ids: list[str], work: Path) -> None:
    """Write the tables of all cells from their parts, some cells at a time."""
    tables = tables_of(folder.path)
    axes = dict.fromkeys(key for cell in folder.manifest.cells for key in cell.axes)
    cells = cells_schema(axes)
    runs = runs_schema(cells, pieces.summary_of(tables, cell_ids[0]).metrics if cell_ids else ())
    with (
        _writer(work / "cells.parquet", cells) as of_cells,
        _writer(work / "flows.parquet", FLOWS) as of_flows,
        _writer(work / "groups.parquet", GROUPS) as of_groups,
        _writer(work / "runs.parquet", runs) as of_runs,
    ):
        for some in _batches(cell_ids):
            summaries = [pieces.summary_of(tables, cell_id) for cell_id in some]
            _append(of_cells, (each.cell for each in summaries), cells)
            _append(of_flows, (flow for each in summaries for flow in each.flows), FLOWS)
            _append(of_groups, (row for each in summaries for row in each.groups), GROUPS)
            _append(of_runs, (each.cell | each.metrics for each in summaries), runs)


def _batches(cell_ids: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(cell_ids)
    while some := list(islice(rest, _CELLS_AT_ONCE)):
        yield some


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd")


def _append(writer: pq.ParquetWriter, rows: Iterable[dict[str, Any]], schema: pa.Schema) -> None:
    writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))

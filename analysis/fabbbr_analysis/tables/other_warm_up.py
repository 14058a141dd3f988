"""The tables of all cells as another warm-up has them, from what is kept of each cell: no raw file is read.

A warm-up divides what was measured and changes none of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fabbbr.model import Cell
from fabbbr_analysis.groups import of_groups
from fabbbr_analysis.metrics import of_cell
from fabbbr_analysis.tables.cell import CellTables, cell_row_after, flow_rows_after
from fabbbr_analysis.tables.columns import FLOWS, GROUPS, cells_schema, runs_schema
from fabbbr_analysis.tables.pieces import Summary, sample_path, sample_schemas, summary_of


def tables_after(tables: Path, cells: Sequence[Cell], axes: Sequence[str]) -> dict[str, pd.DataFrame]:
    """``cells``, ``flows``, ``groups`` and ``runs`` of these cells, each with the warm-up that it has here.

    ``axes`` are those of the whole plan. Samples are held of one cell at a time. Raises StoreError where a
    cell's part of the tables is not what was written.
    """
    summaries = [_summary_after(tables, cell) for cell in cells]
    of_cells = cells_schema(axes)
    of_runs = runs_schema(of_cells, summaries[0].metrics if summaries else ())
    return {
        "cells": _frame([each.cell for each in summaries], of_cells),
        "flows": _frame([flow for each in summaries for flow in each.flows], FLOWS),
        "groups": _frame([row for each in summaries for row in each.groups], GROUPS),
        "runs": _frame([each.cell | each.metrics for each in summaries], of_runs),
    }


def _frame(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pd.DataFrame:
    frame: pd.DataFrame = pa.Table.from_pylist(list(rows), schema=schema).to_pandas()
    return frame


def _summary_after(tables: Path, cell: Cell) -> Summary:
    kept = summary_of(tables, cell.id)
    samples = {
        name: pq.read_table(sample_path(tables, name, cell.id)).to_pandas() for name in sample_schemas()
    }
    flows = flow_rows_after(kept.flows, samples["intervals"], samples["sockets"], warm_up=cell.warm_up)
    row = cell_row_after(kept.cell, warm_up=cell.warm_up)
    frames = samples | {"cells": _frame([row], cells_schema(cell.axes)), "flows": _frame(flows, FLOWS)}
    whole = CellTables(**{field.name: frames[field.name] for field in fields(CellTables)})
    return Summary(cell=row, metrics=of_cell(whole, cell), flows=flows, groups=of_groups(whole, cell))

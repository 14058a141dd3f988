"""What ss saw of the flows' sockets → table ``sockets``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from fabbbr.errors import ParseError
from fabbbr.store import StoredCell
from fabbbr_analysis.parse import ss
from fabbbr_analysis.parse.ss import CHUNK_BYTES, parse_ss
from fabbbr_analysis.parse.times import parse_times
from fabbbr_analysis.tables.columns import tagged
from fabbbr_analysis.tables.connections import data_connections
from fabbbr_analysis.tables.raw import read_raw, samples_of, source_of

_VALUES = [field for field in ss.SCHEMA if field.name not in ("state", "cca")]
SCHEMA = pa.schema(
    [
        pa.field("cell_id", pa.string()),
        pa.field("host", pa.string()),
        pa.field("t_s", pa.float64()),
        pa.field("flow", pa.int64()),
        pa.field("side", pa.string()),
        pa.field("state", pa.string()),
        pa.field("cca", pa.string()),
        *_VALUES,
    ]
)


def read(stored: StoredCell) -> pa.Table:
    """Read one row per data connection and sample; raise ParseError naming a file that cannot be read."""
    cell = stored.manifest.cell
    tables = [SCHEMA.empty_table()]
    for path in samples_of(stored, "sockets", ".txt"):
        host = path.name.removeprefix("sockets.").removesuffix(".txt")
        sampled = _sampled(stored, path)
        connections = data_connections(sampled, cell.flows)
        tables.append(tagged(connections, SCHEMA, cell_id=cell.id, host=host))
    return pa.concat_tables(tables)


def _sampled(stored: StoredCell, path: Path) -> pa.Table:
    times_name = path.with_suffix(".times").name
    times = parse_times(
        read_raw(stored, times_name).decode("utf-8", errors="replace"),
        counted=True,
        source=source_of(stored, times_name),
    )
    with path.open("rb") as file:
        chunks = iter(lambda: file.read(CHUNK_BYTES), b"")
        batches = list(parse_ss(chunks, source=source_of(stored, path.name)))
    table = pa.Table.from_batches(batches, ss.SCHEMA)
    if times.sockets.sum() != len(table):
        message = (
            f"{source_of(stored, path.name)} holds {len(table)} sockets, but {times_name} speaks of "
            f"{times.sockets.sum()}; run the cell again"
        )
        raise ParseError(message)
    return table.append_column("t_s", pa.array(np.repeat(times.t_s, times.sockets)))

"""What the players of videos noted of each chunk → table ``chunks``."""

from __future__ import annotations

import pyarrow as pa

from fabbbr.store import StoredCell
from fabbbr_analysis.parse.transfer import CHUNKS
from fabbbr_analysis.tables.columns import tagged
from fabbbr_analysis.tables.flow_ends import RawFlows

SCHEMA = pa.schema(
    [
        pa.field("cell_id", pa.string()),
        pa.field("flow", pa.int64()),
        pa.field("group", pa.string()),
        *CHUNKS,
    ]
)


def read(stored: StoredCell) -> pa.Table:
    """Read one row per chunk that was asked for; raise ParseError naming a file that cannot be read."""
    tables = [SCHEMA.empty_table()]
    videos = [flow for flow in stored.manifest.cell.flows if flow.video is not None]
    if videos:
        raw = RawFlows(stored)
        for flow in videos:
            chunks = raw.ends_of(flow).chunks
            tables.append(tagged(chunks, SCHEMA, cell_id=stored.id, flow=flow.index, group=flow.group))
    return pa.concat_tables(tables)

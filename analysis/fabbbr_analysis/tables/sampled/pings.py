"""What the pings beside the flows saw → table ``pings``."""

from __future__ import annotations

import pyarrow as pa

from fabbbr.store import StoredCell
from fabbbr_analysis.parse import ping
from fabbbr_analysis.parse.ping import parse_ping
from fabbbr_analysis.tables.columns import tagged
from fabbbr_analysis.tables.raw import read_raw, source_of

SCHEMA = pa.schema(
    [
        pa.field("cell_id", pa.string()),
        pa.field("ping", pa.int64()),
        pa.field("group", pa.string()),
        pa.field("sender", pa.string()),
        pa.field("receiver", pa.string()),
        pa.field("rtt_propagation_s", pa.float64()),
        *ping.SAMPLES,
    ]
)


def read(stored: StoredCell) -> pa.Table:
    """Read one row per request; raise ParseError naming a file that cannot be read."""
    tables = [SCHEMA.empty_table()]
    for each in stored.manifest.cell.pings:
        name = f"ping-{each.index}.json"
        text = read_raw(stored, name)
        if not text:  # the flows were over before it began
            continue
        tables.append(
            tagged(
                parse_ping(text, source=source_of(stored, name)),
                SCHEMA,
                cell_id=stored.id,
                ping=each.index,
                group=each.group,
                sender=each.sender,
                receiver=each.receiver,
                rtt_propagation_s=each.rtt.seconds,
            )
        )
    return pa.concat_tables(tables)

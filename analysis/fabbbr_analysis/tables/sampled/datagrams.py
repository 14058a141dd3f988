"""What became of each datagram of UDP → table ``datagrams``."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from fabbbr.store import StoredCell
from fabbbr_analysis.tables.columns import tagged
from fabbbr_analysis.tables.flow_ends import FlowEnds, RawFlows

SCHEMA = pa.schema(
    [
        ("cell_id", pa.string()),
        ("flow", pa.int64()),
        ("group", pa.string()),
        ("number", pa.int64()),
        ("t_s", pa.float64()),
        ("pdv_s", pa.float64()),
    ]
)


def read(stored: StoredCell) -> pa.Table:
    """Read one row per datagram that was sent; raise ParseError naming a file that cannot be read."""
    tables = [SCHEMA.empty_table()]
    calls = [flow for flow in stored.manifest.cell.flows if flow.udp is not None]
    if calls:
        raw = RawFlows(stored)
        tables += [_of_flow(stored, raw.ends_of(flow)) for flow in calls]
    return pa.concat_tables(tables)


def _of_flow(stored: StoredCell, ends: FlowEnds) -> pa.Table:
    if ends.datagrams is None or ends.started_s is None:
        return SCHEMA.empty_table()
    each = ends.datagrams.each
    timed = each.append_column("t_s", pc.add(each["sent_s"], ends.started_s))
    return tagged(timed, SCHEMA, cell_id=stored.id, flow=ends.flow.index, group=ends.flow.group)

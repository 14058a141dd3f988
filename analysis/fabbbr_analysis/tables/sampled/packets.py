"""Each packet that came to a bottleneck queue, and how long it stood there → table ``packets``.

A packet is known again by IPv4's header and the 28 bytes after it, apart from what a switch or an AQM changes
(time to live, ECN, checksum of the header): TCP gives every segment that it sends another identification, and
numbers what is in it. So the order in which a queue lets packets go does not matter. Of packets that look
alike the first that leaves is the first that came.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fabbbr.errors import ParseError
from fabbbr.ports import SERVER_PORT
from fabbbr.store import StoredCell
from fabbbr_analysis.parse.pcapng import Packets, parse_pcapng
from fabbbr_analysis.tables.raw import read_raw, source_of

SCHEMA = pa.schema(
    [
        ("cell_id", pa.string()),
        ("link", pa.string()),
        ("interface", pa.string()),
        ("role", pa.string()),
        ("t_s", pa.float64()),
        ("flow", pa.int64()),
        ("bytes", pa.int64()),
        ("sojourn_s", pa.float64()),
        ("dropped", pa.bool_()),
    ]
)

_ETHERNET_BYTES = 14
_IDENTITY_BYTES = 48
_CHANGED = (1, 8, 10, 11)
"""Bytes of the IPv4 header that differ behind the queue: DSCP and ECN, time to live, checksum."""
_PORTS_AT = _ETHERNET_BYTES + 20
_DATA_BIT = 0x8000
"""The top bit of its source port tells data from a control connection."""
_SAME = ["look", "occurrence"]


def read(stored: StoredCell) -> pa.Table:
    """Read one row per packet that came to a queue; raise ParseError naming a file that cannot be read."""
    tables = [SCHEMA.empty_table()]
    for path in sorted((stored.folder / "raw").glob("queue.*.pcapng")):
        frame = _of_queue(stored, path)
        tables.append(pa.Table.from_pandas(frame, schema=SCHEMA, preserve_index=False))
    return pa.concat_tables(tables)


def _of_queue(stored: StoredCell, path: Path) -> pd.DataFrame:
    source = source_of(stored, path.name)
    interface = path.name.removeprefix("queue.").removesuffix(".pcapng")
    packets = parse_pcapng(path.read_bytes(), source=source)
    seen = matched(packets, source=source)
    zero_ns = _zero_ns(stored)
    role = stored.manifest.provenance.options.get("interfaces", {}).get(interface, {})
    return pd.DataFrame(
        {
            "cell_id": stored.id,
            "link": role.get("link"),
            "interface": interface,
            "role": role.get("role"),
            "t_s": (seen["came_ns"] - zero_ns) * 1e-9,
            "flow": _flows(packets, len(stored.manifest.cell.flows)),
            "bytes": packets.length[~packets.outgoing],
            "sojourn_s": seen["stood_ns"] * 1e-9,
            "dropped": seen["dropped"],
        }
    )


def matched(packets: Packets, *, source: str) -> pd.DataFrame:
    """Find for each packet that came the instant at which it left.

    Columns ``came_ns``; ``stood_ns``, absent where it never left or cannot be told from one that did;
    ``dropped``, absent where that cannot be told. Raises ParseError when a packet left that never came.
    """
    looks = _looks(packets)
    came, left = looks[~packets.outgoing], looks[packets.outgoing]
    both = came.merge(left, how="outer", on=_SAME, suffixes=("", "_left"), indicator=True)
    if (both["_merge"] == "right_only").any():
        number = int((both["_merge"] == "right_only").sum())
        message = f"{source}: {number} packets left the queue that never came to it; run the cell again"
        raise ParseError(message)
    both = both.sort_values("number", kind="stable").reset_index(drop=True)
    dropped = (both["_merge"] == "left_only").astype("boolean")
    stood = (both["time_ns_left"] - both["time_ns"]).astype("Int64")
    for_sure = ~_untold(both, dropped)
    return pd.DataFrame(
        {"came_ns": both["time_ns"], "stood_ns": stood.where(for_sure), "dropped": dropped.where(for_sure)}
    )


def _looks(packets: Packets) -> pd.DataFrame:
    """A number for how each packet looks, how many before it did, its place in the file, and when."""
    told = packets.bytes_at(_ETHERNET_BYTES, _IDENTITY_BYTES)
    told[:, list(_CHANGED)] = 0
    frame = pd.DataFrame({"look": _numbered(told.view("<u8")), "way": packets.outgoing})
    frame["occurrence"] = frame.groupby(["look", "way"], sort=False).cumcount()
    frame["number"] = np.arange(len(frame))
    frame["time_ns"] = pd.array(packets.time_ns, dtype="Int64")
    return frame.drop(columns="way")


def _numbered(rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The same number for rows that are the same, and for no others."""
    order = np.lexsort(rows.T)
    differs = (rows[order][1:] != rows[order][:-1]).any(axis=1)
    numbers = np.zeros(len(rows), dtype=np.int64)
    numbers[order[1:]] = np.cumsum(differs)
    return numbers


def _untold(both: pd.DataFrame, dropped: pd.Series[bool]) -> pd.Series[bool]:
    """Packets that look alike, of which some left and some did not: which of them nobody knows."""
    if not both["occurrence"].any():
        return pd.Series(data=False, index=both.index)
    alike = dropped.groupby(both["look"])
    return alike.transform("any") & ~alike.transform("all")


def _flows(packets: Packets, flows: int) -> pd.Series[int]:
    """The flow whose data a packet that came is; absent for acknowledgements and control connections."""
    ports = packets.bytes_at(_PORTS_AT, 4)[~packets.outgoing].view(">u2").astype(np.int64)
    flow = ports[:, 1] - SERVER_PORT
    known = (ports[:, 0] & _DATA_BIT != 0) & (flow >= 0) & (flow < flows)
    return pd.Series(flow, dtype="Int64").where(known)


class _Offset(msgspec.Struct, frozen=True):
    before_s: float


class _Captures(msgspec.Struct, frozen=True):
    realtime_minus_monotonic: _Offset


class _Flow(msgspec.Struct, frozen=True):
    epoch_s: float


def _zero_ns(stored: StoredCell) -> int:
    """The zero of the flows' time on the clock of the stamps."""
    try:
        captures = msgspec.json.decode(read_raw(stored, "captures.json"), type=_Captures)
        flows = msgspec.json.decode(read_raw(stored, "flows.json"), type=list[_Flow])
        epoch_s = min(flow.epoch_s for flow in flows)
    except (msgspec.DecodeError, ValueError) as error:
        message = f"{source_of(stored, 'captures.json')} or flows.json: {error}; run the cell again"
        raise ParseError(message) from None
    return round(captures.realtime_minus_monotonic.before_s * 1e9) + round(epoch_s * 1e9)

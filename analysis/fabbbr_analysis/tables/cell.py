"""Raw files of one cell → its rows in every table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from fabbbr.errors import ParseError
from fabbbr.model import Cell, CellLink
from fabbbr.store import StoredCell
from fabbbr_analysis.parse import ss
from fabbbr_analysis.parse.iperf3 import Transferred
from fabbbr_analysis.parse.ss import CHUNK_BYTES, parse_ss
from fabbbr_analysis.parse.tc import Qdisc, parse_tc
from fabbbr_analysis.parse.times import parse_times
from fabbbr_analysis.tables.columns import FLOWS, INTERVALS, QUEUES, SOCKETS, axis_column, cells_schema
from fabbbr_analysis.tables.connections import data_connections
from fabbbr_analysis.tables.flow_ends import FlowEnds, read_raw, source_of


@dataclass(frozen=True, kw_only=True)
class CellTables:
    """The tables of one cell, as pandas sees them: absent is NaN or None."""

    cells: pd.DataFrame
    flows: pd.DataFrame
    intervals: pd.DataFrame
    sockets: pd.DataFrame
    queues: pd.DataFrame


def read_cell(stored: StoredCell) -> dict[str, pa.Table]:
    """Read all raw files of a cell: table name → rows; raise ParseError naming a file that cannot be read."""
    cell = stored.manifest.cell
    ends = [FlowEnds.read(stored, flow) for flow in cell.flows]
    intervals = _tagged_intervals(cell, ends)
    return {
        "cells": pa.Table.from_pylist([_cell_row(stored)], schema=cells_schema(cell.axes)),
        "flows": _flows(cell, ends, intervals),
        "intervals": intervals,
        "sockets": _sockets(stored),
        "queues": _queues(stored),
    }


def as_frames(tables: dict[str, pa.Table]) -> CellTables:
    """Convert the result of :func:`read_cell`."""
    return CellTables(**{name: table.to_pandas() for name, table in tables.items()})


# cells


def _cell_row(stored: StoredCell) -> dict[str, Any]:
    manifest, cell = stored.manifest, stored.manifest.cell
    lossy = next((link for link in cell.links if link.loss is not None), None)
    durations = [flow.duration.seconds for flow in cell.flows if flow.duration is not None]
    return {
        "cell_id": cell.id,
        "experiment": cell.experiment,
        "condition": cell.condition,
        "repetition": cell.repetition,
        "seed": cell.seed,
        "status": manifest.status,
        "reason": manifest.reason,
        "backend": manifest.provenance.backend,
        "clock": manifest.provenance.clock,
        "kernel_release": manifest.provenance.kernel_release,
        "virtual_s": manifest.virtual_s,
        "rtt_s": max((flow.rtt.seconds for flow in cell.flows), default=None),
        **_bottleneck_columns(cell),
        "loss_ratio": lossy.loss.rate.value if lossy is not None and lossy.loss is not None else None,
        "loss_position": lossy.loss.position if lossy is not None and lossy.loss is not None else None,
        "ack_aggregation_s": _longest_aggregation_s(cell),
        "ecn": cell.ecn,
        "mtu_bytes": cell.mtu_bytes,
        "ccas": ",".join(sorted({flow.cca for flow in cell.flows})),
        "bbr2_variant": _bbr2_variant(cell),
        "n_flows": len(cell.flows),
        "duration_s": max(durations, default=None),
        "warm_up_s": cell.warm_up.seconds,
        **{axis_column(key): value for key, value in cell.axes.items()},
    }


def _longest_aggregation_s(cell: Cell) -> float:
    """How long the first acknowledgement of an aggregate waits at most; 0 where none does."""
    held = [link.ack_aggregation.most.seconds for link in cell.links if link.ack_aggregation is not None]
    return max(held, default=0.0)


def _bbr2_variant(cell: Cell) -> str | None:
    """Say what the cell's BBRv2 is: a profile of fabbbr's own, or ``google``."""
    return ",".join(sorted({flow.profile or "google" for flow in cell.flows if flow.cca == "bbr2"})) or None


def _bottleneck_columns(cell: Cell) -> dict[str, Any]:
    link = next((link for link in cell.links if link.rate is not None), None)
    if link is None or link.rate is None:
        return {}
    buffer, bdp = link.buffer_bytes, link.bdp_bytes
    return {
        "rate_bps": link.rate.bps,
        "buffer_bytes": buffer,
        "bdp_bytes": bdp,
        "buffer_bdp": buffer / bdp if buffer is not None and bdp else None,
        "aqm": link.aqm,
    }


# flows and intervals


def _flows(cell: Cell, ends: list[FlowEnds], intervals: pa.Table) -> pa.Table:
    from fabbbr_analysis.metrics import steady_goodput_bps

    table = pa.Table.from_pylist([_flow_row(cell, end) for end in ends], schema=FLOWS)
    frame, interval_frame = table.to_pandas(), intervals.to_pandas()
    steady = [
        steady_goodput_bps(
            frame[frame["flow"] == end.flow.index], interval_frame, warm_up_s=cell.warm_up.seconds
        )
        for end in ends
    ]
    column = pa.array(steady, pa.float64())
    return table.set_column(
        FLOWS.get_field_index("goodput_steady_bps"), FLOWS.field("goodput_steady_bps"), column
    )


def _flow_row(cell: Cell, ends: FlowEnds) -> dict[str, Any]:
    flow, client, sent, received = ends.flow, ends.client, ends.client.sent, ends.received
    return {
        "cell_id": cell.id,
        "flow": flow.index,
        "group": flow.group,
        "cca": flow.cca,
        "implementation": flow.implementation,
        "profile": flow.profile,
        "sender": flow.sender,
        "receiver": flow.receiver,
        "streams": flow.streams,
        "start_s": flow.start.seconds if ends.started_s is None else ends.started_s,
        "rtt_propagation_s": flow.rtt.seconds,
        "outcome": client.outcome,
        "error": ends.error,
        "sent_bytes": sent.bytes if sent else None,
        "received_bytes": received.bytes if received else None,
        "sender_s": sent.seconds if sent else None,
        "receiver_s": received.seconds if received else None,
        "throughput_bps": _rate_bps(sent),
        "goodput_bps": _rate_bps(received),
        "retransmits": client.retransmits,
        "rtt_mean_s": client.rtt_mean_s,
        "rtt_min_s": client.rtt_min_s,
        "rtt_max_s": client.rtt_max_s,
        "max_cwnd_bytes": client.max_cwnd_bytes,
        "completion_s": ends.completion_s,
        "iperf3_version": client.version or ends.server.version,
    }


def _rate_bps(total: Transferred | None) -> float | None:
    return 8 * total.bytes / total.seconds if total is not None and total.seconds > 0 else None


def _tagged_intervals(cell: Cell, ends: list[FlowEnds]) -> pa.Table:
    tables = [
        _tagged(report.intervals, INTERVALS, cell_id=cell.id, flow=end.flow.index)
        for end in ends
        for report in (end.client, end.server)
    ]
    return pa.concat_tables([INTERVALS.empty_table(), *tables])


def _tagged(table: pa.Table, schema: pa.Schema, **constants: str | int) -> pa.Table:
    """Bring ``table`` into ``schema``, with some columns the same in every row."""
    columns = [
        pa.repeat(pa.scalar(constants[field.name], field.type), len(table))
        if field.name in constants
        else table[field.name].cast(field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


# sockets


def _sockets(stored: StoredCell) -> pa.Table:
    cell = stored.manifest.cell
    tables = [SOCKETS.empty_table()]
    for path in _samples(stored, "sockets", ".txt"):
        host = path.name.removeprefix("sockets.").removesuffix(".txt")
        sampled = _sampled_sockets(stored, path)
        connections = data_connections(sampled, cell.flows)
        tables.append(_tagged(connections, SOCKETS, cell_id=cell.id, host=host))
    return pa.concat_tables(tables)


def _samples(stored: StoredCell, kind: str, suffix: str) -> Iterator[Path]:
    return iter(sorted((stored.folder / "raw").glob(f"{kind}.*{suffix}")))


def _sampled_sockets(stored: StoredCell, path: Path) -> pa.Table:
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


# queues


def _queues(stored: StoredCell) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for path in _samples(stored, "queues", ".json"):
        rows += _node_queues(stored, path)
    return pa.Table.from_pylist(rows, schema=QUEUES)


def _node_queues(stored: StoredCell, path: Path) -> list[dict[str, Any]]:
    node = path.name.removeprefix("queues.").removesuffix(".json")
    times_name = path.with_suffix(".times").name
    text = read_raw(stored, times_name).decode("utf-8", errors="replace")
    times = parse_times(text, counted=False, source=source_of(stored, times_name))
    samples = parse_tc(path.read_bytes(), source=source_of(stored, path.name))
    if len(samples) != len(times.t_s):
        message = (
            f"{source_of(stored, path.name)} holds {len(samples)} samples, but {times_name} speaks of "
            f"{len(times.t_s)}; run the cell again"
        )
        raise ParseError(message)
    roles = _Roles.of(stored, samples)
    return [
        _queue_row(stored.id, node, t_s, qdisc, roles)
        for t_s, sample in zip(times.t_s, samples, strict=True)
        for qdisc in sample
    ]


class _InterfaceRole(msgspec.Struct, frozen=True):
    """What the emulator says of an interface, in the manifest."""

    link: str
    role: str


@dataclass(frozen=True, kw_only=True)
class _Roles:
    """What the qdiscs of each interface are for."""

    interfaces: dict[str, _InterfaceRole]
    deciding_kind: dict[str, str]
    """Interface → the kind of its one qdisc that carries the role."""

    @classmethod
    def of(cls, stored: StoredCell, samples: list[list[Qdisc]]) -> _Roles:
        """Read the roles; none when the emulator noted none."""
        told = stored.manifest.provenance.options.get("interfaces", {})
        try:
            interfaces = msgspec.convert(told, dict[str, _InterfaceRole])
        except msgspec.ValidationError as error:
            message = f"{source_of(stored, 'manifest.json')}, provenance.options.interfaces: {error}"
            raise ParseError(message) from None
        links = {link.name: link for link in stored.manifest.cell.links}
        kinds: dict[str, set[str]] = {}
        for qdisc in (qdisc for sample in samples for qdisc in sample):
            kinds.setdefault(qdisc.dev or "", set()).add(qdisc.kind)
        deciding = {
            name: _deciding_kind(known.role, links.get(known.link), kinds.get(name, set()))
            for name, known in interfaces.items()
        }
        return cls(interfaces=interfaces, deciding_kind=deciding)

    def told(self, qdisc: Qdisc) -> _InterfaceRole | None:
        """Return the role of this qdisc, None when it has none."""
        name = qdisc.dev or ""
        return self.interfaces.get(name) if self.deciding_kind.get(name) == qdisc.kind else None


def _deciding_kind(role: str, link: CellLink | None, kinds: set[str]) -> str:
    """Pick the qdisc that holds the packets: an AQM stands below the TBF that shapes and has the backlog."""
    if not role.startswith("bottleneck"):
        return "netem"
    return link.aqm if link is not None and link.aqm in kinds else "tbf"


def _queue_row(cell_id: str, node: str, t_s: float, qdisc: Qdisc, roles: _Roles) -> dict[str, Any]:
    told = roles.told(qdisc)
    return {
        "cell_id": cell_id,
        "node": node,
        "interface": qdisc.dev,
        "kind": qdisc.kind,
        "handle": qdisc.handle,
        "parent": qdisc.parent,
        "t_s": t_s,
        "backlog_bytes": qdisc.backlog,
        "backlog_packets": qdisc.qlen,
        "sent_bytes": qdisc.bytes,
        "sent_packets": qdisc.packets,
        "drops": qdisc.drops,
        "overlimits": qdisc.overlimits,
        "requeues": qdisc.requeues,
        "ecn_marks": qdisc.ecn_marks,
        "role": told.role if told else None,
        "link": told.link if told else None,
    }

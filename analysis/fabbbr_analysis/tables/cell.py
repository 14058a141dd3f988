"""Raw files of one cell → its rows in every table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa

from fabbbr.capacity import capacity_of
from fabbbr.model import Cell
from fabbbr.physics import mean_burst, stationary_loss
from fabbbr.store import StoredCell
from fabbbr.units import Duration
from fabbbr.ways import going_back
from fabbbr_analysis.arrivals import Arrival, arrivals
from fabbbr_analysis.metrics import steady_goodput_bps
from fabbbr_analysis.parse.iperf3 import Transferred
from fabbbr_analysis.tables.columns import FLOWS, INTERVALS, axis_column, cells_schema, tagged
from fabbbr_analysis.tables.flow_ends import FlowEnds, RawFlows
from fabbbr_analysis.tables.receiver_clock import receiver_zeros_s
from fabbbr_analysis.tables.sampled import sampled_tables

Row: TypeAlias = dict[str, Any]
_SEEN = ["t_s", "flow", "side", "peer_port", "bytes_received"]
"""What of the sockets says when a receiver had what."""


@dataclass(frozen=True, kw_only=True)
class CellTables:
    """The tables of one cell, as pandas sees them: absent is NaN or None."""

    cells: pd.DataFrame
    flows: pd.DataFrame
    intervals: pd.DataFrame
    sockets: pd.DataFrame
    queues: pd.DataFrame
    packets: pd.DataFrame
    pings: pd.DataFrame
    chunks: pd.DataFrame


def read_cell(stored: StoredCell) -> dict[str, pa.Table]:
    """Read all raw files of a cell: table name → rows; raise ParseError naming a file that cannot be read."""
    cell = stored.manifest.cell
    raw = RawFlows(stored)
    ends = [raw.ends_of(flow) for flow in cell.flows]
    intervals = _tagged_intervals(cell, ends)
    sampled = {name: table.read(stored) for name, table in sampled_tables().items()}
    return {
        "cells": pa.Table.from_pylist([_cell_row(stored)], schema=cells_schema(cell.axes)),
        "flows": _flows(cell, ends, intervals, sampled["sockets"]),
        "intervals": intervals,
        **sampled,
    }


def as_frames(tables: dict[str, pa.Table]) -> CellTables:
    """Convert the result of :func:`read_cell`."""
    return CellTables(**{field.name: tables[field.name].to_pandas() for field in fields(CellTables)})


def cell_row_after(row: Row, *, warm_up: Duration) -> Row:
    """The row of table ``cells`` as another warm-up has it."""
    return row | {"warm_up_s": warm_up.seconds}


def flow_rows_after(
    rows: Sequence[Row], intervals: pd.DataFrame, sockets: pd.DataFrame, *, warm_up: Duration
) -> list[Row]:
    """The rows of table ``flows`` of a cell with what each flow got from the warm-up on."""
    arrived = _arrivals(rows, intervals, sockets[_SEEN])
    return [
        row
        | {"goodput_steady_bps": steady_goodput_bps([arrived.get(row["flow"])], warm_up_s=warm_up.seconds)}
        for row in rows
    ]


# cells


def _cell_row(stored: StoredCell) -> Row:
    manifest, cell = stored.manifest, stored.manifest.cell
    place = manifest.provenance.testbed
    changes = any(step.loss is not None for step in cell.steps)
    loss = None if changes else next((link.loss for link in cell.links if link.loss is not None), None)
    late = next((link.reordering for link in cell.links if link.reordering is not None), None)
    durations = [flow.duration.seconds for flow in cell.flows if flow.duration is not None]
    return {
        "cell_id": cell.id,
        "experiment": cell.experiment,
        "condition": cell.condition,
        "repetition": cell.repetition,
        "seed": cell.seed,
        "status": manifest.status,
        "reason": manifest.reason,
        "backend": place.backend,
        "clock": place.clock,
        "kernel_release": ", ".join(place.kernel_releases),
        "timer_hz": place.least_timer_hz,
        "virtual_s": manifest.virtual_s,
        "rtt_s": max((flow.rtt.seconds for flow in cell.flows), default=None),
        **_bottleneck_columns(cell),
        "loss_ratio": None if loss is None else stationary_loss(loss),
        "loss_burst_packets": None if loss is None else mean_burst(loss),
        "loss_position": None if loss is None else loss.position,
        "reordered_ratio": 0.0 if late is None else late.rate.value,
        "late_s": 0.0 if late is None else late.late.seconds,
        "ack_aggregation_s": _longest_aggregation_s(cell),
        "offloads": cell.offloads,
        "ecn": cell.ecn,
        "mtu_bytes": cell.mtu_bytes,
        "ccas": ",".join(sorted({flow.cca for flow in cell.flows if flow.cca is not None})) or "udp",
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


def _bottleneck_columns(cell: Cell) -> Row:
    queue = next(iter(cell.bottlenecks.values()), None)
    if queue is None:
        return {}
    back = queue.reverse
    return {
        "rate_bps": queue.rate.bps,
        "rate_changes": capacity_of(cell, cell.trunk.name).changes,
        "buffer_bytes": queue.buffer_bytes,
        "bdp_bytes": queue.bdp_bytes,
        "buffer_bdp": queue.buffer_bytes / queue.bdp_bytes if queue.bdp_bytes else None,
        "burst_bytes": queue.burst_bytes,
        "rate_reverse_bps": None if back is None else back.rate.bps,
        "buffer_reverse_bytes": None if back is None else back.buffer_bytes,
        "aqm_reverse": None if back is None else back.aqm,
        "aqm": queue.aqm,
    }


# flows and intervals


def _flows(cell: Cell, ends: list[FlowEnds], intervals: pa.Table, sockets: pa.Table) -> pa.Table:
    reported, seen = intervals.to_pandas(), sockets.select(_SEEN).to_pandas()
    # The agent's own programs time a flow from its start at both ends.
    zeros_s = {end.flow.index: end.started_s for end in ends if not end.flow.of_iperf3}
    timed = [end.flow.index for end in ends if end.flow.of_iperf3]
    zeros_s |= receiver_zeros_s(*(table[table["flow"].isin(timed)] for table in (reported, seen)))
    back = going_back(cell)
    rows = [_flow_row(cell, end, zeros_s.get(end.flow.index), back=end.flow.index in back) for end in ends]
    rows = flow_rows_after(rows, reported, seen, warm_up=cell.warm_up)
    return pa.Table.from_pylist(rows, schema=FLOWS)


def _arrivals(
    rows: Sequence[Row], intervals: pd.DataFrame, sockets: pd.DataFrame
) -> dict[int, Arrival | None]:
    columns = ["flow", "start_s", "receiver_zero_s", "received_bytes", "receiver_s"]
    return arrivals(pd.DataFrame(rows, columns=columns), intervals, sockets)


def _flow_row(cell: Cell, ends: FlowEnds, zero_s: float | None, *, back: bool) -> Row:
    flow, client, sent, received = ends.flow, ends.client, ends.client.sent, ends.received
    start_s = flow.start.seconds if ends.started_s is None else ends.started_s
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
        "start_s": start_s,
        "receiver_zero_s": zero_s,
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
        "direction": "reverse" if back else "forward",
        **_datagram_columns(ends),
        **_video_columns(ends),
        "iperf3_version": client.version or ends.server.version,
    }


def _datagram_columns(ends: FlowEnds) -> Row:
    """What became of the datagrams of a flow of UDP."""
    udp, counts = ends.flow.udp, ends.datagrams
    return {
        "udp_rate_bps": udp.rate.bps if udp is not None else None,
        "datagrams_sent": counts.sent if counts is not None else None,
        "datagrams_lost": counts.lost if counts is not None else None,
        "datagrams_reordered": counts.reordered if counts is not None else None,
        "datagram_loss_ratio": counts.lost / counts.sent if counts is not None and counts.sent else None,
        "jitter_s": counts.jitter_s if counts is not None else None,
        "pdv_p95_s": counts.pdv_p95_s if counts is not None else None,
    }


def _video_columns(ends: FlowEnds) -> Row:
    """How a video was watched: until its first chunk was whole, stalls after it, rates of its chunks."""
    chunks = ends.chunks.to_pylist() if ends.flow.video is not None else []
    whole = [chunk for chunk in chunks if chunk["whole_s"] is not None]
    stalls = [chunk["stalled_s"] for chunk in chunks if chunk["stalled_s"] > 0]
    rates_bps = [chunk["download_bps"] for chunk in whole if chunk["download_bps"] is not None]
    return {
        "video_startup_s": whole[0]["whole_s"] if whole else None,
        "video_stalls": len(stalls) if whole else None,
        "video_stalled_s": sum(stalls) if whole else None,
        "video_chunks": len(whole) if ends.flow.video is not None else None,
        "chunk_download_bps": sum(rates_bps) / len(rates_bps) if rates_bps else None,
    }


def _rate_bps(total: Transferred | None) -> float | None:
    return 8 * total.bytes / total.seconds if total is not None and total.seconds > 0 else None


def _tagged_intervals(cell: Cell, ends: list[FlowEnds]) -> pa.Table:
    tables = [
        tagged(report.intervals, INTERVALS, cell_id=cell.id, flow=end.flow.index)
        for end in ends
        for report in (end.client, end.server)
    ]
    return pa.concat_tables([INTERVALS.empty_table(), *tables])

"""The columns of the tables under ``tables/``, as ``docs/run-folder.md`` describes them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from fabbbr_analysis.parse import iperf3

TABLES_VERSION = 32
"""Raised when the same raw files give other tables: a parser was mended, a column changed, or they lie
elsewhere: from 5 on a cell has its own files of samples, from 6 on completion is of the flows with a size,
from 7 on a table says whether offloads were on, from 8 on there are packets, pings, groups and phases,
from 9 on ``runs`` says what datagrams and videos suffered, and phases of unlike warm-ups have one name,
from 10 on fairness is not of datagrams and videos, from 11 on loss is the share that is lost, in bursts too,
and a receiver that stands still keeps its zero, from 12 on jitter is of a whole flow, with PDV beside it,
from 13 on ``runs`` says which share of the pings had no answer, from 14 on groups say where they compete,
from 15 on the share that a group sent again in a phase is of bytes, whole transfers count in what was sent,
and a direction is used by the flows that cross the first bottleneck, from 16 on ``runs`` says what came late,
and from 17 on the share that was sent again is of bytes over a whole run too, as ss saw both,
marks of ``ce_threshold`` count, and what follows a step is of the link that it changes, from 18 on the
ideal of a transfer is the least that it can take, from 19 on groups have a 99th percentile of it, and from
22 on there is a share of what a link carried whose rate changes, by steps or a trace, from 23 on an ideal
of transfers through a trace, from 24 on the queue of a way back has its samples where it is unlike that of
the way there, from 26 on groups say when the last of their transfers is done, and from 27 on a queue's delay
follows steps of the RTT, and steps that come one upon another begin one phase, and from 31 on there are
datagrams, each by itself, and a group whose time was over takes no share of what comes later."""

CELLS = pa.schema(
    [
        ("cell_id", pa.string()),
        ("experiment", pa.string()),
        ("condition", pa.string()),
        ("repetition", pa.int64()),
        ("seed", pa.int64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("backend", pa.string()),
        ("clock", pa.string()),
        ("kernel_release", pa.string()),
        ("timer_hz", pa.int64()),
        ("virtual_s", pa.float64()),
        ("rate_bps", pa.int64()),
        ("rate_changes", pa.bool_()),
        ("rtt_s", pa.float64()),
        ("buffer_bytes", pa.int64()),
        ("bdp_bytes", pa.int64()),
        ("buffer_bdp", pa.float64()),
        ("burst_bytes", pa.int64()),
        ("rate_reverse_bps", pa.int64()),
        ("buffer_reverse_bytes", pa.int64()),
        ("aqm_reverse", pa.string()),
        ("loss_ratio", pa.float64()),
        ("loss_burst_packets", pa.float64()),
        ("loss_position", pa.string()),
        ("reordered_ratio", pa.float64()),
        ("late_s", pa.float64()),
        ("ack_aggregation_s", pa.float64()),
        ("aqm", pa.string()),
        ("offloads", pa.bool_()),
        ("ecn", pa.bool_()),
        ("mtu_bytes", pa.int64()),
        ("ccas", pa.string()),
        ("bbr2_variant", pa.string()),
        ("n_flows", pa.int64()),
        ("duration_s", pa.float64()),
        ("warm_up_s", pa.float64()),
    ]
)

FLOWS = pa.schema(
    [
        ("cell_id", pa.string()),
        ("flow", pa.int64()),
        ("group", pa.string()),
        ("cca", pa.string()),
        ("implementation", pa.string()),
        ("profile", pa.string()),
        ("sender", pa.string()),
        ("receiver", pa.string()),
        ("streams", pa.int64()),
        ("start_s", pa.float64()),
        ("receiver_zero_s", pa.float64()),
        ("rtt_propagation_s", pa.float64()),
        ("outcome", pa.string()),
        ("error", pa.string()),
        ("sent_bytes", pa.int64()),
        ("received_bytes", pa.int64()),
        ("sender_s", pa.float64()),
        ("receiver_s", pa.float64()),
        ("throughput_bps", pa.float64()),
        ("goodput_bps", pa.float64()),
        ("goodput_steady_bps", pa.float64()),
        ("retransmits", pa.int64()),
        ("rtt_mean_s", pa.float64()),
        ("rtt_min_s", pa.float64()),
        ("rtt_max_s", pa.float64()),
        ("max_cwnd_bytes", pa.int64()),
        ("completion_s", pa.float64()),
        ("direction", pa.string()),
        ("udp_rate_bps", pa.int64()),
        ("datagrams_sent", pa.int64()),
        ("datagrams_lost", pa.int64()),
        ("datagrams_reordered", pa.int64()),
        ("datagram_loss_ratio", pa.float64()),
        ("jitter_s", pa.float64()),
        ("pdv_p95_s", pa.float64()),
        ("video_startup_s", pa.float64()),
        ("video_stalls", pa.int64()),
        ("video_stalled_s", pa.float64()),
        ("video_chunks", pa.int64()),
        ("chunk_download_bps", pa.float64()),
        ("iperf3_version", pa.string()),
    ]
)

GROUPS = pa.schema(
    [
        ("cell_id", pa.string()),
        ("phase", pa.int64()),
        ("phase_name", pa.string()),
        ("phase_start_s", pa.float64()),
        ("phase_end_s", pa.float64()),
        ("begins_with", pa.string()),
        ("group", pa.string()),
        ("cca", pa.string()),
        ("implementation", pa.string()),
        ("profile", pa.string()),
        ("competes_in", pa.string()),
        ("n_flows", pa.int64()),
        ("sized", pa.bool_()),
        ("self_limited", pa.bool_()),
        ("received_bytes", pa.int64()),
        ("active_s", pa.float64()),
        ("goodput_bps", pa.float64()),
        ("goodput_per_flow_bps", pa.float64()),
        ("share", pa.float64()),
        ("fair_share", pa.float64()),
        ("ceiling_bps", pa.float64()),
        ("rtt_median_s", pa.float64()),
        ("rtt_p95_s", pa.float64()),
        ("queue_delay_median_s", pa.float64()),
        ("queue_median_bytes", pa.float64()),
        ("queue_p95_bytes", pa.float64()),
        ("queue_drops", pa.int64()),
        ("queue_marks", pa.int64()),
        ("retransmits", pa.int64()),
        ("retransmit_ratio", pa.float64()),
        ("spurious_ratio", pa.float64()),
        ("ce_segments", pa.int64()),
        ("completed", pa.int64()),
        ("completion_mean_s", pa.float64()),
        ("completion_median_s", pa.float64()),
        ("completion_p95_s", pa.float64()),
        ("completion_p99_s", pa.float64()),
        ("completion_all_s", pa.float64()),
        ("slowdown_median", pa.float64()),
        ("slowdown_p95", pa.float64()),
        ("recovery_s", pa.float64()),
        ("queue_settled_s", pa.float64()),
        ("convergence_s", pa.float64()),
    ]
)

INTERVALS = pa.schema([pa.field("cell_id", pa.string()), pa.field("flow", pa.int64()), *iperf3.INTERVALS])

_COUNTED_METRICS = frozenset(
    {"retransmits", "queue_drops", "injected_drops", "ping_lost", "queue_reverse_drops"}
)


def axis_column(key: str) -> str:
    """Name the column that holds the value of a varied key."""
    return f"axis_{key}"


def cells_schema(axes: Iterable[str]) -> pa.Schema:
    """Columns of ``cells`` for an experiment that varies ``axes``."""
    return pa.schema([*CELLS, *(pa.field(axis_column(key), pa.string()) for key in axes)])


def runs_schema(cells: pa.Schema, metrics: Iterable[str]) -> pa.Schema:
    """Columns of ``runs``: those of ``cells``, then the metrics."""
    types = {name: pa.int64() if name in _COUNTED_METRICS else pa.float64() for name in metrics}
    return pa.schema([*cells, *(pa.field(name, kind) for name, kind in types.items())])


def tagged(table: pa.Table, schema: pa.Schema, **constants: str | float) -> pa.Table:
    """Bring ``table`` into ``schema``, with some columns the same in every row."""
    columns = [
        pa.repeat(pa.scalar(constants[field.name], field.type), len(table))
        if field.name in constants
        else table[field.name].cast(field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)

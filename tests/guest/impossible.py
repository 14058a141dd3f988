"""What no table of a run can say, whatever was run: each sentence of it is a bug of a measurement."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from fabbbr.model import Cell
from fabbbr_analysis.runset import RunSet

_RATIOS = (
    "retransmit_ratio", "spurious_ratio", "queue_median_fill", "jain_flows", "ping_loss_ratio",
    "datagram_loss_ratio", "datagram_reordered_ratio",
)  # fmt: skip
_ONLY_GROW = (
    "bytes_sent", "bytes_acked", "bytes_received", "bytes_retrans", "delivered_segments", "retrans_segments",
    "sent_segments", "dsack_segments", "busy_s", "rwnd_limited_s", "sndbuf_limited_s",
)  # fmt: skip
_ROUNDING = 1e-6
"""Relative, of instants that are read to a nanosecond and kept as a float."""
_CLOCK_S = 1e-6
"""What ping and ss say of a time is rounded."""
_SS_S = 1.1e-3
"""So is the least RTT that ss says, to a millisecond."""


def impossible(run_set: RunSet, cell: Cell) -> list[str]:
    """Of the only cell of a run."""
    return [
        *_ratios(run_set),
        *_shares(run_set.groups),
        *_received(run_set, cell),
        *_round_trips(run_set, cell),
        *_counters(run_set),
    ]


def _ratios(run_set: RunSet) -> Iterator[str]:
    run = run_set.runs.iloc[0]
    for name in _RATIOS:
        if not pd.isna(run[name]) and not 0 <= run[name] <= 1:
            yield f"{name} is {run[name]}"
    for row in run_set.groups.to_dict("records"):
        for name in ("share", "fair_share", "retransmit_ratio"):
            if not pd.isna(row[name]) and not 0 <= row[name] <= 1:
                yield f"{name} of {row['group']} in {row['phase_name']} is {row[name]}"
        for name in ("slowdown_median", "slowdown_p95"):
            if row[name] < 1 - _ROUNDING:
                yield f"{name} of {row['group']} in {row['phase_name']} is {row[name]}"


def _shares(groups: pd.DataFrame) -> Iterator[str]:
    """Those of rivals are all that there is."""
    for place, rivals in groups.groupby(["phase_name", "competes_in"]):
        for name in ("share", "fair_share"):
            known = rivals[name].dropna()
            if len(known) == len(rivals) and abs(known.sum() - 1) > 1e-9:
                yield f"{name} of all in {place} is {known.sum()}"


def _received(run_set: RunSet, cell: Cell) -> Iterator[str]:
    """No more than was sent; all of what completed; not before light would have brought it."""
    sizes = {flow.index: flow.size.bytes for flow in cell.flows if flow.size is not None}
    for row in run_set.flows.to_dict("records"):
        name, got = f"flow {row['flow']}", row["received_bytes"]
        if got > row["sent_bytes"]:
            yield f"{name} received {got} of {row['sent_bytes']} bytes"
        if not pd.isna(row["completion_s"]):
            if got != sizes[row["flow"]]:
                yield f"{name} completed with {got} bytes"
            if row["completion_s"] < (1.5 - _ROUNDING) * row["rtt_propagation_s"] and not cell.steps:
                yield f"{name} completed in {row['completion_s']} s"


def _round_trips(run_set: RunSet, cell: Cell) -> Iterator[str]:
    """Not shorter than the path; steps may shorten it."""
    if cell.steps:
        return
    pings = run_set.pings()
    if (pings["rtt_s"] < pings["rtt_propagation_s"] - _CLOCK_S).any():
        yield f"a ping took {pings['rtt_s'].min()} s"
    of_flow = {flow.index: flow.rtt.seconds for flow in cell.flows}
    sockets = run_set.sockets()
    senders = sockets[(sockets["side"] == "sender") & sockets["min_rtt_s"].notna()]
    early = senders[senders["min_rtt_s"] < senders["flow"].map(of_flow) - _SS_S]
    if not early.empty:
        yield f"ss saw a round trip of {early['min_rtt_s'].min()} s"


def _counters(run_set: RunSet) -> Iterator[str]:
    for socket, rows in run_set.sockets().groupby(["host", "local_port", "peer_port"]):
        for name in _ONLY_GROW:
            if (rows[name].dropna().diff() < 0).any():
                yield f"{name} of {socket} falls"

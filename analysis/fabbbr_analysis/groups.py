"""What each group of flows got in each phase of a cell: the rows of table ``groups``.

Pure, like ``metrics``. Bytes are those that came within the phase, over the seconds of it in which a flow of
the group ran. A count that every flow must have is None when one lacks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fabbbr.model import Cell, Flow
from fabbbr.physics import payload_share
from fabbbr.units import TCP_IPV4_HEADER_BYTES
from fabbbr_analysis.after_steps import on_average, recovery
from fabbbr_analysis.arrivals import Array, known, union_s, within
from fabbbr_analysis.ceilings import most_bps
from fabbbr_analysis.fairness import WINDOW_S, convergence_s
from fabbbr_analysis.ideals import least_s
from fabbbr_analysis.measured_cell import MeasuredCell
from fabbbr_analysis.metrics import CellTables, queue_delay_s, retransmit_ratio
from fabbbr_analysis.phases import WHOLE_RUN, Phase, phases_of

Row: TypeAlias = dict[str, Any]

_FEWEST_OF_P99 = 500
"""Below, a 99th percentile is one of the few slowest."""


def of_groups(tables: CellTables, cell: Cell) -> list[Row]:
    """Compute the rows of table ``groups`` of one cell: each phase, and in it each group, in their order.

    Nothing when no flow's receiver said anything: then there is no time to divide.
    """
    measured = MeasuredCell.of(tables, cell)
    ended_s = {index: each.span[1] for index, each in measured.arrived.items() if each is not None}
    if not ended_s:
        return []
    phases = phases_of(cell, ended_s)
    after = {phase.number: recovery(measured, phase) for phase in phases}
    after[WHOLE_RUN] = on_average([after[phase.number] for phase in phases if phase.begins_with == "step"])
    return [row for phase in phases for row in _of_phase(measured, phase, after[phase.number])]


def _of_phase(measured: MeasuredCell, phase: Phase, together: Row) -> list[Row]:
    groups = dict.fromkeys(flow.group for flow in measured.cell.flows)
    rows = [_of_group(measured, phase, group) | together for group in groups]
    for contest in dict.fromkeys(measured.contests.values()):
        _share_out([row for row in rows if row["competes_in"] == contest])
    return rows


def _share_out(rows: Sequence[Row]) -> None:
    """Add the shares to the rows of rivals, in one phase.

    One that has sent all before takes no part: what of it is still on its way makes no rival of it. Of one
    whose receiver said nothing that is not known, nor what the others have a share of.
    """
    rivals = [row for row in rows if row["n_flows"] or row["received_bytes"] is None]
    total = _sum([row["received_bytes"] for row in rivals])
    running = sum(row["n_flows"] for row in rivals)
    for row in rows:
        apart = len(rivals) < 2 or not row["n_flows"] or not total
        row["share"] = None if apart else row["received_bytes"] / total
        row["fair_share"] = None if apart else row["n_flows"] / running


def _sum(values: Sequence[float | None]) -> float | None:
    return None if any(value is None for value in values) else sum(value or 0.0 for value in values)


def _of_group(measured: MeasuredCell, phase: Phase, group: str) -> Row:
    flows = measured.flows_of(group)
    running = [flow for flow in flows if _runs(measured, phase, flow)]
    first = flows[0]
    return {
        "cell_id": measured.cell.id,
        "phase": phase.number,
        "phase_name": phase.name,
        "phase_start_s": phase.start_s,
        "phase_end_s": phase.end_s,
        "begins_with": phase.begins_with,
        "group": group,
        "cca": first.cca,
        "implementation": first.implementation,
        "profile": first.profile,
        "competes_in": measured.contests[group],
        "n_flows": len(running),
        "sized": all(flow.size is not None for flow in flows),
        "self_limited": not measured.limiting_themselves.isdisjoint(flow.index for flow in flows),
        **_goodput(measured, phase, flows),
        "ceiling_bps": _ceiling_bps(measured, phase, flows),
        **_round_trip(measured, phase, flows),
        **_queue(measured, phase, flows),
        **_sent(measured, phase, flows),
        **_completion(measured, phase, flows),
        "convergence_s": _convergence_s(measured, phase, measured.contests[group]),
    }


def _runs(measured: MeasuredCell, phase: Phase, flow: Flow) -> bool:
    """Whether it sends in the phase; where its time was over before, what comes was on its way or queued."""
    if flow.duration is not None and flow.start.seconds + flow.duration.seconds <= phase.start_s:
        return False
    return bool(within(measured.spans([flow]), phase.start_s, phase.end_s))


# Goodput


def _goodput(measured: MeasuredCell, phase: Phase, flows: Sequence[Flow]) -> Row:
    if known(measured.arrived, [flow.index for flow in flows]) is None:
        return dict.fromkeys(("received_bytes", "active_s", "goodput_bps", "goodput_per_flow_bps"))
    seen = [each for flow in flows if (each := measured.seen(phase, flow)) is not None]
    active_s = union_s(span for _, span in seen)
    rates = [8 * count / (end_s - start_s) for count, (start_s, end_s) in seen]
    return {
        "received_bytes": round(sum(measured.got(phase, flow) for flow in flows)),
        "active_s": active_s,
        "goodput_bps": 8 * sum(count for count, _ in seen) / active_s if active_s > 0 else None,
        "goodput_per_flow_bps": float(np.mean(rates)) if rates else None,
    }


def _ceiling_bps(measured: MeasuredCell, phase: Phase, flows: Sequence[Flow]) -> float | None:
    """The most goodput that the group's path carries in the phase; with several paths, the best."""
    paths = {measured.bottlenecks_of(flow) for flow in flows}
    met = {each for path in paths for each in path}
    carried = {each: _carried_bps(measured, phase, flows, *each) for each in met}
    known_bps = {each: bps for each, bps in carried.items() if bps is not None}
    if len(known_bps) < len(carried) or not all(paths):
        return None
    least = (min(known_bps[each] for each in path) for path in paths)
    return max(least) * max(payload_share(flow, measured.cell.mtu_bytes) for flow in flows)


def _carried_bps(
    measured: MeasuredCell,
    phase: Phase,
    flows: Sequence[Flow],
    link: str,
    forward: bool,  # noqa: FBT001 - as in MeasuredCell.bottlenecks_of
) -> float | None:
    """The most that a bottleneck carries [bit/s]: in a phase, or in the whole run while the flows ran."""
    if phase.number != WHOLE_RUN:
        spans = [(phase.start_s, phase.end_s)]
    else:
        through = [flow for flow in flows if (link, forward) in measured.bottlenecks_of(flow)]
        spans = measured.left(through, link)
    hz = measured.timer_hz
    return most_bps(measured.cell, link, spans, timer_hz=hz, reverse=not forward)


# Round trips


def _round_trip(measured: MeasuredCell, phase: Phase, flows: Sequence[Flow]) -> Row:
    sockets = _senders(measured, flows)
    seen = sockets[sockets["rtt_s"].notna() & sockets["t_s"].between(phase.start_s, phase.end_s)]
    rtt = seen["rtt_s"].to_numpy(dtype=np.float64)
    return {
        "rtt_median_s": _quantile(rtt, 0.5),
        "rtt_p95_s": _quantile(rtt, 0.95),
        "queue_delay_median_s": _quantile(queue_delay_s(seen, measured.cell), 0.5),
    }


def _senders(measured: MeasuredCell, flows: Sequence[Flow]) -> pd.DataFrame:
    sockets = measured.tables.sockets
    return sockets[(sockets["side"] == "sender") & sockets["flow"].isin([flow.index for flow in flows])]


# The queue


def _queue(measured: MeasuredCell, phase: Phase, flows: Sequence[Flow]) -> Row:
    queue = measured.queue(flows)
    if queue is None:
        return dict.fromkeys(("queue_median_bytes", "queue_p95_bytes", "queue_drops", "queue_marks"))
    inside = queue[queue["t_s"].between(phase.start_s, phase.end_s)]
    backlog = inside["backlog_bytes"].dropna().to_numpy(dtype=np.float64)
    return {
        "queue_median_bytes": _quantile(backlog, 0.5),
        "queue_p95_bytes": _quantile(backlog, 0.95),
        "queue_drops": _grown(queue, "drops", phase),
        "queue_marks": _grown(queue, "ecn_marks", phase) if measured.cell.ecn else None,
    }


def _grown(samples: pd.DataFrame, counter: str, phase: Phase) -> int | None:
    """By how much a counter grew in the phase, from the last sample before to the last one in it.

    None when it is absent or was reset.
    """
    if samples.empty or samples[counter].isna().any() or (samples[counter].diff() < 0).any():
        return None
    times, counts = samples["t_s"].to_numpy(dtype=np.float64), samples[counter].to_numpy(dtype=np.float64)
    start, end = np.searchsorted(times, [phase.start_s, phase.end_s], side="right") - 1
    return int(counts[max(end, 0)] - counts[max(start, 0)])


# What was sent


def _sent(measured: MeasuredCell, phase: Phase, flows: Sequence[Flow]) -> Row:
    """Segments sent again, their share, and echoes of marks, as the senders' sockets count them.

    Of the whole run, what was sent again is what the programs themselves report. The share is of bytes: the
    few that iperf3 agrees on a test with are no full segments, and may be all that a flow sends in a phase.
    """
    sockets = _senders(measured, flows)
    sockets = sockets[sockets["bytes_sent"].notna()].sort_values("t_s", kind="stable")
    again = _of_sockets(sockets, "retrans_segments", phase)
    share = _ratio(*(_of_sockets(sockets, counter, phase) for counter in ("bytes_retrans", "bytes_sent")))
    if phase.number == WHOLE_RUN:
        told = measured.tables.flows
        told = told[told["flow"].isin([flow.index for flow in flows])]
        again = None if told["retransmits"].isna().any() else int(told["retransmits"].sum())
        mss = measured.cell.mtu_bytes - TCP_IPV4_HEADER_BYTES
        share = retransmit_ratio(told, sockets, mss_bytes=mss)
    return {
        "retransmits": again,
        "retransmit_ratio": share,
        "spurious_ratio": _spurious(sockets, phase),
        "ce_segments": _of_sockets(sockets, "delivered_ce_segments", phase) if measured.cell.ecn else None,
    }


def _spurious(sockets: pd.DataFrame, phase: Phase) -> float | None:
    """Share of the segments sent that their receivers had already."""
    return _ratio(*(_of_sockets(sockets, counter, phase) for counter in ("dsack_segments", "sent_segments")))


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _of_sockets(sockets: pd.DataFrame, counter: str, phase: Phase) -> int | None:
    """Sum over connections of what a counter grew by in the phase; what ss does not print is 0."""
    if sockets.empty:
        return None
    counted = sockets[["flow", "local_port", "t_s"]].assign(count=sockets[counter].fillna(0))
    before = _counted_by(counted, phase.start_s) if phase.start_s > 0 else 0
    return _counted_by(counted, phase.end_s) - before


def _counted_by(counted: pd.DataFrame, instant_s: float) -> int:
    """Sum over connections of the last count until then; one that was not there yet has counted nothing."""
    until = counted[counted["t_s"] <= instant_s]
    return int(until.groupby(["flow", "local_port"])["count"].last().sum())


# Completion


def _completion(measured: MeasuredCell, phase: Phase, flows: Sequence[Flow]) -> Row:
    """Over the flows with a size that started in the phase; None when one of them did not complete."""
    rows = [
        (flow, *measured.transfers[flow.index])
        for flow in flows
        if flow.size is not None
        and flow.index in measured.transfers
        and phase.start_s <= measured.transfers[flow.index][0] < phase.end_s
    ]
    times = np.array([completion_s for _, _, completion_s in rows], dtype=np.float64)
    done = times.size > 0 and bool(np.isfinite(times).all())
    slow = [_slowdown(measured, *row) for row in rows] if done else []
    slowdown = np.array([each for each in slow if each is not None]) if None not in slow else np.empty(0)
    return {
        "completed": int(np.isfinite(times).sum()) if rows else None,
        "completion_mean_s": float(times.mean()) if done else None,
        "completion_median_s": _quantile(times, 0.5) if done else None,
        "completion_p95_s": _quantile(times, 0.95) if done else None,
        "completion_p99_s": _quantile(times, 0.99) if done and times.size >= _FEWEST_OF_P99 else None,
        "completion_all_s": _all_done_s(rows) if done else None,
        "slowdown_median": _quantile(slowdown, 0.5),
        "slowdown_p95": _quantile(slowdown, 0.95),
    }


def _all_done_s(transfers: Sequence[tuple[Flow, float, float]]) -> float | None:
    """From the start of the first until the last has completed [s]; flows with their starts and times.

    None where they do not start together, within a round trip: then it is when the last one started.
    """
    starts = [flow.start.ns for flow, _, _ in transfers]
    if max(starts) - min(starts) > max(flow.rtt.ns for flow, _, _ in transfers):
        return None
    ends_s = (start_s + took_s for _, start_s, took_s in transfers)
    return max(ends_s) - min(start_s for _, start_s, _ in transfers)


def _slowdown(measured: MeasuredCell, flow: Flow, start_s: float, completion_s: float) -> float | None:
    """Completion time over the least that a transfer can take."""
    least = least_s(measured, flow, start_s, start_s + completion_s)
    return None if least is None else completion_s / least


def _convergence_s(measured: MeasuredCell, phase: Phase, contest: str) -> float | None:
    """As ``fairness.convergence_s``, of rivals that run until the phase ends, from its start on."""
    rivals = {
        flow.index
        for flow in measured.cell.flows
        if flow.elastic and measured.contests[flow.group] == contest
    }
    spans = {index: each.span for index, each in measured.arrived.items() if each is not None}
    reach = phase.end_s - WINDOW_S
    running = [index for index, (start, end) in spans.items() if index in rivals and start < reach <= end]
    own = known(measured.arrived, running)
    if own is None or len(spans) < len(measured.arrived):
        return None
    return convergence_s(own, since_s=max(phase.start_s, 0.0), until_s=phase.end_s)


def _quantile(values: Array, q: float) -> float | None:
    return float(np.quantile(values, q)) if values.size else None

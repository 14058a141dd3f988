"""What each group of flows got in each phase of a cell: the rows of table ``groups``.

Pure, like ``metrics``. Bytes are those that came within the phase, over the seconds of it in which a flow of
the group ran. A count that every flow must have is None when one lacks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fabbbr.model import Bottleneck, Cell, CellLink, Flow
from fabbbr.physics import RateOverTime, burst_bytes, payload_share
from fabbbr.units import TCP_IPV4_HEADER_BYTES, Rate, goodput_ceiling
from fabbbr.ways import Ways
from fabbbr_analysis.arrivals import Arrival, arrivals, deliveries, known, union_s, within
from fabbbr_analysis.contests import contests
from fabbbr_analysis.fairness import WINDOW_S, first_lasting
from fabbbr_analysis.metrics import CellTables, answer_delays_s, queue_back_of, queue_of, retransmit_ratio
from fabbbr_analysis.phases import WHOLE_RUN, Phase, phases_of

Array: TypeAlias = NDArray[np.float64]
Row: TypeAlias = dict[str, Any]

FILLED = 0.9
"""Share of the ceiling that counts as filled again after a step."""
_PERIOD_S = 0.1
_STAYS = 1.25
"""A queue has settled when it is at most so many times what it is in the second half of the phase."""
_FRAMES = 10
"""Or at most so many frames more: a queue of none has no multiples."""
_ROUND_TRIPS = 1.5
"""Of a transfer at least: its SYN, the answer, and the way of its last byte."""


@dataclass(frozen=True, kw_only=True)
class _Ground:
    """A cell with all that its phases are read from."""

    cell: Cell
    tables: CellTables
    arrived: Mapping[int, Arrival | None]
    passed: Mapping[int, Arrival]
    """As ``arrived``, but when it passed the bottleneck, and in order or not; of flows of TCP."""
    transfers: Mapping[int, tuple[float, float]]
    """Flow → its start and its completion time [s], NaN where it did not complete."""
    rate_of: Mapping[tuple[str, bool], RateOverTime]
    """Bottleneck, and whether data crosses it from ``a`` to ``b`` → its rate."""
    ways: Mapping[int, Mapping[str, bool]]
    """Flow → the links that it crosses, as ``physics.crossed`` has them."""
    contests: Mapping[str, str]
    """Group → where it competes."""

    @cached_property
    def bottlenecks(self) -> Mapping[str, Bottleneck]:
        return self.cell.bottlenecks

    def flows_of(self, group: str) -> list[Flow]:
        return [flow for flow in self.cell.flows if flow.group == group]

    def spans(self, flows: Sequence[Flow]) -> list[tuple[float, float]]:
        found = (self.arrived.get(flow.index) for flow in flows)
        return [each.span for each in found if each is not None]

    def rates(self, flow: Flow) -> list[RateOverTime]:
        """Of the bottlenecks that it crosses; none where one delivers by a trace."""
        met = [(name, forward) for name, forward in self.ways[flow.index].items() if name in self.bottlenecks]
        if any(forward and self.bottlenecks[name].trace is not None for name, forward in met):
            return []
        return [self.rate_of[each] for each in met]

    def burst_bytes(self, rate: RateOverTime, start_s: float, end_s: float) -> int:
        """The most that the token bucket of a bottleneck holds between two instants.

        With offloads it stays while the rate falls (``fabbbr.job.qdiscs.tbf_line``).
        """
        most = rate.most(0.0 if self.cell.offloads else start_s, end_s)
        hz = int(self.tables.cells["timer_hz"].iloc[0])
        return burst_bytes(Rate(most), timer_hz=hz, frame_bytes=self.cell.frame_bytes)

    def least_rtt_s(self, flow: Flow, start_s: float, end_s: float) -> float:
        """Of propagation between two instants, were each link all the time at its least."""
        links = [link for link in self.cell.links if link.name in self.ways[flow.index]]
        added = (min(_rtts_s(self.cell, link, start_s, end_s)) - _rtt_at_first_s(link) for link in links)
        return flow.rtt.seconds + sum(added)

    def came(self, phase: Phase, flow: Flow) -> tuple[float, float]:
        """When the bytes come to the receiver that left the bottleneck in the phase [s].

        What was on its way when a step came arrives after it, at the old rate.
        """
        if phase.number == WHOLE_RUN:
            return phase.start_s, phase.end_s
        ways = self.ways[flow.index]
        path = [link for name in ways for link in self.cell.links if link.name == name]
        first = next((n for n, link in enumerate(path) if link.bottleneck is not None), len(path))
        delay_s = sum(link.delay.seconds for link in path[first:] if link.delay is not None)
        return phase.start_s + (delay_s if phase.start_s > 0 else 0.0), phase.end_s + delay_s

    def got(self, phase: Phase, flow: Flow) -> float:
        """Bytes of a known flow in the phase."""
        arrived = self.arrived[flow.index]
        assert arrived is not None
        return arrived.between(*self.came(phase, flow))

    def seen(self, phase: Phase, flow: Flow) -> tuple[float, tuple[float, float]] | None:
        """Bytes of a known flow between two samples in the phase, and when these were.

        In a phase, as they passed the bottleneck: none waits there for one that was lost. Between samples
        that are too far apart bytes are taken to be even. None when it did not run.
        """
        passed = self.passed.get(flow.index)
        if phase.number != WHOLE_RUN and passed is not None:
            seen = passed.seen_between(phase.start_s, phase.end_s)
            if seen is not None:
                return seen
        arrived = self.arrived[flow.index]
        assert arrived is not None
        start_s, end_s = self.came(phase, flow)
        ran = within([arrived.span], start_s, end_s)
        seen = arrived.seen_between(start_s, end_s)
        return seen if seen is not None or not ran else (arrived.between(start_s, end_s), ran[0])

    def queue(self, flows: Sequence[Flow]) -> pd.DataFrame | None:
        """Samples of the first bottleneck queue of these flows, one from ``a`` to ``b`` first."""
        ways = [self.ways[flow.index] for flow in flows]
        links = [link for link in self.cell.links if link.name in self.bottlenecks]
        there = next((link for link in links if any(way.get(link.name) for way in ways)), None)
        if there is not None:
            return queue_of(self.tables.queues, there)
        back = next((link for link in links if any(link.name in way for way in ways)), None)
        return None if back is None else queue_back_of(self.tables.queues, back)


def of_groups(tables: CellTables, cell: Cell) -> list[Row]:
    """Compute the rows of table ``groups`` of one cell: each phase, and in it each group, in their order.

    Nothing when no flow's receiver said anything: then there is no time to divide.
    """
    arrived = arrivals(tables.flows, tables.intervals, tables.sockets)
    ends = [each.span[1] for each in arrived.values() if each is not None]
    if not ends:
        return []
    flows, ways = tables.flows, Ways(cell.links)
    times = zip(flows["start_s"].astype("float64"), flows["completion_s"].astype("float64"), strict=True)
    transfers = dict(zip(flows["flow"].astype("int64"), times, strict=True))
    passed = deliveries(tables.sockets, answer_delays_s(cell))
    ground = _Ground(
        cell=cell,
        tables=tables,
        arrived=arrived,
        passed=passed,
        transfers=transfers,
        rate_of={
            (name, forward): RateOverTime.of(cell, name, reverse=not forward)
            for name in cell.bottlenecks
            for forward in (True, False)
        },
        ways={flow.index: ways.between(flow.sender, flow.receiver) for flow in cell.flows},
        contests=contests(cell),
    )
    return [row for phase in phases_of(cell, max(ends)) for row in _of_phase(ground, phase)]


def _of_phase(ground: _Ground, phase: Phase) -> list[Row]:
    groups = dict.fromkeys(flow.group for flow in ground.cell.flows)
    together = _recovery(ground, phase)
    rows = [_of_group(ground, phase, group) | together for group in groups]
    for contest in dict.fromkeys(ground.contests.values()):
        _share_out([row for row in rows if row["competes_in"] == contest])
    return rows


def _share_out(rows: Sequence[Row]) -> None:
    """Add the shares to the rows of rivals, in one phase."""
    total = _sum([row["received_bytes"] for row in rows])
    running = sum(row["n_flows"] for row in rows)
    for row in rows:
        alone = len(rows) == 1 or not total or row["received_bytes"] is None
        row["share"] = None if alone else row["received_bytes"] / total
        row["fair_share"] = None if alone or not running else row["n_flows"] / running


def _sum(values: Sequence[float | None]) -> float | None:
    return None if any(value is None for value in values) else sum(value or 0.0 for value in values)


def _of_group(ground: _Ground, phase: Phase, group: str) -> Row:
    flows = ground.flows_of(group)
    running = [flow for flow in flows if within(ground.spans([flow]), phase.start_s, phase.end_s)]
    first = flows[0]
    return {
        "cell_id": ground.cell.id,
        "phase": phase.number,
        "phase_name": phase.name,
        "phase_start_s": phase.start_s,
        "phase_end_s": phase.end_s,
        "begins_with": phase.begins_with,
        "group": group,
        "cca": first.cca,
        "implementation": first.implementation,
        "profile": first.profile,
        "competes_in": ground.contests[group],
        "n_flows": len(running),
        "sized": all(flow.size is not None for flow in flows),
        "self_limited": any(flow.pacing or not flow.elastic for flow in flows),
        **_goodput(ground, phase, flows),
        "ceiling_bps": _ceiling_bps(ground, phase, flows),
        **_round_trip(ground, phase, flows),
        **_queue(ground, phase, flows),
        **_sent(ground, phase, flows),
        **_completion(ground, phase, flows),
        "convergence_s": _convergence_s(ground, phase, ground.contests[group]),
    }


# Goodput


def _goodput(ground: _Ground, phase: Phase, flows: Sequence[Flow]) -> Row:
    if known(ground.arrived, [flow.index for flow in flows]) is None:
        return dict.fromkeys(("received_bytes", "active_s", "goodput_bps", "goodput_per_flow_bps"))
    seen = [each for flow in flows if (each := ground.seen(phase, flow)) is not None]
    active_s = union_s(span for _, span in seen)
    rates = [8 * count / (end_s - start_s) for count, (start_s, end_s) in seen]
    return {
        "received_bytes": round(sum(ground.got(phase, flow) for flow in flows)),
        "active_s": active_s,
        "goodput_bps": 8 * sum(count for count, _ in seen) / active_s if active_s > 0 else None,
        "goodput_per_flow_bps": float(np.mean(rates)) if rates else None,
    }


def _ceiling_bps(ground: _Ground, phase: Phase, flows: Sequence[Flow]) -> float | None:
    """The most goodput that the group's path carries in the phase; with several paths, the best."""
    seconds = phase.end_s - phase.start_s
    paths = [ground.rates(flow) for flow in flows]
    if seconds <= 0 or any(not rates for rates in paths):
        return None
    least = (min(rate.bits(phase.start_s, phase.end_s) for rate in rates) / seconds for rates in paths)
    return max(least) * max(payload_share(flow, ground.cell.mtu_bytes) for flow in flows)


# Round trips


def _round_trip(ground: _Ground, phase: Phase, flows: Sequence[Flow]) -> Row:
    sockets = _senders(ground, flows)
    seen = sockets[sockets["rtt_s"].notna() & sockets["t_s"].between(phase.start_s, phase.end_s)]
    rtt = seen["rtt_s"].to_numpy(dtype=np.float64)
    propagation = _propagation_s(ground, phase, flows)
    delay: Array | None = None
    if propagation is not None:
        delay = rtt - seen["flow"].map(propagation).to_numpy(dtype=np.float64)
    return {
        "rtt_median_s": _quantile(rtt, 0.5),
        "rtt_p95_s": _quantile(rtt, 0.95),
        "queue_delay_median_s": None if delay is None else _quantile(delay, 0.5),
    }


def _propagation_s(ground: _Ground, phase: Phase, flows: Sequence[Flow]) -> dict[int, float] | None:
    """Flow → propagation RTT; None in a whole run that changes it."""
    cell = ground.cell
    changes = {
        step.link: step.rtt.seconds
        for step in sorted(cell.steps, key=lambda step: step.at)
        if step.rtt is not None and step.at.seconds <= phase.start_s
    }
    if phase.number == WHOLE_RUN and any(step.rtt is not None for step in cell.steps):
        return None
    before = {link.name: _rtt_at_first_s(link) for link in cell.links}
    return {
        flow.index: flow.rtt.seconds
        + sum(changes[name] - before[name] for name in ground.ways[flow.index] if name in changes)
        for flow in flows
    }


def _rtt_at_first_s(link: CellLink) -> float:
    """What it adds to a round trip before any step."""
    return 2 * link.delay.seconds if link.delay is not None else 0.0


def _rtts_s(cell: Cell, link: CellLink, start_s: float, end_s: float) -> list[float]:
    """What it adds at ``start_s``, and after each step from then until ``end_s``."""
    found = [_rtt_at_first_s(link)]
    for step in sorted(cell.steps, key=lambda step: step.at):
        if step.link == link.name and step.rtt is not None and step.at.seconds < end_s:
            kept = found if step.at.seconds > start_s else []
            found = [*kept, step.rtt.seconds]
    return found


def _senders(ground: _Ground, flows: Sequence[Flow]) -> pd.DataFrame:
    sockets = ground.tables.sockets
    return sockets[(sockets["side"] == "sender") & sockets["flow"].isin([flow.index for flow in flows])]


# The queue


def _queue(ground: _Ground, phase: Phase, flows: Sequence[Flow]) -> Row:
    queue = ground.queue(flows)
    if queue is None:
        return dict.fromkeys(("queue_median_bytes", "queue_p95_bytes", "queue_drops", "queue_marks"))
    inside = queue[queue["t_s"].between(phase.start_s, phase.end_s)]
    backlog = inside["backlog_bytes"].dropna().to_numpy(dtype=np.float64)
    return {
        "queue_median_bytes": _quantile(backlog, 0.5),
        "queue_p95_bytes": _quantile(backlog, 0.95),
        "queue_drops": _grown(queue, "drops", phase),
        "queue_marks": _grown(queue, "ecn_marks", phase),
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


def _sent(ground: _Ground, phase: Phase, flows: Sequence[Flow]) -> Row:
    """Segments sent again, their share, and echoes of marks, as the senders' sockets count them.

    Of the whole run, what was sent again is what the programs themselves report. The share is of bytes: the
    few that iperf3 agrees on a test with are no full segments, and may be all that a flow sends in a phase.
    """
    sockets = _senders(ground, flows)
    sockets = sockets[sockets["bytes_sent"].notna()].sort_values("t_s", kind="stable")
    again = _of_sockets(sockets, "retrans_segments", phase)
    share = _ratio(*(_of_sockets(sockets, counter, phase) for counter in ("bytes_retrans", "bytes_sent")))
    if phase.number == WHOLE_RUN:
        told = ground.tables.flows
        told = told[told["flow"].isin([flow.index for flow in flows])]
        again = None if told["retransmits"].isna().any() else int(told["retransmits"].sum())
        mss = ground.cell.mtu_bytes - TCP_IPV4_HEADER_BYTES
        share = retransmit_ratio(told, sockets, mss_bytes=mss)
    return {
        "retransmits": again,
        "retransmit_ratio": share,
        "spurious_ratio": _spurious(sockets, phase),
        "ce_segments": _of_sockets(sockets, "delivered_ce_segments", phase) if ground.cell.ecn else None,
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
    counts = sockets.assign(**{counter: sockets[counter].fillna(0)})
    connections = counts.groupby(["flow", "local_port"])[["t_s", counter]]
    return int(sum(_grown_from_nothing(rows, counter, phase) for _, rows in connections))


def _grown_from_nothing(rows: pd.DataFrame, counter: str, phase: Phase) -> float:
    times = np.concatenate(([-np.inf], rows["t_s"].to_numpy(dtype=np.float64)))
    counts = np.concatenate(([0.0], rows[counter].to_numpy(dtype=np.float64)))
    start, end = np.searchsorted(times, [phase.start_s, phase.end_s], side="right") - 1
    return float(counts[end] - (counts[start] if phase.start_s > 0 else 0.0))


# Completion


def _completion(ground: _Ground, phase: Phase, flows: Sequence[Flow]) -> Row:
    """Over the flows with a size that started in the phase; None when one of them did not complete."""
    rows = [
        (flow, *ground.transfers[flow.index])
        for flow in flows
        if flow.size is not None
        and flow.index in ground.transfers
        and phase.start_s <= ground.transfers[flow.index][0] < phase.end_s
    ]
    times = np.array([completion_s for _, _, completion_s in rows], dtype=np.float64)
    done = times.size > 0 and bool(np.isfinite(times).all())
    slow = [_slowdown(ground, *row) for row in rows] if done else []
    slowdown = np.array([each for each in slow if each is not None]) if None not in slow else np.empty(0)
    return {
        "completed": int(np.isfinite(times).sum()) if rows else None,
        "completion_mean_s": float(times.mean()) if done else None,
        "completion_median_s": _quantile(times, 0.5) if done else None,
        "completion_p95_s": _quantile(times, 0.95) if done else None,
        "slowdown_median": _quantile(slowdown, 0.5),
        "slowdown_p95": _quantile(slowdown, 0.95),
    }


def _slowdown(ground: _Ground, flow: Flow, start_s: float, completion_s: float) -> float | None:
    """Completion time over the least that a transfer can take, were each step meanwhile the best for it.

    From the first SYN until the receiver has the last byte: a round trip and a half, and what its frames take
    at the slowest link, whose full token bucket lets a burst of them pass at once.
    """
    rates, end_s = ground.rates(flow), start_s + completion_s
    if not rates or flow.size is None:
        return None
    wire_bytes = flow.size.bytes / goodput_ceiling(ground.cell.mtu_bytes)
    sent_s = max(
        8 * max(wire_bytes - ground.burst_bytes(rate, start_s, end_s), 0) / rate.most(start_s, end_s)
        for rate in rates
    )
    return completion_s / (_ROUND_TRIPS * ground.least_rtt_s(flow, start_s, end_s) + sent_s)


# After a step


def _recovery(ground: _Ground, phase: Phase) -> Row:
    """How long after a step all flows together fill 90 % of the ceiling over 1 s, and the queue has settled.

    Both of the link that the step changes. None in a phase that no step begins, and when it does not happen
    within the phase.
    """
    starts = np.arange(phase.start_s, phase.end_s - WINDOW_S + 1e-9, _PERIOD_S)
    if phase.begins_with != "step" or not starts.size:
        return {"recovery_s": None, "queue_settled_s": None}
    link = _changed_link(ground.cell, phase)
    return {
        "recovery_s": _filled_after_s(ground, phase, link, starts),
        "queue_settled_s": _settled_after_s(ground, phase, link, starts),
    }


def _changed_link(cell: Cell, phase: Phase) -> CellLink:
    """The first bottleneck that the step at the phase's start changes, or of all where it changes none."""
    changed = {step.link for step in cell.steps if step.at.seconds == phase.start_s} & cell.bottlenecks.keys()
    return next((link for link in cell.links if link.name in changed), cell.trunk)


def _filled_after_s(ground: _Ground, phase: Phase, link: CellLink, starts: Array) -> float | None:
    through = [flow for flow in ground.cell.flows if link.name in ground.ways[flow.index]]
    queue = link.bottleneck
    if queue is None or queue.both_directions or not through:
        return None
    crossed = (
        set.intersection(*(set(ground.ways[flow.index]) for flow in through)) & ground.bottlenecks.keys()
    )
    if any(ground.bottlenecks[name].trace is not None for name in crossed):
        return None
    own, behind_s = _curves(ground, phase, link, through)
    if own is None:
        return None
    shares = [payload_share(flow, ground.cell.mtu_bytes) for flow in through]
    rate_bps = min(ground.rate_of[name, True].at(phase.start_s) for name in crossed)
    ceiling_bps = rate_bps * min(shares)
    begins = starts + behind_s
    came = np.array([sum(each.between(begin, begin + WINDOW_S) for each in own) for begin in begins])
    return _first(8 * came / WINDOW_S >= FILLED * ceiling_bps, starts, phase)


def _curves(
    ground: _Ground, phase: Phase, link: CellLink, flows: Sequence[Flow]
) -> tuple[Sequence[Arrival] | None, float]:
    """What passed the first bottleneck when; of another, what arrived, and how much later that is [s]."""
    if link == ground.cell.trunk and all(flow.index in ground.passed for flow in flows):
        return [ground.passed[flow.index] for flow in flows], 0.0
    behind_s = ground.came(phase, flows[0])[0] - phase.start_s
    return known(ground.arrived, [flow.index for flow in flows]), behind_s


def _settled_after_s(ground: _Ground, phase: Phase, link: CellLink, starts: Array) -> float | None:
    queue = queue_of(ground.tables.queues, link)
    times, backlog = (queue[name].to_numpy(dtype=np.float64) for name in ("t_s", "backlog_bytes"))
    later = backlog[(times >= (phase.start_s + phase.end_s) / 2) & (times <= phase.end_s)]
    if not later.size:
        return None
    stays = float(np.median(later))
    most = max(_STAYS * stays, stays + _FRAMES * ground.cell.frame_bytes)
    windows = [backlog[(times >= start) & (times <= start + WINDOW_S)] for start in starts]
    return _first(np.array([each.size > 0 and np.median(each) <= most for each in windows]), starts, phase)


def _first(holds: NDArray[np.bool_], starts: Array, phase: Phase) -> float | None:
    return round(float(starts[int(np.argmax(holds))] - phase.start_s), 6) if holds.any() else None


def _convergence_s(ground: _Ground, phase: Phase, contest: str) -> float | None:
    """As ``fairness.convergence_s``, of rivals that run until the phase ends, from when all of them run."""
    rivals = {
        flow.index for flow in ground.cell.flows if flow.elastic and ground.contests[flow.group] == contest
    }
    spans = {index: each.span for index, each in ground.arrived.items() if each is not None}
    reach = phase.end_s - WINDOW_S
    running = [index for index, (start, end) in spans.items() if index in rivals and start < reach <= end]
    own = known(ground.arrived, running)
    if own is None or len(own) < 2 or len(spans) < len(ground.arrived):
        return None
    begin = max(phase.start_s, *(each.span[0] for each in own))
    last = min(phase.end_s, *(each.span[1] for each in own))
    edges = begin + np.arange(int((last - begin) / WINDOW_S) + 1) * WINDOW_S
    lasting = first_lasting(np.array([np.diff(np.interp(edges, each.t_s, each.total_bytes)) for each in own]))
    return None if lasting is None else lasting + begin - max(phase.start_s, 0.0)


def _quantile(values: Array, q: float) -> float | None:
    return float(np.quantile(values, q)) if values.size else None

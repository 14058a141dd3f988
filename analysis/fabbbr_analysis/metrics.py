"""Metrics of one cell: what its flows, sockets and queues amount to.

Pure functions over the tables of ``docs/run-folder.md``. What cannot be known is None: a flow without
a receiver's count makes the goodput of its cell unknown, not smaller. Whole-run values cover the time
in which at least one flow ran, start-up included, as the papers report; steady state starts at the cell's
warm-up. No rate of several flows is a sum of theirs: each counts seconds of its own, which need not coincide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fabbbr.capacity import capacity_of
from fabbbr.model import Cell, CellLink, Flow
from fabbbr.units import TCP_IPV4_HEADER_BYTES, goodput_ceiling
from fabbbr.ways import Ways, crossed, going_back
from fabbbr_analysis.arrivals import Arrival, arrivals, deliveries, known, union_s, zeros_s
from fabbbr_analysis.ceilings import behind_s, most_bps
from fabbbr_analysis.contests import one_contest
from fabbbr_analysis.fairness import convergence_s, jain_of_flows, jain_of_groups
from fabbbr_analysis.propagation import added_s, changes

Array: TypeAlias = NDArray[np.float64]


class CellTables(Protocol):
    """The part of :class:`fabbbr_analysis.tables.cell.CellTables` needed here: the frames of one cell."""

    @property
    def cells(self) -> pd.DataFrame: ...
    @property
    def flows(self) -> pd.DataFrame: ...
    @property
    def intervals(self) -> pd.DataFrame: ...
    @property
    def sockets(self) -> pd.DataFrame: ...
    @property
    def queues(self) -> pd.DataFrame: ...
    @property
    def packets(self) -> pd.DataFrame: ...
    @property
    def pings(self) -> pd.DataFrame: ...
    @property
    def chunks(self) -> pd.DataFrame: ...


def of_cell(tables: CellTables, cell: Cell) -> dict[str, float | int | None]:
    """Compute the metric columns of table ``runs`` for one cell; the units are in their names."""
    flows = tables.flows
    steady = _steady_curves(tables, cell)
    bottleneck = while_flows_run(queue_of(tables.queues, cell.trunk), flows)
    sized = flows[flows["flow"].isin([flow.index for flow in cell.flows if flow.size is not None])]
    elastic = [flow for flow in cell.flows if flow.elastic]
    compete = one_contest(cell, elastic)
    rivals = flows[flows["flow"].isin([flow.index for flow in elastic if compete])]
    return {
        "goodput_bps": together_bps(flows, "received_bytes", "receiver_s"),
        "goodput_steady_bps": steady_goodput_bps(steady, warm_up_s=cell.warm_up.seconds),
        "throughput_bps": together_bps(flows, "sent_bytes", "sender_s"),
        "link_rate_bps": link_rate_bps(bottleneck),
        "utilisation": utilisation(tables, cell),
        **_retransmission(flows, tables.sockets, cell),
        **_round_trip(tables.sockets, cell),
        **of_packets(data_through(tables.packets, cell.trunk.name)),
        **of_pings(tables.pings, flows),
        **_suffered(flows, cell),
        **_downloads(tables.chunks),
        **_occupancy(bottleneck, cell),
        "queue_drops": drops(queue_of(tables.queues, cell.trunk)),
        "injected_drops": drops(tables.queues[tables.queues["role"] == "loss"]),
        "jain_flows": jain_of_flows(rivals),
        "jain_groups": jain_of_groups(rivals),
        "convergence_s": _convergence_s(tables, rivals),
        **_by_direction(tables, cell),
        "completion_mean_s": _complete(sized, "completion_s", np.mean),
        "completion_max_s": _complete(sized, "completion_s", np.max),
    }


def _convergence_s(tables: CellTables, rivals: pd.DataFrame) -> float | None:
    """As ``fairness.convergence_s``, from the start of the last of them on."""
    own = known(arrivals(rivals, tables.intervals, tables.sockets), rivals["flow"])
    return None if own is None else convergence_s(own, since_s=float(rivals["start_s"].max()))


# Throughput


def together_bps(flows: pd.DataFrame, counted: str, lasted: str) -> float | None:
    """Bytes of all flows over the seconds in which at least one ran [bit/s]; None when one's are unknown.

    ``counted`` and ``lasted`` are the columns of the bytes and of the seconds. Where the zero of a report is
    not known, the flow may have begun at its start and ended as late as the others' zeros allow.
    """
    total, spans = _complete_sum(flows, counted), _spans(flows, lasted)
    seconds = 0.0 if spans is None else union_s(spans)
    return 8 * total / seconds if total is not None and seconds > 0 else None


def _spans(flows: pd.DataFrame, lasted: str) -> list[tuple[float, float]] | None:
    """From when to when each of them ran [s]; None when one's end is unknown."""
    ends = flows[lasted].astype("float64")
    if ends.isna().any():
        return None
    starts, zeros = (flows[name].astype("float64") for name in ("start_s", "receiver_zero_s"))
    late_s = (zeros - starts).max()
    latest = zeros.fillna(starts + (0.0 if pd.isna(late_s) else max(late_s, 0.0)))
    return list(zip(zeros_s(flows), latest + ends, strict=True))


def timer_hz_of(tables: CellTables) -> int:
    """Ticks a second of the cell's kernels, or of that with the fewest."""
    return int(tables.cells["timer_hz"].iloc[0])


def utilisation(tables: CellTables, cell: Cell) -> float | None:
    """Goodput through the bottleneck over what TCP payload can fill of it: rate × (MTU - 52) / (MTU + 14).

    Where steps change the rate it is the mean of those that held while flows ran, and with a trace what its
    opportunities carried then. What a token bucket has stored is part of it, each time as far as it can be
    full. A ratio; None when flows in both directions have a queue each, or when
    some flow is of UDP, whose headers are shorter. Flows that do not cross the first bottleneck are none of
    its load.
    """
    if cell.bottleneck.both_directions:
        return None
    some = [flow for flow in cell.flows if _crosses(cell, flow, cell.trunk) is True]
    return _share_of_capacity(tables, cell, some, reverse=False)


def _share_of_capacity(
    tables: CellTables, cell: Cell, some: Sequence[Flow], *, reverse: bool
) -> float | None:
    """Goodput of some flows over what TCP payload can fill of the first bottleneck one way."""
    queue = cell.bottleneck.way_back if reverse else cell.bottleneck
    if queue is None or any(flow.udp is not None for flow in some):
        return None
    there = tables.flows[tables.flows["flow"].isin([flow.index for flow in some])]
    goodput_bps, spans = together_bps(there, "received_bytes", "receiver_s"), _spans(there, "receiver_s")
    if goodput_bps is None or spans is None:
        return None
    if capacity_of(cell, cell.trunk.name, reverse=reverse).changes:
        spans = _when_they_left(cell, some, there, spans)
    hz = timer_hz_of(tables)
    served_bps = most_bps(cell, cell.trunk.name, spans, timer_hz=hz, reverse=reverse)
    return None if not served_bps else goodput_bps / (served_bps * goodput_ceiling(cell.mtu_bytes))


def _when_they_left(
    cell: Cell, some: Sequence[Flow], rows: pd.DataFrame, spans: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """The spans of the receivers, as the first bottleneck had them [s]."""
    ways = Ways(cell.links)
    behind = {
        flow.index: behind_s(cell, ways.between(flow.sender, flow.receiver), cell.trunk.name) for flow in some
    }
    delays_s = (behind[index] for index in rows["flow"].tolist())
    return [(start - delay, end - delay) for (start, end), delay in zip(spans, delays_s, strict=True)]


def _crosses(cell: Cell, flow: Flow, link: CellLink) -> bool | None:
    """Whether the data of ``flow`` goes over ``link`` from ``a`` to ``b``; None when it does not go there."""
    return crossed(cell.links, flow.sender, flow.receiver).get(link.name)


def _by_direction(tables: CellTables, cell: Cell) -> dict[str, float | int | None]:
    """Goodput [bit/s] and utilisation each way, and the queue of the way back [bytes].

    All None unless flows go both ways: one way is what the cell's own metrics say. The backlog of the way
    back is None, too, where several interfaces share it. As in :func:`utilisation`, flows that do not cross
    the first bottleneck are none of its load.
    """
    found: dict[str, float | int | None] = {}
    back = going_back(cell)
    both = 0 < len(back) < len(cell.flows)
    for name, reverse in (("forward", False), ("reverse", True)):
        sent = [flow for flow in cell.flows if (flow.index in back) == reverse]
        flows = tables.flows[tables.flows["flow"].isin([flow.index for flow in sent])]
        together = together_bps(flows, "received_bytes", "receiver_s") if both else None
        found[f"goodput_{name}_bps"] = together
        load = [flow for flow in sent if _crosses(cell, flow, cell.trunk) is not None]
        found[f"utilisation_{name}"] = (
            _share_of_capacity(tables, cell, load, reverse=reverse) if both else None
        )
    queue = _queues_back_of(tables.queues, cell.trunk)
    backlog = _numbers(
        while_flows_run(queue_back_of(tables.queues, cell.trunk), tables.flows), "backlog_bytes"
    )
    return {
        **found,
        "queue_reverse_median_bytes": _quantile(backlog, 0.5),
        "queue_reverse_p95_bytes": _quantile(backlog, 0.95),
        "queue_reverse_drops": drops(queue),
    }


def answer_delays_s(cell: Cell) -> dict[int, float]:
    """Flow → propagation delay [s] from its first bottleneck to the receiver and back to the sender."""
    found: dict[int, float] = {}
    for flow in cell.flows:
        ways = crossed(cell.links, flow.sender, flow.receiver)
        path = [link for name in ways for link in cell.links if link.name == name]
        first = next((n for n, link in enumerate(path) if link.bottleneck is not None), 0)
        ahead_s = sum(link.delay.seconds for link in path[:first] if link.delay is not None)
        found[flow.index] = flow.rtt.seconds - ahead_s
    return found


def _steady_curves(tables: CellTables, cell: Cell) -> list[Arrival | None]:
    """Of each flow what passed the bottleneck when, else what its receiver had when."""
    passed = deliveries(tables.sockets, answer_delays_s(cell))
    arrived = arrivals(tables.flows, tables.intervals, tables.sockets)
    whole = all(index in passed for index in arrived)
    return [passed[index] if whole else each for index, each in arrived.items()]


def steady_goodput_bps(arrived: Sequence[Arrival | None], *, warm_up_s: float) -> float | None:
    """Receiver goodput [bit/s] of all flows from ``warm_up_s`` on, until the first of them ends.

    None when one is unknown, or when the run ends before the warm-up does. Flows that start later than the
    warm-up ends count from the start of the last one.
    """
    known = [each for each in arrived if each is not None]
    if not known or len(known) < len(arrived):
        return None
    start = max(warm_up_s, *(each.span[0] for each in known))
    end = min(each.span[1] for each in known)
    if end <= start:
        return None
    return 8 * sum(each.between(start, end) for each in known) / (end - start)


def link_rate_bps(queue: pd.DataFrame) -> float | None:
    """Rate [bit/s] leaving a queue, before any loss behind it: slope of ``sent_bytes``, first to last sample.

    Counts Ethernet frames. None with fewer than two samples, or when the counter was reset in between.
    """
    sent, times = _numbers(queue, "sent_bytes"), _numbers(queue, "t_s")
    if sent.size < 2 or sent.size != len(queue) or (np.diff(sent) < 0).any() or times[-1] <= times[0]:
        return None
    return float(8 * (sent[-1] - sent[0]) / (times[-1] - times[0]))


# Retransmission


def _retransmission(flows: pd.DataFrame, sockets: pd.DataFrame, cell: Cell) -> dict[str, float | int | None]:
    """Retransmitted segments as the programs count them, and which share of the bytes sent was sent again."""
    total = _complete_sum(flows[flows["cca"].notna()], "retransmits")
    return {
        "retransmits": None if total is None else int(total),
        "retransmit_ratio": retransmit_ratio(
            flows, sockets, mss_bytes=cell.mtu_bytes - TCP_IPV4_HEADER_BYTES
        ),
        "spurious_ratio": spurious_ratio(sockets),
    }


def retransmit_ratio(flows: pd.DataFrame, sockets: pd.DataFrame, *, mss_bytes: int) -> float | None:
    """Share of the bytes that the senders put on the wire which they had sent before.

    Of a flow whose size was transferred, that and the full segments that its program says were sent again: it
    may be over before ss has seen half of it. Of others both as the last sample of each socket has them. What
    the program says at its end is of a later instant, and what it handed to the kernel may still stand there.
    None when nothing was seen to be sent.
    """
    whole = flows[flows["completion_s"].notna() & flows["retransmits"].notna()]
    again = mss_bytes * whole["retransmits"].sum()
    sent = again + whole["received_bytes"].sum()
    of_others = (sockets["side"] == "sender") & ~sockets["flow"].isin(whole["flow"])
    sending = sockets[of_others & sockets["bytes_sent"].notna()]
    if not sending.empty:
        last = _last(sending)
        again += last["bytes_retrans"].fillna(0).sum()
        sent += last["bytes_sent"].sum()
    return float(again / sent) if sent else None


def spurious_ratio(sockets: pd.DataFrame) -> float | None:
    """Share of the segments sent that the receivers had already, as their DSACKs say (RFC 3708).

    Both are of the last sample of each sender's socket. None when nothing was seen to be sent.
    """
    sending = sockets[(sockets["side"] == "sender") & sockets["sent_segments"].notna()]
    if sending.empty:
        return None
    last = _last(sending)
    return float(last["dsack_segments"].fillna(0).sum() / last["sent_segments"].sum())


def _last(sending: pd.DataFrame) -> pd.DataFrame:
    """The last sample of each socket."""
    return sending.sort_values("t_s", kind="stable").groupby(["flow", "local_port"]).last()


# Round-trip time


def _round_trip(sockets: pd.DataFrame, cell: Cell) -> dict[str, float | int | None]:
    """Median, 95th percentile and maximum [s] of the senders' RTT, over all samples of all flows.

    It is the kernel's smoothed RTT (``tcpi_rtt``, weight 1/8 per sample), so short
    peaks are lower than on the wire.
    """
    sending = (sockets["side"] == "sender") & sockets["rtt_s"].notna()
    samples = sockets.loc[sending, ["flow", "t_s", "rtt_s"]]
    rtt = samples["rtt_s"].to_numpy(dtype=np.float64)
    return {
        "rtt_median_s": _quantile(rtt, 0.5),
        "rtt_p95_s": _quantile(rtt, 0.95),
        "rtt_max_s": _quantile(rtt, 1.0),
        "queue_delay_median_s": _quantile(queue_delay_s(samples, cell), 0.5),
    }


def of_pings(pings: pd.DataFrame, flows: pd.DataFrame) -> dict[str, float | int | None]:
    """Round trips [s] of pings beside the flows: median, p95 and p99 under load, the median before it.

    Under load is a request sent while some flow was on, before load one sent earlier, both as near as the
    flows' own times are known. ``ping_lost`` counts the unanswered under load, ``ping_loss_ratio`` is their
    share; round trips are of the others. All None without pings.
    """
    first_s, last_s = _zero_s(flows), _end_s(flows)
    under_load = _during(pings, first_s, last_s)
    loaded = _numbers(under_load, "rtt_s")
    lost = None if under_load.empty else int(under_load["rtt_s"].isna().sum())
    return {
        "ping_idle_median_s": _quantile(_numbers(pings[pings["t_s"] < first_s], "rtt_s"), 0.5),
        "ping_median_s": _quantile(loaded, 0.5),
        "ping_p95_s": _quantile(loaded, 0.95),
        "ping_p99_s": _quantile(loaded, 0.99),
        "ping_lost": lost,
        "ping_loss_ratio": None if lost is None else lost / len(under_load),
    }


def _suffered(flows: pd.DataFrame, cell: Cell) -> dict[str, float | None]:
    """What became of UDP, all its flows together, and of videos; None without any, and where one is unknown.

    The mean time until a video played [s], and for how long they stood still, all together [s].
    """
    calls = flows[flows["flow"].isin([flow.index for flow in cell.flows if flow.udp is not None])]
    videos = flows[flows["flow"].isin([flow.index for flow in cell.flows if flow.video is not None])]
    return {
        **of_datagrams(calls),
        "video_startup_s": _complete(videos, "video_startup_s", np.mean),
        "video_stalled_s": _complete_sum(videos, "video_stalled_s"),
    }


def _downloads(chunks: pd.DataFrame) -> dict[str, float | None]:
    """From asking for a chunk of a video to its last byte [s], of those that came whole; None without one."""
    took_s = (chunks["whole_s"] - chunks["asked_s"]).dropna()
    return {
        "chunk_median_s": None if took_s.empty else float(took_s.median()),
        "chunk_p95_s": None if took_s.empty else float(took_s.quantile(0.95)),
    }


def of_datagrams(calls: pd.DataFrame) -> dict[str, float | None]:
    """Of flows of UDP: which shares were lost and overtaken, and the means of their jitter and PDV [s].

    Lost over sent; overtaken over those that came, the reordered ratio of RFC 4737.
    None without any flow, and where one is unknown.
    """
    names = ("datagrams_sent", "datagrams_lost", "datagrams_reordered")
    sent, lost, overtaken = (_complete_sum(calls, name) for name in names)
    came = None if sent is None or lost is None else sent - lost
    return {
        "datagram_loss_ratio": None if lost is None or not sent else lost / sent,
        "datagram_reordered_ratio": None if overtaken is None or not came else overtaken / came,
        "jitter_s": _complete(calls, "jitter_s", np.mean),
        "pdv_p95_s": _complete(calls, "pdv_p95_s", np.mean),
    }


def queue_delay_s(samples: pd.DataFrame, cell: Cell) -> Array:
    """RTT minus the propagation RTT of the flow's path [s], a sample.

    Where steps change that, it is of the path as it was when what was answered left: a round trip before.
    """
    rtt, times = (samples[name].to_numpy(dtype=np.float64) for name in ("rtt_s", "t_s"))
    of_flow = samples["flow"]
    propagation = of_flow.map({flow.index: flow.rtt.seconds for flow in cell.flows})
    delay = rtt - propagation.to_numpy(dtype=np.float64, na_value=np.nan)
    if changes(cell):
        for pair in dict.fromkeys((flow.sender, flow.receiver) for flow in cell.flows):
            flows = [flow for flow in cell.flows if (flow.sender, flow.receiver) == pair]
            own = of_flow.isin([flow.index for flow in flows]).to_numpy(dtype=np.bool_)
            delay[own] -= added_s(cell, flows[0], (times - rtt)[own])
    return np.asarray(delay[~np.isnan(delay)], dtype=np.float64)


# Queue


def of_packets(packets: pd.DataFrame) -> dict[str, float | int | None]:
    """Quantiles [s] of how long these stood in a queue, over those that left it; None without any."""
    stood = _numbers(packets, "sojourn_s")
    return {f"queue_delay_p{percent}_s": _quantile(stood, percent / 100) for percent in (50, 95, 99)}


def data_through(packets: pd.DataFrame, link: str) -> pd.DataFrame:
    """Pick the data that came to the bottleneck queue of ``link``, in the direction a → b."""
    here = (packets["role"] == "bottleneck") & (packets["link"] == link)
    return packets[here & packets["flow"].notna()]


def queue_of(queues: pd.DataFrame, link: CellLink) -> pd.DataFrame:
    """Pick the samples of the bottleneck queue of ``link``, in the direction a → b, by time."""
    rows = (queues["role"] == "bottleneck") & (queues["link"] == link.name) & (queues["node"] == link.a)
    return queues[rows].sort_values("t_s", kind="stable")


def queue_back_of(queues: pd.DataFrame, link: CellLink) -> pd.DataFrame:
    """Pick the samples of the queue of ``link`` in the direction b → a; none where interfaces share it."""
    rows = _queues_back_of(queues, link)
    return rows if rows["interface"].nunique() == 1 else rows.iloc[:0]


def _queues_back_of(queues: pd.DataFrame, link: CellLink) -> pd.DataFrame:
    rows = (queues["role"] == "bottleneck_reverse") & (queues["link"] == link.name)
    return queues[rows].sort_values("t_s", kind="stable")


def _occupancy(queue: pd.DataFrame, cell: Cell) -> dict[str, float | int | None]:
    """Median and 95th percentile of the backlog, and the median in BDP and as a share of the buffer.

    Samples have a fixed period, so the plain median weights time. The quotients are
    None when their divisor changes.
    """
    backlog, bottleneck = _numbers(queue, "backlog_bytes"), cell.bottleneck
    middle = _quantile(backlog, 0.5)
    steady_path = all(step.rate is None and step.rtt is None for step in cell.steps)
    steady_buffer = all(step.buffer_bytes is None for step in cell.steps)
    return {
        "queue_median_bytes": middle,
        "queue_p95_bytes": _quantile(backlog, 0.95),
        "queue_median_bdp": _quotient(middle, bottleneck.bdp_bytes if steady_path else None),
        "queue_median_fill": _quotient(middle, bottleneck.buffer_bytes if steady_buffer else None),
    }


def drops(queue: pd.DataFrame) -> int | None:
    """Packets that the qdiscs dropped between their first and last sample; None without two samples of each.

    A counter that was reset gives None too: what it held is lost.
    """
    if queue.empty or queue["drops"].isna().any():
        return None
    counters = queue.sort_values("t_s", kind="stable").groupby(["node", "interface", "handle"])["drops"]
    if (counters.size() < 2).any() or (counters.diff() < 0).any():
        return None
    return int((counters.last() - counters.first()).sum())


# Shared


def _zero_s(flows: pd.DataFrame) -> float:
    """When the first flow began to send, as near as is known, on the cell's clock."""
    zeros = zeros_s(flows).dropna()
    return max(float(zeros.min()), 0.0) if len(zeros) else 0.0


def _end_s(flows: pd.DataFrame) -> float | None:
    """When the last flow stopped sending, on the cell's clock."""
    ends = (zeros_s(flows) + flows["sender_s"]).dropna()
    return float(ends.max()) if len(ends) else None


def while_flows_run(samples: pd.DataFrame, flows: pd.DataFrame) -> pd.DataFrame:
    """Keep the samples of one cell that were taken while any of its flows ran."""
    return _during(samples, _zero_s(flows), _end_s(flows))


def _during(samples: pd.DataFrame, zero_s: float, end_s: float | None) -> pd.DataFrame:
    """Keep the samples taken while flows ran; all after the start when their end is unknown."""
    last_s = math.inf if end_s is None else end_s
    return samples[(samples["t_s"] >= zero_s) & (samples["t_s"] <= last_s)]


def _numbers(frame: pd.DataFrame, column: str) -> Array:
    """Return the values of a column that are there."""
    return np.asarray(frame[column].dropna().to_numpy(dtype=np.float64), dtype=np.float64)


def _complete_sum(flows: pd.DataFrame, column: str) -> float | None:
    return _complete(flows, column, np.sum)


def _complete(flows: pd.DataFrame, column: str, reduce: Callable[[Array], np.float64]) -> float | None:
    """Reduce a column that every flow has; None when one lacks it."""
    values = _numbers(flows, column)
    return float(reduce(values)) if values.size and values.size == len(flows) else None


def _quantile(values: Array, q: float) -> float | None:
    return float(np.quantile(values, q)) if values.size else None


def _quotient(value: float | None, divisor: int | None) -> float | None:
    return None if value is None or divisor is None or divisor == 0 else value / divisor

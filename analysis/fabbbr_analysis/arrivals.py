"""What each receiver had when, on the cell's clock: from the samples of its sockets, else its own report.

Samples of ss are some 100 ms apart and know the cell's clock; the intervals of iperf3 are a second long and
count from a zero of their own. So a window of time is read from samples wherever there are any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """Bytes that one flow's receiver had, over time."""

    t_s: Array
    """Ascending; the first is when it began to count and the last when it was done."""
    total_bytes: Array
    """By then, shape as ``t_s``, never falling."""

    @property
    def span(self) -> tuple[float, float]:
        """When the receiver began and ended [s]."""
        return float(self.t_s[0]), float(self.t_s[-1])

    def between(self, start_s: float, end_s: float) -> float:
        """Bytes that came in a window; between two samples they are taken to come evenly."""
        return float(np.diff(np.interp([start_s, end_s], self.t_s, self.total_bytes))[0])

    def seen_between(self, start_s: float, end_s: float) -> tuple[float, tuple[float, float]] | None:
        """Bytes between the first and the last sample in a window, and when these were.

        Nothing is taken to be even, which it is not where a rate has just fallen. None with fewer than two.
        """
        first, last = np.searchsorted(self.t_s, start_s), np.searchsorted(self.t_s, end_s, side="right") - 1
        if last <= first:
            return None
        counted = float(self.total_bytes[last] - self.total_bytes[first])
        return counted, (float(self.t_s[first]), float(self.t_s[last]))


def zeros_s(flows: pd.DataFrame) -> pd.Series[float]:
    """Where the zero of each flow's report lies on the cell's clock: its start where that is not known."""
    return flows["receiver_zero_s"].astype("float64").fillna(flows["start_s"])


def arrivals(
    flows: pd.DataFrame, intervals: pd.DataFrame, sockets: pd.DataFrame
) -> dict[int, Arrival | None]:
    """Flow → what its receiver had when; None for one of which the receiver said nothing.

    ``flows`` needs ``flow``, ``start_s``, ``receiver_zero_s``, ``received_bytes`` and ``receiver_s``.
    """
    seen = sockets[(sockets["side"] == "receiver") & sockets["bytes_received"].notna()]
    reported = intervals[intervals["side"] == "receiver"]
    of_sockets, of_reports = dict(iter(seen.groupby("flow"))), dict(iter(reported.groupby("flow")))
    found: dict[int, Arrival | None] = {}
    for row, zero_s in zip(flows.to_dict("records"), zeros_s(flows), strict=True):
        flow, total, lasted_s = int(row["flow"]), row["received_bytes"], row["receiver_s"]
        counted = not (pd.isna(total) or pd.isna(lasted_s))
        if counted and (flow in of_sockets or flow not in of_reports):
            span = (float(zero_s), float(zero_s + lasted_s))
            found[flow] = _sampled(of_sockets.get(flow), span, float(total))
        else:
            found[flow] = _reported(of_reports.get(flow), float(zero_s))
    return found


def _sampled(sockets: pd.DataFrame | None, span: tuple[float, float], total_bytes: float) -> Arrival:
    """The curve begins with nothing and ends with what the receiver says that it got in all."""
    start_s, end_s = span
    times, counts = np.empty(0), np.empty(0)
    if sockets is not None:
        times, counts = _summed(sockets["t_s"], sockets["peer_port"], sockets["bytes_received"])
    inside = (times > start_s) & (times < end_s)
    had = np.concatenate(([0.0], np.minimum(counts[inside], total_bytes), [total_bytes]))
    return Arrival(
        t_s=np.concatenate(([start_s], times[inside], [end_s])), total_bytes=np.maximum.accumulate(had)
    )


def _summed(times: pd.Series, ports: pd.Series, counts: pd.Series) -> tuple[Array, Array]:
    """Instants and the sum of a counter over connections; one that is gone keeps what it had."""
    if ports.nunique() > 1:
        had = pd.DataFrame({"t_s": times, "port": ports, "count": counts})
        had = had.pivot_table(index="t_s", columns="port", values="count").ffill().fillna(0.0)
        return had.index.to_numpy(dtype=np.float64), had.sum(axis=1).to_numpy(dtype=np.float64)
    order = np.argsort(times.to_numpy(dtype=np.float64), kind="stable")
    return times.to_numpy(dtype=np.float64)[order], counts.to_numpy(dtype=np.float64)[order]


def _reported(intervals: pd.DataFrame | None, zero_s: float) -> Arrival | None:
    if intervals is None or intervals[["start_s", "end_s", "bytes"]].isna().any(axis=None):
        return None
    by_end = intervals.groupby("end_s")["bytes"].sum().sort_index()
    ends, counts = by_end.index.to_numpy(dtype=np.float64), by_end.to_numpy(dtype=np.float64)
    return Arrival(
        t_s=np.concatenate(([float(intervals["start_s"].min())], ends)) + zero_s,
        total_bytes=np.concatenate(([0.0], counts.cumsum())),
    )


def deliveries(sockets: pd.DataFrame, delays_s: Mapping[int, float]) -> dict[int, Arrival]:
    """Flow → what its sender knew to have arrived when, in order or not: acknowledged or selectively so.

    A receiver that waits for one lost segment holds what came after it, and then hands out all at once,
    faster than any link; what has arrived never is. ``delays_s`` is taken off the time at which the sender
    knew: from the bottleneck to the receiver and back, so that the curve is one of what passed the
    bottleneck. Flows without samples of their sender are not in it.
    """
    own = sockets[(sockets["side"] == "sender") & sockets["bytes_acked"].notna()]
    found: dict[int, Arrival] = {}
    for flow, delay_s in delays_s.items():
        rows = own[own["flow"] == flow]
        if rows.empty:
            continue
        arrived = rows["bytes_acked"] + rows["sacked_segments"].fillna(0.0) * rows["mss_bytes"].fillna(0.0)
        times, counts = _summed(rows["t_s"], rows["local_port"], arrived)
        found[flow] = Arrival(t_s=times - delay_s, total_bytes=np.maximum.accumulate(counts))
    return found


def union_s(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds that at least one of the spans covers.

    >>> union_s([(0.0, 5.0), (4.0, 6.0), (8.0, 9.0)])
    7.0
    """
    covered, reached = 0.0, -np.inf
    for start_s, end_s in sorted(spans):
        covered += max(end_s - max(start_s, reached), 0.0)
        reached = max(reached, end_s)
    return covered


def within(spans: Iterable[tuple[float, float]], start_s: float, end_s: float) -> list[tuple[float, float]]:
    """Parts of the spans that lie in a window, without those that do not."""
    cut = ((max(start, start_s), min(end, end_s)) for start, end in spans)
    return [(start, end) for start, end in cut if end > start]


def known(found: Mapping[int, Arrival | None], flows: Iterable[int]) -> list[Arrival] | None:
    """Those of ``flows``; None when one of them is unknown: a sum without it would be too small."""
    own = [found.get(flow) for flow in flows]
    return None if any(each is None for each in own) else [each for each in own if each is not None]


def progress_of_flows(flows: pd.DataFrame, intervals: pd.DataFrame) -> list[tuple[Array, Array]] | None:
    """For each flow the instants [s] of the cell's clock and the bytes that its receiver had by then.

    In the order of ``flows``; None when there is no flow, or one has no receiver intervals.
    """
    received = intervals[intervals["side"] == "receiver"]
    curves: list[tuple[Array, Array]] = []
    for flow, zero_s in zip(flows["flow"], zeros_s(flows), strict=True):
        rows = received[received["flow"] == flow]
        if rows.empty or rows[["start_s", "end_s", "bytes"]].isna().any(axis=None):
            return None
        by_end = rows.groupby("end_s")["bytes"].sum().sort_index()
        times = np.concatenate(([rows["start_s"].min()], by_end.index.to_numpy(dtype=np.float64))) + zero_s
        curves.append((times, np.concatenate(([0.0], by_end.to_numpy(dtype=np.float64).cumsum()))))
    return curves or None


def received_between(progress: list[tuple[Array, Array]], start_s: float, end_s: float) -> Array:
    """Bytes that each receiver got in a window of the cell's clock.

    An interval that straddles an edge of the window is shared out evenly over its time.
    """
    return np.array([np.diff(np.interp([start_s, end_s], times, total))[0] for times, total in progress])

"""What each receiver had when, on the cell's clock: from the samples of its sockets, else its own report.

Samples of ss are some 100 ms apart and know the cell's clock; the intervals of iperf3 are a second long and
count from a zero of their own. So a window of time is read from samples wherever there are any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
    of_sockets = _by_flow(seen, ("t_s", "peer_port", "bytes_received"))
    of_reports = _reports(intervals)
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


def _by_flow(table: pd.DataFrame, columns: Sequence[str]) -> dict[int, Array]:
    """Flow → its rows, shape (rows, columns), in their order. As frames, thousands would take minutes."""
    values = table[list(columns)].to_numpy(dtype=np.float64, na_value=np.nan)
    rows_of: Mapping[Any, Any] = table.groupby("flow").indices
    return {int(flow): values[rows] for flow, rows in rows_of.items()}


def _reports(intervals: pd.DataFrame) -> dict[int, Array]:
    """Flow → from when to when each interval of its receiver was, and its bytes."""
    return _by_flow(intervals[intervals["side"] == "receiver"], ("start_s", "end_s", "bytes"))


def _sampled(samples: Array | None, span: tuple[float, float], total_bytes: float) -> Arrival:
    """The curve begins with nothing and ends with what the receiver says that it got in all."""
    start_s, end_s = span
    times, counts = np.empty(0), np.empty(0)
    if samples is not None:
        times, counts = _summed(samples)
    inside = (times > start_s) & (times < end_s)
    had = np.concatenate(([0.0], np.minimum(counts[inside], total_bytes), [total_bytes]))
    return Arrival(
        t_s=np.concatenate(([start_s], times[inside], [end_s])), total_bytes=np.maximum.accumulate(had)
    )


def _summed(samples: Array) -> tuple[Array, Array]:
    """Of instant, port and counter: instants, and the sum over ports; one that is gone keeps its count."""
    if (samples[:, 1] != samples[0, 1]).any():
        had = pd.DataFrame(samples, columns=["t_s", "port", "count"])
        had = had.pivot_table(index="t_s", columns="port", values="count").ffill().fillna(0.0)
        return had.index.to_numpy(dtype=np.float64), had.sum(axis=1).to_numpy(dtype=np.float64)
    ordered = samples[np.argsort(samples[:, 0], kind="stable")]
    return ordered[:, 0], ordered[:, 2]


def _reported(intervals: Array | None, zero_s: float) -> Arrival | None:
    told = None if intervals is None else _by_then(intervals)
    return None if told is None else Arrival(t_s=told[0] + zero_s, total_bytes=told[1])


def _by_then(intervals: Array) -> tuple[Array, Array] | None:
    """When the first interval begins and each ends, and the bytes by then; None where one is not known."""
    if np.isnan(intervals).any():
        return None
    ends, place = np.unique(intervals[:, 1], return_inverse=True)
    counts = np.bincount(place, weights=intervals[:, 2])
    return np.concatenate(([intervals[:, 0].min()], ends)), np.concatenate(([0.0], counts.cumsum()))


def deliveries(sockets: pd.DataFrame, delays_s: Mapping[int, float]) -> dict[int, Arrival]:
    """Flow → what its sender knew to have arrived when, in order or not: acknowledged or selectively so.

    A receiver that waits for one lost segment holds what came after it, and then hands out all at once,
    faster than any link; what has arrived never is. ``delays_s`` is taken off the time at which the sender
    knew: from the bottleneck to the receiver and back, so that the curve is one of what passed the
    bottleneck. Flows without samples of their sender are not in it.
    """
    own = sockets[(sockets["side"] == "sender") & sockets["bytes_acked"].notna()]
    selectively = own["sacked_segments"].fillna(0.0) * own["mss_bytes"].fillna(0.0)
    own = own.assign(arrived=own["bytes_acked"] + selectively)
    by_flow = _by_flow(own, ("t_s", "local_port", "arrived"))
    found: dict[int, Arrival] = {}
    for flow, delay_s in delays_s.items():
        if flow not in by_flow:
            continue
        times, counts = _summed(by_flow[flow])
        found[flow] = Arrival(t_s=times - delay_s, total_bytes=np.maximum.accumulate(counts))
    return found


def union_s(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds that at least one of the spans covers.

    >>> union_s([(0.0, 5.0), (4.0, 6.0), (8.0, 9.0)])
    7.0
    """
    return sum(end_s - start_s for start_s, end_s in joined(spans))


def joined(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The stretches that at least one of the spans covers, in order.

    >>> joined([(0.0, 5.0), (4.0, 6.0), (8.0, 9.0)])
    [(0.0, 6.0), (8.0, 9.0)]
    """
    stretches: list[tuple[float, float]] = []
    for start_s, end_s in sorted(spans):
        if stretches and start_s <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(stretches[-1][1], end_s))
        else:
            stretches.append((start_s, end_s))
    return stretches


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
    received = _reports(intervals)
    curves: list[tuple[Array, Array]] = []
    for flow, zero_s in zip(flows["flow"], zeros_s(flows), strict=True):
        told = _by_then(received[flow]) if flow in received else None
        if told is None:
            return None
        curves.append((told[0] + zero_s, told[1]))
    return curves or None


def amounts_between(starts: Array, ends: Array, rates: Array, edges: Array) -> Array:
    """What all that flows, each at a rate of its own from a start to a later end, comes to between edges.

    >>> amounts_between(np.array([0.0, 1.0]), np.array([2.0, 1.5]), np.array([5.0, 6.0]), np.arange(3.0))
    array([5., 8.])
    """
    knots, place = np.unique(np.concatenate((starts, ends)), return_inverse=True)
    slopes = np.cumsum(np.bincount(place, weights=np.concatenate((rates, -rates))))
    by_then = np.concatenate(([0.0], np.cumsum(slopes[:-1] * np.diff(knots))))
    return np.diff(np.interp(edges, knots, by_then))


def received_between(progress: list[tuple[Array, Array]], start_s: float, end_s: float) -> Array:
    """Bytes that each receiver got in a window of the cell's clock.

    An interval that straddles an edge of the window is shared out evenly over its time.
    """
    return np.array([np.diff(np.interp([start_s, end_s], times, total))[0] for times, total in progress])

"""Measures of BBR's cycle in one run's trace: ProbeRTT and the probes for bandwidth.

They are read from the gains that the kernel reports. NaN when the trace does not hold what is measured.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fabbbr_analysis.claims.observed import SocketTrace
from fabbbr_analysis.claims.sample import Array
from fabbbr_analysis.claims.traces import column_of

COLUMNS = ("bbr_cwnd_gain", "bbr_pacing_gain", "unacked_segments", "rtt_s")
"""Columns of table ``sockets`` that the measures read."""

_PROBE_RTT_CWND_GAIN, _UP_PACING_GAIN = 0.5, 1.25
_BBR1_PROBE_RTT_CWND_GAIN = 1.0
_FRAME_OVERHEAD_BYTES = 14

Phases: TypeAlias = list[tuple[float, float]]
"""Start and end of each stretch of time in which something held; what the trace cuts off is left out."""


def phases(times: Array, holds: NDArray[np.bool_]) -> Phases:
    """Stretches of samples for which ``holds``, from the first sample in to the first one after.

    >>> phases(np.array([0.0, 1, 2, 3, 4]), np.array([False, True, True, False, True]))
    [(1.0, 3.0)]
    """
    edges = np.flatnonzero(np.diff(holds.astype(np.int8))) + 1
    starts = [edge for edge in edges if holds[edge]]
    ends = [edge for edge in edges if not holds[edge]]
    if ends and starts and ends[0] < starts[0]:
        ends = ends[1:]
    return [(float(times[start]), float(times[end])) for start, end in zip(starts, ends, strict=False)]


def _probe_rtts(trace: SocketTrace) -> Phases:
    return phases(column_of(trace, "t_s"), column_of(trace, "bbr_cwnd_gain") == _PROBE_RTT_CWND_GAIN)


def _probes(trace: SocketTrace) -> Phases:
    return phases(column_of(trace, "t_s"), column_of(trace, "bbr_pacing_gain") == _UP_PACING_GAIN)


def time_between_probe_rtts(trace: SocketTrace, _run: pd.Series) -> float:
    """Mean time from the end of a ProbeRTT to the start of the next, in s."""
    episodes = _probe_rtts(trace)
    gaps = [after[0] - before[1] for before, after in pairwise(episodes)]
    return float(np.mean(gaps)) if gaps else np.nan


def time_in_probe_rtt(trace: SocketTrace, _run: pd.Series) -> float:
    """Mean length of a ProbeRTT, in s."""
    lengths = [end - start for start, end in _probe_rtts(trace)]
    return float(np.mean(lengths)) if lengths else np.nan


def inflight_in_probe_rtt(trace: SocketTrace, run: pd.Series) -> float:
    """Median of what was in flight in the second halves of ProbeRTT, in BDP."""
    times, packets = column_of(trace, "t_s"), column_of(trace, "unacked_segments")
    inside = np.zeros(len(times), dtype=bool)
    for start, end in _probe_rtts(trace):
        inside |= (times >= (start + end) / 2) & (times < end)
    frame_bytes = float(run["mtu_bytes"]) + _FRAME_OVERHEAD_BYTES
    known = packets[inside & ~np.isnan(packets)]
    return float(np.median(known)) * frame_bytes / float(run["bdp_bytes"]) if len(known) else np.nan


def synchronised_probe_rtts(trace: SocketTrace, _run: pd.Series, *, flows: int, within_s: float) -> float:
    """Share of BBRv1's ProbeRTTs that begin within ``within_s`` of others', ``flows`` with its own."""
    starts = {
        flow: np.array([start for start, _ in _bbr1_probe_rtts(rows)]) for flow, rows in trace.groupby("flow")
    }
    together = [
        sum(bool(np.any(np.abs(other - start) <= within_s)) for other in starts.values()) >= flows
        for own in starts.values()
        for start in own
    ]
    return float(np.mean(together)) if together else np.nan


def _bbr1_probe_rtts(trace: SocketTrace) -> Phases:
    """Version 1 has a window gain of 1 there and nowhere else."""
    return phases(column_of(trace, "t_s"), column_of(trace, "bbr_cwnd_gain") == _BBR1_PROBE_RTT_CWND_GAIN)


def _waits_of(trace: SocketTrace) -> Phases:
    """From the end of each ProbeRTT, where the clock of probing starts anew, to the first UP after it."""
    probes = [start for start, _ in _probes(trace)]
    episodes = _probe_rtts(trace)
    waits = []
    for (_, end), (following, _) in pairwise(episodes):
        first = next((start for start in probes if end < start < following), None)
        if first is not None:
            waits.append((end, first))
    return waits


def wait_before_probe(trace: SocketTrace, run: pd.Series) -> float:
    """Mean time from ProbeRTT to the next REFILL, in s.

    REFILL has CRUISE's gain, lasts one round trip, and UP follows.
    """
    lengths = [end - start - float(run["rtt_s"]) for start, end in _waits_of(trace)]
    return float(np.mean(lengths)) if lengths else np.nan


def rounds_before_probe(trace: SocketTrace, _run: pd.Series) -> float:
    """The same in round trips, each as long as the smoothed RTT was at that time."""
    # A new connection has no smoothed RTT yet.
    times, rtts = column_of(trace, "t_s"), column_of(trace.assign(rtt_s=trace["rtt_s"].bfill()), "rtt_s")
    passed = np.append(0.0, np.cumsum(np.diff(times) / rtts[:-1]))
    counts = [
        np.interp(end, times, passed) - np.interp(start, times, passed) - 1 for start, end in _waits_of(trace)
    ]
    return float(np.mean(counts)) if counts else np.nan

"""How evenly flows share, by Jain's index, and how soon they do."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fabbbr_analysis.arrivals import Array, progress_of_flows, zeros_s

CONVERGED_JAIN = 0.9
CONVERGED_WINDOWS = 5
WINDOW_S = 1.0


def jain(values: ArrayLike) -> float | None:
    """Jain's index (Σx)² / (n Σx²), between 1/n and 1 (RFC 5166, 2.3.1); None of nothing or of all zeros.

    >>> jain([1, 1, 1]), jain([1, 0]), jain([])
    (1.0, 0.5, None)
    """
    x = np.asarray(values, dtype=np.float64)
    peak = float(np.max(x, initial=0.0))
    if peak <= 0:
        return None
    x = x / peak  # squares of tiny or huge rates would leave the range of a float
    return float(x.sum() ** 2 / (x.size * (x**2).sum()))


def jain_of_flows(flows: pd.DataFrame) -> float | None:
    """Jain's index over the flows' receiver goodput; None with one flow, or when a flow's is absent."""
    goodput = flows["goodput_bps"].dropna().to_numpy(dtype=np.float64)
    return jain(goodput) if len(flows) > 1 and goodput.size == len(flows) else None


def jain_of_groups(flows: pd.DataFrame) -> float | None:
    """Jain's index over the sums of each group: what hides unfairness inside a group. None with one group."""
    goodput = flows["goodput_bps"].dropna().to_numpy(dtype=np.float64)
    if flows["group"].nunique() < 2 or goodput.size != len(flows):
        return None
    return jain(flows.groupby("group", observed=True)["goodput_bps"].sum().to_numpy())


def convergence_s(flows: pd.DataFrame, intervals: pd.DataFrame) -> float | None:
    """Seconds from the last flow's start until Jain's index over 1 s windows stays at 0.9 or more for 5 s.

    None with one flow, when that never happens, or without receiver intervals of at most a second.
    """
    if len(flows) < 2 or _together_s(flows, intervals) < CONVERGED_WINDOWS * WINDOW_S:
        return None
    progress = progress_of_flows(flows, intervals)
    if progress is None or max(float(np.max(np.diff(times))) for times, _ in progress) > WINDOW_S * 1.01:
        return None
    last_start = float(flows["start_s"].max())
    end = min(times[-1] for times, _ in progress)
    edges = last_start + np.arange(math.floor((end - last_start) / WINDOW_S) + 1) * WINDOW_S
    received = np.array([np.diff(np.interp(edges, times, total)) for times, total in progress])
    return first_lasting(received)


def _together_s(flows: pd.DataFrame, intervals: pd.DataFrame) -> float:
    """Seconds from the last flow's start until the first receiver's report ends; NaN where there is none."""
    ends_s = intervals[intervals["side"] == "receiver"].groupby("flow")["end_s"].max()
    return float((flows["flow"].map(ends_s) + zeros_s(flows)).min() - flows["start_s"].max())


def first_lasting(received: Array) -> float | None:
    """Seconds until Jain's index first stays fair; ``received`` is bytes by flow and window of 1 s."""
    squares = len(received) * (received**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        fair = received.sum(axis=0) ** 2 / squares >= CONVERGED_JAIN
    if fair.size < CONVERGED_WINDOWS:
        return None
    lasting = np.lib.stride_tricks.sliding_window_view(fair, CONVERGED_WINDOWS).all(axis=1)
    return float(np.argmax(lasting) * WINDOW_S) if lasting.any() else None

"""How evenly flows share, by Jain's index, and how soon they do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fabbbr_analysis.arrivals import Array, Arrival

CONVERGED_JAIN = 0.9
CONVERGED_S = 5.0
"""For how long it stays there."""
WINDOW_S = 1.0
STEP_S = 0.1
"""From one window to the next: as samples are, by default."""
_KNOWN_S = 1.01 * WINDOW_S


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


def convergence_s(arrived: Sequence[Arrival], *, since_s: float, until_s: float = math.inf) -> float | None:
    """Seconds from ``since_s`` on until Jain's index of what flows get is 0.9 or more, and stays so for 5 s.

    It is of every window of 1 s within these five, wherever it begins (by 0.1 s), so that no grid of seconds
    decides. Nothing counts before all flows are there, nor after ``until_s``. None with one flow, when it
    never happens, or where more than a second of a flow is unknown.
    """
    if len(arrived) < 2:
        return None
    begin_s = max(since_s, *(each.span[0] for each in arrived))
    end_s = min(until_s, *(each.span[1] for each in arrived))
    steps = math.floor((end_s - begin_s) / STEP_S + 1e-6)
    if steps < CONVERGED_S / STEP_S or any(_longest_gap_s(each) > _KNOWN_S for each in arrived):
        return None
    edges = begin_s + np.arange(steps + 1) * STEP_S
    had = np.array([np.interp(edges, each.t_s, each.total_bytes) for each in arrived])
    window = round(WINDOW_S / STEP_S)
    after_s = _first_lasting_s(had[:, window:] - had[:, :-window])
    return None if after_s is None else after_s + begin_s - since_s


def _longest_gap_s(arrival: Arrival) -> float:
    return float(np.max(np.diff(arrival.t_s)))


def _first_lasting_s(received: Array) -> float | None:
    """Seconds until Jain's index first stays fair; ``received`` is bytes by flow and window, one a step."""
    squares = len(received) * (received**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        fair = received.sum(axis=0) ** 2 / squares >= CONVERGED_JAIN
    within = round((CONVERGED_S - WINDOW_S) / STEP_S) + 1
    lasting = np.lib.stride_tricks.sliding_window_view(fair, within).all(axis=1)
    return float(np.argmax(lasting) * STEP_S) if lasting.any() else None

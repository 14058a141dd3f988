"""Where the zero of a receiver's report lies on the cell's clock.

iperf3's server counts from when its test began: after the client has started, connected and agreed on the
test, which takes several round trips. Flows of different round trips therefore have different zeros. What the
receiver had by the end of each of its intervals, ss saw arrive too, on the cell's clock: the two curves are
laid on one another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def receiver_zeros_s(intervals: pd.DataFrame, sockets: pd.DataFrame) -> dict[int, float]:
    """Compute the zero of each flow's receiver [s]; a flow of which ss saw too little has none.

    ``intervals`` and ``sockets`` are the tables of the cell. Exact to a few ms: between two samples of ss
    bytes are taken to arrive evenly.
    """
    reported, seen = _of_receivers(intervals), _of_receivers(sockets)
    found = {flow: _zero_s(reported[flow], seen[flow]) for flow in reported.keys() & seen.keys()}
    return {flow: zero_s for flow, zero_s in found.items() if zero_s is not None}


def _of_receivers(table: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Split the rows of the receivers by flow."""
    rows: dict[Any, pd.DataFrame] = dict(iter(table[table["side"] == "receiver"].groupby("flow")))
    return {int(flow): of_flow for flow, of_flow in rows.items()}


def _zero_s(intervals: pd.DataFrame, sockets: pd.DataFrame) -> float | None:
    """Lay the ends of the intervals on the samples: the median of what they are apart.

    While nothing arrives, what the receiver had is the same for a while, and an end may lie anywhere in that:
    it counts only where the two samples around it are neighbours.
    """
    had = intervals.groupby("end_s")["bytes"].sum().sort_index().cumsum()
    # A connection that is gone keeps what it had: otherwise the sum of several would fall.
    arrived = sockets.pivot_table(index="t_s", columns="peer_port", values="bytes_received")
    total = arrived.ffill().fillna(0.0).sum(axis=1)
    if total.empty:  # it was sampled before its first byte in order alone, of which ss says nothing
        return None
    bytes_, t_s = total.to_numpy(np.float64), total.index.to_numpy(np.float64)
    ends, at = had.index.to_numpy(np.float64), had.to_numpy(np.float64)
    before, after = np.searchsorted(bytes_, at, "right") - 1, np.searchsorted(bytes_, at, "left")
    placed = (before >= 0) & (after < len(bytes_)) & (np.abs(after - before) <= 1) & (at > bytes_[0])
    if not placed.any():
        return None
    growing = np.concatenate([[True], np.diff(bytes_) > 0])
    arrival_s = np.interp(at[placed], bytes_[growing], t_s[growing])
    return float(np.median(arrival_s - ends[placed]))

"""What datagrams wait: how much longer they are on their way than the quickest of their flow."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fabbbr.model import Cell
from fabbbr_analysis.propagation import added_s, changes


def within_95(waits_s: NDArray[np.float64]) -> float | None:
    """What 95 % of datagrams wait at most: the PDV of RFC 5481; None of none.

    It does not hang on how far the clocks of the two ends are apart.
    """
    place = (19 * len(waits_s) + 19) // 20
    return float(np.sort(waits_s)[place - 1]) if place else None


def waits_s(datagrams: pd.DataFrame, cell: Cell) -> pd.Series[float]:
    """How long each datagram of a whole cell waited on its way [s]; null where it never came.

    That is its ``pdv_s`` but for what steps add to the way there and did not add to the shortest by which one
    came. One that is on its way when a step comes may be a little earlier than the way had been when it left:
    of such it is 0.
    """
    found = datagrams["pdv_s"].astype("float64")
    flows = {flow.index: flow for flow in cell.flows}
    came = datagrams[found.notna()]
    for flow, times in came["t_s"].groupby(came["flow"]) if changes(cell) else ():
        added = added_s(cell, flows[int(flow)], times.to_numpy(dtype=np.float64)) / 2
        found[times.index] -= added - added.min()
    return found.clip(lower=0)


def of_some_datagrams(datagrams: pd.DataFrame) -> dict[str, float | None]:
    """What :func:`fabbbr_analysis.metrics.of_datagrams` says of whole flows, of some of their datagrams.

    Each has its ``wait_s``. None without any.
    """
    by_flow = datagrams.groupby("flow")["wait_s"]
    within = [within_95(each.dropna().to_numpy(dtype=np.float64)) for _, each in by_flow]
    known = [wait_s for wait_s in within if wait_s is not None]
    return {
        "datagram_loss_ratio": float(datagrams["wait_s"].isna().mean()) if len(datagrams) else None,
        "pdv_p95_s": sum(known) / len(known) if known else None,
    }

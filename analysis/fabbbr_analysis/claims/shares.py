"""How the flows of one run share a bottleneck; NaN when there is no value. Several papers ask for these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from fabbbr_analysis.fairness import jain


@dataclass(frozen=True)
class Share:
    """Share of the flows with one of the congestion controls ``ccas`` in the sum of all flows' ``column``."""

    ccas: tuple[str, ...]
    column: Literal["goodput_bps", "received"] = "goodput_bps"

    def __call__(self, flows: pd.DataFrame) -> float:
        """Compute the ratio; NaN when a flow has no value, or all are zero."""
        return _share(flows, self.column, flows["cca"].isin(self.ccas))


def long_flow_share(flows: pd.DataFrame) -> float:
    """Share of the summed goodput that the flow with the longest RTT gets; NaN when a flow has none."""
    return _share(flows, "goodput_bps", flows["rtt_propagation_s"] == flows["rtt_propagation_s"].max())


def _share(flows: pd.DataFrame, column: str, own: pd.Series[bool]) -> float:
    values = flows[column].to_numpy(dtype=np.float64, na_value=np.nan)
    total = float(values.sum())
    return float(values[own.to_numpy()].sum()) / total if total > 0 else np.nan


def jain_of_received(flows: pd.DataFrame) -> float:
    """Jain's index over the bytes that each flow ``received``; NaN when nothing was."""
    index = jain(flows["received"].to_numpy(dtype=np.float64, na_value=np.nan))
    return np.nan if index is None else index

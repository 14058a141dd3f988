"""Published grids: a number for every combination of conditions, in the base units of our own columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from fabbbr_analysis.references.registry import load


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What was measured of one metric over conditions that cross."""

    label: str
    """Whose numbers they are, for a figure or a sentence."""
    axes: tuple[str, ...]
    """Columns of table ``runs`` that tell conditions apart, besides ``cca``; the first ones are drawn."""
    table: pd.DataFrame
    """One row per condition: ``cca``, the axes, ``mean`` and ``sd`` over ``n`` runs, ``baseline``."""
    baseline: str | None = None
    """Congestion control over which gains were published: column ``baseline`` is its mean beside each row."""

    @property
    def gains(self) -> pd.Series[float]:
        """Mean over that of the baseline measured beside it, less one: a value for each row of ``table``."""
        return self.table["mean"] / self.table["baseline"] - 1


def published_grid(experiment: str, metric: str) -> Grid | None:
    """Look up the grid of ``metric`` (a column of table ``runs``); None when none was published.

    >>> grid = published_grid("fund2023", "goodput_bps")
    >>> grid.axes, len(grid.table)
    (('rtt_s', 'rate_bps', 'buffer_bytes'), 240)
    """
    source = _GRIDS.get((experiment, metric))
    return None if source is None else source()


_FUND_AXES = ("rtt_s", "rate_bps", "buffer_bytes")
_FUND_KERNELS = {"bbr1": "Fund2023 FABRIC kernel 5.15.0-75", "bbr2": "Fund2023 FABRIC kernel 5.13.12 (bbr2)"}
"""The newer kernel of two that had BBRv1, and the only one that had BBRv2. Each has its own CUBIC."""
_TC_KB_BYTES = 1024
"""The authors wrote "100kb" to tc, which counts in 1024 bytes."""


def _fund2023() -> Grid:
    rows = load("fund2023_when_to_use_bbr")
    parts = [_fund_flows(rows[rows["dataset"] == name], cca) for cca, name in _FUND_KERNELS.items()]
    # Each campaign has a CUBIC of its own; the one of the newer kernel stands for CUBIC.
    cubic = _fund_flows(rows[rows["dataset"] == _FUND_KERNELS["bbr1"]], "cubic")
    return Grid(
        label="FABRIC, Datta and Fund 2023",
        axes=_FUND_AXES,
        table=pd.concat([cubic, *parts], ignore_index=True),
        baseline="cubic",
    )


def _fund_flows(rows: pd.DataFrame, cca: str) -> pd.DataFrame:
    measured = "cubic" if cca == "cubic" else "bbr"
    columns = {
        "cca": cca,
        "buffer_bytes": rows["buffer_kB"] * _TC_KB_BYTES,
        "rate_bps": rows["bw_mbps"] * 1_000_000,
        "rtt_s": (rows["rtt_ms"] / 1000).round(9),
        "mean": rows[f"{measured}_mean_mbps"] * 1e6,
        "sd": rows[f"{measured}_sd"] * 1e6,
        "n": rows["n"].astype(int),
        "baseline": rows["cubic_mean_mbps"] * 1e6,
    }
    return pd.DataFrame(columns)


_KFOURY_RUNS = 10


def _kfoury_5_5c() -> Grid:
    """Fig. 13: the index of both shares, which are printed in whole percent; without a spread."""
    rows = load("kfoury2020_fig13_heatmap")
    columns = {
        "cca": "bbr2,cubic",
        "rtt_s": (rows["delay_ms"] / 1000).round(9),
        "rate_bps": rows["bw_mbps"] * 1_000_000,
        "buffer_bdp": rows["buffer_bdp"],
        "loss_ratio": (rows["loss_pct"] / 100).round(12),
        "mean": rows["jain_from_shares_pct"] / 100,
        "sd": float("nan"),
        "n": _KFOURY_RUNS,
    }
    axes = ("rtt_s", "rate_bps", "buffer_bdp", "loss_ratio")
    return Grid(label="Kfoury et al. 2020, Fig. 13", axes=axes, table=pd.DataFrame(columns))


_GRIDS: Mapping[tuple[str, str], Callable[[], Grid]] = {
    ("fund2023", "goodput_bps"): _fund2023,
    ("kfoury_5_5c", "jain_flows"): _kfoury_5_5c,
}

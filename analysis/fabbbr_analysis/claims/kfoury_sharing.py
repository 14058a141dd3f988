"""Kfoury et al. 2020, sections 5.2, 5.5 and 5.6: flows that share a bottleneck of 1 Gbit/s."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from fabbbr_analysis.claims.knit6_queue import long_flow_share
from fabbbr_analysis.claims.observe import certified, flow_metric, metric
from fabbbr_analysis.claims.records import Band, Claim, Evidence, Part, RunSet
from fabbbr_analysis.claims.sample import Array, Means, Sample, average, highest, lowest, sample_of

BBR = ("bbr1", "bbr2")
_RIVALS = ("bbr1+cubic", "bbr2+cubic")
_DEEPEST_BDP = 100.0
_FIGURES_BDP_RTT_S = 0.020
"""The RTT of the BDP in Fig. 14, from the released script; the paper does not state it."""


# Section 5.2: 1 to 100 flows of one kind, 100 ms, 0.02 BDP


def least_bbr1_over_bbr2(x: Means) -> Array:
    """Smallest ratio of BBRv1's retransmission ratio to BBRv2's from ten flows on."""
    return lowest([x["bbr1", n] / x["bbr2", n] for n in x.levels("bbr2") if n >= 10])


def least_bbr2_over_cubic(x: Means) -> Array:
    """Smallest ratio of BBRv2's retransmission ratio to CUBIC's at every number of flows."""
    return lowest([x["bbr2", n] / x["cubic", n] for n in x.levels("bbr2")])


def bbr1_with(flows: int) -> Callable[[Means], Array]:
    """BBRv1's retransmission ratio with so many flows."""

    def ratio(x: Means) -> Array:
        return x["bbr1", flows]

    return ratio


# Section 5.5, two flows: one CUBIC against one BBR, 20 ms


def cubic_share(flows: pd.DataFrame) -> float:
    """CUBIC's share of the summed goodput; NaN when a flow has none."""
    goodput = flows["goodput_bps"].to_numpy(dtype=np.float64, na_value=np.nan)
    total, of_cubic = float(goodput.sum()), float(goodput[(flows["cca"] == "cubic").to_numpy()].sum())
    return of_cubic / total if total > 0 else np.nan


def _below_1_bdp(x: Means, *start: str) -> list[Array]:
    return [x[(*start, b)] for b in x.levels(*start) if b < 1]


def least_share_of_bbr1(x: Means) -> Array:
    """Smallest share of BBRv1 below 1 BDP."""
    return np.asarray(1 - highest(_below_1_bdp(x, "bbr1+cubic")), dtype=np.float64)


def fairer_by(x: Means) -> Array:
    """Jain's index beside BBRv2 less that beside BBRv1, both averaged over the buffers below 1 BDP."""
    return average(_below_1_bdp(x, "bbr2+cubic")) - average(_below_1_bdp(x, "bbr1+cubic"))


def least_share_of_cubic(x: Means) -> Array:
    """Smallest share of CUBIC at 100 BDP over its rivals."""
    return lowest([x[rival, _DEEPEST_BDP] for rival in x.ccas(*_RIVALS)])


# Section 5.6: two BBR flows of different RTT


def _by_aqm(observe: Callable[[pd.DataFrame, RunSet], pd.Series[float]], evidence: Evidence) -> Sample:
    """By congestion control, queue discipline and buffer in BDP of 20 ms, the one by which the figures count."""
    run_set = evidence["kfoury.5.6"]
    runs = certified(run_set)
    buffers = 8 * runs["buffer_bytes"] / (runs["rate_bps"] * _FIGURES_BDP_RTT_S)
    return sample_of(
        runs.assign(counted_bdp=buffers, value=observe(runs, run_set)),
        axes=("cca", "aqm", "counted_bdp"),
        value="value",
    )


def _long_shares(runs: pd.DataFrame, run_set: RunSet) -> pd.Series[float]:
    flows = dict(iter(run_set.flows.groupby("cell_id")))
    return runs["cell_id"].map(
        lambda cell_id: long_flow_share(flows[cell_id]) if cell_id in flows else np.nan
    )


def _column(name: str) -> Callable[[Evidence], Sample]:
    return partial(_by_aqm, lambda runs, _: runs[name])


def least_below_1_bdp(x: Means) -> Array:
    """Smallest of BBRv1's quantity below 1 BDP with tail drop."""
    return lowest(_below_1_bdp(x, "bbr1", "taildrop"))


def least_share_from_3_bdp(x: Means) -> Array:
    """Smallest share of BBRv1's longer flow from 3 BDP on with tail drop."""
    return lowest([x["bbr1", "taildrop", b] for b in x.levels("bbr1", "taildrop") if b >= 3])


def least_of(aqm: str, *ccas: str) -> Callable[[Means], Array]:
    """Smallest quantity over all buffers with one queue discipline."""

    def least(x: Means) -> Array:
        run = [cca for cca in ccas if x.levels(cca, aqm)]
        if 0 < len(run) < len(ccas):
            x.remarks.append(f"judged for {', '.join(run)} only")
        return lowest([x[cca, aqm, b] for cca in run for b in x.levels(cca, aqm)])

    return least


def cut_by_fq_codel(x: Means) -> Array:
    """BBRv1's largest retransmission ratio below 1 BDP with tail drop, over the largest with FQ-CoDel."""
    repaired = [x["bbr1", "fq_codel", b] for b in x.levels("bbr1", "fq_codel")]
    return highest(_below_1_bdp(x, "bbr1", "taildrop")) / highest(repaired)


_BY_FLOWS = metric("kfoury.5.2", ("cca", "n_flows"), "retransmit_ratio")
_CUBIC_SHARE = flow_metric("kfoury.5.5a", ("cca", "buffer_bdp"), cubic_share)
_JAIN_BESIDE_CUBIC = metric("kfoury.5.5a", ("cca", "buffer_bdp"), "jain_flows")
_LONG_SHARE = partial(_by_aqm, _long_shares)
_JAIN = _column("jain_flows")
_RETRANSMITTED = _column("retransmit_ratio")


def _part(
    quantity: str, observe: Callable[[Evidence], Sample], formula: Callable[[Means], Array], band: Band
) -> Part:
    return Part(quantity=quantity, observe=observe, formula=formula, band=band)


CLAIMS = (
    Claim(
        id="F2.1",
        parts=(
            _part(
                "least BBRv1 / BBRv2 retransmission ratio from 10 flows on",
                _BY_FLOWS,
                least_bbr1_over_bbr2,
                Band(low=3, ceiling=20),
            ),
            _part(
                "least BBRv2 / CUBIC retransmission ratio",
                _BY_FLOWS,
                least_bbr2_over_cubic,
                Band(low=1, ceiling=20, strict=True),
            ),
        ),
    ),
    Claim(
        id="F2.2",
        parts=(
            _part(
                "BBRv1's retransmission ratio with 1 flow", _BY_FLOWS, bbr1_with(1), Band(low=0.01, high=0.06)
            ),
            _part("… with 10 flows", _BY_FLOWS, bbr1_with(10), Band(low=0.12, high=0.24)),
            _part("… with 100 flows", _BY_FLOWS, bbr1_with(100), Band(low=0.18, high=0.34)),
        ),
    ),
    Claim(
        id="F5.1",
        parts=(_part("least share of BBRv1 below 1 BDP", _CUBIC_SHARE, least_share_of_bbr1, Band(low=0.80)),),
    ),
    Claim(
        id="F5.2",
        parts=(
            _part(
                "mean Jain's index below 1 BDP, BBRv2 - BBRv1",
                _JAIN_BESIDE_CUBIC,
                fairer_by,
                Band(low=0.2, ceiling=0.5),
            ),
        ),
    ),
    Claim(
        id="F5.3",
        parts=(_part("least share of CUBIC at 100 BDP", _CUBIC_SHARE, least_share_of_cubic, Band(low=0.65)),),
    ),
    Claim(
        id="F6.1",
        parts=(
            _part("least Jain's index of BBRv1 below 1 BDP", _JAIN, least_below_1_bdp, Band(low=0.97)),
            _part(
                "least share of BBRv1's longer flow from 3 BDP on",
                _LONG_SHARE,
                least_share_from_3_bdp,
                Band(low=0.80),
            ),
        ),
    ),
    Claim(
        id="F6.2",
        parts=(_part("least Jain's index of BBRv2", _JAIN, least_of("taildrop", "bbr2"), Band(low=0.82)),),
    ),
    Claim(
        id="F6.3",
        parts=(_part("least Jain's index with FQ-CoDel", _JAIN, least_of("fq_codel", *BBR), Band(low=0.98)),),
    ),
    Claim(
        id="F6.4",
        parts=(
            _part(
                "most BBRv1 retransmission ratio below 1 BDP, tail drop / FQ-CoDel",
                _RETRANSMITTED,
                cut_by_fq_codel,
                Band(low=3, ceiling=20),
            ),
        ),
    ),
)

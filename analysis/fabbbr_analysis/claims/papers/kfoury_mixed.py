"""Kfoury et al. 2020: flows of several kinds and RTTs, and queues, at 1 Gbit/s (sections 5.5 to 5.9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pandas as pd

from fabbbr.units import Rate
from fabbbr_analysis.claims.expression import Expression
from fabbbr_analysis.claims.levels import every, every_name, one_of
from fabbbr_analysis.claims.observed import RunSet
from fabbbr_analysis.claims.quantities import (
    OfFlows,
    RunsOf,
    certified,
    certified_with_loss,
    column,
    per_rate,
)
from fabbbr_analysis.claims.records import Band, Part, claims
from fabbbr_analysis.claims.sample import MissingConditionError
from fabbbr_analysis.claims.shares import Share, long_flow_share
from fabbbr_analysis.claims.vocabulary import average, least, most, share
from fabbbr_analysis.fairness import jain

_BBR = ("bbr1", "bbr2")

# Section 5.5, two flows: one CUBIC against one BBR, 20 ms

_BY_BUFFER = ("cca", "buffer_bdp")
_BUFFER = every("buffer_bdp")
_CUBIC_SHARE = OfFlows(
    words="CUBIC's share", experiment="kfoury_5_5a", by=_BY_BUFFER, measure=Share(("cubic",))
)
_JAIN_BESIDE_CUBIC = column("Jain's index", "kfoury_5_5a", _BY_BUFFER, "jain_flows")
_SHALLOW = _BUFFER.below(1)
_FAIRER_BY = average(_JAIN_BESIDE_CUBIC["bbr2+cubic", _SHALLOW]) - average(
    _JAIN_BESIDE_CUBIC["bbr1+cubic", _SHALLOW]
)

# Section 5.6: two BBR flows of different RTT

_FIGURES_BDP_RTT_S = 0.020
"""The RTT of the BDP in Fig. 14, from the released script; the paper does not state it."""


def _counted(run_set: RunSet) -> pd.DataFrame:
    """Add the buffer in BDP of 20 ms, the one by which the figures count."""
    runs = certified(run_set)
    return runs.assign(counted_bdp=8 * runs["buffer_bytes"] / (runs["rate_bps"] * _FIGURES_BDP_RTT_S))


_BY_AQM = ("cca", "aqm", "counted_bdp")
_LONG_SHARE = OfFlows(
    words="share of the longer flow", experiment="kfoury_5_6", by=_BY_AQM, runs_of=_counted,
    measure=long_flow_share,
)  # fmt: skip
_JAIN = replace(column("Jain's index", "kfoury_5_6", _BY_AQM, "jain_flows"), runs_of=_counted)
_RESENT = replace(column("retransmission ratio", "kfoury_5_6", _BY_AQM, "retransmit_ratio"), runs_of=_counted)
_COUNTED = every("counted_bdp")
_REPAIRED = one_of(*_BBR).where(aqm="fq_codel")
_CUT_BY_FQ_CODEL = most(_RESENT["bbr1", "taildrop", _COUNTED.below(1)]) / most(
    _RESENT["bbr1", "fq_codel", _COUNTED]
)

# Section 5.5, 100 flows: fifty CUBIC against fifty BBR

_HUNDRED = "kfoury_5_5a_100"
_BY_LOSS = ("cca", "buffer_bdp", "loss_ratio")
_CUBICS_SHARE = OfFlows(
    words="CUBIC's share", experiment=_HUNDRED, by=_BY_LOSS, runs_of=certified_with_loss,
    measure=Share(("cubic",)),
)  # fmt: skip
_JAIN_OF_KINDS = replace(
    column("Jain's index of both kinds", _HUNDRED, _BY_LOSS, "jain_groups"), runs_of=certified_with_loss
)
_BBR2_AHEAD = share(_CUBICS_SHARE["bbr2+cubic", _BUFFER, 0.01], at_most=0.5)


# Section 5.5, numbers of flows: CUBIC's share of the link by how many flows there are of either kind


def _with_numbers(run_set: RunSet) -> pd.DataFrame:
    """Add how many CUBIC and BBRv2 flows a run has."""
    runs, flows = certified(run_set), run_set.flows
    counts = {name: flows[flows["cca"] == name].groupby("cell_id").size() for name in ("cubic", "bbr2")}
    return runs.assign(**{f"n_{name}": runs["cell_id"].map(count) for name, count in counts.items()})


_SHARE_BY_NUMBERS = OfFlows(
    words="CUBIC's share", experiment="kfoury_5_5b", by=("n_cubic", "n_bbr2"), runs_of=_with_numbers,
    measure=Share(("cubic",)),
)  # fmt: skip


# Section 5.5, grid: one CUBIC against one BBRv2 at rates, delays and buffers

_GRID = replace(
    column("Jain's index", "kfoury_5_5c", ("buffer_bdp", "rate_bps", "rtt_s", "loss_ratio"), "jain_flows"),
    runs_of=certified_with_loss,
)


def _mean_of_grid(buffer_bdp: float) -> Expression:
    return average(_GRID[buffer_bdp, every("rate_bps"), every("rtt_s"), 0])


# Section 5.7: completion times of 100 flows of 100 MB


@dataclass(frozen=True)
class _Completion:
    """Mean time [s] in which the flows of some congestion controls are done; NaN when one is not."""

    ccas: tuple[str, ...]

    def __call__(self, flows: pd.DataFrame) -> float:
        own = flows.loc[flows["cca"].isin(self.ccas), "completion_s"].to_numpy(dtype=float, na_value=np.nan)
        return float(own.mean()) if own.size else np.nan


def _of_two_kinds(run_set: RunSet) -> pd.DataFrame:
    runs = certified_with_loss(run_set)
    return runs[runs["cca"].str.contains("+", regex=False)]


def _completion(words: str, *ccas: str, runs_of: RunsOf) -> OfFlows:
    return OfFlows(
        words=words, experiment="kfoury_5_7", by=_BY_LOSS, runs_of=runs_of, measure=_Completion(ccas)
    )


_TIME = _completion("completion time", "cubic", *_BBR, runs_of=certified_with_loss)
_CUBICS_TIME = _completion("CUBIC's completion time", "cubic", runs_of=_of_two_kinds)
_BBRS_TIME = _completion("BBR's completion time", *_BBR, runs_of=_of_two_kinds)
_FROM_0_3_BDP = _BUFFER.at_least(0.3)
_EACH_OVER_EACH = (
    _TIME[one, _FROM_0_3_BDP, 0] / _TIME[other, _FROM_0_3_BDP, 0]
    for one, other in permutations(("cubic", *_BBR), 2)
)
_MIXED, _ANY_LOSS = one_of("bbr1+cubic", "bbr2+cubic"), every("loss_ratio")
_LATER = _CUBICS_TIME[_MIXED, _BUFFER, _ANY_LOSS] / _BBRS_TIME[_MIXED, _BUFFER, _ANY_LOSS]


# Section 5.8: queue disciplines


def _with_discipline(run_set: RunSet) -> pd.DataFrame:
    """Add the queue discipline, with ECN a kind of its own, and the mix: ``10+1`` is ten CUBIC, one BBRv2."""
    runs = _with_numbers(run_set)
    mix = runs["n_cubic"].astype(int).astype(str) + "+" + runs["n_bbr2"].astype(int).astype(str)
    return runs.assign(discipline=runs["aqm"] + np.where(runs["ecn"].astype(bool), "+ecn", ""), mix=mix)


def _jain_of_kinds_per_flow(flows: pd.DataFrame) -> float:
    """Jain's index over the mean goodput per flow of each kind: ten flows and one can be fair."""
    index = jain(flows.groupby("cca")["goodput_bps"].mean().to_numpy())
    return np.nan if index is None else index


_JAIN_BY_DISCIPLINE = OfFlows(
    words="Jain's index", experiment="kfoury_5_8", by=("discipline", "mix", "buffer_bdp"),
    runs_of=_with_discipline, measure=_jain_of_kinds_per_flow,
)  # fmt: skip
_REPAIRING = one_of("cake", "fq_codel", "fq_codel+ecn", column="discipline")
_EVEN = one_of("1+1", "10+10", column="mix")


# Section 5.9: 100 CUBIC flows that fq limits to 8.5 Mbit/s each, or not

_LIMIT = Rate(8_500_000)


def _with_pacing(run_set: RunSet) -> pd.DataFrame:
    """Add whether fq limits the flows to the paper's rate."""
    runs = certified_with_loss(run_set)
    if "axis_maxrate" not in runs:
        message = "this run does not vary maxrate; its flows are all paced, or none is"
        raise MissingConditionError(message)
    limited = runs["axis_maxrate"].map(lambda text: Rate.parse(str(text)) == _LIMIT)
    return runs.assign(pacing=np.where(limited, "paced", "unpaced"))


def _rtt_above_propagation_ms(flows: pd.DataFrame) -> float:
    """Mean of the smoothed RTT that iperf3 reports, less the propagation."""
    return float((flows["rtt_mean_s"] - flows["rtt_propagation_s"]).mean() * 1e3)


_BY_PACING = ("pacing", "buffer_bdp", "loss_ratio")
_USED = replace(per_rate("kfoury_5_9", _BY_PACING), runs_of=_with_pacing)
_JAIN_OF_CUBICS = replace(
    column("Jain's index", "kfoury_5_9", _BY_PACING, "jain_flows"), runs_of=_with_pacing
)
_QUEUEING = OfFlows(
    words="RTT above the propagation [ms]", experiment="kfoury_5_9", by=_BY_PACING, runs_of=_with_pacing,
    measure=_rtt_above_propagation_ms,
)  # fmt: skip
_GAIN = average(_USED["paced", _BUFFER, 0.01]) / average(_USED["unpaced", _BUFFER, 0.01])

CLAIMS = claims(
    {
        "F5.1": Part(
            "least share of BBRv1 below 1 BDP", 1 - most(_CUBIC_SHARE["bbr1+cubic", _SHALLOW]), Band(low=0.80)
        ),
        "F5.2": Part("mean Jain's index below 1 BDP, BBRv2 - BBRv1", _FAIRER_BY, Band(low=0.2, ceiling=0.5)),
        "F5.3": Part(
            "least share of CUBIC at 100 BDP",
            least(_CUBIC_SHARE[one_of("bbr1+cubic", "bbr2+cubic"), 100]),
            Band(low=0.65),
        ),
        "F5.4": Part(
            "in how many buffers BBRv2 is ahead of CUBIC at 1 % loss", _BBR2_AHEAD, Band(low=26 / 28)
        ),
        # The paper's own sentence, which its figure does not bear out.
        "F5.5": (
            Part(
                "least Jain's index of both kinds without loss",
                least(_JAIN_OF_KINDS["bbr2+cubic", _BUFFER, 0]),
                Band(low=0.80),
            ),
            Part(
                "least Jain's index of both kinds at 1 % loss",
                least(_JAIN_OF_KINDS["bbr2+cubic", _BUFFER, 0.01]),
                Band(low=0.80),
            ),
        ),
        "F6.1": (
            Part(
                "least Jain's index of BBRv1 below 1 BDP",
                least(_JAIN["bbr1", "taildrop", _COUNTED.below(1)]),
                Band(low=0.97),
            ),
            Part(
                "least share of BBRv1's longer flow from 3 BDP on",
                least(_LONG_SHARE["bbr1", "taildrop", _COUNTED.at_least(3)]),
                Band(low=0.80),
            ),
        ),
        "F6.2": Part(
            "least Jain's index of BBRv2", least(_JAIN["bbr2", "taildrop", _COUNTED]), Band(low=0.82)
        ),
        "F6.3": Part(
            "least Jain's index with FQ-CoDel", least(_JAIN[_REPAIRED, "fq_codel", _COUNTED]), Band(low=0.98)
        ),
        "F6.4": Part(
            "most BBRv1 retransmission ratio below 1 BDP, tail drop / FQ-CoDel",
            _CUT_BY_FQ_CODEL,
            Band(low=3, ceiling=20),
        ),
        "F7.1": Part(
            "most completion time of one over another congestion control from 0.3 BDP on",
            most(*_EACH_OVER_EACH),
            Band(high=1.10, floor=1.0),
        ),
        "F7.2": Part(
            "least completion time of CUBIC / of BBR beside it",
            least(_LATER),
            Band(low=1, ceiling=4, strict=True),
        ),
        "F8.1": Part(
            "least Jain's index with an AQM",
            least(_JAIN_BY_DISCIPLINE[_REPAIRING, every_name("mix"), _BUFFER]),
            Band(low=0.97),
        ),
        "F8.2": Part(
            "most Jain's index with tail drop at 100 BDP",
            most(_JAIN_BY_DISCIPLINE["taildrop", _EVEN, 100]),
            Band(high=0.80, floor=0.5),
        ),
        "F9.1": (
            Part("least goodput / rate, paced", least(_USED["paced", _BUFFER, 0]), Band(low=0.80, high=0.88)),
            Part("most goodput / rate, paced", most(_USED["paced", _BUFFER, 0]), Band(low=0.80, high=0.88)),
            Part("least Jain's index, paced", least(_JAIN_OF_CUBICS["paced", _BUFFER, 0]), Band(low=0.95)),
            Part("most RTT above the propagation [ms]", most(_QUEUEING["paced", _BUFFER, 0]), Band(high=8)),
        ),
        "F9.2": Part("mean goodput paced / unpaced at 1 % loss", _GAIN, Band(low=1.05, ceiling=1.5)),
        "F9.3": (
            Part("Jain's index unpaced at 10 BDP", _JAIN_OF_CUBICS["unpaced", 10, 0], Band(high=0.8)),
            Part("Jain's index unpaced at 100 BDP", _JAIN_OF_CUBICS["unpaced", 100, 0], Band(high=0.6)),
        ),
        "F12.1": Part(
            "distance of the share of 2 CUBIC beside 10 BBRv2 flows from 1/6",
            abs(_SHARE_BY_NUMBERS[2, 10] - 2 / 12),
            Band(high=0.03),
        ),
        "F13.1": (
            Part(
                "mean Jain's index of the grid at 1 BDP - at 10 BDP",
                _mean_of_grid(1) - _mean_of_grid(10),
                Band(low=0, ceiling=0.5, strict=True),
            ),
            Part(
                "mean Jain's index of the grid at 10 BDP - at 0.1 BDP",
                _mean_of_grid(10) - _mean_of_grid(0.1),
                Band(low=0, ceiling=0.5, strict=True),
            ),
        ),
    }
)

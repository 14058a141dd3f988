"""Gomez et al. 2023 (KNIT6 talk): BBRv1, BBRv2 and loss-based control on FABRIC, 10 Gbit/s.

The paper gives what iperf3's sender counted; here it is the receiver's goodput over the whole run, the
stricter number, divided by the configured rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fabbbr.units import Duration
from fabbbr_analysis import models
from fabbbr_analysis.claims.beside import FromPaper
from fabbbr_analysis.claims.levels import every, every_name, one_of, only
from fabbbr_analysis.claims.observed import Observed, RunSet, SocketTrace
from fabbbr_analysis.claims.quantities import (
    OfFlows,
    OfRun,
    OfTrace,
    Quantity,
    certified,
    column,
    per_rate,
)
from fabbbr_analysis.claims.records import Band, Part, claims, if_run
from fabbbr_analysis.claims.sample import Key, MissingConditionError, Sample, key_of
from fabbbr_analysis.claims.shares import long_flow_share
from fabbbr_analysis.claims.steps import QueueOfSteps
from fabbbr_analysis.claims.traces import column_of
from fabbbr_analysis.claims.vocabulary import (
    average,
    least,
    most,
    rank_correlation,
    share,
    spread,
)
from fabbbr_analysis.references import load

_BBR = one_of("bbr1", "bbr2")
_LOSS_BASED = one_of("cubic", "reno", "htcp")
_RTT, _BUFFER, _LOSS = every("rtt_s"), every("buffer_bdp"), every("loss_ratio")
_PAPER_RATE_BPS = 10e9
_PAPER_LOSS = 1 / 22_000
_PAPER_DURATION_S = 120.0
_BBR2_BEARS_LOSS = 1e-3


# Experiment 1: throughput by RTT

_BY_RTT = ("cca", "rtt_s")
_SHORT_RTT, _FIRST_LONG_RTT, _LONGEST_RTT = 0.0003, 0.027, 0.113
_UP_TO_LONG = _RTT.needing_one(at_least=_FIRST_LONG_RTT).ending_at(_LONGEST_RTT)
_LONG = _RTT.above(_FIRST_LONG_RTT).including(_FIRST_LONG_RTT)
"""27 ms, the mildest, must be there."""

_FROM_6_MS = _RTT.at_least(0.006)


@dataclass(frozen=True, kw_only=True)
class _AsFarAsBbr2Bears(OfRun):
    """Leaves BBRv2 out of runs whose scaled loss is more than the paper found it to bear (K5.1)."""

    def observe(self, observed: Observed) -> Sample:
        sample = super().observe(observed)
        loss = float(certified(observed.run_set)["loss_ratio"].max())
        if loss <= _BBR2_BEARS_LOSS or not any(key[0] == "bbr2" for key in sample.runs):
            return sample
        kept = {key: runs for key, runs in sample.runs.items() if key[0] != "bbr2"}
        remark = (
            f"bbr2 is left out: what it bears does not scale, and a loss of {loss * 100:.3g} % is more "
            f"than the {_BBR2_BEARS_LOSS * 100:g} % at which the paper found it level with bbr1"
        )
        return replace(sample, runs=kept, remarks=(*sample.remarks, remark))


def _scaled(run_set: RunSet) -> pd.DataFrame:
    """Refuse runs at the paper's own rate, or with a loss that does not keep the paper's regime."""
    runs = certified(run_set)
    rate = float(runs["rate_bps"].max())
    if rate >= _PAPER_RATE_BPS:
        message = "this run has the paper's own rate; the claim is about scaled reruns"
        raise MissingConditionError(message)
    asked = models.scaled_loss(loss=_PAPER_LOSS, rate_bps=_PAPER_RATE_BPS, scaled_rate_bps=rate)
    if not np.allclose(runs["loss_ratio"].to_numpy(dtype=np.float64), asked, rtol=0.05):
        message = (
            f"a run scaled to {rate / 1e6:g} Mbit/s keeps the paper's regime at a loss of {asked * 100:.3g} %"
        )
        raise MissingConditionError(message)
    return runs


def _at_paper_rate(run_set: RunSet) -> pd.DataFrame:
    """Refuse runs at another rate or length than the paper's: counts do not scale."""
    runs = certified(run_set)
    if float(runs["rate_bps"].max()) < _PAPER_RATE_BPS or (runs["duration_s"] != _PAPER_DURATION_S).any():
        message = (
            "counts of packets are judged at the paper's own 10 Gbit/s for 120 s: fabbbr run knit6_e1_10g"
        )
        raise MissingConditionError(message)
    return runs


def _millions(runs: pd.DataFrame) -> pd.Series[float]:
    return runs["retransmits"] / 1e6


_GOODPUT = _AsFarAsBbr2Bears.per_rate("knit6_e1", _BY_RTT)
_RESENT = _AsFarAsBbr2Bears.column("retransmissions", "knit6_e1", _BY_RTT, "retransmits")
_AT_PAPER_RATE = "knit6_e1_10g"
_RESENT_AT_PAPER_RATE = replace(_RESENT, experiment=_AT_PAPER_RATE)
_SCALED_GOODPUT, _SCALED_RESENT = (replace(each, runs_of=_scaled) for each in (_GOODPUT, _RESENT))
_MILLIONS_RESENT = OfRun(
    words="retransmissions [million]", experiment=_AT_PAPER_RATE, by=_BY_RTT, runs_of=_at_paper_rate,
    value=_millions,
)  # fmt: skip
_OF_BBR2 = _FROM_6_MS.where(cca="bbr2")
_RESENT_MORE = _MILLIONS_RESENT["bbr1", _OF_BBR2] - _MILLIONS_RESENT["bbr2", _OF_BBR2]


def _held_by_bbr(goodput: Quantity) -> Part:
    held = least(goodput[_BBR, _UP_TO_LONG])
    return Part("least BBR goodput / rate over RTT", held, Band(low=0.70))


def _left_to_loss_based(goodput: Quantity) -> Part:
    left = most(goodput[_LOSS_BASED, _LONG])
    return Part("most loss-based goodput / rate from 27 ms on", left, Band(high=0.15))


def _at_short_rtt(goodput: Quantity) -> tuple[Part, Part]:
    each = goodput[_BBR, _SHORT_RTT], goodput[_LOSS_BASED, _SHORT_RTT]
    return (
        Part("least goodput / rate at 0.3 ms", least(*each), Band(low=0.90)),
        Part("spread of goodput / rate at 0.3 ms", spread(*each), Band(high=0.05)),
    )


def _resent_by_bbr2(resent: Quantity) -> Part:
    ratio = most(resent["bbr2", _FROM_6_MS] / resent["bbr1", _FROM_6_MS])
    return Part("most BBRv2 / BBRv1 retransmissions from 6 ms on", ratio, Band(high=0.3))


# Experiment 2: retransmissions by buffer

_BY_BUFFER = ("cca", "buffer_bdp")
_E2_RESENT = column("retransmissions", "knit6_e2", _BY_BUFFER, "retransmits")
_E2_GOODPUT = per_rate("knit6_e2", _BY_BUFFER)
_SMALL = _BUFFER.at_most(1).where(cca="bbr2")
_EXCESS_OF_BBR1 = _E2_RESENT["bbr1", _SMALL] / _E2_RESENT["bbr2", _SMALL]
_FALLING = _BUFFER.at_most(1).needing(4)
_FROM_0_3_BDP = _BUFFER.at_least(0.3)


# Experiment 3: two flows of 61 and 113 ms

_BY_AQM = ("cca", "aqm", "buffer_bdp")
_SHARE = OfFlows(words="share of the longer flow", experiment="knit6_e3", by=_BY_AQM, measure=long_flow_share)
_JAIN = column("Jain's index", "knit6_e3", _BY_AQM, "jain_flows")
_DEEP = _BUFFER.above(1)
_REPAIRED = _BBR.where(aqm="fq_codel")


# Experiment 4: parallel streams and packet sizes at 100 Gbit/s

_PATH_RATE_BPS = 100e9
_BY_STREAMS = ("cca", "streams", "mtu_bytes")


def _with_streams(run_set: RunSet) -> pd.DataFrame:
    """Add how many connections a run has in all its flows."""
    runs = certified(run_set)
    return runs.assign(streams=runs["cell_id"].map(run_set.flows.groupby("cell_id")["streams"].sum()))


def _on_hosts(run_set: RunSet) -> pd.DataFrame:
    """Refuse runs in which no host is slow: what limits senders at 100 Gbit/s is their CPUs."""
    runs = _with_streams(run_set)
    if float(runs["rate_bps"].max()) < _PATH_RATE_BPS or (runs["clock"] == "virtual").any():
        message = (
            "what hosts and cards let through at 100 Gbit/s is not in virtual time and does not scale; "
            "on a slice: fabbbr slice create streams --slice two_site --sites DALL,SALT, then "
            "fabbbr slice run streams knit6_e4 --full"
        )
        raise MissingConditionError(message)
    return runs


def _gbps(runs: pd.DataFrame) -> pd.Series[float]:
    return runs["goodput_bps"] / 1e9


_STREAMED = OfRun(
    words="goodput [Gbit/s]", experiment="knit6_e4", by=_BY_STREAMS, runs_of=_on_hosts, value=_gbps
)
_ANYWHERE = replace(_STREAMED, runs_of=_with_streams)
_CCA, _STREAMS, _MTU = every_name("cca"), every("streams"), every("mtu_bytes")
_BEST_WITH_1500 = most(_STREAMED[_CCA, _STREAMS, 1500])
_FEW, _ONE_AND_TWO = _STREAMS.below(64).needing(3), only("streams", 1, 2)


@cache
def _table_of_streams() -> Mapping[Key, float]:
    """The talk's 80 numbers [Gbit/s]."""
    rows = load("knit6_streams_mtu")[[*_BY_STREAMS, "throughput_gbps"]]
    return {key_of(*row[:-1]): float(row[-1]) for row in rows.itertuples(index=False)}


_TALK = FromPaper(words="the talk's table", by=_BY_STREAMS, numbers=_table_of_streams)


# Distribution of the bandwidth estimate, the delay being emulated or the path's own

_BY_DELAY = ("cca", "delay")


def _with_delay(run_set: RunSet) -> pd.DataFrame:
    """Add where the delay is: ``emulated`` at the sender, or that of the path behind the bottleneck."""
    runs = certified(run_set)
    if "axis_at_sender" not in runs:
        message = "this run does not vary where the delay is"
        raise MissingConditionError(message)
    emulated = runs["axis_at_sender"].map(lambda text: Duration.parse(str(text)).ns > 0)
    return runs.assign(delay=np.where(emulated, "emulated", "of the path"))


def _estimates(trace: SocketTrace, run: pd.Series) -> NDArray[np.float64]:
    """BBR's samples over the bottleneck's rate."""
    estimates = column_of(trace, "bbr_bw_bps") / float(run["rate_bps"])
    return estimates[~np.isnan(estimates)]


def _share_of_low_estimates(trace: SocketTrace, run: pd.Series) -> float:
    estimates = _estimates(trace, run)
    return float((estimates < _LOW_ESTIMATE).mean()) if estimates.size else np.nan


def _median_estimate(trace: SocketTrace, run: pd.Series) -> float:
    estimates = _estimates(trace, run)
    return float(np.median(estimates)) if estimates.size else np.nan


_LOW_ESTIMATE = 0.95
_TOO_LOW = OfTrace(
    words="samples below 0.95 of the rate", experiment="knit6_cdf", by=_BY_DELAY, runs_of=_with_delay,
    columns=("bbr_bw_bps",), measure=_share_of_low_estimates,
)  # fmt: skip
_MEDIAN_ESTIMATE = replace(_TOO_LOW, words="median estimate / rate", measure=_median_estimate)


def _more_often_too_low(cca: str) -> Part:
    difference = _TOO_LOW[cca, "emulated"] - _TOO_LOW[cca, "of the path"]
    return Part(f"share of {cca}'s estimates below 0.95 C, emulated - of the path", difference, Band(low=0.3))


# Experiment 5: throughput by loss

_E5 = per_rate("knit6_e5", ("cca", "rtt_s", "loss_ratio"))
_TOLERABLE = _LOSS.at_most(1e-3)
_APART = most(abs(_E5["bbr2", _RTT, _TOLERABLE] / _E5["bbr1", _RTT, _TOLERABLE] - 1))


def _lead_at(loss: float, low: float, ceiling: float) -> Part:
    """BBRv1 over BBRv2 at one loss and all RTTs at which BBRv2 was run."""
    rtt = _RTT.where(cca="bbr2")
    lead = least(_E5["bbr1", rtt, loss] / _E5["bbr2", rtt, loss])
    return Part(f"least BBRv1 / BBRv2 goodput at {loss * 100:g} % loss", lead, Band(low=low, ceiling=ceiling))


# Experiment 6: one flow, the buffer stepping from 1 to 4 BDP and back

_BY_STEP = ("cca", "step", "buffer_bdp")
_QUEUE = QueueOfSteps(words="median queue / BDP", experiment="knit6_e6", by=_BY_STEP, unit="queue_bdp")
_FILL = QueueOfSteps(words="median queue / buffer", experiment="knit6_e6", by=_BY_STEP, unit="queue_buffers")
_STEP = every("step")
_FROM_2_BDP = _BUFFER.at_least(2)
_QUEUE_OF_BBR1 = _QUEUE["bbr1", _STEP, _FROM_2_BDP]
_QUEUE_OF_BBR2 = _QUEUE["bbr2", _STEP, _BUFFER]
_MORE_THAN_BBR2 = least(_QUEUE_OF_BBR1 - _QUEUE["bbr2", _STEP, _FROM_2_BDP])
_RANGE_OF_BBR2 = spread(_QUEUE["bbr2", _STEP, _FROM_2_BDP])


CLAIMS = claims(
    {
        "K1.1": _held_by_bbr(_GOODPUT),
        "K1.2": _left_to_loss_based(_GOODPUT),
        "K1.3": _at_short_rtt(_GOODPUT),
        "K1.4": _resent_by_bbr2(_RESENT_AT_PAPER_RATE),
        # "About one million" is the order of magnitude.
        "K1.5": (
            Part(
                "least BBRv1 - BBRv2 retransmissions from 6 ms on [millions]",
                least(_RESENT_MORE),
                Band(low=1, high=10),
            ),
            Part(
                "most BBRv1 - BBRv2 retransmissions from 6 ms on [millions]",
                most(_RESENT_MORE),
                Band(low=1, high=10),
            ),
        ),
        "K1.s": (
            _held_by_bbr(_SCALED_GOODPUT),
            _left_to_loss_based(_SCALED_GOODPUT),
            *_at_short_rtt(_SCALED_GOODPUT),
            if_run(_resent_by_bbr2(_SCALED_RESENT)),
        ),
        "K2.1": (
            Part(
                "least BBRv1 / BBRv2 retransmissions up to 1 BDP",
                least(_EXCESS_OF_BBR1),
                Band(low=1, ceiling=20, strict=True),
            ),
            Part(
                "BBRv1 / BBRv2 retransmissions at 0.1 BDP",
                _E2_RESENT["bbr1", 0.1] / _E2_RESENT["bbr2", 0.1],
                Band(low=3, ceiling=20),
            ),
        ),
        "K2.2": Part(
            "rank correlation of BBRv1's retransmissions with the buffer",
            rank_correlation(_E2_RESENT["bbr1", _FALLING], over=_FALLING),
            Band(high=-0.9, floor=-1),
        ),
        "K2.3": Part(
            "most |BBRv2 / BBRv1 - 1| from 0.3 BDP on",
            most(abs(_E2_GOODPUT["bbr2", _FROM_0_3_BDP] / _E2_GOODPUT["bbr1", _FROM_0_3_BDP] - 1)),
            Band(high=0.03),
        ),
        "K2.4": Part(
            "BBRv2 / BBRv1 goodput at 0.1 BDP",
            _E2_GOODPUT["bbr2", 0.1] / _E2_GOODPUT["bbr1", 0.1],
            Band(low=0.80, high=0.98),
        ),
        "K4.1": Part(
            "in how many conditions 9000 bytes are faster than 1500",
            share(_STREAMED[_CCA, _STREAMS, 1500] - _STREAMED[_CCA, _STREAMS, 9000], at_most=0),
            Band(low=36 / 40),
        ),
        "K4.2": Part(
            "least BBR goodput with 8 streams and 9000 bytes [Gbit/s]",
            least(_STREAMED[_BBR, 8, 9000]),
            Band(low=70, ceiling=100),
        ),
        # No smaller number of streams gets there: the first that does, if any, is 64 or more.
        "K4.3": Part(
            "most loss-based goodput with less than 64 streams and 9000 bytes [Gbit/s]",
            most(_STREAMED[_LOSS_BASED, _FEW, 9000]),
            Band(high=60, strict=True),
        ),
        "K4.4": Part(
            "goodput of 32 BBRv2 streams / best of all with 1500 bytes",
            _STREAMED["bbr2", 32, 1500] / _BEST_WITH_1500,
            Band(low=1, ceiling=1.1),
        ),
        "K4.5": Part(
            "rank correlation with the talk's table",
            rank_correlation(_STREAMED[_CCA, _STREAMS, _MTU], over=_TALK[_CCA, _STREAMS, _MTU]),
            Band(low=0.80),
        ),
        "K4.6": Part(
            "least BBRv1 / CUBIC goodput with 1 and 2 streams of 1500 bytes",
            least(_ANYWHERE["bbr1", _ONE_AND_TWO, 1500] / _ANYWHERE["cubic", _ONE_AND_TWO, 1500]),
            Band(low=5, ceiling=50),
        ),
        "K5.1": Part("most |BBRv2 / BBRv1 - 1| up to 0.1 % loss", _APART, Band(high=0.15)),
        "K5.2": (
            _lead_at(0.01, 1.5, ceiling=10),
            _lead_at(0.02, 5, ceiling=100),
            _lead_at(0.05, 10, ceiling=100),
        ),
        "K5.3": (
            Part("least BBRv1 goodput / rate at 10 % loss", least(_E5["bbr1", _RTT, 0.10]), Band(low=0.2)),
            Part("most BBRv1 goodput / rate at 20 % loss", most(_E5["bbr1", _RTT, 0.20]), Band(high=0.02)),
        ),
        "K3.1": (
            Part(
                "mean share of the 113 ms flow above 1 BDP",
                average(_SHARE["bbr1", "taildrop", _DEEP]),
                Band(low=0.65, high=0.9),
            ),
            Part(
                "mean Jain's index above 1 BDP",
                average(_JAIN["bbr1", "taildrop", _DEEP]),
                Band(high=0.90, floor=0.5),
            ),
        ),
        "K3.2": Part(
            "least Jain's index of BBRv2", least(_JAIN["bbr2", "taildrop", _BUFFER]), Band(low=0.85)
        ),
        "K3.3": Part(
            "mean Jain's index above 1 BDP, BBRv2 - BBRv1",
            average(_JAIN["bbr2", "taildrop", _DEEP]) - average(_JAIN["bbr1", "taildrop", _DEEP]),
            Band(low=0.10, ceiling=0.5),
        ),
        "K3.4": Part(
            "least Jain's index with FQ-CoDel", least(_JAIN[_REPAIRED, "fq_codel", _BUFFER]), Band(low=0.97)
        ),
        "K6.1": (
            Part("least median queue of BBRv2 [BDP]", least(_QUEUE_OF_BBR2), Band(low=0.75, high=1.35)),
            Part("most median queue of BBRv2 [BDP]", most(_QUEUE_OF_BBR2), Band(low=0.75, high=1.35)),
        ),
        "K6.2": Part("range of BBRv2's median queue from 2 BDP on [BDP]", _RANGE_OF_BBR2, Band(high=0.30)),
        "K6.3": Part(
            "least median queue / buffer of CUBIC", least(_FILL["cubic", _STEP, _BUFFER]), Band(low=0.80)
        ),
        "K6.4": (
            Part(
                "least median queue of BBRv1 from 2 BDP on [BDP]",
                least(_QUEUE_OF_BBR1),
                Band(low=1.0, high=1.7),
            ),
            Part(
                "most median queue of BBRv1 from 2 BDP on [BDP]",
                most(_QUEUE_OF_BBR1),
                Band(low=1.0, high=1.7),
            ),
            if_run(
                Part(
                    "least BBRv1 - BBRv2 median queue from 2 BDP on [BDP]",
                    _MORE_THAN_BBR2,
                    Band(low=0, strict=True),
                )
            ),
        ),
        "KM.1": (_more_often_too_low("bbr1"), _more_often_too_low("bbr2")),
        "KM.2": (
            Part(
                "least median estimate / rate, delay of the path",
                least(_MEDIAN_ESTIMATE[_BBR, "of the path"]),
                Band(low=0.97, high=1.02),
            ),
            Part(
                "most median estimate / rate, delay of the path",
                most(_MEDIAN_ESTIMATE[_BBR, "of the path"]),
                Band(low=0.97, high=1.02),
            ),
        ),
    }
)

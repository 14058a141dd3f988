"""Cardwell et al. 2016 (CACM): one bottleneck over time (Figs. 4 to 8, 12), random loss (Fig. 10), B4."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from fabbbr.units import goodput_ceiling
from fabbbr_analysis import models
from fabbbr_analysis.claims import cycle, traces
from fabbbr_analysis.claims.levels import every
from fabbbr_analysis.claims.observed import SocketTrace
from fabbbr_analysis.claims.quantities import (
    InWindow,
    Last,
    OfTrace,
    column,
    over_cubic_model,
    per_rate,
)
from fabbbr_analysis.claims.random_loss import (
    BY_LOSS,
    LOSS,
    LOWEST,
    collapses,
    cubic_lead,
    is_close_to_the_limit,
    meets_the_limit,
)
from fabbbr_analysis.claims.records import Arithmetic, Band, Part, claims
from fabbbr_analysis.claims.shares import jain_of_received
from fabbbr_analysis.claims.vocabulary import linearity, log, most, slope

_STEP_UP_S, _STEP_DOWN_S = 20.0, 40.0
_DOUBLED_BPS = 20e6 * goodput_ceiling(1500)
"""BBR estimates the rate of payload, so that doubling the link to 20 Mbit/s lets it find 19.13."""

_SERIALISED_S_PER_BYTE = 8 / 128e3
"""Queueing delay of a byte of buffer at the 128 kbit/s of Fig. 12."""


def _trace(
    words: str,
    experiment: str,
    measure: Callable[[SocketTrace, pd.Series], float],
    *columns: str,
) -> OfTrace:
    names = columns or ("rtt_s",)
    return OfTrace(words=words, experiment=experiment, by=("cca",), columns=names, measure=measure)


def _occupancy(quantile: float) -> OfTrace:
    measure = partial(traces.occupancy_after_loss, quantile=quantile)
    return _trace(
        f"queue after loss, quantile {quantile:g}", "cardwell_f6", measure, "rtt_s", "retrans_segments"
    )


_BUMPS = _trace("period of RTT bumps", "cardwell_f4", traces.rtt_period)
_DISCOVERY = _trace(
    "time to 95 % of the new rate", "cardwell_f5",
    partial(traces.time_to_estimate, step_s=_STEP_UP_S, target_bps=0.95 * _DOUBLED_BPS), "bbr_bw_bps",
)  # fmt: skip
_PEAK = _trace("largest RTT [ms]", "cardwell_f5", partial(traces.peak_rtt_ms, step_s=_STEP_DOWN_S))
_RECOVERY = _trace("time to 1.25 RTprop", "cardwell_f5", partial(traces.recovery_s, step_s=_STEP_DOWN_S))
_START_PEAK = _trace("largest RTT of the first second / RTprop", "cardwell_f6", traces.peak_rtt_of_start)
_AT_1_S = _trace("RTT at 1 s / RTprop", "cardwell_f6", traces.rtt_at_1_s)
_GROWTH = _trace("RTT at 1 s / at 0.5 s", "cardwell_f6", traces.rtt_growth)
_STEADY = _trace("median RTT from 2 to 8 s / RTprop", "cardwell_f6", traces.median_rtt_after_start)
_OCCUPANCY_05, _OCCUPANCY_95 = _occupancy(0.05), _occupancy(0.95)
_JAIN = InWindow(
    words="Jain's index of the final 10 s", experiment="cardwell_f8", by=("cca",),
    window=Last(10), measure=jain_of_received,
)  # fmt: skip
_SYNCHRONISED = _trace(
    "share of ProbeRTTs within 1 s of two other flows'", "cardwell_f8",
    partial(cycle.synchronised_probe_rtts, flows=3, within_s=1.0), "flow", "bbr_cwnd_gain",
)  # fmt: skip

_GOODPUT = per_rate("cardwell_f10", BY_LOSS)
_OVER_MODEL = over_cubic_model("cardwell_f10", BY_LOSS)
_LOSS_LIMITED = LOSS.at_least(1e-3).at_most(0.05).needing(3)
_STALLED = LOSS.at_least(0.02).needing_one(at_least=0.02, at_most=0.05).starting_at(0.02)

_DELAY = column("median RTT", "cardwell_f12", ("cca", "buffer_bytes"), "rtt_median_s")
_BUFFER = every("buffer_bytes")
_ENDS = _BUFFER.needing(2)
_LINE = _BUFFER.needing(3)
_ADDED_DELAY = slope(_DELAY["cubic", _LINE], over=_LINE)

CLAIMS = claims(
    {
        "C4.1": Part("period of RTT bumps [RTprop]", _BUMPS["bbr1"], Band(low=7, high=9)),
        "C5.1": Part(
            "time from the doubling to 95 % of the new rate [s]", _DISCOVERY["bbr1"], Band(high=2.0)
        ),
        "C5.2": (
            Part("largest RTT after the halving [ms]", _PEAK["bbr1"], Band(low=120, high=200)),
            Part("time from the halving to 1.25 RTprop [s]", _RECOVERY["bbr1"], Band(high=6)),
        ),
        "C6.1": Part(
            "largest RTT of the first second / RTprop", _START_PEAK["bbr1"], Band(low=1.5, high=3.3)
        ),
        "C6.2": (
            Part("BBR's RTT at 1 s / RTprop", _AT_1_S["bbr1"], Band(high=1.2, floor=1.0)),
            Part("CUBIC's RTT at 1 s / at 0.5 s", _GROWTH["cubic"], Band(low=1.0, ceiling=2.0, strict=True)),
        ),
        "C7.1": Part("BBR's median RTT from 2 to 8 s / RTprop", _STEADY["bbr1"], Band(high=1.15, floor=1.0)),
        "C7.2": (
            Part(
                "CUBIC's queue after the first loss, 5th percentile",
                _OCCUPANCY_05["cubic"],
                Band(low=0.5, high=0.8),
            ),
            Part(
                "CUBIC's queue after the first loss, 95th percentile", _OCCUPANCY_95["cubic"], Band(low=0.95)
            ),
        ),
        "C8.1": Part("Jain's index of the final 10 s", _JAIN["bbr1"], Band(low=0.90)),
        "C8.2": Part(
            "share of ProbeRTTs that begin within 1 s of two other flows'",
            _SYNCHRONISED["bbr1"],
            Band(low=0.7),
        ),
        "C12.1": Part(
            "BBR's median RTT, largest buffer / smallest",
            _DELAY["bbr1", _ENDS.largest()] / _DELAY["bbr1", _ENDS.smallest()],
            Band(high=2.0),
        ),
        "C12.2": (
            Part(
                "R² of CUBIC's median RTT over the buffer",
                linearity(_DELAY["cubic", _LINE], over=_LINE),
                Band(low=0.9),
            ),
            Part(
                "CUBIC's added RTT / time to send the added buffer",
                _ADDED_DELAY / _SERIALISED_S_PER_BYTE,
                Band(low=0.6, high=1.1),
            ),
        ),
        "C10.1": meets_the_limit(_GOODPUT),
        "C10.2": is_close_to_the_limit(_GOODPUT),
        "C10.3": collapses(_GOODPUT),
        "C10.4": Part(
            "CUBIC goodput at 0.001 % / at 0.1 % loss",
            _GOODPUT["cubic", LOWEST] / _GOODPUT["cubic", 1e-3],
            Band(low=5, high=30),
        ),
        "C10.5": Part(
            "most CUBIC goodput / rate, from 2 % loss on", most(_GOODPUT["cubic", _STALLED]), Band(high=0.02)
        ),
        "C10.6": Part("CUBIC / BBR goodput at 0.001 % loss", cubic_lead(_GOODPUT), Band(low=0.97, high=1.10)),
        "C10.7": (
            Part(
                "slope of log goodput over log loss",
                slope(log(_GOODPUT["cubic", _LOSS_LIMITED]), over=log(_LOSS_LIMITED)),
                Band(low=-0.75, high=-0.45),
            ),
            Part("CUBIC goodput / model at 0.1 % loss", _OVER_MODEL["cubic", 1e-3], Band(low=0.6, high=2.0)),
            Part("CUBIC goodput / model at 1 % loss", _OVER_MODEL["cubic", 1e-2], Band(low=0.6, high=2.0)),
        ),
        "CA.1": Arithmetic(
            "8 MiB window / 200 ms [Mbit/s]",
            models.window_limit_bps(window_bytes=8 * 1024**2, rtt_s=0.2) / 1e6,
            Band(low=334, high=336),
        ),
        "CA.2": Arithmetic(
            "packets a loss for CUBIC at 10 Gbit/s and 100 ms [million]",
            1e-6 / models.cubic_loss_bound(rate_bps=10e9, rtt_s=0.1, packet_bytes=1500),
            Band(low=20, high=50),
        ),
    }
)

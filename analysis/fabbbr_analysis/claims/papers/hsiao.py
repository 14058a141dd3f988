"""Hsiao and Muindi 2017: Cardwell's Fig. 10 repeated in Mahimahi, with the link's rate before the loss.

Their experiments 1 to 4 vary rate, congestion control, RTT and the link itself beside the loss.
"""

from __future__ import annotations

import pandas as pd

from fabbbr_analysis.claims.expression import Expression
from fabbbr_analysis.claims.levels import every, every_name, one_of, only
from fabbbr_analysis.claims.quantities import OfRun, column, per_rate
from fabbbr_analysis.claims.random_loss import (
    BY_LOSS,
    LOSS,
    LOWEST,
    collapses,
    cubic_lead,
    meets_the_limit,
)
from fabbbr_analysis.claims.records import Band, Part, claims
from fabbbr_analysis.claims.vocabulary import least, monotone, most, reach


def _over_physical_limit(runs: pd.DataFrame) -> pd.Series[float]:
    limit = (1 - runs["loss_ratio"]) * runs["rate_bps"]
    return runs["goodput_bps"] / limit


_LINK_RATE = column("link rate", "hm_figure8", BY_LOSS, "link_rate_bps")
_GOODPUT = per_rate("hm_figure8", BY_LOSS)
_EXCESS = OfRun(
    words="goodput / ((1 - loss) × rate)", experiment="hm_figure8", by=BY_LOSS, value=_over_physical_limit
)
_BEARABLE = LOSS.including(0.40, 0.50)
_KEPT = _LINK_RATE["bbr1", _BEARABLE] / _LINK_RATE["bbr1", LOWEST]

_RATES = every("rate_bps").at_least(1e6).including(1e6, 1e7, 1e8)
_TENFOLD = only("rate_bps", 1e6, 1e7, 1e8)
_BY_RATE = column("link rate", "hm_experiment1", ("cca", "rate_bps", "loss_ratio"), "link_rate_bps")
_LOSSY = LOSS.at_least(0.01).including(0.01)
_LEAD_BY_RATE = _BY_RATE["bbr1", _TENFOLD, 0.01] / _BY_RATE["cubic", _TENFOLD, 0.01]

_BY_CCA = column("link rate", "hm_experiment2", BY_LOSS, "link_rate_bps")
_OTHERS = ("cubic", "bic", "vegas", "westwood", "reno")
_TWO_BEST = least(_BY_CCA["westwood", 1e-3], _BY_CCA["bic", 1e-3])
_BEST_OF_THREE = most(_BY_CCA["cubic", 1e-3], _BY_CCA["vegas", 1e-3], _BY_CCA["reno", 1e-3])

_BY_RTT = column("link rate", "hm_experiment3", ("cca", "rtt_s", "loss_ratio"), "link_rate_bps")
_RTTS = every("rtt_s").including(0.002, 0.5)
_RANDOM = LOSS.at_least(1e-3).including(1e-3)

_ON_TRACE = column("link rate", "hm_experiment4", BY_LOSS, "link_rate_bps")


def _lead(loss: float) -> Expression:
    """BBR's link rate over that of its best rival."""
    return _BY_CCA["bbr1", loss] / most(_BY_CCA[one_of(*_OTHERS), loss])


CLAIMS = claims(
    {
        "H1.1": Part(
            "least BBR / CUBIC link rate, from 1 Mbit/s and 1 % loss on",
            least(_BY_RATE["bbr1", _RATES, _LOSSY] / _BY_RATE["cubic", _RATES, _LOSSY]),
            Band(low=1.0, ceiling=100),
        ),
        "H1.2": Part(
            "smallest rise of BBR / CUBIC link rate from 1 to 10 to 100 Mbit/s at 1 % loss",
            monotone(_LEAD_BY_RATE, over=_TENFOLD),
            Band(low=0, ceiling=100, strict=True),
        ),
        "H2.1": (
            Part("BBR / best other link rate at 0.1 % loss", _lead(1e-3), Band(low=3, ceiling=100)),
            *(
                Part(f"BBR / best other link rate at {loss:.0%} loss", _lead(loss), Band(low=10, ceiling=100))
                for loss in (0.01, 0.02, 0.05)
            ),
        ),
        # Both are among the best two of five exactly when the lesser of them is above the other three.
        "H2.2": Part(
            "lesser of Westwood and BIC / best of CUBIC, Vegas and Reno at 0.1 % loss",
            _TWO_BEST / _BEST_OF_THREE,
            Band(low=1.0, ceiling=5, strict=True),
        ),
        "H3.1": Part(
            "least BBR / CUBIC link rate from 0.1 % loss on",
            least(_BY_RTT["bbr1", _RTTS, _RANDOM] / _BY_RTT["cubic", _RTTS, _RANDOM]),
            Band(low=1.0, ceiling=100),
        ),
        # The register expects 0.8 or more of a BBR that paces: then the sentence is not reproduced.
        "H3.2": Part(
            "BBR link rate at 500 ms / at 100 ms, 1 % loss",
            _BY_RTT["bbr1", 0.5, 0.01] / _BY_RTT["bbr1", 0.1, 0.01],
            Band(high=0.8, strict=True),
        ),
        "H4.1": (
            Part(
                "BBR link rate at 30 % / at 0.001 % loss, LTE trace",
                _ON_TRACE["bbr1", 0.30] / _ON_TRACE["bbr1", LOWEST],
                Band(low=0.9),
            ),
            Part(
                "CUBIC / BBR link rate at 1 % loss, LTE trace",
                _ON_TRACE["cubic", 0.01] / _ON_TRACE["bbr1", 0.01],
                Band(high=0.3),
            ),
        ),
        "H8.1": Part(
            "CUBIC / BBR link rate at 0.001 % loss", cubic_lead(_LINK_RATE), Band(low=1.00, high=1.10)
        ),
        # The levels are 10 points apart: 40 % is what lies nearer to it than to 30 and 50 %.
        "H8.2": Part(
            "largest loss that leaves BBR half its link rate",
            reach(_KEPT, keeps=0.5, over=_BEARABLE),
            Band(low=0.35, high=0.45),
        ),
        "H8.3": Part(
            "most goodput / ((1 - loss) × rate)", most(_EXCESS[every_name("cca"), LOSS]), Band(high=1.01)
        ),
        "H8.4": (
            meets_the_limit(_GOODPUT),
            collapses(_GOODPUT),
        ),
    }
)

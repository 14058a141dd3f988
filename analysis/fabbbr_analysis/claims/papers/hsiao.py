"""Hsiao and Muindi 2017: Cardwell's Fig. 10 repeated in Mahimahi, with the link's rate before the loss."""

from __future__ import annotations

import pandas as pd

from fabbbr_analysis.claims.levels import every_name
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
from fabbbr_analysis.claims.vocabulary import most, reach


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

CLAIMS = claims(
    {
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

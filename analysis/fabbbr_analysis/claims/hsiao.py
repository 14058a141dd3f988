"""Hsiao and Muindi 2017: Cardwell's Fig. 10 repeated in Mahimahi, with the link's rate taken before the loss."""

from __future__ import annotations

import numpy as np

from fabbbr_analysis.claims.cardwell import cubic_lead, f10_parts
from fabbbr_analysis.claims.observe import certified, metric
from fabbbr_analysis.claims.records import Band, Claim, Evidence, Part
from fabbbr_analysis.claims.sample import Array, Means, Sample, highest, sample_of

_BY_LOSS = ("cca", "loss_ratio")
_LINK_RATE = metric("hm.figure8", _BY_LOSS, "link_rate_bps")


def last_half(x: Means) -> Array:
    """Largest loss at which BBR keeps half of its rate at 0.001 %; 40 and 50 % must be there."""
    levels = sorted({*x.levels("bbr1"), 0.40, 0.50})
    keeps = np.stack([x["bbr1", loss] >= 0.5 * x["bbr1", 1e-5] for loss in levels])
    column = np.reshape(levels, (-1, *(1,) * (keeps.ndim - 1)))
    return np.asarray(np.max(np.where(keeps, column, 0.0), axis=0), dtype=np.float64)


def most(x: Means) -> Array:
    """Largest of the quantity over all conditions."""
    return highest([x[key] for key in x.conditions()])


def over_physical_limit(evidence: Evidence) -> Sample:
    """Receiver goodput over (1 - loss) × rate."""
    runs = certified(evidence["hm.figure8"])
    limit = (1 - runs["loss_ratio"]) * runs["rate_bps"]
    return sample_of(runs.assign(excess=runs["goodput_bps"] / limit), axes=_BY_LOSS, value="excess")


_F10 = f10_parts("hm.figure8")

CLAIMS = (
    Claim(
        id="H8.1",
        parts=(
            Part(
                quantity="CUBIC / BBR link rate at 0.001 % loss",
                observe=_LINK_RATE,
                formula=cubic_lead,
                band=Band(low=1.00, high=1.10),
            ),
        ),
    ),
    Claim(
        id="H8.2",
        parts=(
            # The levels are 10 points apart: 40 % is what lies nearer to it than to 30 and 50 %.
            Part(
                quantity="largest loss that leaves BBR half its link rate",
                observe=_LINK_RATE,
                formula=last_half,
                band=Band(low=0.35, high=0.45),
            ),
        ),
    ),
    Claim(
        id="H8.3",
        parts=(
            Part(
                quantity="most goodput / ((1 - loss) × rate)",
                observe=over_physical_limit,
                formula=most,
                band=Band(high=1.01),
            ),
        ),
    ),
    Claim(id="H8.4", parts=(*_F10["C10.1"], *_F10["C10.3"])),
)

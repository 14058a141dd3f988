"""What Cardwell's Fig. 10, and those who repeated it, ask of goodput under random loss."""

from __future__ import annotations

from fabbbr_analysis.claims.expression import Expression
from fabbbr_analysis.claims.levels import Levels, every, only
from fabbbr_analysis.claims.quantities import Quantity
from fabbbr_analysis.claims.records import Band, Part
from fabbbr_analysis.claims.vocabulary import least

BY_LOSS = ("cca", "loss_ratio")
LOWEST = 1e-5
"""The loss at which a congestion control has its most, 0.001 %."""

LOSS = every("loss_ratio")


def over_limit(goodput: Quantity, loss: Levels) -> Expression:
    """BBR's goodput over (1 - loss) of its own at 0.001 % loss: the limit as the figure draws it."""
    return goodput["bbr1", loss] / ((1 - loss) * goodput["bbr1", LOWEST])


def meets_the_limit(goodput: Quantity) -> Part:
    """BBR meets the limit up to 5 % loss."""
    mild = LOSS.at_least(1e-4).at_most(0.05).including(0.05).expecting(1e-4, 1e-3, 1e-2, 2e-2)
    band = Band(low=0.95, slack=0.05)
    return Part("least BBR goodput / limit, 0.01 to 5 % loss", least(over_limit(goodput, mild)), band)


def is_close_to_the_limit(goodput: Quantity) -> Part:
    """BBR is close to the limit up to 15 % loss."""
    heavy = only("loss_ratio", 0.10, 0.15)
    return Part(
        "least BBR goodput / limit, 10 and 15 % loss", least(over_limit(goodput, heavy)), Band(low=0.85)
    )


def collapses(goodput: Quantity) -> Part:
    """BBR collapses once loss exceeds 20 %."""
    collapse = goodput["bbr1", 0.25] / goodput["bbr1", LOWEST]
    return Part("BBR goodput at 25 % / at 0.001 % loss", collapse, Band(high=0.10))


def cubic_lead(goodput: Quantity) -> Expression:
    """CUBIC over BBR at 0.001 %."""
    return goodput["cubic", LOWEST] / goodput["bbr1", LOWEST]

"""Ware et al. 2019: BBR against loss-based flows in a deep buffer."""

from __future__ import annotations

from fabbbr_analysis import models
from fabbbr_analysis.claims.quantities import InWindow, Since
from fabbbr_analysis.claims.records import Arithmetic, Band, Part, claims
from fabbbr_analysis.claims.shares import Share
from fabbbr_analysis.claims.vocabulary import most

_CUBIC_FLOWS = 16
_MIXED = "bbr1+cubic"


def _bbr_share(experiment: str, axis: str = "cca") -> InWindow:
    """Share of the bytes received in the last 60 % of a run, in which the competition has settled."""
    return InWindow(
        words="BBR's share", experiment=experiment, by=(axis,), window=Since(0.4),
        measure=Share(("bbr1",), "received"),
    )  # fmt: skip


_AGAINST_1 = _bbr_share("ware_1v1")
_AGAINST_16 = _bbr_share("ware_1v16")
_CAPPED = _bbr_share("ware_cap", "axis_profile")
"""By profile of fab_bbr1: ``v1`` has 2 BDP in flight at most, ``v1cap3`` 3 BDP."""

_DISTANCE_TO_MODEL = most(
    abs(_CAPPED["v1"] - float(models.ware_share_of_deep_buffer(2.0))),
    abs(_CAPPED["v1cap3"] - float(models.ware_share_of_deep_buffer(3.0))),
)

CLAIMS = claims(
    {
        "W1": Arithmetic(
            "10 × 1.25 / (1.25 + 9) [Mbit/s]",
            10 * models.probe_bw_share(own_bps=1e6, others_bps=9e6),
            Band(low=1.21, high=1.22),
        ),
        "W2": Part("BBR's share against one CUBIC flow", _AGAINST_1[_MIXED], Band(low=0.30, high=0.60)),
        "W3": (
            Part(
                "change of BBR's share from 1 to 16 CUBIC flows",
                abs(_AGAINST_16[_MIXED] - _AGAINST_1[_MIXED]),
                Band(high=0.15),
            ),
            Part(
                "BBR's share against 16 CUBIC flows / fair share",
                _AGAINST_16[_MIXED] * (_CUBIC_FLOWS + 1),
                Band(low=3, ceiling=17),
            ),
        ),
        "W6": (
            Part(
                "BBR's share with a cap of 3 BDP minus that with 2 BDP",
                _CAPPED["v1cap3"] - _CAPPED["v1"],
                Band(low=0, strict=True),
            ),
            Part("largest |BBR's share - (1 - 1/cap)|", _DISTANCE_TO_MODEL, Band(high=0.15)),
        ),
    }
)

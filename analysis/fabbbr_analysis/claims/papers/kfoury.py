"""Kfoury et al. 2020: flows on a bottleneck of 1 Gbit/s (sections 5.2 and 5.4 to 5.6)."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from fabbbr_analysis.claims.expression import Expression
from fabbbr_analysis.claims.levels import every, one_of
from fabbbr_analysis.claims.observed import RunSet
from fabbbr_analysis.claims.quantities import (
    OfFlows,
    certified,
    column,
    over_cubic_model,
    per_rate,
)
from fabbbr_analysis.claims.records import Band, Part, claims, if_run
from fabbbr_analysis.claims.shares import Share, long_flow_share
from fabbbr_analysis.claims.vocabulary import average, least, most

_BBR = ("bbr1", "bbr2")

# Section 5.2: 1 to 100 flows of one kind, 100 ms, 0.02 BDP

_BY_FLOWS = column("retransmission ratio", "kfoury_5_2", ("cca", "n_flows"), "retransmit_ratio")
_FLOWS = every("n_flows")
_MANY = _FLOWS.at_least(10).where(cca="bbr2")

# Section 5.4: one flow of 100 ms under random loss

_BY_LOSS = ("cca", "buffer_bdp", "loss_ratio")
_GOODPUT = per_rate("kfoury_5_4", _BY_LOSS)
_RETRANSMITTED = column("retransmission ratio", "kfoury_5_4", _BY_LOSS, "retransmit_ratio")
_OVER_MODEL = over_cubic_model("kfoury_5_4", _BY_LOSS)
_BUFFER, _LOSS = every("buffer_bdp"), every("loss_ratio")
_BUFFERS = _BUFFER.preferably_several()
_KEPT_BY_BBR2 = _GOODPUT["bbr2", _BUFFERS, 0.01] / _GOODPUT["bbr2", _BUFFERS, 1e-3]


def _excess_of_bbr1(buffer_bdp: float) -> Expression:
    """BBRv1's retransmission ratio over BBRv2's up to 0.1 % loss."""
    mild = _LOSS.at_most(1e-3).where(cca="bbr2", buffer_bdp=buffer_bdp)
    return _RETRANSMITTED["bbr1", buffer_bdp, mild] / _RETRANSMITTED["bbr2", buffer_bdp, mild]


# Section 5.5, two flows: one CUBIC against one BBR, 20 ms

_BY_BUFFER = ("cca", "buffer_bdp")
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

CLAIMS = claims(
    {
        # 1 % must be there, in one buffer at least.
        "F4.1": Part(
            "least BBRv1 goodput / rate up to 1 % loss",
            least(_GOODPUT["bbr1", _BUFFER, _LOSS.at_most(0.01)], _GOODPUT["bbr1", _BUFFERS, 0.01]),
            Band(low=0.85),
        ),
        "F4.2": (
            Part(
                "least BBRv2 goodput / rate at 0.1 % loss",
                least(_GOODPUT["bbr2", _BUFFERS, 1e-3]),
                Band(low=0.85),
            ),
            Part(
                "least BBRv2 goodput at 1 % / at 0.1 % loss", least(_KEPT_BY_BBR2), Band(low=0.4, high=0.95)
            ),
            Part("most BBRv2 goodput at 1 % / at 0.1 % loss", most(_KEPT_BY_BBR2), Band(low=0.4, high=0.95)),
        ),
        "F4.3": (
            if_run(
                Part(
                    "most BBRv2 goodput / rate at 10 % loss",
                    most(_GOODPUT["bbr2", _BUFFERS, 0.10]),
                    Band(high=0.02),
                )
            ),
            Part(
                "least BBRv1 goodput / rate at 10 % loss",
                least(_GOODPUT["bbr1", _BUFFERS, 0.10]),
                Band(low=0.4),
            ),
            Part(
                "most BBRv1 goodput / rate at 20 % loss",
                most(_GOODPUT["bbr1", _BUFFERS, 0.20]),
                Band(high=0.2),
            ),
        ),
        "F4.4": Part(
            "most CUBIC / BBRv1 goodput at 0.1 % loss",
            most(_GOODPUT["cubic", _BUFFERS, 1e-3] / _GOODPUT["bbr1", _BUFFERS, 1e-3]),
            Band(high=0.05),
        ),
        "F4.5": (
            Part(
                "least BBRv1 / BBRv2 retransmission ratio up to 0.1 % loss, 0.1 BDP",
                least(_excess_of_bbr1(0.1)),
                Band(low=3, ceiling=20),
            ),
            Part(
                "least BBRv1 / BBRv2 retransmission ratio up to 0.1 % loss, 1 BDP",
                least(_excess_of_bbr1(1.0)),
                Band(low=0.8, high=2.5),
            ),
            Part(
                "most BBRv1 / BBRv2 retransmission ratio up to 0.1 % loss, 1 BDP",
                most(_excess_of_bbr1(1.0)),
                Band(low=0.8, high=2.5),
            ),
        ),
        "F4.6": (
            Part(
                "least CUBIC goodput / RFC 9438 at 0.01 % loss",
                least(_OVER_MODEL["cubic", _BUFFERS, 1e-4]),
                Band(low=0.6, high=2),
            ),
            Part(
                "most CUBIC goodput / RFC 9438 at 0.01 % loss",
                most(_OVER_MODEL["cubic", _BUFFERS, 1e-4]),
                Band(low=0.6, high=2),
            ),
        ),
        "F2.1": (
            Part(
                "least BBRv1 / BBRv2 retransmission ratio from 10 flows on",
                least(_BY_FLOWS["bbr1", _MANY] / _BY_FLOWS["bbr2", _MANY]),
                Band(low=3, ceiling=20),
            ),
            Part(
                "least BBRv2 / CUBIC retransmission ratio",
                least(_BY_FLOWS["bbr2", _FLOWS] / _BY_FLOWS["cubic", _FLOWS]),
                Band(low=1, ceiling=20, strict=True),
            ),
        ),
        "F2.2": (
            Part("BBRv1's retransmission ratio with 1 flow", _BY_FLOWS["bbr1", 1], Band(low=0.01, high=0.06)),
            Part("… with 10 flows", _BY_FLOWS["bbr1", 10], Band(low=0.12, high=0.24)),
            Part("… with 100 flows", _BY_FLOWS["bbr1", 100], Band(low=0.18, high=0.34)),
        ),
        "F5.1": Part(
            "least share of BBRv1 below 1 BDP", 1 - most(_CUBIC_SHARE["bbr1+cubic", _SHALLOW]), Band(low=0.80)
        ),
        "F5.2": Part("mean Jain's index below 1 BDP, BBRv2 - BBRv1", _FAIRER_BY, Band(low=0.2, ceiling=0.5)),
        "F5.3": Part(
            "least share of CUBIC at 100 BDP",
            least(_CUBIC_SHARE[one_of("bbr1+cubic", "bbr2+cubic"), 100]),
            Band(low=0.65),
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
    }
)

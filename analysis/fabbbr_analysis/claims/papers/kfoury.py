"""Kfoury et al. 2020: flows of one kind on a bottleneck of 1 Gbit/s (sections 5.1 to 5.4).

Where flows of several kinds meet, or a queue discipline, is in ``kfoury_mixed``.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from fabbbr_analysis.claims.expression import Expression
from fabbbr_analysis.claims.levels import every, one_of
from fabbbr_analysis.claims.quantities import (
    OfFlows,
    certified_with_loss,
    column,
    over_cubic_model,
    per_rate,
)
from fabbbr_analysis.claims.records import Arithmetic, Band, Part, claims, if_run
from fabbbr_analysis.claims.vocabulary import least, monotone, most
from fabbbr_analysis.references import load

# Section 5.1: 100 flows of one kind, 20 ms

_BY_BUFFER = ("cca", "buffer_bdp", "loss_ratio")
_USED = replace(per_rate("kfoury_5_1", _BY_BUFFER), runs_of=certified_with_loss)
_JAIN = replace(column("Jain's index", "kfoury_5_1", _BY_BUFFER, "jain_flows"), runs_of=certified_with_loss)
_BBR = one_of("bbr1", "bbr2")
_ANY_BUFFER = every("buffer_bdp")
_SMALL = _ANY_BUFFER.at_most(0.1).starting_at(0.01)
_LARGE = _ANY_BUFFER.at_least(10).ending_at(100)


def _farthest_index_from_spread() -> float:
    """The largest distance [percentage points] of a printed index from 100 / (1 + (sd / mean)²)."""
    printed = load("kfoury2020_fig4-7_legends").dropna(subset=["jain_pct_published"])
    index = 100 / (1 + (printed["sd"] / printed["mean"]) ** 2)
    return float((printed["jain_pct_published"] - index).abs().max())


# Section 5.2: 1 to 100 flows of one kind, 100 ms, 0.02 BDP

_BY_FLOWS = column("retransmission ratio", "kfoury_5_2", ("cca", "n_flows"), "retransmit_ratio")
_FLOWS = every("n_flows")
_MANY = _FLOWS.at_least(10).where(cca="bbr2")

# Section 5.3: 2 to 50 flows of one kind, 30 ms


def _mean_rtt_ms(flows: pd.DataFrame) -> float:
    """The smoothed RTT that iperf3 reports, over the flows; as the paper took it."""
    return float(flows["rtt_mean_s"].mean() * 1e3)


_RTT = OfFlows(
    words="smoothed RTT [ms]", experiment="kfoury_5_3", by=("cca", "n_flows", "buffer_bdp"),
    measure=_mean_rtt_ms,
)  # fmt: skip
_DEEP = every("buffer_bdp").at_least(10).ending_at(100)
_SEVERAL_DEEP = _DEEP.needing(2)
_NUMBERS = every("n_flows")
_FALLING = _NUMBERS.needing(3).ending_at(50)


def _flat(cca: str, flows: int) -> Part:
    """Largest over smallest RTT in deep buffers."""
    rtt = _RTT[cca, flows, _SEVERAL_DEEP]
    words = f"largest / smallest RTT of {flows} {cca} flows from 10 BDP on"
    return Part(words, most(rtt) / least(rtt), Band(high=1.3, floor=1.0))


def _bloated(buffer_bdp: float, low_ms: float, full_ms: float) -> Part:
    """CUBIC's RTT with two flows; ``full_ms`` is that of a full buffer."""
    words = f"RTT of 2 CUBIC flows at {buffer_bdp:g} BDP [ms]"
    return Part(words, _RTT["cubic", 2, buffer_bdp], Band(low=low_ms, ceiling=full_ms))


# Section 5.4: one flow of 100 ms under random loss

_BY_LOSS = ("cca", "buffer_bdp", "loss_ratio")
_GOODPUT = per_rate("kfoury_5_4", _BY_LOSS)
_RETRANSMITTED = column("retransmission ratio", "kfoury_5_4", _BY_LOSS, "retransmit_ratio")
_OVER_MODEL = over_cubic_model("kfoury_5_4_cubic", _BY_LOSS)
_BUFFER, _LOSS = every("buffer_bdp"), every("loss_ratio")
_BUFFERS = _BUFFER.preferably_several()
_KEPT_BY_BBR2 = _GOODPUT["bbr2", _BUFFERS, 0.01] / _GOODPUT["bbr2", _BUFFERS, 1e-3]


def _excess_of_bbr1(buffer_bdp: float) -> Expression:
    """BBRv1's retransmission ratio over BBRv2's up to 0.1 % loss."""
    mild = _LOSS.at_most(1e-3).where(cca="bbr2", buffer_bdp=buffer_bdp)
    return _RETRANSMITTED["bbr1", buffer_bdp, mild] / _RETRANSMITTED["bbr2", buffer_bdp, mild]


CLAIMS = claims(
    {
        "F1.1": (
            Part("least Jain's index of BBR up to 0.1 BDP", least(_JAIN[_BBR, _SMALL, 0]), Band(low=0.95)),
            Part("least BBR goodput / rate up to 0.1 BDP", least(_USED[_BBR, _SMALL, 0]), Band(low=0.90)),
        ),
        "F1.2": (
            Part("most Jain's index of BBRv1 from 10 BDP on", most(_JAIN["bbr1", _LARGE, 0]), Band(high=0.5)),
            Part("most Jain's index of BBRv2 from 10 BDP on", most(_JAIN["bbr2", _LARGE, 0]), Band(high=0.8)),
            Part("least BBR goodput / rate from 10 BDP on", least(_USED[_BBR, _LARGE, 0]), Band(low=0.90)),
        ),
        "F1.3": Part("CUBIC goodput / rate at 0.01 BDP", _USED["cubic", 0.01, 0], Band(low=0.50, high=0.75)),
        "F1.4": (
            Part(
                "most CUBIC goodput / rate at 1 % loss",
                most(_USED["cubic", _ANY_BUFFER, 0.01]),
                Band(high=0.75),
            ),
            Part(
                "least BBR goodput / rate at 1 % loss", least(_USED[_BBR, _ANY_BUFFER, 0.01]), Band(low=0.90)
            ),
        ),
        "F1.5": Arithmetic(
            "largest |printed index - 100 / (1 + (sd / mean)²)| [percentage points]",
            _farthest_index_from_spread(),
            Band(high=1.5),
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
        "F3.1": (
            _flat("bbr1", 2),
            _flat("bbr2", 2),
            *(if_run(_flat(cca, flows)) for flows in (10, 25, 50) for cca in ("bbr1", "bbr2")),
        ),
        "F3.2": (
            Part(
                "least RTT of BBRv1 from 10 BDP on [ms]",
                least(_RTT["bbr1", _NUMBERS, _DEEP]),
                Band(low=50, high=80),
            ),
            Part(
                "most RTT of BBRv1 from 10 BDP on [ms]",
                most(_RTT["bbr1", _NUMBERS, _DEEP]),
                Band(low=50, high=80),
            ),
        ),
        "F3.3": (_bloated(10, 150, 330), _bloated(50, 500, 1530), _bloated(100, 800, 3030)),
        "F3.4": Part(
            "smallest fall of CUBIC's RTT at 100 BDP from one number of flows to the next [ms]",
            monotone(-1 * _RTT["cubic", _FALLING, 100], over=_FALLING),
            Band(low=0, ceiling=1000, strict=True),
        ),
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
    }
)

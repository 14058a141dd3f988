"""Gomez et al. 2023 (KNIT6 talk): BBRv1, BBRv2 and loss-based control on FABRIC, 10 Gbit/s.

The paper gives what iperf3's sender counted; here it is the receiver's goodput over the whole run, the
stricter number, divided by the configured rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import rankdata

from fabbbr_analysis import models
from fabbbr_analysis.claims.observe import certified, metric, per_rate
from fabbbr_analysis.claims.records import Band, Claim, Evidence, Part
from fabbbr_analysis.claims.sample import (
    Array,
    Means,
    MissingConditionError,
    Sample,
    highest,
    lowest,
    sample_of,
)

BBR = ("bbr1", "bbr2")
LOSS_BASED = ("cubic", "reno", "htcp")
PAPER_RATE_BPS = 10e9
PAPER_LOSS = 1 / 22_000
PAPER_DURATION_S = 120.0
BBR2_BEARS_LOSS = 1e-3

_SHORT_RTT, _FIRST_LONG_RTT, _LONGEST_RTT = 0.0003, 0.027, 0.113
_BY_RTT = ("cca", "rtt_s")
_BY_BUFFER = ("cca", "buffer_bdp")
_ORDER_OF_A_MILLION = Band(low=1, high=10)


# Experiment 1: throughput by RTT


def least_of_bbr(x: Means) -> Array:
    """Smallest goodput / rate of BBR over all RTTs; one of 27 ms or more must be there."""
    return lowest([x[cca, rtt] for cca in x.ccas(*BBR) for rtt in _rtts_up_to_long(x, cca)])


def _rtts_up_to_long(x: Means, cca: str) -> tuple[float, ...]:
    levels = x.levels(cca)
    if levels[-1] < _FIRST_LONG_RTT:
        message = f"no certified run of {cca} at RTT 27 ms or more"
        raise MissingConditionError(message)
    if levels[-1] < _LONGEST_RTT:
        x.remarks.append(f"the longest RTT is {levels[-1] * 1000:g} ms, the paper's 113 ms")
    return levels


def most_of_loss_based(x: Means) -> Array:
    """Largest goodput / rate of loss-based control from 27 ms on; 27 ms, the mildest, must be there."""
    ccas = x.ccas(*LOSS_BASED)
    beyond = {cca: [rtt for rtt in x.levels(cca) if rtt > _FIRST_LONG_RTT] for cca in ccas}
    return highest([x[cca, rtt] for cca in ccas for rtt in (_FIRST_LONG_RTT, *beyond[cca])])


def _at_short_rtt(x: Means) -> list[Array]:
    return [x[cca, _SHORT_RTT] for cca in (*x.ccas(*BBR), *x.ccas(*LOSS_BASED))]


def least_at_short_rtt(x: Means) -> Array:
    """Smallest goodput / rate at 0.3 ms."""
    return lowest(_at_short_rtt(x))


def spread_at_short_rtt(x: Means) -> Array:
    """Largest minus smallest goodput / rate at 0.3 ms."""
    values = _at_short_rtt(x)
    return highest(values) - lowest(values)


def most_retransmitted(x: Means) -> Array:
    """Largest ratio of BBRv2's retransmissions to BBRv1's from 6 ms on."""
    return highest([x["bbr2", rtt] / x["bbr1", rtt] for rtt in x.levels("bbr2") if rtt >= 0.006])


def e1_parts(
    observe: Callable[[Evidence], Sample], retransmits: Callable[[Evidence], Sample]
) -> dict[str, tuple[Part, ...]]:
    """Build the parts of K1.1 to K1.4."""

    def part(quantity: str, formula: Callable[[Means], Array], band: Band) -> Part:
        return Part(quantity=quantity, observe=observe, formula=formula, band=band)

    return {
        "K1.1": (part("least BBR goodput / rate over RTT", least_of_bbr, Band(low=0.70)),),
        "K1.2": (part("most loss-based goodput / rate from 27 ms on", most_of_loss_based, Band(high=0.15)),),
        "K1.3": (
            part("least goodput / rate at 0.3 ms", least_at_short_rtt, Band(low=0.90)),
            part("spread of goodput / rate at 0.3 ms", spread_at_short_rtt, Band(high=0.05)),
        ),
        "K1.4": (
            Part(
                quantity="most BBRv2 / BBRv1 retransmissions from 6 ms on",
                observe=retransmits,
                formula=most_retransmitted,
                band=Band(high=0.3),
            ),
        ),
    }


def _only_scaled(evidence: Evidence) -> None:
    """Refuse runs at the paper's own rate, or with a loss that does not keep the paper's regime."""
    runs = certified(evidence["knit6.e1"])
    rate = float(runs["rate_bps"].max())
    if rate >= PAPER_RATE_BPS:
        message = "this run has the paper's own rate; the claim is about scaled reruns"
        raise MissingConditionError(message)
    asked = models.scaled_loss(loss=PAPER_LOSS, rate_bps=PAPER_RATE_BPS, scaled_rate_bps=rate)
    if not np.allclose(runs["loss_ratio"].to_numpy(dtype=np.float64), asked, rtol=0.05):
        message = (
            f"a run scaled to {rate / 1e6:g} Mbit/s keeps the paper's regime at a loss of {asked * 100:.3g} %"
        )
        raise MissingConditionError(message)


def scaled_goodput(evidence: Evidence) -> Sample:
    """Goodput / rate of a properly scaled rerun."""
    _only_scaled(evidence)
    return _goodput_by_rtt(evidence)


def scaled_retransmits(evidence: Evidence) -> Sample:
    """Retransmissions of a properly scaled rerun."""
    _only_scaled(evidence)
    return _retransmits_by_rtt(evidence)


def counted_retransmits(evidence: Evidence) -> Sample:
    """Retransmissions of a run at the paper's own rate, in millions: counts do not scale."""
    runs = certified(evidence["knit6.e1"])
    if float(runs["rate_bps"].max()) < PAPER_RATE_BPS or (runs["duration_s"] != PAPER_DURATION_S).any():
        message = (
            "counts of packets are judged at the paper's own 10 Gbit/s for 120 s: fabbbr run knit6_e1 --full"
        )
        raise MissingConditionError(message)
    return sample_of(runs.assign(millions=runs["retransmits"] / 1e6), axes=_BY_RTT, value="millions")


def _tolerated(observe: Callable[[Evidence], Sample], evidence: Evidence) -> Sample:
    """Leave BBRv2 out of runs whose scaled loss is more than the paper found it to bear (K5.1)."""
    sample, loss = observe(evidence), float(certified(evidence["knit6.e1"])["loss_ratio"].max())
    if loss <= BBR2_BEARS_LOSS or not any(key[0] == "bbr2" for key in sample.runs):
        return sample
    kept = {key: runs for key, runs in sample.runs.items() if key[0] != "bbr2"}
    remark = (
        f"bbr2 is left out: what it bears does not scale, and a loss of {loss * 100:.3g} % is more than the "
        f"{BBR2_BEARS_LOSS * 100:g} % at which the paper found it level with bbr1"
    )
    return replace(sample, runs=kept, remarks=(*sample.remarks, remark))


_goodput_by_rtt = partial(_tolerated, per_rate("knit6.e1", _BY_RTT))
_retransmits_by_rtt = partial(_tolerated, metric("knit6.e1", _BY_RTT, "retransmits"))


def _retransmitted_more(x: Means) -> list[Array]:
    return [x["bbr1", rtt] - x["bbr2", rtt] for rtt in x.levels("bbr2") if rtt >= 0.006]


def least_retransmitted_more(x: Means) -> Array:
    """Smallest difference of retransmissions, BBRv1 minus BBRv2, from 6 ms on."""
    return lowest(_retransmitted_more(x))


def most_retransmitted_more(x: Means) -> Array:
    """Largest difference of retransmissions, BBRv1 minus BBRv2, from 6 ms on."""
    return highest(_retransmitted_more(x))


def _scaled_parts() -> tuple[Part, ...]:
    parts = e1_parts(scaled_goodput, scaled_retransmits)
    needed = [*parts["K1.1"], *parts["K1.2"], *parts["K1.3"]]
    optional = [
        Part(
            quantity=part.quantity,
            observe=part.observe,
            formula=part.formula,
            band=part.band,
            optional=True,
        )
        for part in parts["K1.4"]
    ]
    return (*needed, *optional)


# Experiment 2: retransmissions by buffer


def least_excess(x: Means) -> Array:
    """Smallest ratio of BBRv1's retransmissions to BBRv2's up to 1 BDP."""
    return lowest([x["bbr1", b] / x["bbr2", b] for b in x.levels("bbr2") if b <= 1])


def excess_at_small_buffer(x: Means) -> Array:
    """Ratio of BBRv1's retransmissions to BBRv2's at 0.1 BDP."""
    return x["bbr1", 0.1] / x["bbr2", 0.1]


def rank_correlation(x: Means) -> Array:
    """Spearman's rho of BBRv1's retransmissions with the buffer, up to 1 BDP."""
    levels = [b for b in x.levels("bbr1") if b <= 1]
    if len(levels) < 4:
        message = "a rank correlation needs four buffers of bbr1 up to 1 BDP"
        raise MissingConditionError(message)
    ranks = rankdata(np.stack([x["bbr1", b] for b in levels]), axis=0)
    centred = ranks - ranks.mean(axis=0)
    places = np.arange(len(levels)) - (len(levels) - 1) / 2
    norm = np.sqrt((places**2).sum() * (centred**2).sum(axis=0))
    return np.asarray(np.tensordot(places, centred, axes=1) / norm, dtype=np.float64)


def most_apart(x: Means) -> Array:
    """Largest |T_v2 - T_v1| / T_v1 from 0.3 BDP on."""
    levels = [b for b in x.levels("bbr2") if b >= 0.3]
    return highest([abs(x["bbr2", b] / x["bbr1", b] - 1) for b in levels])


def price_of_small_buffer(x: Means) -> Array:
    """T_v2 / T_v1 at 0.1 BDP."""
    return x["bbr2", 0.1] / x["bbr1", 0.1]


# Experiment 5: throughput by loss


def _pairs(x: Means, cca: str, loss: float) -> list[Array]:
    found = [x[key] for key in x.conditions() if key[0] == cca and key[2] == loss]
    if not found:
        message = f"no certified run of {cca} at loss {loss * 100:g} %"
        raise MissingConditionError(message)
    return found


def survives_10(x: Means) -> Array:
    """Smallest BBRv1 goodput / rate at 10 % loss over RTTs."""
    return lowest(_pairs(x, "bbr1", 0.10))


def collapses_by_20(x: Means) -> Array:
    """Largest BBRv1 goodput / rate at 20 % loss over RTTs."""
    return highest(_pairs(x, "bbr1", 0.20))


def apart_up_to_a_thousandth(x: Means) -> Array:
    """Largest |T_v2 / T_v1 - 1| up to 0.1 % loss over RTTs."""
    keys = [key for key in x.conditions() if key[0] == "bbr2" and float(key[2]) <= 1e-3]
    return highest([abs(x[key] / x[("bbr1", *key[1:])] - 1) for key in keys])


def lead_at(loss: float) -> Callable[[Means], Array]:
    """Smallest T_v1 / T_v2 at one loss over RTTs."""

    def least(x: Means) -> Array:
        rtts = x.levels("bbr2")
        return lowest([x["bbr1", rtt, loss] / x["bbr2", rtt, loss] for rtt in rtts])

    return least


_E2_RETRANSMITS = metric("knit6.e2", _BY_BUFFER, "retransmits")
_E2_GOODPUT = per_rate("knit6.e2", _BY_BUFFER)
_E5_GOODPUT = per_rate("knit6.e5", ("cca", "rtt_s", "loss_ratio"))


def _e2(quantity: str, formula: Callable[[Means], Array], band: Band, *, retransmits: bool) -> Part:
    observe = _E2_RETRANSMITS if retransmits else _E2_GOODPUT
    return Part(quantity=quantity, observe=observe, formula=formula, band=band)


def _e5(quantity: str, formula: Callable[[Means], Array], band: Band) -> Part:
    return Part(quantity=quantity, observe=_E5_GOODPUT, formula=formula, band=band)


CLAIMS = (
    *(Claim(id=name, parts=parts) for name, parts in e1_parts(_goodput_by_rtt, _retransmits_by_rtt).items()),
    Claim(
        id="K1.5",
        parts=(
            Part(
                quantity="least BBRv1 - BBRv2 retransmissions from 6 ms on [millions]",
                observe=counted_retransmits,
                formula=least_retransmitted_more,
                band=_ORDER_OF_A_MILLION,
            ),
            Part(
                quantity="most BBRv1 - BBRv2 retransmissions from 6 ms on [millions]",
                observe=counted_retransmits,
                formula=most_retransmitted_more,
                band=_ORDER_OF_A_MILLION,
            ),
        ),
    ),
    Claim(id="K1.s", parts=_scaled_parts()),
    Claim(
        id="K2.1",
        parts=(
            _e2(
                "least BBRv1 / BBRv2 retransmissions up to 1 BDP",
                least_excess,
                Band(low=1, ceiling=20, strict=True),
                retransmits=True,
            ),
            _e2(
                "BBRv1 / BBRv2 retransmissions at 0.1 BDP",
                excess_at_small_buffer,
                Band(low=3, ceiling=20),
                retransmits=True,
            ),
        ),
    ),
    Claim(
        id="K2.2",
        parts=(
            _e2(
                "rank correlation of BBRv1's retransmissions with the buffer",
                rank_correlation,
                Band(high=-0.9, floor=-1),
                retransmits=True,
            ),
        ),
    ),
    Claim(
        id="K2.3",
        parts=(
            _e2("most |BBRv2 / BBRv1 - 1| from 0.3 BDP on", most_apart, Band(high=0.03), retransmits=False),
        ),
    ),
    Claim(
        id="K2.4",
        parts=(
            _e2(
                "BBRv2 / BBRv1 goodput at 0.1 BDP",
                price_of_small_buffer,
                Band(low=0.80, high=0.98),
                retransmits=False,
            ),
        ),
    ),
    Claim(
        id="K5.1",
        parts=(_e5("most |BBRv2 / BBRv1 - 1| up to 0.1 % loss", apart_up_to_a_thousandth, Band(high=0.15)),),
    ),
    Claim(
        id="K5.2",
        parts=(
            _e5("least BBRv1 / BBRv2 goodput at 1 % loss", lead_at(0.01), Band(low=1.5, ceiling=10)),
            _e5("least BBRv1 / BBRv2 goodput at 2 % loss", lead_at(0.02), Band(low=5, ceiling=100)),
            _e5("least BBRv1 / BBRv2 goodput at 5 % loss", lead_at(0.05), Band(low=10, ceiling=100)),
        ),
    ),
    Claim(
        id="K5.3",
        parts=(
            _e5("least BBRv1 goodput / rate at 10 % loss", survives_10, Band(low=0.2)),
            _e5("most BBRv1 goodput / rate at 20 % loss", collapses_by_20, Band(high=0.02)),
        ),
    ),
)

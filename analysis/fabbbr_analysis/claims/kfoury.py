"""Kfoury et al. 2020, section 5.4: one flow of 1 Gbit/s and 100 ms under random loss."""

from __future__ import annotations

from fabbbr.units import TCP_IPV4_HEADER_BYTES
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

_AXES = ("cca", "buffer_bdp", "loss_ratio")
_GOODPUT = per_rate("kfoury.5.4", _AXES)
_RETRANSMITTED = metric("kfoury.5.4", _AXES, "retransmit_ratio")


def _buffers(x: Means, cca: str, loss: float) -> tuple[float, ...]:
    found = tuple(b for b in x.levels(cca) if (cca, b, loss) in x)
    if not found:
        message = f"no certified run of {cca} at loss {loss * 100:g} %"
        raise MissingConditionError(message)
    if len(found) < 2:
        x.remarks.append(f"{cca} at {loss * 100:g} % loss with {found[0]:g} BDP only")
    return found


def _each(x: Means, cca: str, loss: float) -> list[Array]:
    return [x[cca, b, loss] for b in _buffers(x, cca, loss)]


def least_to_one_percent(x: Means) -> Array:
    """Smallest BBRv1 goodput / rate up to 1 % loss; 1 % must be there."""
    _buffers(x, "bbr1", 0.01)
    keys = [key for key in x.conditions() if key[0] == "bbr1" and float(key[2]) <= 0.01]
    return lowest([x[key] for key in keys])


def bbr2_at_a_thousandth(x: Means) -> Array:
    """Smallest BBRv2 goodput / rate at 0.1 % loss."""
    return lowest(_each(x, "bbr2", 1e-3))


def least_kept_by_bbr2(x: Means) -> Array:
    """Smallest ratio of BBRv2's goodput at 1 % to that at 0.1 % loss."""
    return lowest([x["bbr2", b, 0.01] / x["bbr2", b, 1e-3] for b in _buffers(x, "bbr2", 0.01)])


def most_kept_by_bbr2(x: Means) -> Array:
    """Largest ratio of BBRv2's goodput at 1 % to that at 0.1 % loss."""
    return highest([x["bbr2", b, 0.01] / x["bbr2", b, 1e-3] for b in _buffers(x, "bbr2", 0.01)])


def bbr2_at_ten_percent(x: Means) -> Array:
    """Largest BBRv2 goodput / rate at 10 % loss."""
    return highest(_each(x, "bbr2", 0.10))


def bbr1_at_ten_percent(x: Means) -> Array:
    """Smallest BBRv1 goodput / rate at 10 % loss."""
    return lowest(_each(x, "bbr1", 0.10))


def bbr1_at_twenty_percent(x: Means) -> Array:
    """Largest BBRv1 goodput / rate at 20 % loss."""
    return highest(_each(x, "bbr1", 0.20))


def cubic_over_bbr1(x: Means) -> Array:
    """Largest ratio of CUBIC's goodput to BBRv1's at 0.1 % loss."""
    return highest([x["cubic", b, 1e-3] / x["bbr1", b, 1e-3] for b in _buffers(x, "cubic", 1e-3)])


def _excess_of_bbr1(x: Means, buffer_bdp: float) -> list[Array]:
    """BBRv1's retransmission ratio over BBRv2's up to 0.1 % loss."""
    losses = [loss for loss in x.levels("bbr2", buffer_bdp) if loss <= 1e-3]
    return [x["bbr1", buffer_bdp, loss] / x["bbr2", buffer_bdp, loss] for loss in losses]


def least_excess_in_small_buffer(x: Means) -> Array:
    """Smallest ratio of BBRv1's retransmission ratio to BBRv2's with 0.1 BDP."""
    return lowest(_excess_of_bbr1(x, 0.1))


def least_excess_in_large_buffer(x: Means) -> Array:
    """Smallest ratio of BBRv1's retransmission ratio to BBRv2's with 1 BDP."""
    return lowest(_excess_of_bbr1(x, 1.0))


def most_excess_in_large_buffer(x: Means) -> Array:
    """Largest ratio of BBRv1's retransmission ratio to BBRv2's with 1 BDP."""
    return highest(_excess_of_bbr1(x, 1.0))


def cubic_over_model(evidence: Evidence) -> Sample:
    """CUBIC's goodput over RFC 9438's response function for segments of the MTU, by buffer and loss."""
    runs = certified(evidence["kfoury.5.4"])
    runs = runs[(runs["cca"] == "cubic") & (runs["loss_ratio"] > 0)]
    expected = models.cubic_bps(
        mss_bytes=(runs["mtu_bytes"] - TCP_IPV4_HEADER_BYTES).to_numpy(),
        rtt_s=runs["rtt_s"].to_numpy(),
        loss=runs["loss_ratio"].to_numpy(),
    )
    return sample_of(runs.assign(over=runs["goodput_bps"] / expected), axes=_AXES, value="over")


def least_over_model(x: Means) -> Array:
    """Smallest goodput / model of CUBIC at 0.01 % loss."""
    return lowest(_each(x, "cubic", 1e-4))


def most_over_model(x: Means) -> Array:
    """Largest goodput / model of CUBIC at 0.01 % loss."""
    return highest(_each(x, "cubic", 1e-4))


CLAIMS = (
    Claim(
        id="F4.1",
        parts=(
            Part(
                quantity="least BBRv1 goodput / rate up to 1 % loss",
                observe=_GOODPUT,
                formula=least_to_one_percent,
                band=Band(low=0.85),
            ),
        ),
    ),
    Claim(
        id="F4.2",
        parts=(
            Part(
                quantity="least BBRv2 goodput / rate at 0.1 % loss",
                observe=_GOODPUT,
                formula=bbr2_at_a_thousandth,
                band=Band(low=0.85),
            ),
            Part(
                quantity="least BBRv2 goodput at 1 % / at 0.1 % loss",
                observe=_GOODPUT,
                formula=least_kept_by_bbr2,
                band=Band(low=0.4, high=0.95),
            ),
            Part(
                quantity="most BBRv2 goodput at 1 % / at 0.1 % loss",
                observe=_GOODPUT,
                formula=most_kept_by_bbr2,
                band=Band(low=0.4, high=0.95),
            ),
        ),
    ),
    Claim(
        id="F4.3",
        parts=(
            Part(
                quantity="most BBRv2 goodput / rate at 10 % loss",
                observe=_GOODPUT,
                formula=bbr2_at_ten_percent,
                band=Band(high=0.02),
                optional=True,
            ),
            Part(
                quantity="least BBRv1 goodput / rate at 10 % loss",
                observe=_GOODPUT,
                formula=bbr1_at_ten_percent,
                band=Band(low=0.4),
            ),
            Part(
                quantity="most BBRv1 goodput / rate at 20 % loss",
                observe=_GOODPUT,
                formula=bbr1_at_twenty_percent,
                band=Band(high=0.2),
            ),
        ),
    ),
    Claim(
        id="F4.4",
        parts=(
            Part(
                quantity="most CUBIC / BBRv1 goodput at 0.1 % loss",
                observe=_GOODPUT,
                formula=cubic_over_bbr1,
                band=Band(high=0.05),
            ),
        ),
    ),
    Claim(
        id="F4.5",
        parts=(
            Part(
                quantity="least BBRv1 / BBRv2 retransmission ratio up to 0.1 % loss, 0.1 BDP",
                observe=_RETRANSMITTED,
                formula=least_excess_in_small_buffer,
                band=Band(low=3, ceiling=20),
            ),
            Part(
                quantity="least BBRv1 / BBRv2 retransmission ratio up to 0.1 % loss, 1 BDP",
                observe=_RETRANSMITTED,
                formula=least_excess_in_large_buffer,
                band=Band(low=0.8, high=2.5),
            ),
            Part(
                quantity="most BBRv1 / BBRv2 retransmission ratio up to 0.1 % loss, 1 BDP",
                observe=_RETRANSMITTED,
                formula=most_excess_in_large_buffer,
                band=Band(low=0.8, high=2.5),
            ),
        ),
    ),
    Claim(
        id="F4.6",
        parts=(
            Part(
                quantity="least CUBIC goodput / RFC 9438 at 0.01 % loss",
                observe=cubic_over_model,
                formula=least_over_model,
                band=Band(low=0.6, high=2),
            ),
            Part(
                quantity="most CUBIC goodput / RFC 9438 at 0.01 % loss",
                observe=cubic_over_model,
                formula=most_over_model,
                band=Band(low=0.6, high=2),
            ),
        ),
    ),
)

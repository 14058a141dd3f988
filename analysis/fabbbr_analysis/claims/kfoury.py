"""Kfoury et al. 2020, section 5.4: one flow of 1 Gbit/s and 100 ms under random loss."""

from __future__ import annotations

from fabbbr_analysis.claims.observe import per_rate
from fabbbr_analysis.claims.records import Band, Claim, Part
from fabbbr_analysis.claims.sample import Array, Means, MissingConditionError, highest, lowest

_GOODPUT = per_rate("kfoury.5.4", ("cca", "buffer_bdp", "loss_ratio"))


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
)

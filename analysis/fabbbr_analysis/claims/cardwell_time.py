"""Cardwell et al. 2016, one bottleneck over time: start-up, steady state, steps, fairness (CACM Figs. 4 to 8, 12)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from fabbbr.units import goodput_ceiling
from fabbbr_analysis.claims import traces
from fabbbr_analysis.claims.observe import metric, traced, windowed
from fabbbr_analysis.claims.records import Band, Claim, Part
from fabbbr_analysis.claims.sample import Array, Means, MissingConditionError
from fabbbr_analysis.metrics import jain

_STEP_UP_S, _STEP_DOWN_S = 20.0, 40.0
_DOUBLED_BPS = 20e6 * goodput_ceiling(1500)
"""BBR estimates the rate of payload, so that doubling the link to 20 Mbit/s lets it find 19.13."""

_SERIALISED_S_PER_BYTE = 8 / 128e3
"""Queueing delay of a byte of buffer at the 128 kbit/s of Fig. 12."""


def of_bbr(x: Means) -> Array:
    """Quantity of BBR, which has a single condition."""
    return x[("bbr1",)]


def of_cubic(x: Means) -> Array:
    """Quantity of CUBIC, which has a single condition."""
    return x[("cubic",)]


def final_window(end_s: float) -> tuple[float, float]:
    """Last 10 s in which all flows run."""
    return end_s - 10, end_s


def jain_of_received(flows: pd.DataFrame) -> float:
    """Jain's index over ``received``; NaN when nothing was."""
    index = jain(flows["received"])
    return np.nan if index is None else index


def _extremes(x: Means, cca: str) -> tuple[float, float]:
    levels = x.levels(cca)
    if len(levels) < 2:
        message = f"two buffers of {cca} are needed"
        raise MissingConditionError(message)
    return levels[0], levels[-1]


def delay_growth(x: Means) -> Array:
    """BBR's median RTT with the largest buffer over that with the smallest."""
    smallest, largest = _extremes(x, "bbr1")
    return x["bbr1", largest] / x["bbr1", smallest]


def _fit(x: Means) -> tuple[Array, Array]:
    """Slope [s/byte] and R² of CUBIC's median RTT over the buffer."""
    levels = x.levels("cubic")
    if len(levels) < 3:
        message = "a line needs three buffers of cubic"
        raise MissingConditionError(message)
    buffers = np.asarray(levels)
    centred = buffers - buffers.mean()
    delays = np.stack([x["cubic", level] for level in levels])
    deviation = delays - delays.mean(axis=0)
    slope = np.tensordot(centred, deviation, axes=1) / (centred**2).sum()
    explained = slope**2 * (centred**2).sum()
    return slope, explained / (deviation**2).sum(axis=0)


def delay_slope(x: Means) -> Array:
    """CUBIC's slope of median RTT over buffer, in the time that a byte takes on the link."""
    return _fit(x)[0] / _SERIALISED_S_PER_BYTE


def delay_linearity(x: Means) -> Array:
    """R² of CUBIC's median RTT over the buffer."""
    return _fit(x)[1]


def _trace(
    quantity: str,
    experiment: str,
    measure: Callable[[pd.DataFrame, pd.Series], float],
    band: Band,
    *,
    formula: Callable[[Means], Array] = of_bbr,
    columns: tuple[str, ...] = ("rtt_s",),
) -> Part:
    return Part(quantity=quantity, observe=traced(experiment, columns, measure), formula=formula, band=band)


_LOSS_COLUMNS = ("rtt_s", "retrans_segments")

CLAIMS = (
    Claim(
        id="C4.1",
        parts=(
            _trace("period of RTT bumps [RTprop]", "cardwell.f4", traces.rtt_period, Band(low=7, high=9)),
        ),
    ),
    Claim(
        id="C5.1",
        parts=(
            _trace(
                "time from the doubling to 95 % of the new rate [s]",
                "cardwell.f5",
                partial(traces.time_to_estimate, step_s=_STEP_UP_S, target_bps=0.95 * _DOUBLED_BPS),
                Band(high=2.0),
                columns=("bbr_bw_bps",),
            ),
        ),
    ),
    Claim(
        id="C5.2",
        parts=(
            _trace(
                "largest RTT after the halving [ms]",
                "cardwell.f5",
                partial(traces.peak_rtt_ms, step_s=_STEP_DOWN_S),
                Band(low=120, high=200),
            ),
            _trace(
                "time from the halving to 1.25 RTprop [s]",
                "cardwell.f5",
                partial(traces.recovery_s, step_s=_STEP_DOWN_S),
                Band(high=6),
            ),
        ),
    ),
    Claim(
        id="C6.1",
        parts=(
            _trace(
                "largest RTT of the first second / RTprop",
                "cardwell.f6",
                traces.peak_rtt_of_start,
                Band(low=1.5, high=3.3),
            ),
        ),
    ),
    Claim(
        id="C6.2",
        parts=(
            _trace("BBR's RTT at 1 s / RTprop", "cardwell.f6", traces.rtt_at_1_s, Band(high=1.2, floor=1.0)),
            _trace(
                "CUBIC's RTT at 1 s / at 0.5 s",
                "cardwell.f6",
                traces.rtt_growth,
                Band(low=1.0, ceiling=2.0, strict=True),
                formula=of_cubic,
            ),
        ),
    ),
    Claim(
        id="C7.1",
        parts=(
            _trace(
                "BBR's median RTT from 2 to 8 s / RTprop",
                "cardwell.f6",
                traces.median_rtt_after_start,
                Band(high=1.15, floor=1.0),
            ),
        ),
    ),
    Claim(
        id="C7.2",
        parts=(
            _trace(
                "CUBIC's queue after the first loss, 5th percentile",
                "cardwell.f6",
                partial(traces.occupancy_after_loss, quantile=0.05),
                Band(low=0.5, high=0.8),
                formula=of_cubic,
                columns=_LOSS_COLUMNS,
            ),
            _trace(
                "CUBIC's queue after the first loss, 95th percentile",
                "cardwell.f6",
                partial(traces.occupancy_after_loss, quantile=0.95),
                Band(low=0.95),
                formula=of_cubic,
                columns=_LOSS_COLUMNS,
            ),
        ),
    ),
    Claim(
        id="C8.1",
        parts=(
            Part(
                quantity="Jain's index of the final 10 s",
                observe=windowed("cardwell.f8", ("cca",), final_window, jain_of_received),
                formula=of_bbr,
                band=Band(low=0.90),
            ),
        ),
    ),
    Claim(
        id="C12.1",
        parts=(
            Part(
                quantity="BBR's median RTT, largest buffer / smallest",
                observe=metric("cardwell.f12", ("cca", "buffer_bytes"), "rtt_median_s"),
                formula=delay_growth,
                band=Band(high=2.0),
            ),
        ),
    ),
    Claim(
        id="C12.2",
        parts=(
            Part(
                quantity="R² of CUBIC's median RTT over the buffer",
                observe=metric("cardwell.f12", ("cca", "buffer_bytes"), "rtt_median_s"),
                formula=delay_linearity,
                band=Band(low=0.9),
            ),
            Part(
                quantity="CUBIC's added RTT / time to send the added buffer",
                observe=metric("cardwell.f12", ("cca", "buffer_bytes"), "rtt_median_s"),
                formula=delay_slope,
                band=Band(low=0.6, high=1.1),
            ),
        ),
    ),
)

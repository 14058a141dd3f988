"""Measures of one run's trace: socket samples by time → one number, NaN when the trace does not hold it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import signal

from fabbbr_analysis.claims.observed import SocketTrace
from fabbbr_analysis.claims.sample import Array

_CLOCK_S = 1e-6
"""The kernel counts RTT in microseconds."""

_NEAREST_S = 0.1
"""A value "at" an instant is the last sample before it, and at most this old."""


def column_of(trace: SocketTrace, column: str) -> Array:
    """Give the column as floats, absent ones as NaN."""
    return trace[column].to_numpy(dtype=np.float64, na_value=np.nan)


def rtt(trace: SocketTrace) -> tuple[Array, Array]:
    """Instants [s] and smoothed RTT [s] of the samples that have one."""
    times, values = column_of(trace, "t_s"), column_of(trace, "rtt_s")
    present = ~np.isnan(values)
    return times[present], values[present]


def propagation_s(run: pd.Series) -> float:
    """Propagation RTT [s] of the run's path."""
    return float(run["rtt_s"])


def rtt_at(trace: SocketTrace, instant_s: float) -> float:
    """RTT [s] at an instant."""
    times, values = rtt(trace)
    before = np.flatnonzero((times <= instant_s) & (times > instant_s - _NEAREST_S))
    return float(values[before[-1]]) if before.size else np.nan


def median_rtt_after_start(trace: SocketTrace, run: pd.Series) -> float:
    """Median RTT from 2 to 8 s over propagation."""
    times, values = rtt(trace)
    window = values[(times >= 2) & (times <= 8)]
    return float(np.median(window)) / propagation_s(run) if window.size else np.nan


def peak_rtt_of_start(trace: SocketTrace, run: pd.Series) -> float:
    """Largest RTT of the first second over propagation."""
    times, values = rtt(trace)
    window = values[(times >= 0) & (times <= 1)]
    return float(np.max(window)) / propagation_s(run) if window.size else np.nan


def rtt_at_1_s(trace: SocketTrace, run: pd.Series) -> float:
    """RTT at 1 s over propagation."""
    return rtt_at(trace, 1.0) / propagation_s(run)


def rtt_growth(trace: SocketTrace, run: pd.Series) -> float:  # noqa: ARG001 - the signature of all measures
    """RTT at 1 s over RTT at 0.5 s."""
    return rtt_at(trace, 1.0) / rtt_at(trace, 0.5)


def occupancy_after_loss(trace: SocketTrace, run: pd.Series, *, quantile: float) -> float:
    """Quantile of (RTT - propagation) / (largest RTT - propagation) after the first retransmission."""
    times, values = rtt(trace)
    lost = column_of(trace, "retrans_segments") > 0
    if not lost.any():
        return np.nan
    first_loss_s = column_of(trace, "t_s")[lost][0]
    base = propagation_s(run)
    window, top = values[times > first_loss_s], float(np.max(values))
    return float(np.quantile((window - base) / (top - base), quantile)) if window.size else np.nan


def time_to_estimate(trace: SocketTrace, run: pd.Series, *, step_s: float, target_bps: float) -> float:  # noqa: ARG001
    """Seconds from ``step_s`` until BBR's bandwidth estimate reaches ``target_bps``."""
    times, estimate = column_of(trace, "t_s"), column_of(trace, "bbr_bw_bps")
    reached = times[(times >= step_s) & (estimate >= target_bps)]
    return float(reached[0] - step_s) if reached.size else np.nan


def peak_rtt_ms(trace: SocketTrace, run: pd.Series, *, step_s: float) -> float:  # noqa: ARG001
    """Largest RTT [ms] in the 5 s after ``step_s``."""
    times, values = rtt(trace)
    window = values[(times >= step_s) & (times < step_s + 5)]
    return float(np.max(window)) * 1000 if window.size else np.nan


def recovery_s(trace: SocketTrace, run: pd.Series, *, step_s: float) -> float:
    """Seconds from the largest RTT after ``step_s`` back to 1.25 of propagation, counted from ``step_s``."""
    times, values = rtt(trace)
    times, values = times[times >= step_s], values[times >= step_s]
    if not values.size:
        return np.nan
    peak = int(np.argmax(values))
    calm = times[peak:][values[peak:] <= 1.25 * propagation_s(run)]
    return float(calm[0] - step_s) if calm.size else np.nan


def rtt_period(trace: SocketTrace, run: pd.Series) -> float:
    """Period of the RTT's recurrence between 2 and 20 propagation RTTs, in propagation RTTs.

    The highest peak of the autocorrelation of the samples after 2 s, which have a fixed period; at least 50
    of them are needed. (Bumps have harmonics as strong as their fundamental, so the periodogram would pick
    any of them.)
    """
    times, values = rtt(trace)
    times, values = times[times >= 2], values[times >= 2]
    if values.size < 50 or np.ptp(values) < _CLOCK_S:
        return np.nan
    centred = values - values.mean()
    correlation = signal.correlate(centred, centred, method="fft")[values.size - 1 :]
    peaks, _ = signal.find_peaks(correlation)
    lags = peaks * float(np.median(np.diff(times))) / propagation_s(run)
    plausible = (lags > 2) & (lags < 20)
    if not plausible.any():
        return np.nan
    return float(lags[plausible][np.argmax(correlation[peaks[plausible]])])

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

_COMPETES_FROM = 0.4
"""Share of a run after which long flows compete, as in the window of their shares of the link."""

IN_FLIGHT = (
    "cwnd_segments",
    "unacked_segments",
    "sacked_segments",
    "lost_segments",
    "retrans_in_flight_segments",
)
"""Columns of table ``sockets`` that say what is in flight, and what may be."""


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


def bbr_in_flight_per_window(trace: SocketTrace, run: pd.Series) -> float:  # noqa: ARG001
    """Median of packets in flight over the congestion window, of the flows that have BBR's model.

    Over the last 60 % of the trace, in which the flows compete.
    """
    competing = _competing_bbr(trace)
    return _median(_packets_in_flight(competing) / column_of(competing, "cwnd_segments"))


def bbr_in_flight_per_cap(trace: SocketTrace, run: pd.Series) -> float:  # noqa: ARG001
    """Median of bytes in flight over twice the product of BBR's own bandwidth and least RTT; as above."""
    competing = _competing_bbr(trace)
    in_flight_bits = 8 * _packets_in_flight(competing) * column_of(competing, "mss_bytes")
    cap_bits = 2 * column_of(competing, "bbr_bw_bps") * column_of(competing, "bbr_min_rtt_s")
    return _median(in_flight_bits / cap_bits)


def _competing_bbr(trace: SocketTrace) -> SocketTrace:
    late = trace["t_s"] >= _COMPETES_FROM * trace["t_s"].max()
    competing: SocketTrace = trace[late & trace["bbr_bw_bps"].notna()]
    return competing


def _packets_in_flight(trace: SocketTrace) -> Array:
    """As the kernel counts them: not acknowledged, and not known to have arrived or to be lost.

    ss leaves out what is zero.
    """
    unacked, sacked, lost, again = (np.nan_to_num(column_of(trace, name)) for name in IN_FLIGHT[1:])
    return np.asarray(unacked - sacked - lost + again, dtype=np.float64)


def _median(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else np.nan

"""Closed-form models of TCP throughput, to hold beside what was measured.

All take probabilities in (0, 1), round-trip times in seconds and sizes in bytes, and accept scalars and
arrays alike. None of them knows the capacity of the link: the caller takes the smaller of model and link.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fabbbr import physics
from fabbbr.errors import AnalysisError

Array: TypeAlias = NDArray[np.float64]

PROBE_RTT_DWELL_S = 0.2
PROBE_RTT_PERIOD_S = 10.0
PROBE_RTT_PACKETS = 4.0
WARE_PACKET_BYTES = 1500

BBR1_PROBE_GAIN = 1.25


def _probability(loss: ArrayLike) -> Array:
    values = np.asarray(loss, dtype=np.float64)
    if not np.all((values > 0) & (values < 1)):
        message = f"a loss-limited model needs loss between 0 and 1, both excluded; got {loss!r}"
        raise AnalysisError(message)
    return values


def _positive(values: ArrayLike, name: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if not np.all(array > 0):
        message = f"{name} must be positive; got {values!r}"
        raise AnalysisError(message)
    return array


def cubic_window_segments(*, rtt_s: ArrayLike, loss: ArrayLike) -> Array:
    """Average window [segments] of CUBIC, :func:`fabbbr.physics.cubic_window_segments`."""
    windows = np.vectorize(lambda rtt, p: physics.cubic_window_segments(rtt_s=rtt, loss=p), otypes=[float])
    return np.asarray(windows(_positive(rtt_s, "rtt_s"), _probability(loss)), dtype=np.float64)


def cubic_bps(*, mss_bytes: ArrayLike, rtt_s: ArrayLike, loss: ArrayLike) -> Array:
    """Throughput [bit/s] of CUBIC under random loss: :func:`cubic_window_segments` each round trip."""
    window = cubic_window_segments(rtt_s=rtt_s, loss=loss)
    return 8 * _positive(mss_bytes, "mss_bytes") * window / _positive(rtt_s, "rtt_s")


def cubic_loss_bound(*, rate_bps: float, rtt_s: float, packet_bytes: int) -> float:
    """Loss [ratio] at which CUBIC's average window just fills rate × RTT: its response function, inverted.

    >>> round(1e-6 / cubic_loss_bound(rate_bps=10e9, rtt_s=0.1, packet_bytes=1500), 1)
    33.9
    """
    window = rate_bps * rtt_s / (8 * packet_bytes)
    return float(rtt_s * (physics.CUBIC_GAIN / window) ** (4 / 3))


def scaled_loss(*, loss: float, rate_bps: float, scaled_rate_bps: float) -> float:
    """Loss [ratio] at another rate that keeps CUBIC's window a constant share of the BDP: p (C / C')^(4/3).

    >>> round(scaled_loss(loss=1 / 22_000, rate_bps=10e9, scaled_rate_bps=1e9), 6)
    0.000979
    """
    return float(loss * (rate_bps / scaled_rate_bps) ** (4 / 3))


def window_limit_bps(*, window_bytes: float, rtt_s: float) -> float:
    """Rate [bit/s] that a receive window allows: window / RTT."""
    return 8 * window_bytes / rtt_s


def ware_share(
    *, rate_bps: ArrayLike, rtt_s: ArrayLike, buffer_bdp: ArrayLike, bbr_flows: ArrayLike
) -> Array:
    """Share of the link that ``bbr_flows`` BBRv1 flows take from loss-based ones (Ware et al., IMC 2019).

    (1 - p) (1 - Probe_time / d) with p = 1/2 - 1/(2X) - 4N/q and Probe_time / d = (q/c + 0.2 s + RTT) / 10 s;
    q is the queue and c the link in packets of 1500 bytes.
    NaN where p is negative: there the buffer is too shallow for the model.

    >>> float(ware_share(rate_bps=10e6, rtt_s=0.04, buffer_bdp=32, bbr_flows=1).round(3))
    0.44
    """
    rtt = _positive(rtt_s, "rtt_s")
    rate = _positive(rate_bps, "rate_bps") / (8 * WARE_PACKET_BYTES)
    queue = _positive(buffer_bdp, "buffer_bdp") * rate * rtt
    unprobed = ware_share_unprobed(rate_bps=rate_bps, rtt_s=rtt, buffer_bdp=buffer_bdp, bbr_flows=bbr_flows)
    probing = (queue / rate + PROBE_RTT_DWELL_S + rtt) / PROBE_RTT_PERIOD_S
    return np.asarray(unprobed * (1 - probing), dtype=np.float64)


def ware_share_unprobed(
    *, rate_bps: ArrayLike, rtt_s: ArrayLike, buffer_bdp: ArrayLike, bbr_flows: ArrayLike
) -> Array:
    """The same while no flow is in ProbeRTT: 1 - p; NaN where p is negative.

    >>> float(ware_share_unprobed(rate_bps=10e6, rtt_s=0.04, buffer_bdp=32, bbr_flows=1).round(3))
    0.519
    """
    bdp_packets = _positive(rate_bps, "rate_bps") * _positive(rtt_s, "rtt_s") / (8 * WARE_PACKET_BYTES)
    buffer, flows = _positive(buffer_bdp, "buffer_bdp"), _positive(bbr_flows, "bbr_flows")
    loss_based = 0.5 - 0.5 / buffer - PROBE_RTT_PACKETS * flows / (buffer * bdp_packets)
    return np.asarray(np.where(loss_based >= 0, 1 - loss_based, np.nan), dtype=np.float64)


def ware_share_of_deep_buffer(cwnd_gain: ArrayLike) -> Array:
    """BBR's share where RTT and ProbeRTT are small beside the queue: 1 - 1/cwnd_gain (Ware et al., slides).

    >>> float(ware_share_of_deep_buffer(2))
    0.5
    """
    return np.asarray(1 - 1 / _positive(cwnd_gain, "cwnd_gain"), dtype=np.float64)


def probe_bw_share(*, own_bps: float, others_bps: float, gain: float = BBR1_PROBE_GAIN) -> float:
    """Share of a full link that a BBR flow gets while it probes: own·g / (own·g + others).

    >>> round(probe_bw_share(own_bps=1e6, others_bps=9e6), 4)
    0.122
    """
    return own_bps * gain / (own_bps * gain + others_bps)

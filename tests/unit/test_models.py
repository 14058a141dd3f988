"""The models against grids that were computed apart from this code, and their limits."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabbbr.errors import AnalysisError
from fabbbr_analysis import models, references

PRINTED_DIGITS = 6e-5
"""The grids print four decimals of a Mbit/s."""

MATHIS_C = {"C=1 (slides)": 1.0, "C=sqrt(3/2)": math.sqrt(3 / 2), "C=sqrt(3/4) delayed ACK": math.sqrt(3 / 4)}


@pytest.mark.parametrize("variant", MATHIS_C)
def test_mathis_agrees_with_the_grid(variant):
    grid = references.load("model_mathis").query("variant == @variant")
    computed = models.mathis_bps(
        mss_bytes=grid.mss_bytes, rtt_s=grid.rtt_ms / 1000, loss=grid.loss_prob, c=MATHIS_C[variant]
    )
    assert len(grid) == 300
    np.testing.assert_allclose(computed / 1e6, grid.throughput_mbps, rtol=1e-6, atol=PRINTED_DIGITS)


@pytest.mark.parametrize("b", [1, 2])
def test_padhye_agrees_with_the_grid(b):
    grid = references.load("model_padhye").query("b == @b")
    computed = models.padhye_bps(
        mss_bytes=grid.mss_bytes, rtt_s=grid.rtt_ms / 1000, loss=grid.loss_prob, segments_per_ack=b
    )
    assert len(grid) == 300
    np.testing.assert_allclose(computed / 1e6, grid.throughput_mbps, rtol=1e-6, atol=PRINTED_DIGITS)


def test_padhye_never_exceeds_the_window_limit():
    limited = models.padhye_bps(mss_bytes=1448, rtt_s=0.1, loss=1e-9, max_window_segments=100)
    assert limited == pytest.approx(8 * 1448 * 100 / 0.1)


def test_cubic_agrees_with_the_grid():
    grid = references.load("model_cubic")
    window = models.cubic_window_segments(rtt_s=grid.rtt_ms / 1000, loss=grid.loss_prob)
    rate = models.cubic_bps(mss_bytes=grid.mss_bytes, rtt_s=grid.rtt_ms / 1000, loss=grid.loss_prob)
    np.testing.assert_allclose(window, grid.avg_window_pkt, atol=6e-4)
    np.testing.assert_allclose(rate / 1e6, grid.throughput_mbps, rtol=1e-6, atol=PRINTED_DIGITS)


def test_ware_agrees_with_the_grid_and_refuses_shallow_buffers():
    grid = references.load("model_ware")
    share = models.ware_share(
        rate_bps=grid.link_mbps * 1e6, rtt_s=grid.rtt_ms / 1000, buffer_bdp=grid.X_bdp, bbr_flows=grid.N_bbr
    )
    applies = grid.p_loss_based_share >= 0
    np.testing.assert_allclose(share[applies], grid.BBR_frac_raw[applies], atol=6e-6)
    assert applies.sum() > 100
    assert np.isnan(share[~applies]).all()


def test_deep_buffer_share_agrees_with_the_grid():
    grid = references.load("model_ware_simple")
    np.testing.assert_allclose(models.ware_share_of_deep_buffer(grid.cwnd_gain), grid.bbr_share, atol=6e-5)


def test_bbr_loss_threshold_is_where_the_fixed_point_collapses():
    """The grid iterates ProbeBW under loss; its goodput must fall to nothing just beyond the threshold."""
    grid = references.load("model_bbr1_probebw_loss")
    threshold = models.bbr_loss_threshold()
    below = grid[grid.loss_prob < threshold + 1e-9]
    above = grid[grid.loss_prob > threshold + 1e-9]
    assert below.goodput_mbps.min() > 60
    assert above.goodput_mbps.max() < 1


@given(rate=st.floats(1e6, 1e11), rtt=st.floats(0.01, 0.5))
def test_cubic_loss_bound_inverts_the_response_function(rate, rtt):
    loss = models.cubic_loss_bound(rate_bps=rate, rtt_s=rtt, packet_bytes=1500)
    assume(loss < 1)
    window = rate * rtt / 8 / 1500
    reno = math.sqrt(1.5 / loss)
    assert models.cubic_window_segments(rtt_s=rtt, loss=loss) == pytest.approx(max(window, reno))


@given(loss=st.floats(1e-8, 1e-3), factor=st.floats(1.5, 100))
def test_scaled_loss_keeps_the_window_a_constant_share_of_the_bdp(loss, factor):
    gain = (0.4 * 3.7 / 1.2) ** 0.25 * 0.1**0.75
    scaled = models.scaled_loss(loss=loss, rate_bps=10e9, scaled_rate_bps=10e9 / factor)
    assert gain / scaled**0.75 / (10e9 / factor) == pytest.approx(gain / loss**0.75 / 10e9)


@pytest.mark.parametrize("loss", [0, -0.1, 1, 1.5, float("nan")])
@pytest.mark.parametrize("model", [models.mathis_bps, models.padhye_bps, models.cubic_bps])
def test_a_loss_outside_0_to_1_is_refused(model, loss):
    with pytest.raises(AnalysisError, match="between 0 and 1"):
        model(mss_bytes=1448, rtt_s=0.1, loss=loss)


def test_a_path_without_length_is_refused():
    with pytest.raises(AnalysisError, match="rtt_s must be positive"):
        models.mathis_bps(mss_bytes=1448, rtt_s=0, loss=0.1)

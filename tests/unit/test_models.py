"""The models against grids that were computed apart from this code, and their limits."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from places import GUEST

from fabbbr.errors import AnalysisError
from fabbbr.plan import opening
from fabbbr.plan.estimate import estimate
from fabbbr_analysis import models, references

PRINTED_DIGITS = 6e-5
"""The grids print four decimals of a Mbit/s."""


def test_cubic_agrees_with_the_grid():
    grid = references.load("model_cubic")
    window = models.cubic_window_segments(rtt_s=grid.rtt_ms / 1000, loss=grid.loss_prob)
    rate = models.cubic_bps(mss_bytes=grid.mss_bytes, rtt_s=grid.rtt_ms / 1000, loss=grid.loss_prob)
    np.testing.assert_allclose(window, grid.avg_window_pkt, atol=6e-4)
    np.testing.assert_allclose(rate / 1e6, grid.throughput_mbps, rtol=1e-6, atol=PRINTED_DIGITS)


def test_a_plan_expects_of_cubic_what_claims_compare_it_with():
    cells = opening.open_plan("cardwell_f10", seed=1).cells
    lossy = [cell for cell in cells if cell.flows[0].cca == "cubic" and cell.axes["loss"] in ("1 %", "10 %")]
    assert len(lossy) > 1
    for cell in lossy:
        seconds, loss = cell.flows[0].duration.seconds, float(cell.axes["loss"].removesuffix(" %")) / 100
        expected = models.cubic_bps(mss_bytes=1448, rtt_s=cell.flows[0].rtt.seconds, loss=loss)
        assert 8 * estimate([cell], GUEST).bottleneck_bytes / seconds == expected


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
def test_a_loss_outside_0_to_1_is_refused(loss):
    with pytest.raises(AnalysisError, match="between 0 and 1"):
        models.cubic_bps(mss_bytes=1448, rtt_s=0.1, loss=loss)


def test_a_path_without_length_is_refused():
    with pytest.raises(AnalysisError, match="rtt_s must be positive"):
        models.cubic_bps(mss_bytes=1448, rtt_s=0, loss=0.1)

"""ProbeRTT, the two filters of RTTs, and restarting from idle."""

import pytest
from bbr.core import INFINITE, INFINITE_RATE, Profile, State
from bbr.script import BDP, MS, RATE, RTT_US, SECOND, Script, brought_to

HALF_BDP = BDP // 2
BUSY = [state for state in State if state not in {State.PROBE_RTT, State.PROBE_BW_DOWN}]


@pytest.mark.parametrize("state", BUSY, ids=lambda state: state.name.lower())
def test_five_seconds_without_a_lower_rtt_start_probe_rtt(core, profile, state):
    """Now() > probe_rtt_min_stamp + 5 s, from every other state."""
    script = brought_to(state, core, profile)
    script.connection.record.probe_rtt_min_stamp_us = script.now_us + 1 - 5 * SECOND
    assert script.ack(after_us=1, app_limited=True) is state
    assert script.ack(after_us=1, app_limited=True) is State.PROBE_RTT


def test_a_lower_rtt_puts_probe_rtt_off(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.now_us = 4 * SECOND
    script.ack(rtt_us=RTT_US - 1)
    script.now_us = 9 * SECOND
    assert script.ack(after_us=MS) is not State.PROBE_RTT
    assert script.ack(after_us=1) is State.PROBE_RTT


def test_an_equal_rtt_does_not_put_probe_rtt_off(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.now_us = 4 * SECOND
    script.ack(rtt_us=RTT_US)
    script.now_us = 5 * SECOND
    assert script.ack(after_us=1) is State.PROBE_RTT


def test_probe_rtt_halves_the_bdp_in_flight_and_marks_samples(core, profile):
    script = brought_to(State.PROBE_RTT, core, profile)
    assert script.ack(cwnd=2 * BDP) is State.PROBE_RTT
    assert script.cwnd == HALF_BDP
    assert script.connection.mark_app_limited


@pytest.mark.parametrize(("rtt_us", "window"), [(RTT_US, 50), (9000, 5), (4000, 4), (1000, 4)])
def test_the_window_of_probe_rtt_is_half_the_bdp_and_at_least_four(core, profile, rtt_us, window):
    script = Script(core, profile, rtt_us=rtt_us, cwnd=200)
    for _ in range(4):
        script.round(rtt_us=rtt_us)
    script.now_us = 5 * SECOND + 1
    assert script.ack(rtt_us=rtt_us) is State.PROBE_RTT
    assert script.cwnd == window


def held(core, profile):
    """In ProbeRTT, just when half the BDP is in flight; when 200 ms will be over. The window was 2 BDP."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.now_us = 5 * SECOND
    assert script.ack(cwnd=2 * BDP) is State.PROBE_RTT
    assert script.ack(in_flight=HALF_BDP + 1) is State.PROBE_RTT
    assert not script.connection.probe_rtt_done_stamp_us
    script.ack(in_flight=HALF_BDP)
    assert script.connection.probe_rtt_done_stamp_us == script.now_us + 200 * MS
    return script, script.now_us + 200 * MS


def test_probe_rtt_ends_after_200_ms_and_a_round(core, profile):
    script, done_us = held(core, profile)
    assert script.round(after_us=MS) is State.PROBE_RTT
    script.now_us = done_us
    assert script.ack(after_us=0) is State.PROBE_RTT
    assert script.ack(after_us=1) is State.PROBE_BW_CRUISE


def test_probe_rtt_does_not_end_before_a_round_has_passed(core, profile):
    script, done_us = held(core, profile)
    script.now_us = done_us
    assert script.ack(after_us=SECOND) is State.PROBE_RTT
    assert script.round(after_us=1) is State.PROBE_BW_CRUISE


def test_the_end_of_probe_rtt_gives_back_window_and_clocks_and_forgets_the_short_term_model(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.cwnd = 2 * BDP
    script.now_us = 5 * SECOND
    assert script.ack() is State.PROBE_RTT
    assert script.connection.prior_cwnd == 2 * BDP
    script.connection.record.bw_lo, script.connection.record.inflight_lo = RATE // 2, HALF_BDP
    script.ack(in_flight=HALF_BDP // 2)
    script.round(after_us=MS)
    script.ack(after_us=200 * MS)
    b = script.connection
    assert (b.state, b.bw_lo, b.inflight_lo) == (State.PROBE_BW_CRUISE, INFINITE_RATE, INFINITE)
    assert b.cwnd == 2 * BDP + 1, "what it was, and what has just arrived"
    # The next probe of the RTT and of the bandwidth are counted from now.
    assert (b.probe_rtt_min_stamp_us, b.cycle_stamp_us) == (script.now_us, script.now_us)


def test_probe_rtt_returns_to_startup_while_the_pipe_has_not_been_full(core, profile):
    """Test case A.18."""
    script = brought_to(State.STARTUP, core, profile)
    script.now_us = 5 * SECOND
    assert script.ack(in_flight=1) is State.PROBE_RTT
    script.round(after_us=MS, rate=RATE)
    assert script.ack(after_us=200 * MS) is State.STARTUP
    assert script.connection.pacing_gain > 256


def test_after_idleness_an_expired_rtt_is_refreshed_without_probe_rtt(core, profile):
    """Test case A.10: "idleness is deemed a sufficient attempt to coordinate to drain the queue"."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.now_us = 20 * SECOND
    script.restart()
    assert script.ack(after_us=RTT_US, in_flight=9, app_limited=True) is not State.PROBE_RTT
    assert not script.connection.idle_restart
    assert script.connection.probe_rtt_min_stamp_us == script.now_us
    assert script.ack(after_us=4 * SECOND, in_flight=9) is not State.PROBE_RTT


@pytest.mark.parametrize("state", [State.PROBE_BW_DOWN, State.PROBE_BW_UP], ids=["down", "up"])
def test_after_idleness_packets_leave_at_the_rate_of_the_model(core, profile, state):
    """SetPacingRateWithGain(1)."""
    script = brought_to(state, core, profile)
    script.restart()
    assert script.connection.pacing_rate == 99 * RATE // 100


def test_idleness_leaves_the_window_as_it_is(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.cwnd = 77
    script.restart()
    assert script.cwnd == 77


def test_idleness_may_end_probe_rtt(core, profile):
    script, done_us = held(core, profile)
    script.now_us = done_us + 1
    script.restart()
    assert script.connection.state is State.PROBE_BW_CRUISE
    assert script.cwnd == 2 * BDP


def test_min_rtt_rises_only_when_it_is_ten_seconds_old(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.now_us = 6 * SECOND
    script.ack(rtt_us=2 * RTT_US)
    assert (script.connection.min_rtt_us, script.connection.probe_rtt_min_us) == (RTT_US, 2 * RTT_US)
    script.now_us = 10 * SECOND
    script.ack(after_us=0, rtt_us=2 * RTT_US)
    assert script.connection.min_rtt_us == RTT_US
    script.ack(after_us=1, rtt_us=2 * RTT_US)
    assert script.connection.min_rtt_us == 2 * RTT_US


def test_an_ack_that_was_held_back_does_not_renew_an_expired_rtt(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.now_us = 6 * SECOND
    script.ack(rtt_us=2 * RTT_US, ack_delayed=True)
    assert script.connection.probe_rtt_min_us == RTT_US


# ---- Version 1, the control of gate check K ----


def test_version_1_probes_the_rtt_every_ten_seconds_with_four_packets(core):
    script = Script(core, Profile.V1)
    for _ in range(4):
        script.round()
    script.now_us = 10 * SECOND
    assert script.ack(after_us=0, in_flight=BDP) is not State.PROBE_RTT
    assert script.ack(after_us=1, in_flight=BDP) is State.PROBE_RTT
    assert script.cwnd == 4

"""Startup and Drain: "Exiting Acceleration Based on Bandwidth Plateau", "... on Packet Loss", "Drain"."""

import math

import pytest
from bbr.core import GAIN_UNIT, INFINITE, Profile, State
from bbr.script import BDP, MS, MSS, RATE, Script, brought_to

LN2 = math.log(2)
# What the tables "Summary of Control Behavior in the State Machine" say; v2alpha from its published
# constants.
GAINS = {
    Profile.V2ALPHA: {
        State.STARTUP: (2 / LN2, 2 / LN2),
        State.DRAIN: (LN2 / 2, 2 / LN2),
        State.PROBE_BW_DOWN: (0.75, 2),
        State.PROBE_BW_CRUISE: (1, 2),
        State.PROBE_BW_REFILL: (1, 2),
        State.PROBE_BW_UP: (1.25, 2),
        State.PROBE_RTT: (1, 0.5),
    },
    Profile.DRAFT01: {
        State.STARTUP: (4 * LN2, 2),
        State.DRAIN: (0.5, 2),
        State.PROBE_BW_DOWN: (0.75, 2),
        State.PROBE_BW_CRUISE: (1, 2),
        State.PROBE_BW_REFILL: (1, 2),
        State.PROBE_BW_UP: (1.25, 2),
        State.PROBE_RTT: (1, 0.5),
    },
    Profile.V3: {
        State.STARTUP: (4 * LN2, 2),
        State.DRAIN: (0.5, 2),
        State.PROBE_BW_DOWN: (0.9, 2),
        State.PROBE_BW_CRUISE: (1, 2),
        State.PROBE_BW_REFILL: (1, 2),
        State.PROBE_BW_UP: (1.25, 2.25),
        State.PROBE_RTT: (1, 0.5),
    },
}
LOSS_EVENTS = {Profile.V2ALPHA: 8, Profile.DRAFT01: 3, Profile.V3: 6}


@pytest.mark.parametrize("state", State, ids=lambda state: state.name.lower())
def test_gains_are_those_of_the_text(core, profile, state):
    b = brought_to(state, core, profile).connection
    pacing, cwnd = GAINS[profile][state]
    assert b.pacing_gain / GAIN_UNIT == pytest.approx(pacing, abs=1 / GAIN_UNIT)
    assert b.cwnd_gain / GAIN_UNIT == pytest.approx(cwnd, abs=1 / GAIN_UNIT)


@pytest.mark.parametrize(
    "state", [state for state in State if state is not State.STARTUP], ids=lambda state: state.name.lower()
)
def test_pacing_is_one_per_cent_below_gain_times_bandwidth(core, profile, state):
    b = brought_to(state, core, profile).connection
    assert b.pacing_rate == pytest.approx(0.99 * RATE * b.pacing_gain / GAIN_UNIT, abs=2)


def test_first_pacing_rate_is_the_initial_window_per_rtt_times_the_gain(core, profile):
    b = Script(core, profile, cwnd=10).connection
    assert b.pacing_rate == pytest.approx(
        GAINS[profile][State.STARTUP][0] * 10 * MSS / 0.1, rel=1 / GAIN_UNIT
    )


def test_pacing_never_falls_before_the_pipe_is_full(core, profile):
    script = Script(core, profile)
    script.round(rate=RATE)
    before = script.connection.pacing_rate
    script.round(rate=RATE // 10)
    assert script.connection.pacing_rate == before


def test_three_rounds_without_a_quarter_more_end_startup(core, profile):
    script = Script(core, profile)
    states = [script.round(rate=rate) for rate in (RATE, RATE, RATE, RATE)]
    assert states == [State.STARTUP] * 3 + [State.DRAIN]
    assert script.connection.full_bw_reached


def test_a_quarter_more_starts_the_count_of_rounds_again(core, profile):
    script = Script(core, profile)
    for rate in (800_000, 800_000, 800_000, RATE, RATE, RATE):
        assert script.round(rate=rate) is State.STARTUP
    assert script.round(rate=RATE) is State.DRAIN


def test_growth_just_below_a_quarter_is_a_plateau(core, profile):
    script = Script(core, profile)
    script.round(rate=800_001, volume=800_001)
    for _ in range(2):
        assert script.round(rate=RATE) is State.STARTUP
    assert script.round(rate=RATE) is State.DRAIN


def test_rounds_that_the_application_limited_do_not_count(core, profile):
    script = Script(core, profile)
    script.round()
    for _ in range(10):
        assert script.round(app_limited=True) is State.STARTUP


def test_acks_within_a_round_do_not_count(core, profile):
    script = Script(core, profile)
    script.round()
    for _ in range(10):
        assert script.ack() is State.STARTUP


@pytest.mark.parametrize("late", [Profile.V2ALPHA, Profile.DRAFT01])
def test_the_text_of_2021_looks_for_the_plateau_in_max_bw(core, late):
    """BBRCheckStartupFullBandwidth compares BBR.max_bw: a round's poor first sample hides no growth."""
    script = Script(core, late)
    for rate in (RATE, 2 * RATE, 4 * RATE, 8 * RATE):
        script.ack(rate=rate)
        assert script.round(rate=RATE // 2) is State.STARTUP


def test_the_text_of_2026_looks_for_the_plateau_in_the_samples(core):
    script = Script(core, Profile.V3)
    script.in_flight = 20 * BDP
    for rate in (RATE, 2 * RATE, 4 * RATE):
        script.ack(rate=rate)
        script.round(rate=RATE // 2)
    script.ack(rate=8 * RATE)
    assert script.round(rate=RATE // 2) is State.DRAIN


def startup_with_losses(core, profile, events, *, lost_at_end=9):
    """A Startup in recovery for a round, in which ``events`` ACKs mark losses; the last ends the loss round.

    Of 300 packets in flight when the last sample's packet left, ``lost_at_end`` are marked at its ACK.
    """
    script = Script(core, profile)
    script.in_flight = 300
    script.round(after_us=MS, volume=150)
    script.recover()
    for _ in range(events - 1):
        script.ack(lost=1, volume=150)
    script.round(after_us=MS, lost=lost_at_end, volume=150, prior_in_flight=300)
    return script


def test_loss_in_enough_places_of_a_round_of_recovery_ends_startup(core, profile):
    assert startup_with_losses(core, profile, LOSS_EVENTS[profile]).connection.state is State.DRAIN


def test_loss_in_fewer_places_does_not_end_startup(core, profile):
    assert startup_with_losses(core, profile, LOSS_EVENTS[profile] - 1).connection.state is State.STARTUP


def test_two_per_cent_of_loss_do_not_end_startup(core, profile):
    script = startup_with_losses(core, profile, LOSS_EVENTS[profile] + 5, lost_at_end=6)
    assert script.connection.state is State.STARTUP


def test_loss_outside_recovery_does_not_end_startup(core, profile):
    script = Script(core, profile)
    script.round()
    for _ in range(20):
        script.ack(lost=1)
    assert script.round(lost=9) is State.STARTUP


def test_loss_ends_startup_although_the_application_limits_it(core):
    """Test case A.2 of the draft."""
    script = Script(core, Profile.V3)
    script.round(app_limited=True)
    script.recover()
    for _ in range(5):
        script.ack(after_us=MS, lost=1, app_limited=True)
    assert script.round(after_us=MS, lost=9, prior_in_flight=300, app_limited=True) is State.DRAIN


def test_what_loss_leaves_as_inflight_hi_when_it_ends_startup(core, profile):
    """v2alpha: the BDP; the text of 2021: none; that of 2026: the round's deliveries, here 150, if more."""
    b = startup_with_losses(core, profile, LOSS_EVENTS[profile]).connection
    assert b.inflight_hi == {Profile.V2ALPHA: BDP, Profile.DRAFT01: INFINITE, Profile.V3: 150}[profile]


def test_any_loss_in_recovery_ends_startup_where_acks_are_not_selective(core):
    """The text of 2026: "if any packet loss is detected during fast recovery"."""
    script = Script(core, Profile.V3)
    script.round()
    script.recover()
    assert script.ack(lost=1, sacks=False) is State.DRAIN


def test_drain_ends_when_the_bdp_is_in_flight(core, profile):
    script = brought_to(State.DRAIN, core, profile)
    assert script.ack(in_flight=BDP + 1) is State.DRAIN
    # "C.inflight <= Inflight(1.0)": DOWN, and on the same ACK CRUISE, for no
    # queue and no bound keeps it there.
    assert script.ack(in_flight=BDP) is State.PROBE_BW_CRUISE
    assert script.connection.cycle_stamp_us == script.now_us


def test_drain_compares_with_the_bandwidth_that_loss_has_left(core, profile):
    """Inflight(1.0) is of BBR.bw, which bw_lo bounds; cruising is decided by max_bw."""
    script = brought_to(State.DRAIN, core, profile)
    script.round(after_us=MS, rate=RATE // 2)
    script.ack(lost=1, rate=RATE // 2)
    script.round(after_us=MS, rate=RATE // 2)
    assert script.connection.bw_lo == 7 * RATE // 10
    bdp_left = BDP * script.connection.bw_lo // RATE
    assert script.ack(rate=RATE // 2, in_flight=bdp_left + 1) is State.DRAIN
    assert script.ack(rate=RATE // 2, in_flight=bdp_left) is State.PROBE_BW_CRUISE


def test_drain_goes_down_while_a_bound_wants_headroom(core, profile):
    script = brought_to(State.DRAIN, core, profile)
    script.connection.record.inflight_hi = 110
    assert script.ack(in_flight=BDP, rate=None) is State.PROBE_BW_DOWN


def test_drain_ends_after_three_rounds_where_the_text_says_so(core):
    script = brought_to(State.DRAIN, core, Profile.V3)
    for _ in range(3):
        assert script.round() is State.DRAIN
    assert script.round() is State.PROBE_BW_DOWN


@pytest.mark.parametrize("patient", [Profile.V2ALPHA, Profile.DRAFT01])
def test_drain_lasts_until_the_queue_is_gone_in_the_text_of_2021(core, patient):
    script = brought_to(State.DRAIN, core, patient)
    for _ in range(20):
        assert script.round() is State.DRAIN


def test_startup_window_grows_by_what_arrives(core, profile):
    script = Script(core, profile, cwnd=10)
    script.ack(acked=9, rate=None, in_flight=10)
    assert script.cwnd == 19


def test_the_window_before_any_bandwidth_is_known_is_not_bounded_by_the_model(core, profile):
    script = Script(core, profile, cwnd=40)
    script.ack(acked=8, in_flight=30, rate=10_000)
    assert script.cwnd == 48
    assert script.connection.bdp(script.connection.max_bw) * 3 < script.cwnd

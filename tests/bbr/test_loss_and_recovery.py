"""The short-term model, recovery, timeouts and their undoing."""

import pytest
from bbr.core import INFINITE, INFINITE_RATE, Ack, Profile, State
from bbr.script import BDP, MS, RATE, RTT_US, Script, brought_to

NOTING = (Profile.V2ALPHA, Profile.V3)
CONSERVING = (Profile.V2ALPHA, Profile.DRAFT01)


def lossy_round(script, rate, *, volume=50, cwnd=None):
    """A loss round in which something is lost and whose best sample is ``rate``, ``volume`` packets."""
    more = {} if cwnd is None else {"cwnd": cwnd}
    script.ack(lost=1, rate=rate, volume=volume, **more)
    return script.round(after_us=MS, rate=rate, volume=volume, **more)


@pytest.mark.parametrize(("rate", "bw_lo"), [(500_000, 700_000), (800_000, 800_000)])
def test_a_round_with_loss_lowers_bw_lo_to_seven_tenths_or_what_was_delivered(core, profile, rate, bw_lo):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.round(after_us=MS, rate=rate)
    lossy_round(script, rate)
    assert (script.connection.bw_lo, script.connection.bw) == (bw_lo, bw_lo)


@pytest.mark.parametrize(("volume", "inflight_lo"), [(50, 140), (160, 160)])
def test_a_round_with_loss_lowers_inflight_lo_to_seven_tenths_or_what_was_delivered(
    core, profile, volume, inflight_lo
):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.round(after_us=MS, volume=volume)
    lossy_round(script, RATE, volume=volume, cwnd=200)
    assert script.connection.inflight_lo == inflight_lo
    assert script.cwnd <= inflight_lo


def test_every_further_round_with_loss_lowers_the_short_term_model_again(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.round(after_us=MS, rate=100_000, volume=10)
    seen = []
    for _ in range(3):
        lossy_round(script, 100_000, volume=10, cwnd=200)
        seen.append((script.connection.bw_lo, script.connection.inflight_lo))
    assert seen == [(700_000, 140), (490_000, 98), (343_000, 68)]


def test_a_round_without_loss_leaves_the_short_term_model(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    for _ in range(3):
        script.round(after_us=MS, rate=RATE // 10)
    assert (script.connection.bw_lo, script.connection.inflight_lo) == (INFINITE_RATE, INFINITE)


@pytest.mark.parametrize(
    "state", [State.STARTUP, State.PROBE_BW_REFILL, State.PROBE_BW_UP], ids=lambda state: state.name.lower()
)
def test_loss_does_not_lower_the_short_term_model_of_a_flow_that_probes(core, profile, state):
    """IsProbingBW."""
    script = brought_to(state, core, profile)
    script.round(after_us=MS, rate=RATE // 10)
    script.ack(lost=1, rate=RATE // 10)
    script.round(after_us=MS, rate=RATE // 10)
    assert (script.connection.bw_lo, script.connection.inflight_lo) == (INFINITE_RATE, INFINITE)


def after_a_loss(core, profile):
    """In CRUISE after a loss; C.delivered of a packet that left in this loss round but before the loss."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.round(after_us=MS)
    before_loss = script.delivered
    script.ack(acked=5)
    script.ack(lost=1, acked=5)
    return script, before_loss


@pytest.mark.parametrize("noting", NOTING)
def test_the_first_loss_of_a_round_restarts_the_loss_round(core, noting):
    """NoteLoss: adapts when what left after the loss arrives, with the samples of a whole round."""
    script, before_loss = after_a_loss(core, noting)
    at_loss = script.delivered
    script.ack(prior=before_loss)
    assert script.connection.bw_lo == INFINITE_RATE
    script.ack(prior=at_loss)
    assert script.connection.bw_lo < INFINITE_RATE


def test_the_text_of_2021_does_not_restart_the_loss_round(core):
    script, before_loss = after_a_loss(core, Profile.DRAFT01)
    script.ack(prior=before_loss)
    assert script.connection.bw_lo < INFINITE_RATE


def test_a_second_loss_does_not_restart_the_loss_round_again(core, profile):
    script, _ = after_a_loss(core, profile)
    ends_at = script.connection.loss_round_delivered
    script.ack(lost=1)
    assert script.connection.loss_round_delivered == ends_at


# ---- Recovery ----


@pytest.mark.parametrize("conserving", CONSERVING)
def test_the_first_round_of_recovery_conserves_packets(core, conserving):
    """BBROnEnterFastRecovery and BBRModulateCwndForRecovery of the text of 2021."""
    script = brought_to(State.PROBE_BW_CRUISE, core, conserving)
    script.cwnd = 150
    script.recover()
    script.ack(acked=2, lost=3, in_flight=80)
    assert script.cwnd == 82
    script.ack(acked=3, in_flight=78)
    assert script.cwnd == 82
    script.ack(acked=1, lost=5, in_flight=70)
    assert script.cwnd == 77
    assert script.connection.packet_conservation


@pytest.mark.parametrize("conserving", CONSERVING)
def test_later_rounds_of_recovery_grow_again_but_for_what_is_lost(core, conserving):
    script = brought_to(State.PROBE_BW_CRUISE, core, conserving)
    script.cwnd = 150
    script.recover()
    script.ack(acked=2, lost=3, in_flight=80)
    script.round(after_us=MS, acked=4, in_flight=80)
    assert not script.connection.packet_conservation
    assert script.cwnd == 82 + 4
    script.ack(acked=4, lost=1, in_flight=80)
    assert script.cwnd == 86 - 1 + 4


def test_the_text_of_2026_does_not_cut_the_window_for_recovery(core):
    script = brought_to(State.PROBE_BW_CRUISE, core, Profile.V3)
    script.cwnd = 150
    script.recover()
    script.ack(acked=2, lost=3, in_flight=80)
    assert script.cwnd == 152


def test_the_end_of_recovery_gives_the_window_back(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.cwnd = 150
    script.recover()
    script.ack(acked=2, in_flight=30)
    script.cwnd = 40
    script.in_recovery = False
    script.ack(acked=1, in_flight=30)
    assert script.cwnd == 151


def test_a_timeout_gives_the_window_back_when_its_recovery_ends(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.cwnd = 150
    script.time_out()
    script.ack(acked=1, in_flight=1)
    assert script.cwnd <= 5
    script.in_recovery = False
    script.ack(acked=1, in_flight=1)
    assert script.cwnd == 151


def test_after_a_timeout_the_window_grows_by_what_arrives(core, profile):
    """The text: "gradually increases C.cwnd using the normal approach"; the floor is four packets."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.time_out()
    windows = []
    for _ in range(4):
        script.ack(acked=2, in_flight=2)
        windows.append(script.cwnd)
    assert windows == [4, 6, 8, 10]


def test_what_left_after_a_timeout_is_not_charged_with_it(core, profile):
    """P.lost of the next packet contains what the timer marked."""
    script = brought_to(State.PROBE_BW_REFILL, core, profile)
    script.time_out()
    after = Ack(
        delivered=script.delivered + 1, lost=script.lost, prior_in_flight=1, prior_delivered=script.delivered,
        sample_delivered=1, interval_us=RTT_US,
    )  # fmt: skip
    sample = script.connection.take_sample(after)
    assert (sample.lost, sample.newly_lost, sample.tx_in_flight) == (0, 0, 1)


# ---- Undo ----


def test_a_spurious_loss_gives_the_bounds_back(core, profile):
    """Test case A.17."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.cwnd = 150
    script.round(after_us=MS, rate=RATE // 10, cwnd=150)
    script.recover()
    lossy_round(script, RATE // 10)
    assert script.connection.bw_lo < INFINITE_RATE
    script.undo()
    b = script.connection
    assert (b.bw_lo, b.inflight_lo, b.inflight_hi, b.loss_in_round) == (
        INFINITE_RATE,
        INFINITE,
        INFINITE,
        False,
    )
    assert script.cwnd >= 150


@pytest.mark.parametrize("enter", [Script.recover, Script.time_out], ids=["fast recovery", "timeout"])
def test_entering_recovery_saves_what_undoing_returns_to(core, profile, enter):
    """OnEnterFastRecovery and OnEnterRTO call SaveStateUponLoss, whatever the round has lost before."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.ack(lost=1)
    script.connection.record.inflight_hi = 77
    enter(script)
    script.connection.record.inflight_hi = 50
    script.undo()
    assert script.connection.inflight_hi == 77


def test_the_first_loss_of_each_round_is_what_undoing_returns_to(core, profile):
    """NoteLoss calls SaveStateUponLoss: what an earlier round of loss has cost stays cut."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.round(after_us=MS, rate=RATE // 10)
    lossy_round(script, RATE // 10)
    assert script.connection.bw_lo == 700_000
    lossy_round(script, RATE // 10)
    assert script.connection.bw_lo == 490_000
    script.undo()
    assert script.connection.bw_lo == 700_000


def test_a_spurious_loss_of_a_probe_gives_inflight_hi_back_and_since_2026_the_probe(core, profile):
    script = brought_to(State.PROBE_BW_UP, core, profile)
    script.recover()
    script.round(after_us=MS, in_flight=BDP + 20, prior_in_flight=140, lost=5)
    assert (script.connection.state, script.connection.inflight_hi) == (State.PROBE_BW_DOWN, 139)
    after = script.undo()
    assert after is (State.PROBE_BW_UP if profile is Profile.V3 else State.PROBE_BW_DOWN)
    assert script.connection.inflight_hi == INFINITE


def test_a_spurious_loss_does_not_count_towards_the_end_of_startup(core, profile):
    script = Script(core, profile)
    script.in_flight = 300
    script.round()
    script.recover()
    for _ in range(7):
        script.ack(lost=1)
    script.undo()
    assert script.connection.loss_events_in_round == 0

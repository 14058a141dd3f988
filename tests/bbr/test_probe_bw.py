"""The cycle DOWN, CRUISE, REFILL, UP: section "ProbeBW" of the drafts."""

import itertools

import pytest
from bbr.core import INFINITE, INFINITE_RATE, Acks, Profile, State
from bbr.script import BDP, MS, RATE, RTT_US, SECOND, brought_to

ELDERS = (Profile.V2ALPHA, Profile.DRAFT01)
RENO_ROUND_US = 10 * MS
SEEDS = tuple(number * 0x9E3779B9 % 2**32 for number in range(1, 301))
LEFT_UP = {State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE}


# ---- Leaving DOWN and CRUISE ----


def test_down_ends_when_the_queue_is_gone(core, profile):
    script = brought_to(State.PROBE_BW_DOWN, core, profile)
    assert script.ack(in_flight=BDP + 1) is State.PROBE_BW_DOWN
    assert script.ack(in_flight=BDP) is State.PROBE_BW_CRUISE


@pytest.mark.parametrize(("inflight_hi", "room"), [(100, 85), (50, 42), (6, 5), (5, 4), (4, 4)])
def test_down_ends_with_fifteen_per_cent_or_one_packet_of_headroom(core, profile, inflight_hi, room):
    """The headroom is 0.15 * inflight_hi, whole packets; never below four packets in flight."""
    script = brought_to(State.PROBE_BW_DOWN, core, profile)
    script.connection.record.inflight_hi = inflight_hi
    assert script.ack(in_flight=room + 1, rate=None) is State.PROBE_BW_DOWN
    assert script.ack(in_flight=room, rate=None) is State.PROBE_BW_CRUISE


@pytest.mark.parametrize("elder", ELDERS)
def test_down_ends_after_one_min_rtt_in_the_text_of_2021(core, elder):
    """BBRCheckTimeToCruise: "at least a round in DOWN"."""
    script = brought_to(State.PROBE_BW_DOWN, core, elder)
    script.now_us = script.connection.cycle_stamp_us
    assert script.ack(after_us=RTT_US, in_flight=2 * BDP) is State.PROBE_BW_DOWN
    assert script.ack(after_us=1, in_flight=2 * BDP) is State.PROBE_BW_CRUISE


def test_down_lasts_while_there_is_a_queue_in_the_text_of_2026(core):
    script = brought_to(State.PROBE_BW_DOWN, core, Profile.V3)
    script.now_us = script.connection.cycle_stamp_us
    assert script.ack(after_us=SECOND, in_flight=BDP + 1) is State.PROBE_BW_DOWN


def test_headroom_is_wanted_however_long_down_lasts(core, profile):
    script = brought_to(State.PROBE_BW_DOWN, core, profile)
    script.connection.record.inflight_hi = 100
    script.now_us = script.connection.cycle_stamp_us
    assert script.ack(after_us=SECOND, in_flight=86, rate=None) is State.PROBE_BW_DOWN


@pytest.mark.parametrize("state", [State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE], ids=["down", "cruise"])
def test_the_wall_clock_starts_a_probe_after_its_wait_and_not_at_it(core, profile, state):
    """HasElapsedInPhase: Now() > cycle_stamp + interval. From DOWN directly: test case A.8."""
    script = brought_to(state, core, profile)
    script.connection.record.inflight_hi = 8
    script.wait_for_probe()
    assert script.ack(after_us=0, in_flight=2 * BDP, rate=None) is state
    assert script.ack(after_us=1, in_flight=2 * BDP, rate=None) is State.PROBE_BW_REFILL


def test_waits_are_spread_from_two_to_three_seconds(core, profile):
    waits = [
        brought_to(State.PROBE_BW_CRUISE, core, profile, seed=seed).connection.bw_probe_wait_us
        for seed in SEEDS
    ]
    assert min(waits) >= 2 * SECOND
    assert max(waits) < 3 * SECOND
    # 300 uniform draws: none in a given tenth has probability 2e-14.
    assert {(wait - 2 * SECOND) * 10 // SECOND for wait in waits} == set(range(10))


@pytest.mark.parametrize("bdp", [20, 62, 63, 64, 100])
def test_the_reno_clock_starts_a_probe_after_as_many_rounds_as_the_bdp_but_63(core, profile, bdp):
    heads = set()
    for seed in SEEDS[:8]:
        script = brought_to(State.PROBE_BW_CRUISE, core, profile, seed=seed)
        rate = RATE * bdp // BDP
        script.connection.record.max_bw_of_cycle[:] = (0, rate)
        script.ack(rate=rate, volume=bdp)
        head = script.connection.rounds_since_bw_probe
        heads.add(head)
        rounds = 1
        while script.round(after_us=RENO_ROUND_US, rate=rate, volume=bdp) is State.PROBE_BW_CRUISE:
            rounds += 1
        assert script.connection.state is State.PROBE_BW_REFILL
        assert rounds == min(bdp, 63) - head
    assert heads == {0, 1}


def test_a_window_below_the_bdp_shortens_the_reno_clock(core, profile):
    """TargetInflight: "our estimated BDP, unless congestion cut C.cwnd"."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    rounds = 1
    head = script.connection.rounds_since_bw_probe
    while script.round(after_us=RENO_ROUND_US, cwnd=30) is State.PROBE_BW_CRUISE:
        rounds += 1
    assert rounds == 30 - head


# ---- REFILL ----


def test_refill_forgets_the_short_term_model(core, profile):
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.connection.record.bw_lo = RATE // 2
    script.connection.record.inflight_lo = BDP // 2
    script.wait_for_probe()
    assert script.ack() is State.PROBE_BW_REFILL
    b = script.connection
    assert (b.bw_lo, b.inflight_lo, b.bw, b.ack_phase) == (INFINITE_RATE, INFINITE, RATE, Acks.REFILLING)


def test_refill_lasts_one_round(core, profile):
    script = brought_to(State.PROBE_BW_REFILL, core, profile)
    for _ in range(5):
        assert script.ack() is State.PROBE_BW_REFILL
        assert not script.connection.bw_probe_samples
    assert script.round() is State.PROBE_BW_UP
    assert script.connection.bw_probe_samples


def test_samples_that_the_application_limited_do_not_lower_max_bw(core, profile):
    """Test case A.20: a silent application during REFILL."""
    script = brought_to(State.PROBE_BW_REFILL, core, profile)
    script.ack(rate=RATE // 10, app_limited=True)
    assert script.round(rate=RATE // 10, app_limited=True) is State.PROBE_BW_UP
    assert script.connection.max_bw == RATE


# ---- UP ----


@pytest.mark.parametrize("elder", ELDERS)
def test_up_ends_after_one_min_rtt_with_more_than_a_quarter_of_queue(core, elder):
    """inflight > BBRInflight(BBR.max_bw, 1.25), which in UP holds two packets more."""
    script = brought_to(State.PROBE_BW_UP, core, elder)
    assert script.ack(after_us=RTT_US, in_flight=200) is State.PROBE_BW_UP
    assert script.ack(after_us=1, in_flight=127) is State.PROBE_BW_UP
    assert script.ack(after_us=0, in_flight=128) is State.PROBE_BW_DOWN


def test_up_ends_at_a_plateau_of_three_rounds(core):
    """Test case A.5."""
    script = brought_to(State.PROBE_BW_UP, core, Profile.V3)
    states = [script.round() for _ in range(3)]
    assert states == [State.PROBE_BW_UP] * 2 + [State.PROBE_BW_DOWN]


def test_up_lasts_while_bandwidth_grows(core):
    script = brought_to(State.PROBE_BW_UP, core, Profile.V3)
    for rate in (RATE, RATE, 1_250_000, 1_250_000, 1_250_000):
        assert script.round(rate=rate) is State.PROBE_BW_UP
    assert script.round(rate=1_250_000) is State.PROBE_BW_DOWN


def test_a_plateau_that_inflight_hi_imposes_does_not_count(core):
    script = brought_to(State.PROBE_BW_UP, core, Profile.V3)
    script.connection.record.inflight_hi = 300
    for _ in range(10):
        assert script.round(cwnd=400, cwnd_limited=True) is State.PROBE_BW_UP
    states = [script.round(cwnd=200) for _ in range(3)]
    assert states[-1] is State.PROBE_BW_DOWN


@pytest.mark.parametrize(
    ("in_flight", "lost", "after"),
    [
        (100, 2, State.PROBE_BW_UP),
        (100, 3, State.PROBE_BW_DOWN),
        (149, 2, State.PROBE_BW_UP),
        (150, 3, State.PROBE_BW_UP),
        (149, 3, State.PROBE_BW_DOWN),
        (50, 1, State.PROBE_BW_UP),
        (49, 1, State.PROBE_BW_DOWN),
    ],
)
def test_up_ends_with_more_than_two_per_cent_of_loss(core, profile, in_flight, lost, after):
    """RS.lost > RS.tx_in_flight * 2 %: exactly 2 % is borne."""
    script = brought_to(State.PROBE_BW_UP, core, profile)
    assert script.round(after_us=MS, in_flight=BDP + 20, prior_in_flight=in_flight, lost=lost) is after


def test_any_loss_ends_up_where_acks_are_not_selective(core, profile):
    script = brought_to(State.PROBE_BW_UP, core, profile)
    assert (
        script.round(after_us=MS, in_flight=BDP + 20, prior_in_flight=500, lost=1, sacks=False)
        is State.PROBE_BW_DOWN
    )


@pytest.mark.parametrize(("in_flight", "inflight_hi"), [(149, 148), (100, 99), (60, 70)])
def test_too_much_loss_sets_inflight_hi_to_what_was_in_flight_but_not_below_seven_tenths(
    core, profile, in_flight, inflight_hi
):
    """max(what was in flight before the packet that crossed 2 %, 0.7 * min(BDP, cwnd)); A.19."""
    script = brought_to(State.PROBE_BW_UP, core, profile)
    script.round(after_us=MS, in_flight=BDP + 20, prior_in_flight=in_flight, lost=5, cwnd=2 * BDP)
    b = script.connection
    assert (b.state, b.inflight_hi, b.bw_probe_samples) == (State.PROBE_BW_DOWN, inflight_hi, False)
    assert b.prev_probe_too_high


def test_too_much_loss_of_an_app_limited_probe_only_ends_it(core, profile):
    """HandleInflightTooHigh: if (!RS.is_app_limited)."""
    script = brought_to(State.PROBE_BW_UP, core, profile)
    script.round(after_us=MS, in_flight=BDP + 20, prior_in_flight=BDP, lost=5, app_limited=True)
    assert (script.connection.state, script.connection.inflight_hi) == (State.PROBE_BW_DOWN, INFINITE)


def test_a_probe_is_answered_once(core, profile):
    script = brought_to(State.PROBE_BW_UP, core, profile)
    script.round(after_us=MS, in_flight=BDP + 20, prior_in_flight=140, lost=5)
    stamp = script.connection.cycle_stamp_us
    script.ack(lost=50, in_flight=BDP + 20, prior_in_flight=80)
    assert (script.connection.inflight_hi, script.connection.cycle_stamp_us) == (139, stamp)


def test_a_timeout_in_a_probe_is_loss_of_that_probe(core, profile):
    """HandleLostPacket is called for each packet that the transport marks, whichever way it found out."""
    script = brought_to(State.PROBE_BW_UP, core, profile)
    script.ack(in_flight=140)
    assert script.time_out() is State.PROBE_BW_DOWN
    assert script.connection.inflight_hi == 139
    assert script.connection.prev_probe_too_high


def test_inflight_hi_grows_by_1_2_4_8_16_packets_in_successive_rounds(core, profile):
    """RaiseInflightLongtermSlope, with a window of 128 packets that is always used up."""
    script = brought_to(State.PROBE_BW_REFILL, core, profile)
    script.connection.record.inflight_hi = 64
    script.in_flight = 40
    assert script.round(cwnd=128) is State.PROBE_BW_UP
    sizes = [64]
    for _ in range(5):
        for _ in range(127):
            script.ack(after_us=10, cwnd=128, cwnd_limited=True, prior_in_flight=41, rate=RATE, prior=None)
        script.round(after_us=10, cwnd=128, cwnd_limited=True, prior_in_flight=41)
        sizes.append(script.connection.inflight_hi)
    assert [after - before for before, after in itertools.pairwise(sizes)] == [1, 2, 4, 8, 16]


@pytest.mark.parametrize(
    "use", [{"cwnd": 128}, {"cwnd": 63, "cwnd_limited": True}], ids=["idle window", "small window"]
)
def test_inflight_hi_grows_only_where_it_is_the_limit(core, profile, use):
    script = brought_to(State.PROBE_BW_REFILL, core, profile)
    script.connection.record.inflight_hi = 64
    script.in_flight = 40
    script.round(cwnd=128)
    for _ in range(3):
        script.round(after_us=10, acked=200, prior_in_flight=41, **use)
    assert script.connection.inflight_hi == 64


@pytest.mark.parametrize(("lost", "inflight_hi"), [(2, 101), (3, 80)])
def test_more_in_flight_with_little_loss_raises_inflight_hi(core, profile, lost, inflight_hi):
    """In every state once the pipe is full: if (RS.tx_in_flight > inflight_longterm)."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.connection.record.inflight_hi = 80
    script.round(after_us=MS, in_flight=40, prior_in_flight=101, lost=lost)
    assert script.connection.inflight_hi == inflight_hi


# ---- The filter of max_bw ----


def probe(script, rate):
    """One cycle, whose UP sees ``rate``: from CRUISE to CRUISE. Max_bw before, in and a round after it."""
    script.connection.record.probe_rtt_min_stamp_us = script.now_us
    seen = [script.connection.max_bw]
    script.wait_for_probe()
    assert script.ack(rate=rate, in_flight=BDP // 2) is State.PROBE_BW_REFILL
    assert script.round(rate=rate) is State.PROBE_BW_UP
    while script.round(after_us=RTT_US + 1, rate=rate, in_flight=3 * BDP) is State.PROBE_BW_UP:
        pass
    script.ack(rate=rate, in_flight=4)
    seen.append(script.connection.max_bw)
    script.round(after_us=MS, rate=rate)
    seen.append(script.connection.max_bw)
    assert script.connection.state is State.PROBE_BW_CRUISE
    return seen


def test_max_bw_is_the_best_of_this_cycle_and_the_one_before(core, profile):
    """AdvanceMaxBwFilter once per cycle, one round after UP."""
    script = brought_to(State.PROBE_BW_CRUISE, core, profile)
    script.round(after_us=MS)
    assert probe(script, RATE // 2) == [RATE, RATE, RATE // 2]
    assert probe(script, RATE // 4) == [RATE // 2, RATE // 2, RATE // 4]


# ---- Precautionary probing: the text of 2026 ----


def after_a_lossy_probe(core):
    """In UP, the first after a probe that went too high at 140 packets."""
    script = brought_to(State.PROBE_BW_UP, core, Profile.V3)
    script.round(after_us=MS, in_flight=BDP + 20, prior_in_flight=141, lost=5)
    assert script.connection.inflight_hi == 140
    script.round(after_us=MS, in_flight=40)
    script.wait_for_probe()
    script.ack(in_flight=40)
    assert script.round(after_us=MS, in_flight=40) is State.PROBE_BW_UP
    assert script.connection.prev_probe_too_high
    return script


def test_a_probe_after_a_lossy_one_stops_at_inflight_hi(core):
    script = after_a_lossy_probe(core)
    assert script.ack(in_flight=139, prior_in_flight=139) is State.PROBE_BW_UP
    assert script.ack(in_flight=140, prior_in_flight=140) is State.PROBE_BW_DOWN
    assert (script.connection.prev_probe_precautionary, script.connection.prev_probe_too_high) == (
        True,
        False,
    )


def test_a_cautious_probe_without_loss_is_followed_by_another_at_once(core):
    script = after_a_lossy_probe(core)
    script.ack(in_flight=140, prior_in_flight=140)
    assert script.ack(in_flight=120) in {State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE}
    assert script.round(after_us=MS, in_flight=120) is State.PROBE_BW_REFILL
    assert not script.connection.prev_probe_precautionary
    script.round(after_us=MS, in_flight=120)
    assert script.ack(in_flight=150, prior_in_flight=150) is State.PROBE_BW_UP


def test_a_cautious_probe_with_loss_is_followed_by_the_usual_wait(core):
    script = after_a_lossy_probe(core)
    script.ack(in_flight=140, prior_in_flight=140)
    script.ack(in_flight=120, lost=9)
    assert script.connection.prev_probe_too_high
    for _ in range(10):
        assert script.round(after_us=MS, in_flight=120) in {State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE}


@pytest.mark.parametrize("elder", ELDERS)
def test_the_text_of_2021_knows_no_caution(core, elder):
    script = brought_to(State.PROBE_BW_UP, core, elder)
    script.round(after_us=MS, in_flight=BDP + 20, prior_in_flight=101, lost=5)
    script.round(after_us=MS, in_flight=40)
    script.wait_for_probe()
    script.ack(in_flight=40)
    script.round(after_us=MS, in_flight=40)
    assert script.ack(in_flight=127) is State.PROBE_BW_UP

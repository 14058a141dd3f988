"""The gate's observations find in made-up traces what was put there; formulas decide as worded."""

import numpy as np
import pandas as pd
import pytest

from fabbbr_analysis.claims import cycle
from fabbbr_analysis.claims.papers import gate
from fabbbr_analysis.claims.records import Part
from fabbbr_analysis.claims.rule import decide
from fabbbr_analysis.claims.sample import Sample, key_of

RUN = pd.Series({"rtt_s": 0.040, "mtu_bytes": 1500, "bdp_bytes": 330 * 1514})
CLAIMS = {claim.id: claim for claim in gate.CLAIMS}


def trace(probe_rtts, ups, *, end=30.0, period=0.002, in_flight=330):
    """Samples of a flow that is in ProbeRTT and in UP during the stretches given, and cruises otherwise."""
    times = np.arange(0.0, end, period)
    inside = lambda stretches: np.any([(times >= a) & (times < b) for a, b in stretches], axis=0)
    draining = inside(probe_rtts)
    return pd.DataFrame(
        {
            "t_s": times,
            "bbr_cwnd_gain": np.where(draining, 0.5, 2.0),
            "bbr_pacing_gain": np.where(inside(ups), 1.25, 1.0),
            "unacked_segments": np.where(draining, in_flight // 2, in_flight),
            "rtt_s": np.where(times < 10.0, 0.040, 0.080),
        }
    )


FIVE_SECONDS = [(5.0, 5.22), (10.24, 10.46), (15.48, 15.70), (20.72, 20.94)]


def test_probe_rtt_is_measured_from_the_end_of_one_to_the_start_of_the_next():
    flow = trace(FIVE_SECONDS, [(7.7, 7.8)])
    assert cycle.time_between_probe_rtts(flow, RUN) == pytest.approx(5.02, abs=0.003)
    assert cycle.time_in_probe_rtt(flow, RUN) == pytest.approx(0.22, abs=0.003)
    assert cycle.inflight_in_probe_rtt(flow, RUN) == pytest.approx(0.5, abs=0.005)


def test_an_episode_that_the_trace_cuts_off_does_not_count():
    flow = trace([(-1.0, 0.1), *FIVE_SECONDS, (29.9, 40.0)], [(7.7, 7.8)])
    assert cycle.time_in_probe_rtt(flow, RUN) == pytest.approx(0.22, abs=0.003)


def test_a_flow_without_probe_rtt_has_no_value():
    flow = trace([(0.0, 0.0)], [(7.7, 7.8)])
    assert np.isnan(cycle.time_between_probe_rtts(flow, RUN))
    assert np.isnan(cycle.wait_before_probe(flow, RUN))


def test_the_wait_ends_a_round_trip_before_the_first_probe_after_probe_rtt():
    # The later probes of a cycle are ignored: ProbeRTT cuts off the long ones among them.
    ups = [(5.22 + 2.44, 7.8), (9.0, 9.1), (10.46 + 2.64, 13.2), (15.70 + 2.24, 18.1)]
    assert cycle.wait_before_probe(trace(FIVE_SECONDS, ups), RUN) == pytest.approx(2.4, abs=0.003)


def test_round_trips_are_as_long_as_they_were_measured():
    # The first wait is 2.44 s of 40 ms, the other two 2.64 s and 2.24 s of 80 ms; REFILL takes one of each.
    ups = [(5.22 + 2.44, 7.8), (10.46 + 2.64, 13.2), (15.70 + 2.24, 18.1)]
    expected = np.mean([2.44 / 0.04 - 1, 2.64 / 0.08 - 1, 2.24 / 0.08 - 1])
    assert cycle.rounds_before_probe(trace(FIVE_SECONDS, ups), RUN) == pytest.approx(expected, rel=0.005)


def sample(axes, values):
    return Sample(axes=axes, runs={key_of(*key): np.array([value]) for key, value in values.items()})


def verdicts(claim_id, axes, values):
    """Quantity → whether a value without spread is in the band, for the parts whose conditions are there."""
    found = {}
    for part in CLAIMS[claim_id].parts:
        assert isinstance(part, Part)
        value = part.value(sample(axes, values))
        found[part.quantity] = decide(part.band, value=value, low=value, high=value) == "reproduced"
    return found


LOSS_AXES = ("axis_profile", "loss_ratio", "rtt_s")


@pytest.mark.parametrize(
    ("ours", "passes"),
    [
        ((0.95, 0.60, 0.01), [True, True, True]),
        ((0.79, 0.60, 0.01), [False, True, True]),
        ((0.95, 0.49, 0.01), [True, False, True]),
        ((0.95, 0.60, 0.31), [True, True, False]),
    ],
)
def test_the_cliff_is_where_the_drafts_put_it_at_every_rtt(ours, passes):
    values = {("v1", loss, 0.1): 1.0 for loss in (0.001, 0.01, 0.03)}
    values |= {("v1", loss, 0.02): 2.0 for loss in (0.001, 0.01, 0.03)}
    values |= {("v3", loss, 0.1): share for loss, share in zip((0.001, 0.01, 0.03), ours, strict=True)}
    values |= {("v3", loss, 0.02): 2 * share for loss, share in zip((0.001, 0.01, 0.03), ours, strict=True)}
    assert list(verdicts("GD.v3", LOSS_AXES, values).values()) == passes


@pytest.mark.parametrize(("retransmits", "passes"), [(200.0, True), (201.0, False)])
def test_a_fifth_of_version_1_s_retransmissions_is_asked_below_half_a_bdp_only(retransmits, passes):
    values = {("v1", 0.1): 1000.0, ("v1", 1.0): 10.0, ("v2alpha", 0.1): retransmits, ("v2alpha", 1.0): 10.0}
    assert list(verdicts("GE.v2alpha", ("axis_profile", "buffer_bdp"), values).values()) == [passes]


def test_fairness_is_a_gain_over_version_1_and_equality_is_none():
    axes = ("axis_profile", "buffer_bdp")
    equal = {("v1", 2.0): 0.7, ("draft01", 2.0): 0.7}
    better = equal | {("draft01", 2.0): 0.71}
    assert list(verdicts("GH.draft01", axes, equal).values()) == [False]
    assert list(verdicts("GH.draft01", axes, better).values()) == [True]


def test_our_version_1_must_be_within_a_tenth_of_the_kernel_s_in_every_condition():
    axes = ("axis_implementation", "buffer_bdp", "loss_ratio")
    theirs = {("mainline", b, loss): 100.0 for b in (0.1, 4.0) for loss in (0.0, 0.1)}
    ours = {("fabbbr", b, loss): 100.0 for b in (0.1, 4.0) for loss in (0.0, 0.1)}
    assert all(verdicts("GK.v1", axes, theirs | ours).values())
    worse = verdicts("GK.v1", axes, theirs | ours | {("fabbbr", 4.0, 0.1): 89.0})
    assert sorted(quantity.split()[0] for quantity, passed in worse.items() if not passed) == [
        "least",
        "least",
        "most",
    ]


def test_every_profile_has_every_check():
    checks = {claim.split(".")[0] for claim in CLAIMS}
    assert checks == {"GB", "GC", "GD", "GE", "GF", "GG", "GH", "GI", "GK"}
    assert len(CLAIMS) == 8 * len(gate.PROFILES) + 1

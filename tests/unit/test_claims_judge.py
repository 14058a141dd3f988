"""The verdict rule, and judging run sets end to end on made-up runs."""

import types

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_runs import Runs, run_rows, stepped_cell, verdicts

from fabbbr_analysis.claims import Band, judge
from fabbbr_analysis.claims.rule import decide
from fabbbr_analysis.claims.steps import steps_of

AT_LEAST = Band(low=0.9)
BETWEEN = Band(low=0.3, high=0.6)


@pytest.mark.parametrize(
    ("band", "value", "low", "high", "verdict"),
    [
        (BETWEEN, 0.45, 0.40, 0.50, "reproduced"),
        (BETWEEN, 0.45, 0.30, 0.60, "reproduced"),
        (BETWEEN, 0.58, 0.50, 0.65, "compatible"),
        (BETWEEN, 0.62, 0.55, 0.70, "compatible"),
        (BETWEEN, 0.45, 0.20, 0.70, "inconclusive"),
        (BETWEEN, 0.70, 0.50, 0.90, "inconclusive"),
        (BETWEEN, 0.70, 0.65, 0.75, "not reproduced"),
        (BETWEEN, 0.10, 0.05, 0.29, "not reproduced"),
        (AT_LEAST, 1.20, 1.00, 1.40, "reproduced"),  # the natural bound gives a width, not an edge
        (AT_LEAST, 0.92, 0.88, 0.96, "compatible"),
        (AT_LEAST, 0.88, 0.80, 0.95, "inconclusive"),
        (Band(low=0.95, slack=0.05), 0.96, 0.91, 0.99, "reproduced"),
        (Band(low=0.95, slack=0.05), 0.94, 0.91, 0.97, "inconclusive"),
        (Band(high=0.02), 0.01, 0.00, 0.019, "reproduced"),
        (Band(low=1, strict=True, ceiling=2), 1.0, 1.0, 1.0, "compatible"),
    ],
)
def test_the_rule_of_the_claims_page(band, value, low, high, verdict):
    assert decide(band, value=value, low=low, high=high) == verdict


@given(st.floats(-2, 2), st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.5))
def test_a_narrower_interval_never_turns_a_decided_verdict_into_its_opposite(value, below, above, shrink):
    wide = decide(BETWEEN, value=value, low=value - below, high=value + above)
    narrow = decide(BETWEEN, value=value, low=value - below * shrink, high=value + above * shrink)
    assert {wide, narrow} != {"reproduced", "not reproduced"}
    if wide in ("reproduced", "not reproduced"):
        assert narrow == wide


LIMIT = {1e-5: 91.0, 1e-4: 91.0, 1e-3: 90.8, 1e-2: 90.0, 0.05: 86.4, 0.10: 79.0, 0.15: 74.0, 0.25: 0.5}
CUBIC = {1e-5: 92.0, 1e-4: 30.0, 1e-3: 6.5, 1e-2: 1.1, 0.05: 0.4, 0.10: 0.2, 0.15: 0.15, 0.25: 0.1}


def f10(bbr=LIMIT, cubic=CUBIC, **options):
    conditions = [
        {"ccas": cca, "loss_ratio": loss, "goodput_bps": mbps * 1e6}
        for cca, curve in (("bbr1", bbr), ("cubic", cubic))
        for loss, mbps in curve.items()
    ]
    return Runs("cardwell_f10", run_rows(conditions, **options))


def test_runs_like_the_paper_reproduce_it():
    found = verdicts(f10())
    assert {
        name: found[name].verdict for name in ("C10.1", "C10.2", "C10.3", "C10.4", "C10.5", "C10.6", "C10.7")
    } == dict.fromkeys(("C10.1", "C10.2", "C10.3", "C10.4", "C10.5", "C10.6", "C10.7"), "reproduced")
    assert found["C10.1"].n == 5
    assert found["C10.1"].low < found["C10.1"].value < found["C10.1"].high
    assert "without 2 % loss" in found["C10.1"].reason


def test_a_bbr_that_falls_with_loss_is_not_the_papers():
    found = verdicts(f10(bbr=LIMIT | {0.05: 40.0}))
    assert found["C10.1"].verdict == "not reproduced"
    assert found["C10.3"].verdict == "reproduced"


def test_scattered_runs_decide_nothing():
    assert verdicts(f10(spread=0.3, repeat=3))["C10.1"].verdict == "inconclusive"


def test_runs_that_are_all_the_same_are_said_to_say_as_much_as_one():
    same, other = (verdicts(f10(spread=spread))["C10.4"] for spread in (0.0, 0.01))
    assert same.low == same.value == same.high
    assert "the runs are all the same" in same.reason
    assert "the runs are all the same" not in other.reason


def test_one_repetition_is_no_evidence():
    verdict = verdicts(f10(repeat=1))["C10.4"]
    assert (verdict.verdict, verdict.value, verdict.low) == ("not run", None, None)
    assert "cubic at loss 0.001 % has a single certified run" in verdict.reason


def test_a_missing_condition_is_named():
    verdict = verdicts(f10(bbr={loss: rate for loss, rate in LIMIT.items() if loss != 0.25}))["C10.3"]
    assert verdict.verdict == "not run"
    assert "no certified run of bbr1 at loss 25 %" in verdict.reason


def test_a_missing_experiment_comes_with_the_command_that_runs_it():
    verdict = verdicts()["W2"]
    assert verdict.verdict == "not run"
    assert "fabbbr run ware_1v1" in verdict.reason


def test_runs_that_vary_something_else_too_are_not_pooled():
    mixed = f10()
    deep = mixed.certified.assign(condition=mixed.certified.condition + " deep", goodput_bps=1e6)
    mixed.certified = pd.concat([mixed.certified, deep])
    assert "was run in several ways" in verdicts(mixed)["C10.1"].reason


def test_runs_without_a_value_are_left_out_and_counted():
    runs = f10()
    first = runs.certified.index[runs.certified.loss_ratio == 0.25][0]
    runs.certified.loc[first, "goodput_bps"] = np.nan
    verdict = verdicts(runs)["C10.3"]
    assert verdict.n == 4
    assert "1 certified runs have no value" in verdict.reason


def test_arithmetic_needs_no_runs():
    found = verdicts()
    assert [found[name].verdict for name in ("CA.1", "CA.2", "W1")] == ["reproduced"] * 3
    assert found["W1"].n is None


def test_the_same_seed_gives_the_same_numbers_whatever_else_is_judged():
    alone = verdicts(f10())["C10.1"]
    with_others = verdicts(e1(), f10())["C10.1"]
    assert alone == with_others
    assert verdicts(f10(), seed=2)["C10.1"].low != alone.low


def test_two_run_sets_of_an_experiment_get_a_verdict_each():
    found = [each for each in judge([f10(), f10(bbr=LIMIT | {0.25: 60.0})]) if each.id == "C10.3"]
    assert [each.verdict for each in found] == ["reproduced", "not reproduced"]


RTTS = (0.0003, 0.006, 0.027, 0.044, 0.061, 0.072, 0.113)


def e1(
    rate=200e6, loss=1 / 22_000 * 50 ** (4 / 3), duration_s=120.0, others=(), experiment="knit6_e1"
):  # fmt: skip
    """``others``: further congestion controls (name, share beyond 0.3 ms, retransmits, profile of bbr2)."""
    own = [
        (cca, share, 1e6, None)
        for cca, share in (("bbr1", 0.85), ("cubic", 0.05), ("reno", 0.04), ("htcp", 0.06))
    ]
    conditions = [
        {
            "ccas": cca, "rtt_s": rtt, "rate_bps": rate, "loss_ratio": loss, "retransmits": count,
            "duration_s": duration_s,
            "bbr2_variant": variant, "goodput_bps": rate * (0.945 if rtt == 0.0003 else later),
        }
        for cca, later, count, variant in (*own, *others)
        for rtt in RTTS
    ]  # fmt: skip
    return Runs(experiment, run_rows(conditions, spread=0.001))


def at_paper_rate(rate=10e9, duration_s=120.0):
    """What is sent again is judged in an experiment of its own."""
    return e1(rate, 1 / 22_000, duration_s, others=[BBR2], experiment="knit6_e1_10g")


BBR2 = ("bbr2", 0.80, 1e5, "v2alpha")
GIGABIT = {"rate": 1e9, "loss": 1 / 22_000 * 10 ** (4 / 3)}


def test_bbr1_alone_is_judged_and_said_to_be_alone():
    verdict = verdicts(e1())["K1.1"]
    assert verdict.verdict == "reproduced"
    assert "judged for bbr1 only, without bbr2" in verdict.reason


def without_rtts(*absent):
    runs = e1()
    runs.certified = runs.certified[~runs.certified.rtt_s.isin(absent)]
    return runs


def test_a_run_that_stops_before_the_papers_longest_rtt_says_so():
    verdict = verdicts(without_rtts(0.113))["K1.1"]
    assert verdict.verdict == "reproduced"
    assert "the longest RTT is 72 ms" in verdict.reason


def test_short_rtts_alone_say_nothing_about_long_ones():
    verdict = verdicts(without_rtts(*RTTS[2:]))["K1.1"]
    assert verdict.verdict == "not run"
    assert "27 ms or more" in verdict.reason


def test_a_scaled_run_says_so():
    found = verdicts(e1())
    assert "scaled: run at 200 Mbit/s, the paper at 10 Gbit/s" in found["K1.2"].reason
    assert found["K1.s"].verdict == "reproduced"
    assert len(found["K1.s"].details) == 4


@pytest.mark.parametrize(
    ("run_set", "said"),
    [
        (e1(rate=10e9, loss=1 / 22_000), "the paper's own rate"),
        (e1(loss=1 / 22_000), "keeps the paper's regime at"),
    ],
)
def test_the_scaled_claim_refuses_runs_that_are_not_properly_scaled(run_set, said):
    verdict = verdicts(run_set)["K1.s"]
    assert verdict.verdict == "not run"
    assert said in verdict.reason


def test_bbr2_is_judged_where_the_scaled_loss_is_one_that_it_bears():
    found = verdicts(e1(**GIGABIT, others=[BBR2]))
    assert [found[name].verdict for name in ("K1.1", "K1.s")] == ["reproduced"] * 2
    assert found["K1.1"].value == pytest.approx(0.80, rel=0.01)
    assert "most BBRv2 / BBRv1 retransmissions" in found["K1.s"].details[-1].quantity
    assert "bbr2" not in found["K1.1"].reason


def test_bbr2_is_left_out_and_said_to_be_where_scaling_makes_the_loss_more_than_it_bears():
    found = verdicts(e1(others=[("bbr2", 0.30, 1e6, "v2alpha")]))
    assert found["K1.1"].verdict == "reproduced"
    assert (
        "bbr2 is left out: what it bears does not scale, and a loss of 0.837 % is more"
        in found["K1.1"].reason
    )
    assert not any("retransmissions" in part.quantity for part in found["K1.s"].details)


def test_of_two_profiles_of_bbr2_the_one_of_the_papers_is_judged_and_the_other_named():
    found = verdicts(e1(**GIGABIT, others=[("bbr2", 0.30, 1e5, "draft01"), BBR2]))["K1.1"]
    assert found.verdict == "reproduced"
    assert "bbr2 is v2alpha; draft01 was run too and is not judged" in found.reason


@pytest.mark.parametrize("variant", ["draft01", "google"])
def test_another_bbr2_alone_is_judged_and_named(variant):
    found = verdicts(e1(**GIGABIT, others=[("bbr2", 0.30, 1e5, variant)]))["K1.1"]
    assert found.verdict == "not reproduced"
    assert f"bbr2 is {variant}" in found.reason


@pytest.mark.parametrize(("rate", "duration_s"), [(1e9, 120.0), (10e9, 60.0)])
def test_counts_of_packets_are_judged_at_the_papers_rate_and_length_only(rate, duration_s):
    loud = at_paper_rate()
    loud.certified.loc[loud.certified.ccas == "bbr1", "retransmits"] = 2e6
    assert verdicts(loud)["K1.5"].value == pytest.approx(1.9)
    assert verdicts(loud)["K1.5"].verdict == "reproduced"
    refused = verdicts(at_paper_rate(rate=rate, duration_s=duration_s))["K1.5"]
    assert (refused.verdict, refused.value) == ("not run", None)
    assert "fabbbr run knit6_e1_10g" in refused.reason


def test_what_bbr2_sends_again_is_judged_at_the_papers_own_rate():
    found = verdicts(at_paper_rate())["K1.4"]
    assert (found.verdict, found.value) == ("reproduced", pytest.approx(0.1))


# Claims that read more than table runs


def rivals(shares, experiment="kfoury_5_5a"):
    """``shares``: (rival, buffer in BDP) → CUBIC's share of the goodput."""
    certified = run_rows(
        [
            {"ccas": f"{rival},cubic", "buffer_bdp": buffer, "jain_flows": 1 / (2 * (c**2 + (1 - c) ** 2))}
            for (rival, buffer), c in shares.items()
        ],
        repeat=3,
    )
    flows = [
        {"cell_id": f"{number}-r{r}", "cca": cca, "goodput_bps": 1e8 * (c if cca == "cubic" else 1 - c)}
        for number, ((rival, _), c) in enumerate(shares.items())
        for r in (1, 2, 3)
        for cca in ("cubic", rival)
    ]
    return Runs(experiment, certified, pd.DataFrame(flows))


LIKE_THE_PAPER = {
    ("bbr1", 0.1): 0.1, ("bbr1", 0.5): 0.08, ("bbr1", 100.0): 0.84,
    ("bbr2", 0.1): 0.3, ("bbr2", 0.5): 0.45, ("bbr2", 100.0): 0.87,
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [("F5.1", 0.9), ("F5.3", 0.84)])
def test_the_share_of_each_rival_is_read_from_its_flows(name, value):
    verdict = verdicts(rivals(LIKE_THE_PAPER))[name]
    assert verdict.verdict == "reproduced"
    assert verdict.value == pytest.approx(value)


def test_bbr2_is_fairer_by_the_difference_of_the_mean_indices():
    verdict = verdicts(rivals(LIKE_THE_PAPER))["F5.2"]
    beside = {
        rival: np.mean(
            [1 / (2 * (c**2 + (1 - c) ** 2)) for (r, b), c in LIKE_THE_PAPER.items() if r == rival and b < 1]
        )
        for rival in ("bbr1", "bbr2")
    }
    assert verdict.value == pytest.approx(beside["bbr2"] - beside["bbr1"])
    assert verdict.verdict == "reproduced"


def test_cubic_against_one_rival_is_judged_and_the_other_named():
    alone = {key: share for key, share in LIKE_THE_PAPER.items() if key[0] == "bbr1"}
    found = verdicts(rivals(alone))
    assert "judged for bbr1+cubic only, without bbr2+cubic" in found["F5.3"].reason
    assert found["F5.2"].verdict == "not run"


def start_up(cca, rtt_of):
    rows = [
        {
            "cell_id": f"{number}-r{r}", "side": "sender", "t_s": t, "rtt_s": rtt_of(t) * (1 + 0.001 * r),
            "retrans_segments": float(t > 3.4),
        }
        for number, name in enumerate(("bbr1", "cubic"))
        if name == cca
        for r in (1, 2, 3)
        for t in np.arange(0, 8, 0.01)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def f6():
    """The curves of CACM Figs. 6 and 7: start-up to 125 ms; CUBIC from 184 to 250 ms after its first loss."""

    def bbr(t):
        return 0.120 if 0.35 <= t <= 0.72 else 0.040

    def cubic(t):
        return min(0.04 + 0.1 * t, 0.25) if t < 3.4 else 0.184 + 0.066 * ((t - 3.4) % 3.3) / 3.3

    certified = run_rows([{"ccas": "bbr1", "rtt_s": 0.04}, {"ccas": "cubic", "rtt_s": 0.04}], repeat=3)
    sockets = pd.concat([start_up("bbr1", bbr), start_up("cubic", cubic)])
    return Runs("cardwell_f6", certified, all_sockets=sockets)


@pytest.mark.parametrize(
    ("name", "part", "value"),
    [
        ("C6.1", 0, 3.0),
        ("C6.2", 0, 1.0),
        ("C6.2", 1, 0.14 / 0.09),
        ("C7.1", 0, 1.0),
        ("C7.2", 0, 0.70),
        ("C7.2", 1, 0.98),
    ],
)
def test_traces_drawn_like_the_figures_reproduce_them(name, part, value):
    verdict = verdicts(f6())[name]
    assert verdict.verdict == "reproduced"
    finding = verdict.details[part] if verdict.details else verdict
    assert finding.value == pytest.approx(value, rel=0.03)


@pytest.mark.parametrize("name", ["C6.1", "C7.1"])
def test_the_runs_of_figs_6_and_7_say_that_they_are_scaled(name):
    assert "scaled: run at 100 Mbit/s, the paper at 10 Mbit/s" in verdicts(f6())[name].reason


def test_cubic_without_a_loss_has_no_occupancy_after_it():
    runs = f6()
    runs.all_sockets["retrans_segments"] = 0.0
    verdict = verdicts(runs)["C7.2"]
    assert verdict.verdict == "not run"
    assert "no value" in verdict.reason


def shares(experiment, *, cubic_flows, **bbr_shares):
    """One BBR flow against CUBIC flows, by profile of the BBR; before 40 % of the run BBR takes nothing."""
    conditions = [{"ccas": "bbr1,cubic", "rate_bps": 10e6, "axis_profile": profile} for profile in bbr_shares]
    certified = run_rows(conditions, repeat=3)
    flows, intervals = [], []
    for cell_id, profile in zip(certified.cell_id, certified.axis_profile, strict=True):
        bbr_share = bbr_shares[profile]
        for flow in range(cubic_flows + 1):
            flows.append(
                {
                    "cell_id": cell_id,
                    "flow": flow,
                    "cca": "cubic" if flow else "bbr1",
                    "start_s": 0.0,
                    "receiver_zero_s": 0.0,
                }
            )
            late = (1 - bbr_share) / cubic_flows if flow else bbr_share
            for second in range(100):
                count = 1e6 * (late if second >= 40 else float(flow > 0))
                intervals.append(
                    {
                        "cell_id": cell_id, "flow": flow, "stream": 1, "side": "receiver",
                        "start_s": float(second), "end_s": second + 1.0, "bytes": count,
                    }
                )  # fmt: skip
    return Runs(experiment, certified, pd.DataFrame(flows), pd.DataFrame(intervals))


def test_the_share_against_cubic_is_that_of_the_last_60_percent():
    found = verdicts(shares("ware_1v1", cubic_flows=1, v1=0.44), shares("ware_1v16", cubic_flows=16, v1=0.40))
    assert found["W2"].value == pytest.approx(0.44)
    assert found["W3"].details[0].value == pytest.approx(0.04)
    assert found["W3"].details[1].value == pytest.approx(0.40 * 17)
    assert found["W2"].verdict == found["W3"].verdict == "reproduced"


@pytest.mark.parametrize(
    ("two", "three", "gained", "distance", "verdict"),
    [
        (0.50, 0.667, 0.167, 0.0, "reproduced"),
        (0.40, 0.60, 0.2, 0.1, "reproduced"),
        (0.30, 0.60, 0.3, 0.2, "not reproduced"),
        (0.60, 0.55, -0.05, 0.117, "not reproduced"),
    ],
)
def test_a_larger_cap_must_take_more_and_about_what_the_model_says(two, three, gained, distance, verdict):
    found = verdicts(shares("ware_cap", cubic_flows=1, v1=two, v1cap3=three))["W6"]
    assert found.details[0].value == pytest.approx(gained, abs=1e-6)
    assert found.details[1].value == pytest.approx(distance, abs=1e-3)
    assert found.verdict == verdict


def test_a_share_needs_both_experiments():
    verdict = verdicts(shares("ware_1v16", cubic_flows=16, v1=0.4))["W3"]
    assert verdict.verdict == "not run"
    assert "fabbbr run ware_1v1" in verdict.reason


def test_the_queue_of_a_step_is_read_after_it_settled():
    times = np.arange(0, 161.0)
    backlog = np.where(times < 10, 0, np.where(times <= 78, 900, np.where(times < 90, 5000, 1700)))
    queues = pd.DataFrame(
        {"t_s": times, "backlog_bytes": backlog, "node": "s1", "link": "trunk", "role": "bottleneck"}
    )
    first, second = steps_of(queues, stepped_cell())
    assert (first["step"], first["buffer_bdp"], first["queue_buffers"]) == (0, 1.0, pytest.approx(0.9))
    assert (second["step"], second["buffer_bdp"], second["queue_buffers"]) == (1, 2.0, pytest.approx(0.85))
    assert second["queue_bdp"] == pytest.approx(1.7)


def test_the_stepped_queue_is_judged_over_repetitions():
    cells = [stepped_cell().model_copy(update={"id": f"0-r{r}"}) for r in (1, 2)]
    runs = Runs(
        "knit6_e6",
        run_rows([{"ccas": "cubic"}], repeat=2),
        manifest=types.SimpleNamespace(cells=cells, looks=()),
    )
    samples = pd.DataFrame({"t_s": np.arange(0, 161.0), "node": "s1", "link": "trunk", "role": "bottleneck"})
    queues = pd.concat(
        [samples.assign(cell_id=cell.id, backlog_bytes=900 + i) for i, cell in enumerate(cells)]
    )
    runs.queues = lambda columns, cell_ids: queues.loc[queues.cell_id.isin(cell_ids), columns]
    verdict = verdicts(runs)["K6.3"]
    assert verdict.verdict == "not reproduced"
    assert verdict.value == pytest.approx(900.5 / 2000)

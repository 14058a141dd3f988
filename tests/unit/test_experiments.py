"""The published experiments: they plan in every profile, are affordable, and keep what the papers fixed."""

import runpy
from pathlib import Path

import pytest
from places import GUEST

from fabbbr import bundled
from fabbbr.plan import link_traces, opening
from fabbbr.plan.estimate import estimate
from fabbbr.units import Rate, Ratio
from fabbbr_analysis.claims import all_claims

ROOT = Path(__file__).parents[2]
NAMES = bundled.names("experiments")
PUBLISHED = {
    "cardwell_f4", "cardwell_f5", "cardwell_f6", "cardwell_f8", "cardwell_f10", "cardwell_f12", "hm_figure8",
    "hm_experiment1", "hm_experiment2", "hm_experiment3", "hm_experiment4",
    "kfoury_5_2", "kfoury_5_4", "kfoury_5_5a", "kfoury_5_6", "knit6_e1", "knit6_e2", "knit6_e3", "knit6_e5",
    "knit6_e6",
    "ware_1v1", "ware_1v16", "ware_cap", "ware_model",
}  # fmt: skip
FIGURES_OF_THE_SAME_RUNS = {"cardwell_f6": ("cardwell_f7",)}
SHORT_IN_THE_PAPER = {"cardwell_f6", "cardwell_f8", "hm_experiment1", "hm_experiment2"}


def planned(name, profile="default"):
    return opening.open_plan(name, seed=1, profile=profile)


def test_every_published_experiment_is_there():
    assert set(NAMES) >= PUBLISHED


@pytest.mark.parametrize("profile", ["default", "quick", "full"])
@pytest.mark.parametrize("name", NAMES)
def test_each_experiment_plans_in_each_profile(name, profile):
    plan = planned(name, profile)
    assert plan.experiment.id == name
    assert plan.experiment.source
    assert plan.experiment.claims
    assert len(plan.cells) == len(plan.experiment.conditions) * plan.experiment.repeat


@pytest.mark.parametrize("name", NAMES)
def test_a_quick_profile_costs_at_most_five_minutes_of_packets_on_one_core(name):
    assert estimate(planned(name, "quick").cells, GUEST).bottleneck_packets / GUEST.pace.packets_per_s <= 300


@pytest.mark.parametrize("profile", ["default", "quick", "full"])
@pytest.mark.parametrize("name", sorted(set(NAMES) - SHORT_IN_THE_PAPER))
def test_no_bbr_run_is_shorter_than_its_filters_need(name, profile):
    """ProbeRTT comes every 10 s at any rate: 60 s per run, and 120 s from an RTT of more than 100 ms."""
    for cell in planned(name, profile).cells:
        for flow in cell.flows:
            if flow.cca.startswith("bbr"):
                assert flow.duration.seconds >= (120 if flow.rtt.seconds > 0.1 else 60), cell.id


@pytest.mark.parametrize("profile", ["default", "quick"])
def test_the_scaled_loss_keeps_cubics_window_in_bdp(profile):
    """p' = p (C/C')^(4/3) with p = 1/22 000 at 10 Gbit/s: the window goes with p^(-3/4), the BDP with C."""
    for condition in planned("knit6_e1", profile).experiment.conditions:
        path = condition.setup.path
        wanted = (1 / 22_000) * (Rate.parse("10 Gbit/s").bps / path.rate.bps) ** (4 / 3)
        assert path.loss.rate.value == pytest.approx(wanted, rel=2e-3)


def test_the_full_profile_of_knit6_e1_is_the_published_condition():
    path = planned("knit6_e1", "full").experiment.conditions[0].setup.path
    assert (path.rate, path.loss.rate) == (Rate.parse("10 Gbit/s"), Ratio.parse("0.0046 %"))


def test_the_buffers_of_kfoury_5_6_are_the_scripts_bdp_of_20_ms_at_every_rate():
    """0.1 to 100 of them with tail drop, and the default limit of FQ-CoDel, 10 240 full frames."""
    for profile in ("default", "quick", "full"):
        links = [cell.bottleneck for cell in planned("kfoury_5_6", profile).cells]
        bdps = {link.buffer_bytes / (link.rate.bps * 0.020 / 8) for link in links if link.aqm == "taildrop"}
        assert {0.1, 0.5, 0.8, 1, 2, 3, 10, 100} <= {round(bdp, 9) for bdp in bdps}
        assert {link.buffer_bytes for link in links if link.aqm == "fq_codel"} == {10_240 * 1514}


def test_cardwells_buffer_saturates_the_rtt_at_250_ms():
    link = planned("cardwell_f6").cells[0].bottleneck
    assert 0.040 + link.buffer_bytes * 8 / link.rate.bps == pytest.approx(0.250)


def test_every_claim_that_an_experiment_names_is_judged_on_that_experiment():
    about = {claim.id: claim.experiment for claim in all_claims()}
    for name in NAMES:
        experiment = planned(name).experiment
        for claim in experiment.claims:
            assert about[claim] in (name, *FIGURES_OF_THE_SAME_RUNS.get(name, ()))


def test_the_trace_of_experiment_4_is_what_its_script_makes_and_has_the_published_mean():
    script = runpy.run_path(str(ROOT / "scripts" / "make-lte-trace"))
    times = script["opportunities_ms"](5.96e6, 140, 1)
    trace = planned("hm_experiment4").cells[0].bottleneck.trace
    assert link_traces.Trace(opportunities_ms=tuple(times)).link("lte_like.up") == trace
    assert trace.length_ms == 140_000
    assert trace.opportunities * 12_000 / 140 == pytest.approx(5.96e6, rel=1e-4)

"""The published experiments: they plan in every profile, are affordable, and keep what the papers fixed."""

import runpy
from pathlib import Path

import pytest
from places import GUEST

from fabbbr import bundled
from fabbbr.plan import link_traces, opening
from fabbbr.plan.estimate import estimate, packets_per_s
from fabbbr.units import Rate, Ratio
from fabbbr_analysis import references
from fabbbr_analysis.claims import all_claims
from fabbbr_analysis.references import published_grid

ROOT = Path(__file__).parents[2]
NAMES = bundled.names("experiments")
PUBLISHED = {
    "fund2023",
    "cardwell_f4", "cardwell_f5", "cardwell_f6", "cardwell_f8", "cardwell_f10", "cardwell_f12", "hm_figure8",
    "hm_experiment1", "hm_experiment2", "hm_experiment3", "hm_experiment4",
    "kfoury_5_1", "kfoury_5_2", "kfoury_5_3", "kfoury_5_4", "kfoury_5_4_cubic", "kfoury_5_5a",
    "kfoury_5_5a_100", "kfoury_5_5b", "kfoury_5_5c", "kfoury_5_6", "kfoury_5_7", "kfoury_5_8", "kfoury_5_9",
    "knit6_cdf", "knit6_e1", "knit6_e1_10g", "knit6_e2", "knit6_e3", "knit6_e4", "knit6_e5", "knit6_e6",
    "ware_1v1", "ware_1v16", "ware_cap", "ware_model",
}  # fmt: skip
FIGURES_OF_THE_SAME_RUNS = {
    "cardwell_f6": ("cardwell_f7",), "kfoury_5_4_cubic": ("kfoury_5_4",), "kfoury_5_5a_100": ("kfoury_5_5a",),
    "knit6_e1_10g": ("knit6_e1",),
}  # fmt: skip
SHORT_IN_THE_PAPER = {"cardwell_f6", "cardwell_f8", "fund2023", "hm_experiment1", "hm_experiment2"}


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
    cells = planned(name, "quick").cells
    assert (
        sum(estimate([cell], GUEST).bottleneck_packets / packets_per_s(cell, GUEST) for cell in cells) <= 300
    )


@pytest.mark.parametrize("profile", ["default", "quick", "full"])
@pytest.mark.parametrize("name", sorted(set(NAMES) - SHORT_IN_THE_PAPER))
def test_no_bbr_run_is_shorter_than_its_filters_need(name, profile):
    """ProbeRTT comes every 10 s at any rate: 60 s per run, and 120 s from an RTT of more than 100 ms."""
    for cell in planned(name, profile).cells:
        sizes = sum(flow.size.bytes for flow in cell.flows if flow.size is not None)
        all_done_s = 8 * sizes / cell.bottleneck.rate.bps
        for flow in cell.flows:
            if flow.cca.startswith("bbr"):
                lasts_s = flow.duration.seconds if flow.duration is not None else all_done_s
                assert lasts_s >= (120 if flow.rtt.seconds > 0.1 else 60), cell.id


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


@pytest.mark.parametrize("profile", ["default", "quick", "full"])
@pytest.mark.parametrize("name", ["kfoury_5_1", "kfoury_5_5a_100", "kfoury_5_7", "kfoury_5_9"])
def test_a_hundred_flows_keep_their_part_of_the_link_at_every_scale(name, profile):
    """10 Mbit/s and 20 ms for each: 16 packets of the BDP, of which BBR keeps 4 in flight at least."""
    for cell in planned(name, profile).cells:
        assert cell.bottleneck.rate.bps == 10_000_000 * len(cell.flows)
        assert {flow.rtt.seconds for flow in cell.flows} == {0.020}


def test_a_limited_flow_of_kfoury_5_9_has_8_5_mbit_and_any_other_the_link():
    for profile in ("default", "quick", "full"):
        for cell in planned("kfoury_5_9", profile).cells:
            assert {flow.maxrate for flow in cell.flows} <= {Rate.parse("8.5 Mbit/s"), cell.bottleneck.rate}


def test_the_full_grid_of_kfoury_5_5c_is_the_published_one():
    rows = references.load("kfoury2020_fig13_heatmap")
    drawn = {(row.bw_mbps, row.delay_ms, row.buffer_bdp, row.loss_pct) for row in rows.itertuples()}
    cells = planned("kfoury_5_5c", "full").cells
    asked = {
        (
            cell.bottleneck.rate.bps / 1e6,
            cell.flows[0].rtt.ns / 1e6,
            float(cell.bottleneck.buffer_asked.removesuffix(" BDP")),
            100 * max((link.loss.rate.value for link in cell.links if link.loss is not None), default=0.0),
        )
        for cell in cells
    }
    assert asked == drawn


def test_knit6_cdf_has_the_same_round_trip_and_buffer_wherever_the_delay_is():
    cells = planned("knit6_cdf").cells
    assert {(cell.flows[0].rtt.seconds, cell.bottleneck.buffer_bytes) for cell in cells} == {(0.045, 562_500)}
    where = {tuple(bool(link.delay and link.delay.ns) for link in cell.links) for cell in cells}
    assert where == {(True, False), (False, True)}


def test_the_scaled_losses_of_knit6_e4_are_those_that_the_talks_cubic_implies():
    """p of RFC 9438 (5.1) from 0.624 and 2.5 Gbit/s at 26 ms, times (C / C')^(4/3)."""
    for profile in ("default", "quick"):
        for cell in planned("knit6_e4", profile).cells:
            gbps = {1500: 0.624, 9000: 2.5}[cell.mtu_bytes]
            segments = gbps * 1e9 * 0.026 / 8 / (cell.mtu_bytes - 52)
            implied = 0.026 / (segments / (0.4 * 3.7 / 1.2) ** 0.25) ** (4 / 3)
            scaled = implied * (100e9 / cell.bottleneck.rate.bps) ** (4 / 3)
            assert cell.trunk.loss.rate.value == pytest.approx(scaled, rel=0.01)


def test_fund2023_has_every_condition_that_was_measured_on_fabric():
    grid = published_grid("fund2023", "goodput_bps")
    asked = {(row.cca, row.buffer_bytes, row.rate_bps, row.rtt_s) for row in grid.table.itertuples()}
    links = [(cell.flows[0], cell.bottleneck) for cell in planned("fund2023").cells]
    assert asked == {(f.cca, link.buffer_bytes, link.rate.bps, f.rtt.seconds) for f, link in links}


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

"""The published numbers: unaltered, and in our units when drawn."""

import json
import re
from importlib import resources

import pytest

from fabbbr import bundled
from fabbbr.errors import AnalysisError
from fabbbr.units import Rate
from fabbbr_analysis import references
from fabbbr_analysis.claims import _quantities, all_claims
from fabbbr_analysis.references.published import _SERIES
from fabbbr_analysis.references.registry import check


def test_every_file_is_registered_and_every_entry_has_its_file():
    folder = resources.files("fabbbr_analysis.references")
    files = {each.name for each in folder.iterdir() if each.name.endswith(".csv")}
    assert files == set(references.registry())


@pytest.mark.parametrize("name", sorted(references.registry()))
def test_every_reference_matches_its_hash_and_has_rows(name):
    assert len(references.load(name.removesuffix(".csv"))) > 0


def test_an_altered_reference_is_refused():
    entry = references.registry()["claims.csv"]
    with pytest.raises(AnalysisError, match=r"claims\.csv does not match its sha256"):
        check(b"id,experiment\n", entry, "claims.csv")


def test_an_unknown_reference_is_refused_with_those_there_are():
    with pytest.raises(AnalysisError, match=r"no reference 'claim'; there are .*claims"):
        references.load("claim")


def test_a_loaded_frame_is_the_callers_own():
    del references.load("claims")["id"]
    assert "id" in references.load("claims").columns


def test_the_registry_is_the_form_that_json_writes():
    text = (resources.files("fabbbr_analysis.references") / "registry.json").read_text()
    assert json.dumps(json.loads(text), indent=1) + "\n" == text


def test_an_experiment_has_one_id_in_files_registers_series_and_claims():
    registers = {
        *references.load("experiments")["id"],
        *references.load("claims")["experiment"],
        *references.load("gate")["experiment"],
    }
    named = {experiment for experiment, _ in _SERIES} | {claim.experiment for claim in all_claims()}
    named |= {each.experiment for claim in all_claims() for each in _quantities(claim)}
    assert set(bundled.names("experiments")) <= registers
    assert named <= registers
    assert {name for name in registers if not re.fullmatch(r"[a-z][a-z0-9_]*", name)} == set()


@pytest.mark.parametrize(("experiment", "metric"), sorted(_SERIES))
def test_every_series_is_complete_and_says_how_it_was_read(experiment, metric):
    series = references.published_series(experiment, metric)
    assert list(series.columns) == references.SERIES_COLUMNS
    assert len(series) > 0
    assert series.notna().all(axis=None)
    assert set(series["reading"]) <= {"exact", "vector", "raster"}
    assert not series.duplicated(["label", "x"]).any() or metric.startswith("queue")


# The numbers are those of the papers' figures as noted in docs/claims.md, not of the code.
@pytest.mark.parametrize(
    ("experiment", "metric", "cca", "x", "y"),
    [
        ("cardwell_f10", "goodput_bps", "bbr1", 0.05, 86.7e6),
        ("cardwell_f10", "goodput_bps", "cubic", 0.0001, 32.6e6),
        ("hm_figure8", "link_rate_bps", "bbr1", 0.4, 57.89e6),
        ("knit6_e1", "throughput_bps", "bbr1", 0.113, 7.942e9),
        ("knit6_e1", "retransmits", "bbr1", 0.006, 1257232),
        ("knit6_e1", "throughput_bps", "cubic", 0.044, 0.227e9),
        ("knit6_e3", "jain_flows", "bbr2", 0.1, 0.9991),
        ("knit6_e5", "throughput_bps", "bbr2", 0.01, 2.53e9),
        ("knit6_e6", "queue_median_bdp", "bbr1", 4.0, 1.386),
        ("knit6_e6", "queue_median_bytes", "cubic", 4.0, 221.9e6),
        ("kfoury_5_4", "goodput_bps", "bbr1", 1e-5, 945.0866e6),
    ],
)
def test_series_are_in_base_units(experiment, metric, cca, x, y):
    series = references.published_series(experiment, metric)
    at = series[(series["cca"] == cca) & (series["x"] == x)]
    assert y in [pytest.approx(value) for value in at["y"]]


def test_the_share_of_the_long_flow_comes_from_both_throughputs():
    series = references.published_series("knit6_e3", "long_flow_share")
    at = series[(series["cca"] == "bbr1") & (series["x"] == 2) & series["label"].str.contains("taildrop")]
    assert at["y"].tolist() == [pytest.approx(6.819 / (6.819 + 2.218))]


def test_utilisation_of_a_full_link_is_one():
    series = references.published_series("knit6_e1", "utilisation")
    assert series["y"].max() == pytest.approx(1.0, abs=1e-3)


def test_what_was_not_published_is_an_empty_series():
    series = references.published_series("cardwell_f10", "rtt_median_s")
    assert series.empty
    assert list(series.columns) == references.SERIES_COLUMNS


# The numbers are lines of the authors' data, not of the code.
@pytest.mark.parametrize(
    ("cca", "buffer_bytes", "rate_bps", "rtt_s", "mean", "sd", "baseline"),
    [
        ("cubic", 102_400, 250_000_000, 0.1, 110.9, 12.17, 110.9),
        ("bbr1", 102_400, 250_000_000, 0.1, 223.5, None, 110.9),
        ("bbr2", 102_400, 250_000_000, 0.1, 209.4, None, 121.2),
        ("cubic", 10_240_000, 10_000_000, 0.005, 8.9, 0.46, 8.9),
    ],
)
def test_a_grid_has_the_numbers_of_its_campaign_in_base_units(
    cca, buffer_bytes, rate_bps, rtt_s, mean, sd, baseline
):
    grid = references.published_grid("fund2023", "goodput_bps")
    rows = grid.table
    keys = (("cca", cca), ("buffer_bytes", buffer_bytes), ("rate_bps", rate_bps), ("rtt_s", rtt_s))
    for column, wanted in keys:
        rows = rows[rows[column] == wanted]
    (row,) = rows.to_dict("records")
    assert (row["mean"], row["baseline"]) == pytest.approx((mean * 1e6, baseline * 1e6), abs=0.06e6)
    assert sd is None or row["sd"] == pytest.approx(sd * 1e6, abs=0.006e6)
    assert row["n"] == 5


def test_the_gains_of_a_grid_are_those_that_its_authors_computed():
    rows = references.load("fund2023_when_to_use_bbr")
    kernels = {"bbr1": "5.15", "bbr2": "5.13"}
    grid = references.published_grid("fund2023", "goodput_bps")
    for cca, kernel in kernels.items():
        theirs = rows[rows["dataset"].str.contains(f"kernel {kernel}", regex=False)]["goodput_gain_pct"]
        ours = grid.gains[grid.table["cca"] == cca] * 100
        assert ours.tolist() == pytest.approx(theirs.tolist(), abs=0.06)


def test_what_was_not_published_is_no_grid():
    assert references.published_grid("cardwell_f10", "goodput_bps") is None


@pytest.mark.parametrize(
    ("experiment", "rate"),
    [
        ("cardwell_f12", "128 kbit/s"),
        ("hm_figure8", "100 Mbit/s"),
        ("knit6_e1", "10 Gbit/s"),
        ("kfoury_5_4", "1 Gbit/s"),
        ("ware_cap", "10 Mbit/s"),
    ],
)
def test_the_rate_of_a_paper_is_that_of_its_bottleneck(experiment, rate):
    assert references.paper_rate(experiment) == Rate.parse(rate)


@pytest.mark.parametrize(
    "experiment", ["cardwell_f5", "cardwell_f9", "hm_experiment1", "knit6_e4", "ware_model", "gate_cycle"]
)
def test_a_paper_with_several_rates_or_none_has_no_rate(experiment):
    assert references.paper_rate(experiment) is None

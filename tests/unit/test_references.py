"""The published numbers: unaltered, and in our units when drawn."""

import json
from importlib import resources

import pytest

from fabbbr.errors import AnalysisError
from fabbbr_analysis import references
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
        ("cardwell.f10", "goodput_bps", "bbr1", 0.05, 86.7e6),
        ("cardwell_f10", "goodput_bps", "cubic", 0.0001, 32.6e6),
        ("hm.figure8", "link_rate_bps", "bbr1", 0.4, 57.89e6),
        ("knit6.e1", "throughput_bps", "bbr1", 0.113, 7.942e9),
        ("knit6.e1", "retransmits", "bbr1", 0.006, 1257232),
        ("knit6.e1", "throughput_bps", "cubic", 0.044, 0.227e9),
        ("knit6.e3", "jain_flows", "bbr2", 0.1, 0.9991),
        ("knit6.e5", "throughput_bps", "bbr2", 0.01, 2.53e9),
        ("knit6.e6", "queue_median_bdp", "bbr1", 4.0, 1.386),
        ("knit6.e6", "queue_median_bytes", "cubic", 4.0, 221.9e6),
        ("kfoury.5.4", "goodput_bps", "bbr1", 1e-5, 945.0866e6),
    ],
)
def test_series_are_in_base_units(experiment, metric, cca, x, y):
    series = references.published_series(experiment, metric)
    at = series[(series["cca"] == cca) & (series["x"] == x)]
    assert y in [pytest.approx(value) for value in at["y"]]


def test_the_share_of_the_long_flow_comes_from_both_throughputs():
    series = references.published_series("knit6.e3", "long_flow_share")
    at = series[(series["cca"] == "bbr1") & (series["x"] == 2) & series["label"].str.contains("taildrop")]
    assert at["y"].tolist() == [pytest.approx(6.819 / (6.819 + 2.218))]


def test_utilisation_of_a_full_link_is_one():
    series = references.published_series("knit6.e1", "utilisation")
    assert series["y"].max() == pytest.approx(1.0, abs=1e-3)


def test_what_was_not_published_is_an_empty_series():
    series = references.published_series("cardwell.f10", "rtt_median_s")
    assert series.empty
    assert list(series.columns) == references.SERIES_COLUMNS

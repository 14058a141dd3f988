from __future__ import annotations

import dataclasses
import itertools
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fabbbr.errors import AnalysisError
from fabbbr.model import Step
from fabbbr.units import Duration, Rate, Size
from fabbbr_analysis import figures, references
from fabbbr_analysis.figures import catalogue, events, grid, published, sweep, timeline
from fabbbr_analysis.figures.canvas import ticks_at
from fabbbr_analysis.figures.conditions import varied
from fabbbr_analysis.figures.measures import BY_COLUMN, CONDITIONS, MEASURES
from fabbbr_analysis.figures.sampling import keep_extremes
from fabbbr_analysis.figures.style import Palette, flow_dash, shade
from fabbbr_analysis.figures.sweep import Sweep
from fabbbr_analysis.report.slots import grid_slots
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.summary import summarise

SMALL_F10 = dataclasses.replace(
    synthetic.CARDWELL_F10,
    losses=("0.001 %", "0.1 %", "15 %"),
    repeat=3,
    broken_cells=("cca=cubic,loss=0.1%,r2",),
)
SMALL_E1 = dataclasses.replace(synthetic.KNIT6_E1, rtts=("6 ms", "61 ms"), ccas=("cubic", "bbr1"), repeat=2)


@pytest.fixture(scope="module")
def f10(tmp_path_factory):
    return synthetic.run_set(SMALL_F10, tmp_path_factory.mktemp("runs") / "f10", period_s=1.0)


@pytest.fixture(scope="module")
def e1(tmp_path_factory):
    return synthetic.run_set(SMALL_E1, tmp_path_factory.mktemp("runs") / "e1", period_s=1.0)


def traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


# Sampling

samples = arrays.arrays(
    np.float64, st.integers(5, 400), elements=st.floats(-1e9, 1e9) | st.just(float("nan"))
)


@given(y=samples, limit=st.integers(4, 60))
def test_a_thinned_trace_is_short_and_keeps_its_ends_and_its_extremes(y, limit):
    x = np.arange(len(y), dtype=float)
    kept = keep_extremes(x, y, limit)
    assert len(kept) <= limit
    assert kept[0] == 0
    assert kept[-1] == len(y) - 1
    assert (np.diff(kept) > 0).all()
    if not np.isnan(y).all():
        assert np.nanmax(y[kept]) == np.nanmax(y)
        assert np.nanmin(y[kept]) == np.nanmin(y)


@given(y=samples)
def test_a_trace_that_is_short_enough_is_left_alone(y):
    assert list(keep_extremes(np.arange(len(y), dtype=float), y, len(y))) == list(range(len(y)))


def test_a_limit_below_two_ends_and_two_extremes_is_refused():
    with pytest.raises(ValueError, match="at least 4"):
        keep_extremes(np.arange(9.0), np.arange(9.0), 3)


# Looks

names = st.sets(st.text("abcdefgh0123456789_", min_size=1, max_size=8), max_size=12)


@given(others=names)
def test_a_known_congestion_control_looks_the_same_in_any_company(others):
    known = ("cubic", "bbr1", "bbr2", "reno", "htcp")
    assert [Palette.of(others | set(known))[name] for name in known] == [
        Palette.of(known)[name] for name in known
    ]


def test_any_two_of_fifty_series_differ_by_colour_or_by_marker():
    palette = Palette.of(f"cca{number:02}" for number in range(50))
    looks = {(look.colour, look.symbol) for look in palette.looks.values()}
    assert len(looks) == len(palette.looks)


def test_the_congestion_controls_of_the_papers_differ_by_colour_and_by_marker():
    palette = Palette.of([])
    for one, other in combinations(("cubic", "bbr1", "bbr2", "bbr3", "reno", "htcp"), 2):
        assert palette[one].colour != palette[other].colour
        assert palette[one].symbol != palette[other].symbol


@given(count=st.integers(2, 16))
def test_flows_of_one_congestion_control_have_shades_of_their_own(count):
    assert len({shade("#0072B2", place, count) for place in range(count)}) == count


def test_a_single_flow_keeps_the_colour_of_its_congestion_control():
    assert shade("#D55E00", 0, 1) == "#D55E00"
    assert flow_dash(0) == "solid"


# What varied


@pytest.mark.parametrize(
    ("column", "texts", "values", "shown", "slug"),
    [
        ("loss_ratio", ["10 %", "0.1 %", "1 %"], [0.1, 0.001, 0.01], (0.1, 1.0, 10.0), "loss"),
        ("rtt_s", ["113 ms", "300 us", "6 ms"], [0.113, 0.0003, 0.006], (0.3, 6.0, 113.0), "rtt"),
        (
            "buffer_bdp",
            ["10 BDP", "0.5 BDP", "1 BDP"],
            [9.9999, 0.49999, 0.99999],
            (0.5, 1.0, 10.0),
            "buffer",
        ),
        ("buffer_bytes", ["1 MB", "250 kB", "2 kB"], [1e6, 250e3, 2e3], (2.0, 250.0, 1000.0), "buffer"),
        ("rate_bps", ["1 Gbit/s", "10 Mbit/s", "100 Mbit/s"], [1e9, 1e7, 1e8], (10.0, 100.0, 1000.0), "rate"),
        ("n_flows", ["16", "2", "4"], [16, 2, 4], (2.0, 4.0, 16.0), "flows"),
    ],
)
def test_a_varied_number_is_an_axis_in_ascending_order_of_its_value(column, texts, values, shown, slug):
    runs = pd.DataFrame({"axis_key": texts, column: values, "ccas": "cubic"})
    (axis,) = varied(runs)
    assert axis.shown == pytest.approx(shown)
    assert (axis.slug, axis.condition.column) == (slug, column)


def test_an_axis_that_no_column_agrees_with_is_a_row_of_names():
    runs = pd.DataFrame({"axis_loss": ["1 %", "2 %"], "loss_ratio": [0.01, 0.03], "ccas": "cubic"})
    (axis,) = varied(runs)
    assert axis.shown is None
    assert axis.place_of("2 %") == "2 %"


def test_the_congestion_control_is_a_colour_and_never_an_axis():
    runs = pd.DataFrame({"axis_rival": ["bbr1", "reno"], "ccas": ["bbr1,cubic", "cubic,reno"]})
    assert varied(runs) == ()


def test_an_axis_with_a_zero_is_linear_because_a_logarithm_would_hide_it():
    runs = pd.DataFrame({"axis_loss": ["0 %", "1 %"], "loss_ratio": [0.0, 0.01], "ccas": "cubic"})
    (axis,) = varied(runs)
    assert not axis.log


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30, unique=True))
def test_labelled_ticks_stand_at_values_that_were_run_and_a_quarter_decade_apart(values):
    ticks = ticks_at(tuple(sorted(values)))["tickvals"]
    assert set(ticks) <= set(values)
    assert (np.diff(np.log10(ticks)) >= 0.2499).all()


# Sweeps


def draw(run_set, column="goodput_bps", **changes):
    axes = varied(run_set.runs)
    chosen = Sweep(measure=BY_COLUMN[column], axis=axes[0] if axes else None, **changes)
    return sweep.draw(run_set, chosen, palette=catalogue.palette_of(run_set), published=None)


def test_every_run_is_a_point_with_its_identity(f10):
    shown = [
        identity[0] for trace in draw(f10).data if trace.mode == "markers" for identity in trace.customdata
    ]
    assert sorted(shown) == sorted(f10.runs["cell_id"])


def test_a_cell_that_is_not_certified_is_shown_and_not_averaged(f10):
    figure = draw(f10)
    (excluded,) = traces(figure, "not certified, not averaged")
    assert [identity[0] for identity in excluded.customdata] == ["cca=cubic,loss=0.1%,r2"]
    (cubic,) = traces(figure, "cubic")
    certified = f10.certified
    here = certified[certified["condition"] == "cca=cubic,loss=0.1%"]["goodput_bps"]
    assert len(here) == 2
    assert cubic.y[cubic.x.index(0.1)] == pytest.approx(here.mean() / 1e6)


def test_the_intervals_drawn_are_those_of_the_summary(f10):
    (bbr1,) = traces(draw(f10), "bbr1")
    summary = summarise(f10.runs, ["goodput_bps"]).set_index("condition")
    high = [summary.loc[f"cca=bbr1,loss={loss}%", "high"] / 1e6 for loss in ("0.001", "0.1", "15")]
    assert [y + error for y, error in zip(bbr1.y, bbr1.error_y.array, strict=True)] == pytest.approx(high)


def test_a_single_run_has_a_mean_without_error_bars(f10):
    one = synthetic.changed(f10, runs=f10.runs[f10.runs["repetition"] == 1])
    (bbr1,) = traces(draw(one), "bbr1")
    assert list(bbr1.error_y.array) == [None, None, None]


def test_a_seed_of_63_bits_reaches_the_reader_unrounded(f10):
    seed = 2**62 + 1
    changed = synthetic.changed(f10, runs=f10.runs.assign(seed=seed))
    assert {identity[1] for identity in draw(changed).data[0].customdata} == {str(seed)}


def test_groups_of_flows_are_series_with_the_bytes_of_their_flows_over_the_time_that_they_ran(f10):
    """The second cubic follows the first: neither is alone as fast as a sum of both would be."""
    cell_id = "cca=bbr1,loss=15%,r1"
    rows = [
        ("bbr1", "bbr1", 30e6, 0.0, 10.0),
        ("cubic", "cubic", 2e6, 0.0, 5.0),
        ("cubic", "cubic", 8e6, 5.0, 5.0),
    ]
    flows = pd.DataFrame(
        [
            {"cell_id": cell_id, "group": g, "cca": c, "goodput_bps": bps, "flow": i, "start_s": start,
             "receiver_zero_s": start, "received_bytes": bps / 8 * seconds, "receiver_s": seconds}
            for i, (g, c, bps, start, seconds) in enumerate(rows)
        ]
    )  # fmt: skip
    mixed = synthetic.changed(f10, flows=flows, runs=f10.runs.assign(ccas="bbr1,cubic"))
    figure = draw(mixed, by_group=True)
    assert {name: list(traces(figure, name)[0].y) for name in ("bbr1", "cubic")} == {
        "bbr1": [30.0],
        "cubic": [5.0],
    }


def test_a_group_whose_flows_all_failed_has_no_point_instead_of_a_zero(f10):
    received = f10.flows["received_bytes"].where(f10.flows["cca"] != "cubic")
    flows = f10.flows.assign(received_bytes=received)
    figure = draw(synthetic.changed(f10, flows=flows), by_group=True)
    assert not traces(figure, "cubic")
    assert traces(figure, "bbr1")


# Published values


def test_published_values_of_the_same_rate_are_drawn_as_they_were_read(f10):
    (axis,) = varied(f10.runs)
    found = published.find(f10, BY_COLUMN["goodput_bps"], axis, {})
    cubic = found.series[(found.series["cca"] == "cubic") & np.isclose(found.series["x"], 0.1)]
    assert list(cubic["y"]) == pytest.approx([6.6])  # read from the figure: notes of Cardwell et al., Fig. 10
    assert found.remark == ""


def test_published_rates_of_a_faster_link_are_drawn_as_the_same_share_of_ours(e1):
    (axis,) = varied(e1.runs)
    found = published.find(e1, BY_COLUMN["goodput_bps"], axis, {})
    bbr1 = found.series[(found.series["cca"] == "bbr1") & np.isclose(found.series["x"], 61.0)]
    assert list(bbr1["y"]) == pytest.approx([8701 / 50], rel=1e-3)  # 8.701 of 10 Gbit/s, on 200 Mbit/s
    assert found.remark == "scaled from 10 Gbit/s to 200 Mbit/s"


def test_a_panel_takes_the_series_of_its_own_value_and_not_of_one_that_ends_like_it():
    """1 BDP is the end of 0.1 BDP, as 50 Mbit/s is of 250 Mbit/s."""
    found = published.in_panel(references.published_series("kfoury_5_4", "goodput_bps"), {"buffer": "1 BDP"})
    assert {label.split(" (")[0] for label in found["label"]} == {
        "bbr1, 1 BDP",
        "bbr2, 1 BDP",
        "cubic, 1 BDP",
    }
    rate = {"rate": "50 Mbit/s", "buffer": "100 KiB"}
    found = published.in_panel(references.published_series("fund2023", "goodput_bps"), rate)
    assert len(found) == 3 * 8
    assert found["y"].max() < 50e6


def test_published_counts_of_a_faster_link_are_not_drawn(e1):
    (axis,) = varied(e1.runs)
    assert published.find(e1, BY_COLUMN["retransmits"], axis, {}) is None


def test_published_points_are_hollow_and_say_how_they_were_read(f10):
    figure = figures.figure(f10, "goodput_by_loss")
    (trace,) = traces(figure, "bbr1, published, read from a figure")
    (own,) = traces(figure, "bbr1")
    assert trace.marker.symbol == f"{own.marker.symbol}-open"
    assert trace.marker.color == own.marker.color


# Throughput, retransmissions and queue in one


def at_the_papers_rate(run_set):
    """The same runs on a link of 10 Gbit/s, for whose counts something was published."""
    return synthetic.changed(run_set, runs=run_set.runs.assign(rate_bps=10_000_000_000))


def rows_of(figure):
    """Row of the overview, from 1, → its traces."""
    return {
        row: [trace for trace in figure.data if trace.yaxis == axis]
        for row, axis in enumerate(("y", "y2", "y3"), start=1)
    }


def test_an_overview_over_rtt_has_every_run_in_each_of_its_three_rows(e1):
    rows = rows_of(figures.figure(e1, "overview_by_rtt"))
    for traces_ in rows.values():
        shown = [identity[0] for trace in traces_ if trace.mode == "markers" for identity in trace.customdata]
        assert sorted(shown) == sorted(e1.runs["cell_id"])


def test_the_overview_has_one_legend_with_each_name_once(e1):
    figure = figures.figure(at_the_papers_rate(e1), "overview_by_rtt")
    names = [trace.name for trace in figure.data if trace.showlegend]
    assert len(names) == len(set(names))
    assert {trace.name for trace in figure.data if "each run" not in trace.name} == set(names)


@pytest.mark.parametrize(("prepare", "rows"), [(lambda run_set: run_set, {1}), (at_the_papers_rate, {1, 2})])
def test_published_counts_lie_over_runs_of_their_own_rate_only(e1, prepare, rows):
    drawn = rows_of(figures.figure(prepare(e1), "overview_by_rtt"))
    with_published = {row for row, traces_ in drawn.items() if any("published" in t.name for t in traces_)}
    assert with_published == rows


def test_an_overview_is_of_single_flows_over_rtt_and_nothing_else(e1, f10):
    assert "overview_by_rtt" in figures.figure_names(e1)
    assert not [name for name in figures.figure_names(f10) if name.startswith("overview")]
    rivals = synthetic.changed(e1, runs=e1.runs.assign(ccas="bbr1,cubic", n_flows=2))
    assert "overview_by_rtt" not in figures.figure_names(rivals)


def test_a_quantity_that_only_follows_another_axis_does_not_split_a_figure_and_a_name_does():
    """The buffer of knit6_e1 is zipped to its RTT."""
    frame = pd.DataFrame(
        {
            "axis_rtt": ["0.3 ms", "27 ms", "72 ms"],
            "rtt_s": [0.0003, 0.027, 0.072],
            "axis_buffer": ["250 packets", "1 BDP", "1 BDP"],
            "ccas": "cubic",
        }
    )
    assert [axis.key for axis in varied(frame)] == ["rtt"]
    named = frame.assign(axis_buffer=["taildrop", "fq_codel", "fq_codel"])
    assert [axis.key for axis in varied(named)] == ["rtt", "buffer"]
    other_name = named.assign(axis_rtt=["near", "far", "far"], rtt_s=None)
    assert len(varied(other_name)) == 1
    free = pd.concat([frame, frame.assign(axis_buffer="2 BDP")])
    assert [axis.key for axis in varied(free)] == ["rtt", "buffer"]


# Heat maps of our own


def two_axes(holes=()):
    """Two runs of each condition over loss and RTT; goodput is 100 Mbit/s over both counts."""
    rows = [
        {
            "cell_id": f"{cca}{loss}{rtt}{run}", "condition": f"{cca}{loss}{rtt}", "ccas": cca,
            "seed": 1, "repetition": 1 if run < 1 else 2,
            "status": "failed" if (cca, loss, rtt) in holes else "certified",
            "axis_loss": f"{loss} %", "loss_ratio": loss / 100, "axis_rtt": f"{rtt} ms", "rtt_s": rtt / 1e3,
            "goodput_bps": (1 if cca == "cubic" else 2) * 100e6 * run / (loss * rtt), "rate_bps": 1e9,
        }
        for cca in ("cubic", "bbr1") for loss in (1, 2, 5) for rtt in (10, 40) for run in (0.9, 1.1)
    ]  # fmt: skip
    runs = pd.DataFrame(rows)
    flows = runs[["cell_id"]].assign(flow=1, group=runs["ccas"], cca=runs["ccas"])
    return RunSet.from_frames({"runs": runs, "cells": runs, "flows": flows}, experiment="mine")


def test_a_heat_map_has_the_mean_of_each_condition_where_its_axes_cross():
    run_set = two_axes()
    figure = figures.figure(run_set, "goodput_map_by_loss_and_rtt")
    bbr1, cubic = figure.data
    assert [note.text for note in figure.layout.annotations] == ["bbr1", "cubic"]
    assert [list(cubic.x), list(cubic.y)] == [["1", "2", "5"], ["10", "40"]]
    expected = np.array([[10, 5, 2], [2.5, 1.25, 0.5]])
    assert np.array(cubic.z, dtype=float) == pytest.approx(expected)
    assert np.array(bbr1.z, dtype=float) == pytest.approx(2 * expected)


def test_a_condition_without_a_certified_run_is_a_hole_in_the_map():
    figure = figures.figure(two_axes(holes={("cubic", 2, 40)}), "goodput_map_by_loss_and_rtt")
    cubic = np.array(figure.data[1].z, dtype=float)
    assert np.isnan(cubic[1, 1])
    assert np.isnan(cubic).sum() == 1


def test_one_axis_has_no_map(f10):
    assert not [name for name in figures.figure_names(f10) if "_map_by_" in name]


# Beside a published grid


def fund_runs(rates=(50e6, 250e6), rtts=(0.005, 0.05, 0.2), buffers=(102_400, 10_240_000), gain=0.5):
    """Two runs of each condition; BBR carries ``1 + gain`` times what CUBIC does."""
    conditions = itertools.product(("cubic", "bbr1"), buffers, rates, rtts, (0.9, 1.1))
    rows = [
        {
            "cell_id": str(number), "condition": str(number // 2), "status": "certified", "ccas": cca,
            "buffer_bytes": float(buffer), "rate_bps": rate, "rtt_s": rtt,
            "goodput_bps": wobble * 0.5 * rate * (1 if cca == "cubic" else 1 + gain),
        }
        for number, (cca, buffer, rate, rtt, wobble) in enumerate(conditions)
    ]  # fmt: skip
    return RunSet.from_frames({"runs": pd.DataFrame(rows)}, experiment="fund2023")


def test_heat_maps_have_our_gain_on_the_left_and_the_published_one_on_the_right():
    beside = grid.find(fund_runs())
    shallow, deep = beside.panels
    assert (shallow.label, deep.label) == ("buffer 102.4 kB", "buffer 10240 kB")
    assert beside.compared == ("bbr1",)
    ours, theirs = grid.heat_maps(beside, shallow).data
    assert [list(ours.x), list(ours.y)] == [["5", "50", "200"], ["50", "250"]]
    assert np.array(ours.z, dtype=float) == pytest.approx(np.full((2, 3), 50.0))
    # The authors' own percentages at 50 and 250 Mbit/s.
    assert np.array(theirs.z, dtype=float) == pytest.approx(
        np.array([[-1.4, -1.6, 25.0], [1.4, 65.2, 265.1]]), abs=0.06
    )


def test_the_scatter_has_each_condition_with_the_spread_of_both():
    figure = grid.scatter(grid.find(fund_runs()), Palette.of([]))
    points = {trace.name: trace for trace in figure.data if trace.mode == "markers"}
    assert set(points) == {
        f"{cca}, buffer {size} kB" for cca in ("cubic", "bbr1") for size in ("102.4", "10240")
    }
    cubic = points["cubic, buffer 102.4 kB"]
    at = [each[0] for each in cubic.customdata].index("bottleneck rate 250 Mbit/s, propagation RTT 200 ms")
    assert (cubic.x[at], cubic.error_x.array[at]) == pytest.approx((59.1, 10.34), abs=0.06)
    assert (cubic.y[at], cubic.error_y.array[at]) == pytest.approx((125.0, np.std([112.5, 137.5], ddof=1)))


def test_runs_that_are_not_certified_are_not_beside_the_published():
    whole = fund_runs()
    runs = whole.runs.assign(status=["refused", *["certified"] * (len(whole.runs) - 1)])
    beside = grid.find(RunSet.from_frames({"runs": runs}, experiment="fund2023"))
    assert sorted(beside.table["ours_n"].unique()) == [1, 2]


def test_where_nothing_was_published_our_gain_stands_alone():
    """A buffer of 1 MB is what a reader asks about next."""
    beside = grid.find(fund_runs(buffers=(1_000_000,)))
    (panel,) = beside.panels
    (ours,) = grid.heat_maps(beside, panel).data
    assert np.array(ours.z, dtype=float) == pytest.approx(np.full((2, 3), 50.0))
    assert list(grid.names(beside)) == ["goodput_gain_beside_published[buffer 1000 kB]"]


def test_the_report_has_the_heat_maps_of_each_buffer_and_the_scatter():
    maps, points = grid_slots(fund_runs(), Palette.of([]), "e1")
    assert [option.label for option in maps.options] == ["buffer 102.4 kB", "buffer 10240 kB"]
    assert maps.title == "Gain in goodput over cubic, here and published"
    assert len(points.options) == 1
    (alone,) = grid_slots(fund_runs(buffers=(1_000_000,)), Palette.of([]), "e1")
    assert [option.label for option in alone.options] == ["buffer 1000 kB"]
    assert "published" not in alone.title
    assert "measured none of these" in alone.caption


def test_the_baseline_alone_gains_nothing_and_is_still_beside_the_published():
    runs = fund_runs().runs
    beside = grid.find(RunSet.from_frames({"runs": runs[runs["ccas"] == "cubic"]}, experiment="fund2023"))
    assert list(grid.names(beside)) == ["goodput_against_published"]


def test_a_bbr_without_the_baseline_has_no_gain_and_is_still_beside_the_published():
    runs = fund_runs().runs
    beside = grid.find(RunSet.from_frames({"runs": runs[runs["ccas"] == "bbr1"]}, experiment="fund2023"))
    assert list(grid.names(beside)) == ["goodput_against_published"]


@pytest.mark.parametrize("few", [{"rates": (50e6,)}, {"rtts": (0.005,)}], ids=["row", "column"])
def test_there_is_no_heat_map_of_a_single_line(few):
    assert grid.find(fund_runs(**few, buffers=(102_400,))) is None


def test_a_small_grid_crosses_the_axes_that_vary_most():
    beside = grid.find(fund_runs(rates=(50e6,)))
    assert (beside.across.column, beside.up.column, len(beside.panels)) == ("rtt_s", "buffer_bytes", 1)


def kfoury_runs():
    """Two runs of each condition at two rates and delays; without loss tables have none, not zero."""
    conditions = itertools.product((0.1, 1.0), (20e6, 1e9), (0.01, 0.1), (None, 1e-4), (0.7, 0.9))
    rows = [
        {
            "cell_id": str(number), "condition": str(number // 2),
            "status": "certified", "ccas": "bbr2,cubic",
            "buffer_bdp": buffer, "rate_bps": rate, "rtt_s": rtt, "loss_ratio": loss, "jain_flows": index,
        }
        for number, (buffer, rate, rtt, loss, index) in enumerate(conditions)
    ]  # fmt: skip
    return RunSet.from_frames({"runs": pd.DataFrame(rows)}, experiment="kfoury_5_5c")


def test_kfourys_grid_of_fairness_has_a_panel_for_each_buffer_and_loss():
    beside = grid.find(kfoury_runs())
    assert beside.title == "Jain's index over flows, here and published"
    assert [panel.label for panel in beside.panels] == [
        f"buffer {buffer} BDP, random loss {loss} %" for buffer in ("0.1", "1") for loss in ("0", "0.01")
    ]
    ours, theirs = grid.heat_maps(beside, beside.panels[0]).data
    assert [list(ours.x), list(ours.y)] == [["10", "100"], ["20", "1000"]]
    assert np.array(ours.z, dtype=float) == pytest.approx(np.full((2, 2), 0.8))
    # From the labels of Fig. 13(a): 8 and 1 % of the link at 20 Mbit/s and 10 ms.
    assert float(theirs.z[0][0]) == pytest.approx(81 / (2 * 65), abs=0.0005)


def test_an_experiment_without_a_published_grid_has_none(f10):
    assert grid.find(f10) is None


# Inside a run


def test_the_representative_is_the_certified_run_nearest_to_the_median():
    runs = pd.DataFrame(
        {
            "cell_id": ["a", "b", "c", "d"],
            "condition": "x",
            "repetition": [1, 2, 3, 4],
            "goodput_bps": [1.0, 5.0, 9.0, 5.1],
            "status": ["certified", "certified", "certified", "uncertified"],
        }
    )
    assert list(timeline.representative_cells(runs)["cell_id"]) == ["b"]


def test_a_condition_without_a_certified_run_is_shown_by_its_first():
    runs = pd.DataFrame(
        {
            "cell_id": ["a", "b", "c"],
            "condition": ["x", "y", "y"],
            "repetition": [1, 2, 1],
            "goodput_bps": [1.0, None, 2.0],
            "status": ["certified", "failed", "uncertified"],
        }
    )
    assert list(timeline.representative_cells(runs)["cell_id"]) == ["a", "c"]


def test_no_trace_over_time_has_more_points_than_asked(f10):
    figure = figures.figure(f10, "over_time[loss=15%]", points_per_trace=20)
    assert max(len(trace.x) for trace in figure.data) <= 20
    assert {trace.name for trace in figure.data} >= {"bbr1", "cubic"}


def test_flows_that_share_a_congestion_control_are_told_apart(f10):
    cell_id = "cca=bbr1,loss=15%,r1"
    own = f10.intervals[f10.intervals["cell_id"] == cell_id]
    flows = f10.flows[f10.flows["cell_id"] == cell_id]
    both = synthetic.changed(
        f10,
        flows=pd.concat([flows, flows.assign(flow=1, receiver_zero_s=20.0)]),
        intervals=pd.concat([own, own.assign(flow=1)]),
    )
    figure = timeline.over_time(both, [cell_id], palette=catalogue.palette_of(f10))
    (first,), (second,) = traces(figure, "bbr1, flow 0")[:1], traces(figure, "bbr1, flow 1")
    assert (first.line.color, first.line.dash) != (second.line.color, second.line.dash)
    assert second.x[0] - first.x[0] == pytest.approx(20.0)


def test_parallel_streams_of_a_flow_are_summed_though_their_clocks_differ_by_microseconds(f10):
    cell_id = "cca=bbr1,loss=15%,r1"
    own = f10.intervals[f10.intervals["cell_id"] == cell_id]
    late = own.assign(stream=1, start_s=own["start_s"] + 6e-5, end_s=own["end_s"] + 6e-5)
    two = synthetic.changed(f10, intervals=pd.concat([own, late]))
    palette = catalogue.palette_of(f10)
    one, both = (
        traces(timeline.over_time(each, [cell_id], palette=palette), "bbr1")[0] for each in (f10, two)
    )
    assert list(both.y) == pytest.approx([2 * y for y in one.y])


def asked(run_set, **changes):
    """The run set as if its cells had been asked for this too."""
    cells = tuple(cell.model_copy(update=changes) for cell in run_set.manifest.cells)
    return synthetic.changed(run_set, manifest=run_set.manifest.model_copy(update={"cells": cells}))


def step(at, **changes):
    return Step(at=Duration.parse(at), link="trunk", **changes)


def starting(cell, *starts, **changes):
    """The flow of a cell several times: (group, start) of each."""
    (flow,) = cell.flows
    flows = [
        flow.model_copy(update={"index": place, "group": group, "start": Duration.parse(at), **changes})
        for place, (group, at) in enumerate(starts)
    ]
    return cell.model_copy(update={"flows": tuple(flows)})


SLOW, FAST = Rate.parse("10 Mbit/s"), Rate.parse("100 Mbit/s")
SLOWER_FOR_TEN_SECONDS = (step("20 s", rate=SLOW), step("30 s", rate=FAST, buffer_bytes=250_000))


def test_steps_are_marked_over_all_rows_and_the_rate_that_held_is_drawn_with_the_goodput(f10):
    figure = figures.figure(asked(f10, steps=SLOWER_FOR_TEN_SECONDS), "over_time[loss=15%]")
    assert [shape.x0 for shape in figure.layout.shapes] == [20.0, 30.0]
    assert [note.text for note in figure.layout.annotations] == [
        "rate 10 Mbit/s",
        "rate 100 Mbit/s, buffer 250 kB",
    ]
    (rate,) = traces(figure, "rate of the bottleneck")
    assert (list(rate.x[:3]), list(rate.y)) == ([0.0, 20.0, 30.0], [100.0, 10.0, 100.0, 100.0])
    assert rate.yaxis == traces(figure, "bbr1")[0].yaxis


def test_without_steps_and_later_starts_nothing_is_marked(f10):
    figure = figures.figure(f10, "over_time[loss=15%]")
    assert not figure.layout.shapes
    assert not figure.layout.annotations
    assert not traces(figure, "rate of the bottleneck")


def test_a_trace_of_many_steps_is_a_line_and_not_a_fence_of_marks(f10):
    many = tuple(step(f"{number} s", rate=SLOW) for number in range(1, 40))
    figure = figures.figure(asked(f10, steps=many), "over_time[loss=15%]")
    assert not figure.layout.shapes
    assert len(traces(figure, "rate of the bottleneck")) == 1


def test_groups_that_start_later_are_events_and_each_of_their_flows_has_a_mark(f10):
    cell = starting(f10.manifest.cells[0], ("old", "0 s"), ("new", "10 s"), ("new", "15 s"))
    found = [(event.at_s, event.text) for event in events.events([cell])]
    assert found == [(10.0, "new starts (2 flows until 15 s)"), (15.0, "")]
    assert events.something_changes(cell)


def test_flows_that_only_follow_one_another_within_a_group_are_no_change_of_the_run(f10):
    together = starting(f10.manifest.cells[0], ("one", "0 s"), ("one", "1 s"))
    assert not events.something_changes(together)
    assert events.something_changes(together.model_copy(update={"steps": SLOWER_FOR_TEN_SECONDS}))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), min_size=1, max_size=40))
def test_events_come_in_the_order_of_time_and_each_instant_once(starts):
    run = synthetic.CARDWELL_F10
    cell = starting(next(synthetic._cells(run, 1)), *((group, f"{at} s") for group, at in starts))
    instants = [event.at_s for event in events.events([cell])]
    assert instants == sorted(set(instants))
    assert {at for at in instants if at not in {at for _, at in starts}} == set()
    assert len(instants) <= events.MOST_MARKS


def test_words_at_marks_that_are_near_one_another_stand_at_different_heights(f10):
    near = (step("20 s", rate=SLOW), step("21 s", rate=FAST), step("50 s", rate=SLOW))
    figure = figures.figure(asked(f10, steps=near), "over_time[loss=15%]")
    heights = [note.yshift for note in figure.layout.annotations]
    assert heights[0] != heights[1]
    assert heights[0] == heights[2]


def rivals(f10):
    """Two cells at one loss in which CUBIC runs beside either BBR."""
    cell_ids = ["cca=bbr1,loss=15%,r1", "cca=cubic,loss=15%,r1"]
    own = f10.flows[f10.flows["cell_id"].isin(cell_ids)]
    first = own.assign(flow=0, group="old", cca="cubic")
    second = own.assign(flow=1, group="new", cca=["bbr1", "bbr2"])
    runs = f10.runs[f10.runs["cell_id"].isin(cell_ids)].drop(columns=["axis_loss"])
    runs = runs.assign(axis_joins=["bbr1", "bbr2"], axis_cca="x", ccas=["bbr1,cubic", "bbr2,cubic"])
    samples = f10.intervals[f10.intervals["cell_id"].isin(cell_ids)]
    both = pd.concat([samples, samples.assign(flow=1)])
    return synthetic.changed(
        f10, flows=pd.concat([first, second]), runs=runs, cells=runs, intervals=both
    ), cell_ids


def test_every_curve_of_a_panel_has_a_name_and_a_look_of_its_own(f10):
    both, cell_ids = rivals(f10)
    figure = timeline.over_time(both, cell_ids, palette=catalogue.palette_of(both))
    goodput = [trace for trace in figure.data if trace.yaxis == "y"]
    assert {trace.name for trace in goodput} == {
        "cubic (old) [joins=bbr1]",
        "cubic (old) [joins=bbr2]",
        "bbr1 (new)",
        "bbr2 (new)",
    }
    assert len({(trace.line.color, trace.line.dash) for trace in goodput}) == 4
    in_the_legend = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert sorted(in_the_legend) == sorted({trace.name for trace in figure.data})


def test_a_legend_of_many_flows_names_their_groups(f10):
    cell_id = "cca=bbr1,loss=15%,r1"
    flows = f10.flows[f10.flows["cell_id"] == cell_id]
    own = f10.intervals[f10.intervals["cell_id"] == cell_id]
    many = synthetic.changed(
        f10,
        flows=pd.concat([flows.assign(flow=n, group="a" if n % 2 else "b") for n in range(30)]),
        intervals=pd.concat([own.assign(flow=n) for n in range(30)]),
    )
    figure = timeline.over_time(many, [cell_id], palette=catalogue.palette_of(f10))
    shown = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert sorted(shown) == ["bbr1 (a)", "bbr1 (b)", "queue"]
    assert len({trace.line.color for trace in figure.data if trace.name == "bbr1 (a)"}) == 1


def test_the_means_of_a_group_are_not_mixed_over_its_rivals(f10):
    both, _ = rivals(f10)
    names = {trace.name for trace in draw(both, by_group=True).data if trace.showlegend is not False}
    assert names == {"cubic (old) [joins=bbr1]", "cubic (old) [joins=bbr2]", "bbr1 (new)", "bbr2 (new)"}
    marks = [trace.marker for trace in draw(both, by_group=True).data if trace.name in names]
    assert len({(mark.color, mark.symbol) for mark in marks}) == 4


def test_what_runs_no_congestion_control_is_drawn_in_grey_by_the_name_of_its_group(f10):
    cell_id = "cca=bbr1,loss=15%,r1"
    own = f10.intervals[f10.intervals["cell_id"] == cell_id]
    flows = f10.flows[f10.flows["cell_id"] == cell_id]
    udp = flows.assign(flow=1, group="video", cca=None)
    both = synthetic.changed(
        f10, flows=pd.concat([flows, udp]), intervals=pd.concat([own, own.assign(flow=1)])
    )
    over_time = timeline.over_time(both, [cell_id], palette=catalogue.palette_of(both))
    (curve,) = [trace for trace in traces(over_time, "video") if trace.yaxis == "y"]
    (mean,) = traces(draw(both, by_group=True), "video")
    assert curve.line.color == mean.marker.color == "#8A8F98"
    assert figures.figure(both, "rtt_cdf[loss=15%]").data


# Distributions


@pytest.mark.parametrize(
    ("name", "column", "factor"), [("rtt", "rtt_s", 1e3), ("queue", "backlog_bytes", 1e-3)]
)
def test_a_distribution_has_the_quantiles_of_all_samples_of_its_runs(f10, name, column, factor):
    figure = figures.figure(f10, f"{name}_cdf[loss=15%]")
    (curve,) = traces(figure, "bbr1")
    samples = f10.sockets() if name == "rtt" else f10.queues()
    kept = samples["side"] == "sender" if name == "rtt" else samples["role"] == "bottleneck"
    own = samples[kept & samples["cell_id"].str.startswith("cca=bbr1,loss=15%") & (samples["t_s"] >= 0)]
    assert own["cell_id"].nunique() == 3
    values = own[column] * factor
    for x, share in zip(curve.x, curve.y, strict=True):
        assert (values <= x * (1 + 1e-6)).mean() >= share - 1e-6
        assert (values < x * (1 - 1e-6)).mean() <= share + 1e-6


def test_the_band_of_a_distribution_holds_the_curve(f10):
    figure = figures.figure(f10, "rtt_cdf[loss=15%]")
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    curves = [trace for trace in figure.data if trace.fill is None]
    assert len(bands) == len(curves) == 2
    for band, curve in zip(bands, curves, strict=True):
        half = len(curve.x)
        lowest, highest = np.array(band.x[:half]), np.array(band.x[half:])[::-1]
        assert (lowest <= np.array(curve.x) * (1 + 1e-6)).all()
        assert (np.array(curve.x) <= highest * (1 + 1e-6)).all()


def test_completion_times_are_of_the_flows_with_a_size_alone(f10):
    assert not [name for name in figures.figure_names(f10) if name.startswith("completion_cdf")]
    cells = [cell.model_copy(update={"flows": (_sized(cell.flows[0]),)}) for cell in f10.manifest.cells]
    sized = synthetic.changed(
        f10,
        manifest=f10.manifest.model_copy(update={"cells": tuple(cells)}),
        flows=f10.flows.assign(completion_s=np.arange(len(f10.flows), dtype=float)),
    )
    (curve,) = traces(figures.figure(sized, "completion_cdf[loss=15%]"), "cubic")
    own = sized.flows[sized.flows["cell_id"].str.startswith("cca=cubic,loss=15%")]["completion_s"]
    assert (curve.x[0], curve.x[-1]) == (own.min(), own.max())


def test_a_flow_that_did_not_complete_keeps_the_curve_below_all(f10):
    cells = [cell.model_copy(update={"flows": (_sized(cell.flows[0]),)}) for cell in f10.manifest.cells]
    here = [cell.id for cell in cells if "loss=0.1%" in cell.id and "cca=bbr1" in cell.id]
    times = dict(zip(here, (3.0, None, 1.0), strict=True))
    run_set = synthetic.changed(
        f10,
        manifest=f10.manifest.model_copy(update={"cells": tuple(cells)}),
        flows=f10.flows.assign(completion_s=f10.flows["cell_id"].map(times).astype(float)),
    )
    (curve,) = traces(figures.figure(run_set, "completion_cdf[loss=0.1%]"), "bbr1")
    assert set(curve.x) == {1.0, 3.0}
    assert max(curve.y) == pytest.approx(2 / 3, abs=0.005)


def _sized(flow):
    return flow.model_copy(update={"duration": None, "size": Size.parse("1 MB")})


def test_where_the_rate_steps_the_estimate_is_drawn_over_time_against_the_rate_that_held(f10):
    stepped = asked(f10, steps=SLOWER_FOR_TEN_SECONDS)
    figure = figures.figure(stepped, "bandwidth_estimate[loss=0.1%]")
    (rate,) = traces(figure, "rate of the bottleneck")
    assert list(rate.y) == [100.0, 10.0, 100.0, 100.0]
    assert len(traces(figure, "bbr1")) == 3
    assert all((np.diff(curve.x) >= 0).all() for curve in traces(figure, "bbr1"))
    (reference,) = traces(figures.figure(f10, "bandwidth_estimate[loss=0.1%]"), "rate of the bottleneck")
    assert list(reference.x) == [100.0, 100.0]


def test_the_bandwidth_estimate_is_drawn_for_bbr_alone_and_rises_from_0_to_1(f10):
    figure = figures.figure(f10, "bandwidth_estimate[loss=0.1%]")
    curves = traces(figure, "bbr1")
    assert len(curves) == 3
    assert {trace.name for trace in figure.data} == {"bbr1", "rate of the bottleneck"}
    for curve in curves:
        assert (np.diff(curve.x) >= 0).all()
        assert (curve.y[0], curve.y[-1]) == (0.0, 1.0)


def timed(f10, timed_ids, rows):
    """The run set with some cells' packets timed: ``(role, flow, sojourn_s)`` in each of them."""
    packets = pd.DataFrame(
        [
            {"cell_id": cell_id, "link": "trunk", "role": role, "flow": flow, "sojourn_s": sojourn_s}
            for cell_id in timed_ids
            for role, flow, sojourn_s in rows
        ]
    )
    delays = f10.runs["cell_id"].isin(timed_ids).map({True: 0.02, False: float("nan")})
    return synthetic.changed(f10, runs=f10.runs.assign(queue_delay_p50_s=delays), packets=packets)


def test_the_delay_of_packets_is_drawn_for_cells_that_timed_them_in_ms_of_data_that_left(f10):
    cell_id = f10.cells.loc[f10.cells["axis_loss"] == "0.1 %", "cell_id"].iloc[0]
    data = [("bottleneck", 0, 0.001 * number) for number in range(101)]
    others = [("bottleneck", float("nan"), 9.0), ("bottleneck", 0, float("nan")), ("delay", 0, 9.0)]
    run_set = timed(f10, [cell_id], data + others)
    names = [name for name in figures.figure_names(run_set) if name.startswith("queue_delay[")]
    assert names == ["queue_delay[loss=0.1%]"]
    (curve,) = figures.figure(run_set, names[0]).data
    assert (curve.x[0], curve.x[100], curve.x[-1]) == pytest.approx((0, 50, 100))
    assert (curve.y[0], curve.y[100], curve.y[-1]) == (0, 0.5, 1)


# The catalogue


def test_a_run_without_timed_packets_has_no_figure_of_their_delays(f10):
    assert not [name for name in figures.figure_names(f10) if name.startswith("queue_delay[")]


def test_a_run_without_a_bbr_has_an_empty_figure_of_estimates(f10):
    sockets = f10.sockets().assign(bbr_bw_bps=float("nan"))
    assert not figures.figure(synthetic.changed(f10, sockets=sockets), "bandwidth_estimate[loss=15%]").data


def test_every_name_of_the_catalogue_draws_a_figure(f10, e1):
    for run_set in (f10, e1):
        for name in figures.figure_names(run_set):
            assert figures.figure(run_set, name).layout.height > 0


def test_an_unknown_figure_is_refused_with_the_names_that_exist(f10):
    with pytest.raises(AnalysisError, match="goodput_by_loss"):
        figures.figure(f10, "goodput_by_moon")


def test_two_axes_give_one_figure_for_each_value_of_the_second(f10):
    halves = [
        f10.runs.assign(
            axis_rtt=text,
            rtt_s=value,
            condition=f10.runs["condition"] + text,
            cell_id=f10.runs["cell_id"] + text,
        )
        for text, value in (("26 ms", 0.026), ("57 ms", 0.057))
    ]
    both = synthetic.changed(f10, runs=pd.concat(halves, ignore_index=True))
    panels = [entry.name for entry in catalogue.entries(both) if entry.name.startswith("goodput")]
    assert panels == ["goodput_by_loss[rtt 26 ms]", "goodput_by_loss[rtt 57 ms]"]


def test_a_figure_that_papers_have_comes_first(e1):
    found = catalogue.entries(e1)
    assert found[0].published is not None
    assert [entry.published is None for entry in found] == sorted(entry.published is None for entry in found)


def test_every_quantity_with_a_dimension_names_its_unit():
    pure_numbers = {"jain_flows", "jain_groups", "n_flows"}
    for quantity in (*MEASURES, *CONDITIONS):
        assert bool(quantity.unit) == (quantity.column not in pure_numbers), quantity.column


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (("100 kB", "10 MB", "1 MB"), ["100 kB", "1 MB", "10 MB"]),
        (("2 s", "500 ms"), ["500 ms", "2 s"]),
        (("red", "cake", "10"), ["10", "cake", "red"]),
    ],
)
def test_values_that_no_column_holds_stand_in_the_order_of_what_they_measure(texts, order):
    runs = pd.DataFrame({"ccas": "cubic", "axis_size": list(texts)})
    (axis,) = varied(runs)
    assert list(axis.texts) == order

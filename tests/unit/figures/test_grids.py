"""Heat maps of our own, and beside a published grid."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from fabbbr_analysis import figures
from fabbbr_analysis.figures import grid
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.report.slots import grid_slots
from fabbbr_analysis.runset import RunSet

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


def test_where_an_axis_hangs_on_what_is_held_there_is_no_map():
    """An AQM that goes with the round trip, as under zip."""
    both = two_axes().runs
    both = both.assign(axis_aqm=both["axis_rtt"].map({"10 ms": "taildrop", "40 ms": "pie"}))
    flows = both[["cell_id"]].assign(flow=1, group=both["ccas"], cca=both["ccas"])
    run_set = RunSet.from_frames({"runs": both, "cells": both, "flows": flows}, experiment="mine")
    assert not [name for name in figures.figure_names(run_set) if "_map_by_loss_and_rtt" in name]


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

"""Figures over what varied, with the published values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import synthetic
from drawn import draw, traces

from fabbbr_analysis import figures, references
from fabbbr_analysis.figures import published
from fabbbr_analysis.figures.conditions import varied
from fabbbr_analysis.figures.measures import BY_COLUMN
from fabbbr_analysis.summary import summarise

# Sweeps


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


def test_where_the_number_of_flows_varies_a_point_is_the_mean_of_a_groups_flows(f10):
    rows = [("bbr1", 9e6), ("cubic", 2e6), ("cubic", 4e6)]
    flows = pd.DataFrame(
        [
            {"cell_id": "cca=bbr1,loss=15%,r1", "group": cca, "cca": cca, "goodput_bps": bps}
            for cca, bps in rows
        ]
    )
    mixed = synthetic.changed(f10, flows=flows, runs=f10.runs.assign(ccas="bbr1,cubic"))
    figure = draw(mixed, by_group=True, per_flow=True)
    assert [list(traces(figure, name)[0].y) for name in ("bbr1", "cubic")] == [[9.0], [3.0]]


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


def test_where_nothing_was_published_an_axis_of_one_value_is_no_trouble(f10):
    """One's own experiment, of which a single value of an axis ran."""
    (axis,) = varied(f10.runs)
    mine = synthetic.changed(f10, runs=f10.runs.assign(axis_buffer="1 BDP"))
    object.__setattr__(mine, "experiment", "mine")
    assert published.find(mine, BY_COLUMN["goodput_bps"], axis, {}) is None


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

"""Inside a run: traces, steps, starts, legends."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import synthetic
from drawn import draw, traces
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.model import LinkWay, Loss, Step
from fabbbr.units import Duration, Rate, Ratio
from fabbbr_analysis import figures
from fabbbr_analysis.figures import canvas, catalogue, events, timeline, words
from fabbbr_analysis.report import within


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


def test_where_all_conditions_have_the_same_draws_one_repetition_stands_for_all():
    """By itself x would be shown by its second run, and y by its third."""
    runs = pd.DataFrame(
        {
            "cell_id": ["x1", "x2", "x3", "y1", "y2", "y3", "z2"],
            "condition": [*"xxxyyyz"],
            "repetition": [1, 2, 3, 1, 2, 3, 2],
            "goodput_bps": [9.0, 10.0, 20.0, 103.0, 160.0, 100.0, 1.0],
            "status": ["certified"] * 7,
        }
    )

    def chosen(runs):
        return list(timeline.representative_cells(runs, of_one_repetition=True)["cell_id"])

    assert list(timeline.representative_cells(runs)["cell_id"]) == ["x2", "y1", "z2"]
    assert chosen(runs[runs["condition"] != "z"]) == ["x1", "y1"]
    # One that all have goes first, and who lacks it is shown by another.
    assert chosen(runs) == ["x2", "y2", "z2"]
    assert chosen(runs[~runs["cell_id"].isin(["x2", "y2"])]) == ["x1", "y1", "z2"]


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


def test_steps_that_come_one_upon_another_are_one_event_of_what_they_leave_and_what_passes(f10):
    lost, none = (Loss(rate=Ratio.parse(share)) for share in ("100 %", "0 %"))
    handover = (
        step("10 s", loss=lost, rtt=Duration.parse("60 ms")),
        step("10.1 s", loss=none),
        step("30 s", rate=SLOW),
        step("30.2 s", loss=lost),
        step("30.5 s", rate=FAST, loss=none),
    )
    cell = asked(f10, steps=handover).manifest.cells[0]
    assert [(event.at_s, event.text) for event in events.events([cell])] == [
        (10.0, "RTT 60 ms, loss 100 % until 10.1 s"),
        (30.0, "rate 100 Mbit/s, rate 10 Mbit/s, loss 100 % until 30.5 s"),
    ]
    # Those of another link stand beside them, and what lasts longer has events of its own.
    both = (*handover[:2], step("10 s", rate=SLOW).model_copy(update={"link": "other"}))
    (event,) = events.events([cell.model_copy(update={"steps": both})])
    assert event.text == "RTT 60 ms, loss 100 % until 10.1 s, other: rate 10 Mbit/s"
    slow = tuple(step(f"{at} s", rate=SLOW) for at in (5, 5.8, 6.6))
    assert [event.at_s for event in events.events([cell.model_copy(update={"steps": slow})])] == [5, 5.8, 6.6]


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
    near = (step("20 s", rate=SLOW), step("22 s", rate=FAST), step("50 s", rate=SLOW))
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


def test_flows_at_random_cost_the_others_no_points(f10):
    first = f10.manifest.cells[0].flows[0]
    web = [first.model_copy(update={"index": n, "group": "web", "at_random": True}) for n in range(1, 200)]
    many = synthetic.changed(
        asked(f10, flows=(first, *web)),
        flows=pd.concat([f10.flows, *(f10.flows.assign(flow=n, group="web") for n in range(1, 200))]),
    )
    alone = within._limit(f10, catalogue.points(f10))
    assert within._limit(many, catalogue.points(many)) == alone > within._FEWEST_POINTS


@given(st.floats(1e-3, 1.0), st.integers(0, 10**9))
def test_what_is_left_of_a_second_is_drawn_with_the_second_before(f10, last_s, last_bytes):
    cell_id = "cca=bbr1,loss=15%,r1"
    rows = [(n, n + 1.0, 10**6) for n in range(5)] + [(5.0, 5 + last_s, last_bytes)]
    intervals = pd.DataFrame(rows, columns=["start_s", "end_s", "bytes"]).assign(
        cell_id=cell_id, flow=0, side="receiver", stream=0
    )
    lasted = intervals["end_s"] - intervals["start_s"]
    intervals["throughput_bps"] = 8 * intervals["bytes"] / lasted
    figure = timeline.over_time(
        synthetic.changed(f10, intervals=intervals), [cell_id], palette=catalogue.palette_of(f10)
    )
    (curve,) = [trace for trace in traces(figure, "bbr1") if trace.yaxis == "y"]
    if last_s < 0.5:
        assert len(curve.x) == 5
        assert curve.y[-1] == pytest.approx(8e-6 * (10**6 + last_bytes) / (1 + last_s))
        assert curve.x[-1] - curve.x[0] == pytest.approx(4 + last_s / 2)
    else:
        assert len(curve.x) == 6
        assert curve.y[-1] == pytest.approx(8e-6 * last_bytes / last_s)


def test_flows_that_come_at_random_are_one_curve_of_what_all_of_them_get(f10):
    cell_id = "cca=bbr1,loss=15%,r1"
    flows = f10.flows[f10.flows["cell_id"] == cell_id]
    own = f10.intervals[f10.intervals["cell_id"] == cell_id]
    first = f10.plan[cell_id].flows[0]
    web = [first.model_copy(update={"index": n, "group": "web", "at_random": True}) for n in range(1, 30)]
    many = synthetic.changed(
        asked(f10, flows=(first, *web)),
        flows=pd.concat([flows, *(flows.assign(flow=n, group="web") for n in range(1, 30))]),
        intervals=pd.concat([own.assign(flow=n) for n in range(30)]),
    )
    figure = timeline.over_time(many, [cell_id], palette=catalogue.palette_of(f10))
    goodput = {trace.name: trace for trace in figure.data if trace.yaxis == "y"}
    assert set(goodput) == {"bbr1", "bbr1 (web)"}
    got = own[own["side"] == "receiver"]
    bits = (got["throughput_bps"] * (got["end_s"] - got["start_s"])).sum()
    assert sum(goodput["bbr1 (web)"].y) * 1e6 == pytest.approx(29 * bits)


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


def test_where_the_rate_steps_the_estimate_is_drawn_over_time_against_the_rate_that_held(f10):
    stepped = asked(f10, steps=SLOWER_FOR_TEN_SECONDS)
    figure = figures.figure(stepped, "bandwidth_estimate[loss=0.1%]")
    (rate,) = traces(figure, "rate of the bottleneck")
    assert list(rate.y) == [100.0, 10.0, 100.0, 100.0]
    assert len(traces(figure, "bbr1")) == 3
    assert all((np.diff(curve.x) >= 0).all() for curve in traces(figure, "bbr1"))
    (reference,) = traces(figures.figure(f10, "bandwidth_estimate[loss=0.1%]"), "rate of the bottleneck")
    assert list(reference.x) == [100.0, 100.0]


def test_the_queue_of_the_way_back_has_a_curve_of_its_own(f10):
    queues = f10.queues()
    back = queues.assign(role="bottleneck_reverse", interface="s1-eth0", backlog_bytes=7000.0)
    figure = figures.figure(synthetic.changed(f10, queues=pd.concat([queues, back])), "over_time[loss=15%]")
    (curve, *_) = traces(figure, "queue, way back [cca=bbr1]")
    assert set(curve.y) == {7.0}
    assert curve.yaxis == traces(figure, "bbr1")[-1].yaxis


def going_back(cell, rate):
    """The cell with all of its data on a way back of this rate."""
    back = LinkWay(rate=rate, buffer_bytes=9000, buffer_asked="9 kB", bdp_bytes=9000)
    links = tuple(
        link
        if link.bottleneck is None
        else link.model_copy(update={"bottleneck": link.bottleneck.model_copy(update={"reverse": back})})
        for link in cell.links
    )
    flows = tuple(
        flow.model_copy(update={"sender": flow.receiver, "receiver": flow.sender}) for flow in cell.flows
    )
    return cell.model_copy(update={"links": links, "flows": flows})


def test_what_a_sender_believes_of_a_way_back_is_drawn_against_the_rate_of_that(f10):
    cells = tuple(going_back(cell, SLOW) for cell in f10.manifest.cells)
    turned = synthetic.changed(f10, manifest=f10.manifest.model_copy(update={"cells": cells}))
    (reference,) = traces(figures.figure(turned, "bandwidth_estimate[loss=0.1%]"), "rate of the bottleneck")
    assert list(reference.x) == [10.0, 10.0]


def test_the_round_trip_of_the_path_is_drawn_where_steps_change_it(f10):
    handovers = (step("20 s", rtt=Duration.parse("60 ms")), step("40 s", rtt=Duration.parse("30 ms")))
    cell = f10.manifest.cells[0]
    figure = figures.figure(asked(f10, steps=handovers), "over_time[loss=15%]")
    (line,) = traces(figure, canvas.PROPAGATION)
    before_ms = cell.flows[0].rtt.seconds * 1e3
    assert list(line.x[:-1]) == [0, 20, 40]
    assert list(line.y) == pytest.approx([before_ms, 60, 30, 30])
    assert line.yaxis == traces(figure, "bbr1")[1].yaxis
    assert not traces(figures.figure(f10, "over_time[loss=15%]"), canvas.PROPAGATION)


MARKS = st.lists(st.tuples(st.floats(0, 60), st.text(min_size=1, max_size=60)), max_size=12)


@given(marks=MARKS, letter=st.floats(0.1, 2))
def test_words_at_marks_never_stand_on_one_another(marks, letter):
    marks = sorted(marks)
    places = words.levels(marks, letter=letter, begin=0, end=60)
    spans = {}
    for (at, text), place in zip(marks, places, strict=True):
        width = len(text) * letter
        spans.setdefault(place.level, []).append((at - width, at) if place.ends else (at, at + width))
    for level in spans.values():
        level.sort()
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(level))
    assert sorted(spans) == list(range(len(spans)))

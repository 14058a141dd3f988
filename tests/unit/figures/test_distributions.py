"""Distributions of what was sampled in runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import synthetic
from drawn import traces

from fabbbr.units import Size
from fabbbr_analysis import figures
from fabbbr_analysis.figures import catalogue
from fabbbr_analysis.report import within


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


@pytest.mark.parametrize(("shorter", "unit", "factor"), [(1, "s", 1), (10, "ms", 1000)])
def test_a_flow_that_did_not_complete_keeps_the_curve_below_all(f10, shorter, unit, factor):
    """It says nothing of the unit: that is milliseconds where all others are shorter than a second."""
    cells = [cell.model_copy(update={"flows": (_sized(cell.flows[0]),)}) for cell in f10.manifest.cells]
    here = [cell.id for cell in cells if "loss=0.1%" in cell.id and "cca=bbr1" in cell.id]
    times = dict(zip(here, (3.0 / shorter, None, 1.0 / shorter), strict=True))
    run_set = synthetic.changed(
        f10,
        manifest=f10.manifest.model_copy(update={"cells": tuple(cells)}),
        flows=f10.flows.assign(completion_s=f10.flows["cell_id"].map(times).astype(float)),
    )
    figure = figures.figure(run_set, "completion_cdf[loss=0.1%]")
    (curve,) = traces(figure, "bbr1")
    assert sorted(set(curve.x)) == pytest.approx([factor / shorter, 3 * factor / shorter])
    assert figure.layout.xaxis.title.text == f"Flow completion time ({unit})"
    assert max(curve.y) == pytest.approx(2 / 3, abs=0.005)


def _sized(flow):
    return flow.model_copy(update={"duration": None, "size": Size.parse("1 MB")})


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


def asking(f10, **traffic):
    """The manifest as if its cells had been planned with this traffic."""
    cells = tuple(cell.model_copy(update=traffic) for cell in f10.manifest.cells)
    return f10.manifest.model_copy(update={"cells": cells})


def test_round_trips_of_pings_are_those_of_requests_sent_while_flows_ran(f10):
    cell_id = f10.cells.loc[f10.cells["axis_loss"] == "0.1 %", "cell_id"].iloc[0]
    beside = [0.001 * number for number in range(1, 101)] + [float("nan")] * 100
    before = [9.0] * 100
    pings = pd.DataFrame({"cell_id": cell_id, "t_s": np.arange(300) * 0.01 - 1, "rtt_s": [*before, *beside]})
    run_set = synthetic.changed(f10, manifest=asking(f10, pings=("one",)), pings=pings)
    (curve,) = figures.figure(run_set, "ping_cdf[loss=0.1%]").data
    assert (curve.x[0], curve.x[-1]) == pytest.approx((1, 100))
    assert (curve.y[0], curve.y[-1]) == pytest.approx((0, 0.5)), "half of them had no answer"
    assert curve.name == f10.cells.loc[f10.cells["cell_id"] == cell_id, "ccas"].iloc[0]


def test_chunks_have_the_time_from_asking_to_the_last_byte_and_those_that_never_came_none(f10):
    cell_id = f10.cells.loc[f10.cells["axis_loss"] == "0.1 %", "cell_id"].iloc[0]
    flows = [flow.model_copy(update={"video": "one"}) for flow in f10.plan[cell_id].flows]
    asked = np.arange(11.0) * 2
    chunks = pd.DataFrame(
        {"cell_id": cell_id, "asked_s": asked, "whole_s": [*(asked + 0.1 * asked)[:10], None]}
    )
    run_set = synthetic.changed(f10, manifest=asking(f10, flows=tuple(flows)), chunks=chunks)
    (curve,) = figures.figure(run_set, "chunk_cdf[loss=0.1%]").data
    assert (curve.x[0], curve.x[-1], curve.y[-1]) == pytest.approx((0, 1.8, 1))
    assert curve.name == f10.cells.loc[f10.cells["cell_id"] == cell_id, "ccas"].iloc[0]


def test_where_nobody_pings_or_watches_there_is_no_figure_of_it(f10):
    assert not [name for name in figures.figure_names(f10) if name.startswith(("ping", "chunk"))]


def transferred(f10, sizes_of, seconds_of):
    """Every cell has such transfers, which take so long each."""
    cells, flows = [], []
    for cell in f10.manifest.cells:
        sizes = sizes_of(cell)
        took = [
            cell.flows[0].model_copy(update={"index": n, "size": Size(size), "duration": None})
            for n, size in enumerate(sizes)
        ]
        cells.append(cell.model_copy(update={"flows": tuple(took)}))
        (row,) = f10.flows[f10.flows["cell_id"] == cell.id].to_dict("records")
        flows += [row | {"flow": n, "completion_s": seconds_of(size)} for n, size in enumerate(sizes)]
    manifest = f10.manifest.model_copy(update={"cells": tuple(cells)})
    return synthetic.changed(f10, manifest=manifest, flows=pd.DataFrame(flows))


@pytest.mark.parametrize(("least_s", "unit", "factor"), [(2, "s", 1), (0.1, "ms", 1000), (0.9, "s", 1)])
def test_completion_times_are_drawn_by_size_with_as_many_transfers_at_each_point(f10, least_s, unit, factor):
    run_set = transferred(f10, lambda _: range(1_000, 161_000, 1_000), lambda size: least_s + size * 1e-6)
    figure = figures.figure(run_set, "completion_percentiles[loss=15%]")
    assert figure.layout.yaxis.title.text == f"Flow completion time ({unit})"
    half, most = traces(figure, "bbr1")
    assert sum(half.customdata) == sum(most.customdata) == 3 * 160
    assert max(half.customdata) - min(half.customdata) <= 3
    sizes = np.array(half.x) * 1e3
    assert (np.diff(sizes) > 0).all()
    width = 160_000 / len(sizes)
    np.testing.assert_allclose(np.divide(half.y, factor), least_s + sizes * 1e-6, atol=width * 1e-6)
    # In the middle of a point lies its median; its 95th percentile is 45 % of its width later.
    later = np.subtract(most.y, half.y) / factor
    np.testing.assert_allclose(later, 0.45 * width * 1e-6, atol=1.1e-3)


def test_a_transfer_that_did_not_complete_is_slower_than_any(f10):
    sizes, lost = range(1_000, 41_000, 1_000), 7_000
    run_set = transferred(f10, lambda _: sizes, lambda size: None if size % lost == 0 else 1.0)
    half, most = traces(figures.figure(run_set, "completion_percentiles[loss=15%]"), "bbr1")
    assert set(half.y) == {1.0}
    assert len(most.x) == 0


@pytest.mark.parametrize("sizes", [[5_000] * 50, [1_000, 2_000]])
def test_transfers_of_few_sizes_are_not_drawn_by_size(f10, sizes):
    run_set = transferred(f10, lambda _: sizes, lambda _: 1.0)
    assert not [name for name in figures.figure_names(run_set) if "percentiles" in name]
    assert [name for name in figures.figure_names(run_set) if "completion_cdf" in name]


@pytest.fixture(scope="module")
def one_cca(tmp_path_factory):
    """One congestion control at three losses: no place has rivals."""
    losses = ("15 %", "0.1 %", "1 %")
    plan = dataclasses.replace(synthetic.SMALL_F10, ccas=("cubic",), losses=losses, repeat=2, broken_cells=())
    return synthetic.run_set(plan, tmp_path_factory.mktemp("one_cca"))


@pytest.mark.parametrize("name", ["rtt_cdf", "queue_cdf"])
def test_where_no_place_has_rivals_the_places_are_drawn_beside_one_another_in_their_order(one_cca, name):
    assert [found for found in figures.figure_names(one_cca) if found.startswith(name)] == [name]
    curves = [trace for trace in figures.figure(one_cca, name).data if trace.fill is None]
    assert [curve.name for curve in curves] == [f"cubic [loss={loss}]" for loss in ("0.1 %", "1 %", "15 %")]
    assert len({(curve.line.color, curve.line.dash) for curve in curves}) == 3


def test_a_report_draws_them_so_too(one_cca):
    palette = catalogue.palette_of(one_cca)
    slots = within.distribution_slots(one_cca, palette, "x")
    assert {slot.title: len(slot.options) for slot in slots} == {
        "Distribution of the RTT": 1,
        "Distribution of the queue": 1,
    }

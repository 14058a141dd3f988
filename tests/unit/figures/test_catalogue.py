"""Which figures there are, and in which order."""

from __future__ import annotations

import pandas as pd
import pytest
import synthetic

from fabbbr.errors import AnalysisError
from fabbbr_analysis import figures
from fabbbr_analysis.figures import catalogue
from fabbbr_analysis.figures.conditions import varied
from fabbbr_analysis.figures.measures import CONDITIONS, MEASURES
from fabbbr_analysis.runset import RunSet


def test_a_run_without_timed_packets_has_no_figure_of_their_delays(f10):
    assert not [name for name in figures.figure_names(f10) if name.startswith("queue_delay[")]


def test_a_run_without_a_bbr_has_an_empty_figure_of_estimates(f10):
    sockets = f10.sockets().assign(bbr_bw_bps=float("nan"))
    assert not figures.figure(synthetic.changed(f10, sockets=sockets), "bandwidth_estimate[loss=15%]").data


def test_every_name_of_the_catalogue_draws_a_figure(f10, e1):
    for run_set in (f10, e1):
        for name in figures.figure_names(run_set):
            assert figures.figure(run_set, name).layout.height > 0


@pytest.mark.parametrize(("share", "shown"), [(0.0, False), (0.01, True)])
def test_what_is_rare_has_a_figure_only_where_some_run_has_any_of_it(f10, share, shown):
    runs = f10.runs.assign(spurious_ratio=[share, *[0.0] * (len(f10.runs) - 1)])
    names = figures.figure_names(synthetic.changed(f10, runs=runs))
    assert any(name.startswith("spurious") for name in names) == shown


@pytest.mark.parametrize(
    ("udp", "lost", "first"),
    [(1e6, 0.01, "datagram_loss"), (1e6, 0.0, "datagram_wait"), (None, 0.01, "retransmits")],
)
def test_of_udp_alone_what_datagrams_suffer_comes_first(f10, udp, lost, first):
    """But for what papers have, here goodput. A jitter of nanoseconds is none."""
    suffered = {"datagram_loss_ratio": lost, "pdv_p95_s": 0.002, "jitter_s": 2e-9}
    flows = f10.flows.assign(udp_rate_bps=[1e6, *[udp] * (len(f10.flows) - 1)])
    run_set = synthetic.changed(f10, runs=f10.runs.assign(**suffered), flows=flows)
    found = catalogue.entries(run_set)
    slugs = [entry.sweep.measure.slug for entry in found if entry.published is None]
    assert slugs[0] == first
    assert "jitter" not in slugs


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


def beside_one(f10, number_at):
    """``number_at``: cell → how many flows of its congestion control run beside one of reno."""
    cells = []
    for cell in f10.manifest.cells:
        (flow,) = cell.flows
        rival = flow.model_copy(update={"index": 9, "group": "reno", "cca": "reno"})
        many = [flow.model_copy(update={"index": index}) for index in range(number_at(cell))]
        cells.append(cell.model_copy(update={"flows": (*many, rival)}))
    flows = pd.concat([f10.flows, f10.flows.assign(group="reno", cca="reno", flow=9)], ignore_index=True)
    frames = {"cells": f10.cells, "flows": flows, "groups": f10.groups, "runs": f10.runs}
    manifest = f10.manifest.model_copy(update={"cells": tuple(cells)})
    return RunSet.from_frames(frames, experiment="mine", path=f10.path, manifest=manifest)


@pytest.mark.parametrize(
    ("most", "titles"),
    [(1, ["Goodput against random loss"]), (4, ["Goodput a flow against random loss"])],
)
def test_where_a_group_has_more_flows_in_some_cells_its_goodput_is_drawn_by_the_flow(f10, most, titles):
    run_set = beside_one(f10, lambda cell: most if cell.repetition == 2 else 1)
    found = [entry for entry in catalogue.entries(run_set) if entry.name.startswith("goodput_by")]
    assert [entry.title for entry in found] == titles
    assert [entry.sweep.per_flow for entry in found] == [most > 1]


def test_no_figure_is_of_a_place_where_nothing_was_run(f10):
    """Buffer and AQM go together, as under zip; reordering changes with the losses and stays beside them."""
    pairs = [("1 BDP", 1e5, "fq_codel"), ("4 BDP", 4e5, "taildrop")]
    halves = [
        f10.runs.assign(
            axis_buffer=buffer,
            buffer_bdp=float(buffer.split()[0]),
            buffer_bytes=size,
            axis_aqm=aqm,
            condition=f10.runs["condition"] + aqm,
            cell_id=f10.runs["cell_id"] + aqm,
        )
        for buffer, size, aqm in pairs
    ]
    both = synthetic.changed(f10, runs=pd.concat(halves, ignore_index=True))
    held = {entry.held for entry in catalogue.entries(both) if entry.name.startswith("goodput")}
    assert held == {f"buffer {buffer}, aqm {aqm}" for buffer, _, aqm in pairs}


def test_a_figure_that_papers_have_comes_first(e1):
    found = catalogue.entries(e1)
    assert found[0].published is not None
    assert [entry.published is None for entry in found] == sorted(entry.published is None for entry in found)


def test_every_quantity_with_a_dimension_names_its_unit():
    pure_numbers = {"jain_flows", "jain_groups", "n_flows"}
    for quantity in (*MEASURES, *CONDITIONS):
        assert bool(quantity.unit) == (quantity.column not in pure_numbers), quantity.column


@pytest.mark.parametrize(
    ("key", "texts", "columns", "title"),
    [
        ("late", ("0 ms", "5 ms"), {"late_s": (0.0, 0.005), "reordered_ratio": (0.0, 0.01)}, "Lateness"),
        ("share", ("0 %", "1 %"), {"late_s": (0.0, 0.005), "reordered_ratio": (0.0, 0.01)}, "Reordering"),
    ],
)  # fmt: skip
def test_an_axis_of_lateness_or_its_share_is_known_although_it_begins_without_any(key, texts, columns, title):
    runs = pd.DataFrame({"ccas": "cubic", f"axis_{key}": list(texts), **columns})
    (axis,) = varied(runs)
    assert (axis.title, axis.texts) == (title, texts)


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

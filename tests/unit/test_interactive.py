"""What `import fabbbr as fb` offers: its words, its objects, its progress and its errors."""

import inspect
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic
from recorded_run import cell, create, record, recorded

import fabbbr as fb
from fabbbr.commands.display import Pace
from fabbbr.errors import AnalysisError, CellsFailedError, SpecError, UsageError
from fabbbr.execute import Event, Summary
from fabbbr.interactive import running
from fabbbr.interactive.asked import overrides_of, profile_of, selector_of
from fabbbr.interactive.progress import NotebookDisplay, in_notebook
from fabbbr.laboratory import Request, planned, selected
from fabbbr_analysis.drawn import as_html, as_text
from fabbbr_analysis.run import Comparison, Run

TEXT = """id: small
title: A <small> one
slice: two_site
path: {rate: 10 Mbit/s, rtt: 20 ms, loss: $loss}
flows: [{cca: $cca, duration: 1 s}]
vary: {cca: [cubic, bbr1], loss: [1 %, 2 %]}
repeat: 2
quick: {repeat: 1}
full: {repeat: 3}
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "small.yaml").write_text(TEXT)
    return "small.yaml"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Made-up numbers of the structure of cardwell_f10, as a run."""
    made = synthetic.run_set(synthetic.CARDWELL_F10, tmp_path_factory.mktemp("run"))
    names = ("cells", "runs", "flows", "groups", "intervals")
    frames = {name: getattr(made, name) for name in names}
    frames |= {"sockets": made.sockets(), "queues": made.queues()}
    return Run.from_frames(frames, experiment=made.experiment, path=made.path, manifest=made.manifest)


# Names


def test_every_name_is_offered_documented_and_with_an_example():
    names = set(dir(fb)) - {"__version__"}
    assert names == {*fb.__all__, "open"} - {"__version__"}
    for name in names - {"open_runs"}:
        assert ">>> import fabbbr as fb" in inspect.getdoc(getattr(fb, name)), name


def test_the_function_plan_is_not_hidden_by_the_package_of_that_name():
    told = subprocess.run(
        [
            sys.executable, "-c",
            "import fabbbr as fb; before = fb.plan; import fabbbr.plan.looks; print(before is fb.plan)",
        ],
        capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )  # fmt: skip
    assert told.stdout.split() == ["True"]


def test_importing_it_loads_none_of_the_heavy_libraries():
    heavy = "pandas numpy scipy pydantic rich plotly"
    told = subprocess.run(
        [
            sys.executable, "-c",
            f"import sys, fabbbr; dir(fabbbr); print(*(set('{heavy}'.split()) & sys.modules.keys()))",
        ],
        capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )  # fmt: skip
    assert told.stdout.split() == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        fb.runn  # noqa: B018


# What is asked


@pytest.mark.parametrize(
    ("given", "as_on_the_command_line"),
    [
        (None, ()),
        ({}, ()),
        ({"path.rate": "20 Mbit/s"}, ("path.rate=20 Mbit/s",)),
        ({"repeat": 3, "path.ecn": False}, ("repeat=3", "path.ecn=false")),
        ({"path.loss": {"rate": "1 %"}}, ('path.loss={"rate": "1 %"}',)),
        ({"loss": ["1 %", "2 %"]}, ('loss=["1 %", "2 %"]',)),
        (["loss=1 %,2 %"], ("loss=1 %,2 %",)),
    ],
)
def test_overrides(given, as_on_the_command_line):
    assert overrides_of(given) == as_on_the_command_line


@pytest.mark.parametrize("given", ["path.rate=1 Mbit/s", {"path.loss": None}, {"x": object()}])
def test_overrides_of_no_sense_are_refused_with_the_way_to_write_them(given):
    with pytest.raises(UsageError, match="set"):
        overrides_of(given)


def test_a_dict_means_what_the_command_line_means(small):
    def cells(*overrides):
        return planned(Request(experiment=small, overrides=overrides)).cells

    by_dict = fb.plan(small, set={"loss": ["1 %", "5 %"], "path.rate": "20 Mbit/s"})
    assert by_dict.cells == cells("loss=1 %,5 %", "path.rate=20 Mbit/s")
    nested = fb.plan(small, set={"path.loss": {"rate": "$loss", "position": "before_bottleneck"}})
    assert {link.loss.position for cell in nested.cells for link in cell.links if link.loss is not None} == {
        "before_bottleneck"
    }


@pytest.mark.parametrize(
    ("only", "expression"),
    [
        ({"cca": "bbr1"}, "cca=bbr1"),
        ({"cca": ["cubic", "bbr1"], "loss": "1%"}, "cca=cubic|bbr1,loss=1%"),
        ("*,r1", "*,r1"),
    ],
)
def test_only(small, only, expression):
    request = Request(experiment=small, only=expression)
    assert selector_of(only) == expression
    assert fb.plan(small, only=only).cells == selected(request, planned(request).cells)


@pytest.mark.parametrize("only", [{}, {"cca": []}, {"cca": "a,b"}, {"cca": "*"}, {"cca": ["a|b"]}, {"": "x"}])
def test_what_cannot_be_picked_by_value_is_refused(only):
    with pytest.raises(UsageError, match="only"):
        selector_of(only)


def test_profiles(small):
    counts = [len(fb.plan(small, **chosen).cells) for chosen in ({}, {"quick": True}, {"full": True})]
    assert counts == [8, 4, 12]
    with pytest.raises(UsageError, match="choose one"):
        profile_of(quick=True, full=True)


def test_a_path_is_a_path_whatever_it_is_called(small, tmp_path):
    (tmp_path / "mine").write_text(TEXT)
    assert fb.plan(Path("mine")).cells == fb.plan(tmp_path / "small.yaml").cells


# Plans and lists


def test_a_plan_draws_itself_and_foreign_text_stays_text(small):
    plan = fb.plan(small, repeat=1)
    assert "A <small> one" in repr(plan)
    assert "A &lt;small&gt; one" in plan._repr_html_()
    assert plan.table["cell"].tolist() == [cell.id for cell in plan.cells]
    assert plan.cost.cells == 4
    with pytest.raises(UsageError, match=r"no cell 'r9'.*cca=cubic"):
        plan.commands("r9")


def test_tables_neither_steer_a_terminal_nor_a_browser():
    table = pd.DataFrame({"\x1b[2J": ["<script>", "\x07"]})
    text, html = as_text(["\x1b[31m"], table), as_html(["<b>\x07"], table)
    assert "\x1b" not in text + html
    assert "\x07" not in text + html
    assert "<script>" not in html


def test_a_long_table_says_what_it_leaves_out():
    assert as_text([], pd.DataFrame({"n": range(100)})).endswith("\nand 40 more rows")


def test_the_bundled_experiments_are_listed_by_name():
    found = fb.experiments()
    assert "knit6_e1" in found
    assert len(found) == len(list(found)) == len(found.table)
    assert "Goodput" in repr(found)


def test_an_experiment_is_shown_as_it_stands(small):
    shown = fb.show_experiment(small)
    assert shown == TEXT == repr(shown)
    assert "A &lt;small&gt; one" in shown._repr_html_()


def test_runs_are_listed_with_what_they_hold_and_a_broken_one_is_named(tmp_path):
    recorded(tmp_path / "whole", cell(1))
    record(create(tmp_path / "begun", cell(1), cell(2)), cell(1))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    table = fb.list_runs(tmp_path).table.set_index("run")
    held = {Path(path).name: (row.cells, row.planned) for path, row in table.iterrows()}
    assert held["whole"] == (1, 1)
    assert held["begun"] == (1, 2)
    assert "run.json" in table.loc[str(tmp_path / "broken"), "title"]
    with pytest.raises(UsageError, match=r"fb\.run"):
        fb.list_runs(tmp_path / "nowhere")


# A run


def test_a_run_draws_itself_as_its_conditions_under_its_headline(run):
    text = repr(run)
    assert text.startswith("Goodput under random loss\n")
    assert all(sentence in text for sentence in run.headline)
    assert "79 of 80 cells certified, 1 not certified" in text
    assert len(run.conditions) == run.runs["condition"].nunique()
    assert run.conditions["Excluded"].sum() == 1
    assert run._repr_html_().count("<tr") == len(run.conditions) + 1


def test_a_run_without_a_cell_draws_itself_too(tmp_path):
    create(tmp_path / "empty", cell(1))
    empty = fb.open(str(tmp_path / "empty"))
    assert repr(empty) == "rivals\n0 of 1 cells certified, 1 not run"
    assert empty.list_cells()["status"].tolist() == ["not run"]


def test_figures_by_name_and_the_first_without_one(run):
    assert run.figure().layout == run.figure(run.figures[0]).layout
    with pytest.raises(AnalysisError, match=r"no figure 'x' \(figures: "):
        run.figure("x")


def test_a_cell_over_time_by_id_condition_or_glob(run):
    condition = "cca=bbr1,loss=1%"
    assert len(run.over_time(f"{condition},r1").data) == 3
    assert len(run.over_time(condition).data) == 3
    assert len(run.over_time("cca=*,loss=1%,r1").data) == 6
    assert len(run.over_time(condition, "cca=cubic,loss=1%").data) == 6
    with pytest.raises(AnalysisError, match="no cell 'r9'"):
        run.over_time("r9")
    with pytest.raises(AnalysisError, match="several conditions"):
        run.over_time()


def test_comparing_within_a_run_takes_the_first_value_for_base_unless_told(run):
    table = run.compare(by="cca", metrics=["goodput_bps"]).table
    assert set(table["b"]) == {"cubic"}
    assert len(table) == 8
    against = run.compare(by="cca", against="bbr1", metrics=["goodput_bps"])
    assert set(against.table["b"]) == {"bbr1"}
    assert np.allclose(against.table["difference"], -table["difference"])
    assert len(against.different) == (against.table["verdict"] == "different").sum()


def test_the_first_value_is_that_of_the_experiment_file_where_it_is_known(run):
    conditions = [{"axes": {"cca": cca, "loss": "1 %"}} for cca in ("bbr1", "cubic")]
    manifest = run.manifest.model_copy(update={"experiment": {"id": "x", "conditions": conditions}})
    frames = {"cells": run.cells, "runs": run.runs, "flows": run.flows}
    ordered = Run.from_frames(frames, experiment="x", manifest=manifest)
    assert set(ordered.compare(by="cca").table["b"]) == {"bbr1"}


def test_comparing_with_another_run_or_its_folder(tmp_path):
    a, b = (recorded(tmp_path / name, cell(1), cell(2)).path for name in "ab")
    one = fb.open(a).compare(str(b))
    assert one.table.equals(fb.open(a).compare(fb.open(b)).table)
    assert set(one.table["verdict"]) == {"unchanged"}  # the same capture
    assert "100 %" not in repr(one)
    assert "mean of a" in one._repr_html_()


@pytest.mark.parametrize("options", [{}, {"other": "runs/x", "by": "cca"}])
def test_a_comparison_is_of_runs_or_of_conditions(run, options):
    with pytest.raises(AnalysisError, match=r'run.compare\(by="cca"\)'):
        run.compare(**options)


def test_an_empty_comparison_says_so():
    assert "nothing to compare" in repr(Comparison(title="t", table=pd.DataFrame(columns=["verdict"])))


# Running


@pytest.fixture
def carried_out(small, tmp_path, monkeypatch):
    """`fb.run` without a guest: what it asks for, with the summary that is given."""
    asked = []

    def given(summary, *present):
        folder = create(tmp_path / "run", cell(1), cell(2))
        for each in present:
            record(folder, each)

        def carry_out(request, **_):
            asked.append(request)
            return folder, summary

        monkeypatch.setattr(running, "carry_out", carry_out)
        return asked

    return given


def test_a_run_is_asked_for_in_the_words_of_the_command_line(small, carried_out):
    asked = carried_out(Summary(certified=["rivals-r1"]), cell(1))
    overrides = {"set": {"loss": ["1 %"]}, "overrides": ["repeat=2"]}
    fb.run(small, only={"cca": "bbr1"}, full=True, out="runs/x", **overrides)
    assert asked == [
        Request(
            experiment=small, profile="full", overrides=('loss=["1 %"]', "repeat=2"), only="cca=bbr1",
            out=Path("runs/x"),
        )
    ]  # fmt: skip


def test_a_slice_that_is_not_remembered_is_named_before_anything_else(small):
    with pytest.raises(UsageError, match="no slice mine is remembered"):
        fb.run(small, slice="mine")


def test_cells_that_failed_are_warned_of_where_others_are_there(small, carried_out):
    carried_out(Summary(failed={"rivals-r2": "iperf3 broke"}), cell(1))
    with pytest.warns(running.CellsLeftOutWarning, match="rivals-r2: iperf3 broke"):
        assert fb.run(small).state == "1 of 2 cells certified, 1 not run"


def test_where_no_cell_came_out_whole_it_is_an_error(small, carried_out):
    carried_out(Summary(failed={"rivals-r1": "iperf3 broke"}))
    with pytest.raises(CellsFailedError, match="iperf3 broke"):
        fb.run(small)


def test_a_run_without_trouble_warns_of_nothing(small, carried_out):
    carried_out(Summary(certified=["rivals-r1"]), cell(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fb.run(small)


# Progress


def test_a_notebook_is_shown_one_line_that_changes(small, tmp_path):
    pictures = []
    plan = fb.plan(small, repeat=1)
    folder = create(tmp_path / "run", *plan.cells, name="<b>")
    first, second, *_ = plan.cells

    def show(html):
        pictures.append(html)
        return pictures.append

    with NotebookDisplay(show) as shown:
        shown.announce(folder, plan.cells, 2, plan.testbed)
        shown.listen(Event(kind="started", cell=first))
        shown.listen(Event(kind="certified", cell=first))
        shown.listen(Event(kind="failed", cell=second, reason="<script>"))
    assert '<progress max="4" value="0">' in pictures[0]
    assert '<progress max="4" value="2">' in pictures[-1]
    assert f"failed {second.id}: &lt;script&gt;" in pictures[-1]
    assert "&lt;b&gt;" in pictures[0]


def test_where_nothing_is_missing_a_notebook_is_shown_nothing(small, tmp_path):
    with NotebookDisplay(lambda _: pytest.fail("shown")) as shown:
        shown.announce(create(tmp_path / "run", cell(1)), (), 1, fb.plan(small).testbed)


def test_a_test_is_no_notebook():
    assert not in_notebook()


def test_the_pace_of_what_is_done_is_expected_of_the_rest(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("fabbbr.commands.display.time.monotonic", lambda: now[0])
    pace = Pace({"a": 1.0, "b": 3.0})
    assert pace.left_s == 4.0
    now[0] = 10.0
    pace.finished("a")
    assert pace.left_s == pytest.approx(30.0)
    pace.finished("b")
    assert (pace.left_s, pace.done, pace.total) == (0.0, 2, 2)


# Errors


def raised(act):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        act()
    return caught.value


def test_a_notebook_shows_the_users_line_and_the_sentence_and_no_stack(small):
    error = raised(lambda: fb.plan(small, set={"path.rate": "fast"}))
    assert isinstance(error, SpecError)
    where, said = error._render_traceback_()
    assert 'fb.plan(small, set={"path.rate": "fast"})' in where
    assert said == f"SpecError: {error}"
    assert "rate" in said


def test_an_error_that_was_not_raised_by_a_call_of_the_users_is_shown_alone():
    assert SpecError("x")._render_traceback_() == ["SpecError: x"]


# A metric of one's own


def test_a_metric_of_ones_own_has_intervals_and_comparisons_and_leaves_the_run_alone(run):
    share = run.flows.set_index("cell_id")["goodput_bps"] / 1e8
    more = run.with_metric("share", share)
    own, built_in = more.summary(["share"]), run.summary(["goodput_bps"])
    assert np.allclose(own["mean"] * 1e8, built_in["mean"])
    assert own["n"].tolist() == built_in["n"].tolist()
    assert len(more.compare(by="cca", metrics=["share"]).table) == 8
    assert "share" not in run.runs.columns


def test_a_metric_of_ones_own_may_be_below_nothing(run):
    """A gain, or a difference: its interval is as Student has it, and not cut where no rate can be."""
    rates = run.flows.set_index("cell_id")["goodput_bps"]
    lost = run.with_metric("less_bps", -rates).summary(["less_bps"])
    had = run.summary(["goodput_bps"])
    surely = had["low"] > 0
    assert surely.any()
    assert lost["low"][surely].to_numpy() == pytest.approx(-had["high"][surely].to_numpy(), rel=0.2)
    assert (lost["low"].dropna() <= lost["high"].dropna()).all()


def test_a_cell_without_a_value_has_none(run):
    one = pd.Series({"cca=bbr1,loss=1%,r1": 1.0})
    table = run.with_metric("mine", one).summary(["mine"])
    assert table["n"].sum() == 1


@pytest.mark.parametrize(("name", "message"), [("goodput_bps", "already"), ("mine", "index be cell_id")])
def test_a_metric_that_is_none_is_refused(run, name, message):
    with pytest.raises(AnalysisError, match=message):
        run.with_metric(name, pd.Series([1.0, 2.0]))

"""The same run with another warm-up: as if it had been asked for, without running it again."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import recorded_run

from fabbbr.cli import main
from fabbbr.errors import AnalysisError
from fabbbr.inspection import inspect
from fabbbr.store import RunFolder
from fabbbr_analysis.press.table import tabulate_groups
from fabbbr_analysis.run import Run
from fabbbr_analysis.runset import RunSet

TABLES = ("cells", "flows", "groups", "runs")


def _recorded(path: Path, warm_up: str) -> Path:
    cells = [recorded_run.cell(number, warm_up=warm_up) for number in (1, 2)]
    return recorded_run.recorded(path, *cells).path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return _recorded(tmp_path_factory.mktemp("runs") / "rivals", "1 s")


@pytest.mark.parametrize("warm_up", ["1 s", "2500 ms", "0 s", "3 s"])
def test_the_tables_are_those_of_a_run_that_asked_for_it(path, tmp_path, warm_up):
    asked = RunSet.open(_recorded(tmp_path / "asked", warm_up))
    found = RunSet.open(path).with_warm_up(warm_up)
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(found, name), getattr(asked, name))
    assert found.plan == asked.plan


def test_what_hangs_on_it_changes_and_nothing_else(path):
    own, other = RunSet.open(path), RunSet.open(path).with_warm_up("2.5 s")
    assert set(other.groups["phase_start_s"]) == {0.0, 2.5}
    assert (other.flows["goodput_steady_bps"] != own.flows["goodput_steady_bps"]).all()
    same = own.runs.columns.difference(["warm_up_s", "goodput_steady_bps"])
    pd.testing.assert_frame_equal(other.runs[same], own.runs[same])
    pd.testing.assert_frame_equal(other.sockets(), own.sockets())


def test_it_may_be_asked_for_in_any_order(path):
    chosen = ["rivals-r2"]
    first = RunSet.open(path).with_warm_up("2 s").only(chosen)
    last = RunSet.open(path).only(chosen).with_warm_up("2 s")
    twice = RunSet.open(path).with_warm_up("3 s").with_warm_up("2 s").only(chosen)
    for found in (first, last, twice):
        assert set(found.cells["cell_id"]) == set(chosen)
        for name in TABLES:
            pd.testing.assert_frame_equal(getattr(found, name), getattr(first, name))
    assert [str(each) for each in twice.other_warm_up.own] == ["1 s"]


def test_a_report_with_it_says_so_and_stands_apart(path, tmp_path):
    run = RunFolder.open(_recorded(tmp_path / "run", "1 s"))
    digest = inspect(run, raw_files=True).digest
    Run.open(run.path).report()
    own = {name: (run.path / name).read_bytes() for name in ("report.html", "answers.csv")}
    assert main(["report", str(run.path), "--warm-up", "2.5s"]) == 0
    text = (run.path / "warm-up-2.5s" / "report.md").read_text(encoding="utf-8")
    assert "2.5 s, as asked when this was made; the run has 1 s" in text
    assert "fabbbr report RUN --warm-up 2.5s" in text
    assert {name: (run.path / name).read_bytes() for name in own} == own
    assert inspect(RunFolder.open(run.path), raw_files=True).digest == digest
    assert "as asked when this was made" not in (run.path / "report.md").read_text(encoding="utf-8")


def test_a_notebook_has_its_report_there_too(path, tmp_path):
    run = Run.open(_recorded(tmp_path / "run", "1 s")).with_warm_up("2 s")
    assert run.report() == tmp_path / "run" / "warm-up-2s" / "report.html"


def test_a_table_for_a_paper_is_of_it_and_says_so(path, capsys):
    assert main(["table", str(path), "--groups", "--warm-up", "2s", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (
        "Left out of steady state: 2 s, as asked when this was made; the run has 1 s." in printed["caption"]
    )
    expected = tabulate_groups(Run.open(path).with_warm_up("2 s"), (), title="")
    assert printed["rows"] == json.loads(expected.summary.to_json(orient="records"))
    assert main(["table", str(path), "--groups", "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    assert "Left out of" not in own["caption"]
    assert own["rows"] != printed["rows"]


@pytest.mark.parametrize(
    ("warm_up", "said"),
    [
        ("soon", "warm_up: 'soon'"),
        ("-1 s", "warm_up: "),
        ("4 s", "warm_up 4 s leaves nothing of rivals-r1, which ends after 4 s; shorten it"),
    ],
)
def test_what_leaves_nothing_is_refused(path, warm_up, said):
    with pytest.raises(AnalysisError, match=said):
        RunSet.open(path).with_warm_up(warm_up)


def test_a_run_that_varies_it_keeps_its_own(tmp_path):
    cell = recorded_run.cell(1, axes={"warm_up": "1 s"})
    run = RunSet.open(recorded_run.recorded(tmp_path / "run", cell).path)
    with pytest.raises(AnalysisError, match="rivals varies warm_up"):
        run.with_warm_up("2 s")


def test_frames_alone_have_no_samples(path):
    frames = {name: getattr(RunSet.open(path), name) for name in TABLES}
    with pytest.raises(AnalysisError, match="needs the samples of a run folder"):
        RunSet.from_frames(frames, experiment="rivals").with_warm_up("2 s")

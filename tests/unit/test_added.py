"""What a testbed adds: the same cells in the guest beside those of a run, from the loop to the page."""

import csv
import dataclasses
import json
import re
from types import SimpleNamespace

import pytest
import synthetic
from places import GUEST
from recorded_run import cell, create, record, recorded

from fabbbr import cli
from fabbbr import execute as loop
from fabbbr.arguments import build_parser
from fabbbr.backends.base import Report
from fabbbr.commands import repeat
from fabbbr.commands import run as run_command
from fabbbr.errors import StoreError, UsageError
from fabbbr.execute import Summary
from fabbbr.laboratory import Request, carry_out_in_guest
from fabbbr.manifest import Certificate, Check
from fabbbr.store import BESIDE
from fabbbr_analysis.figures import added
from fabbbr_analysis.figures.catalogue import figure, figure_names
from fabbbr_analysis.report import write_report
from fabbbr_analysis.report.added import comparison
from fabbbr_analysis.runset import RunSet

CONDITIONS = 4
PLAN = dataclasses.replace(synthetic.KNIT6_E1, rtts=("6 ms", "61 ms"), ccas=("cubic", "bbr1"), repeat=3)
SLOWER = 0.5


class Guest:
    """Carries out nothing, and says that it is the guest."""

    testbed = GUEST

    def with_kernel(self, kernel):
        assert kernel is None
        return self.testbed

    ran = ()

    def __init__(self):
        Guest.ran = []

    def cells_at_once(self, asked, _cells):
        return asked or 1

    def execute(self, task):
        Guest.ran.append(task.seed)
        (task.work / "raw" / "file").write_text("x", encoding="utf-8")
        return Report(wall_s=0.5, clock_s=2.0)

    def close(self):
        pass


@pytest.fixture
def guest(monkeypatch):
    passing = Certificate(checks=(Check(name="rate", passed=True, asked="1", measured="1"),))
    monkeypatch.setattr(loop.Evidence, "read", classmethod(lambda *_: SimpleNamespace(readback={})))
    monkeypatch.setattr(loop, "certify", lambda *_, **__: passing)
    monkeypatch.setattr("fabbbr.laboratory.open_backend", lambda *_: Guest())


def in_guest(folder, **more):
    return carry_out_in_guest(folder, announce=lambda *_: None, listen=lambda _: None, **more)


# The run


def test_finished_cells_run_in_the_guest_with_their_own_seeds_and_are_not_run_again(tmp_path, guest):
    cells = [cell(number) for number in (1, 2, 3)]
    folder = create(tmp_path / "run", *cells)
    for each in cells[:2]:
        record(folder, each)
    beside, summary = in_guest(folder)
    assert beside.path == tmp_path / "run" / BESIDE
    assert sorted(summary.certified) == [each.id for each in cells[:2]]
    assert sorted(Guest.ran) == [each.seed for each in cells[:2]]
    assert (beside.manifest.backend, beside.manifest.clock) == ("guest", "virtual")
    record(folder, cells[2])
    _, again = in_guest(folder)
    assert (again.certified, sorted(again.skipped)) == ([cells[2].id], [each.id for each in cells[:2]])
    assert folder.beside().manifest.cells == tuple(cells)


def test_the_run_itself_stays_as_it_was(tmp_path, guest):
    folder = recorded(tmp_path / "run", cell(1))
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    in_guest(folder)
    assert all(path.read_bytes() == bytes_ for path, bytes_ in before.items())


def test_a_run_of_the_guest_s_own_and_one_without_a_cell_are_refused(tmp_path, guest):
    with pytest.raises(UsageError, match="was run in the guest"):
        in_guest(create(tmp_path / "a", cell(1), backend="guest"))
    with pytest.raises(UsageError, match="no finished cell"):
        in_guest(create(tmp_path / "b", cell(1)))
    assert not (tmp_path / "b" / BESIDE).exists()


def test_another_cell_of_that_name_is_refused_and_nothing_is_written(tmp_path, guest):
    folder = recorded(tmp_path / "run", cell(1))
    create(folder.path / BESIDE, cell(1, seed=77), backend="guest", clock="virtual")
    before = (folder.path / BESIDE / "run.json").read_bytes()
    with pytest.raises(StoreError, match=r"holds another cell rivals-r1.*remove it"):
        in_guest(folder)
    assert (folder.path / BESIDE / "run.json").read_bytes() == before


def test_a_link_in_its_place_is_not_followed(tmp_path, guest):
    folder = recorded(tmp_path / "run", cell(1))
    recorded(tmp_path / "other", cell(1))
    (folder.path / BESIDE).symlink_to(tmp_path / "other")
    with pytest.raises(StoreError, match="symbolic link"):
        folder.beside()
    with pytest.raises(StoreError, match="symbolic link"):
        in_guest(folder)


# The commands


@pytest.mark.parametrize(
    ("backend", "summary", "against", "said"),
    [
        ("fabric", Summary(), None, "the same cells in the guest"),
        ("guest", Summary(), None, ""),
        ("fabric", Summary(failed={"a": "b"}), None, ""),
        ("fabric", Summary(), "there is no guest image", "Later: fabbbr guest repeat"),
    ],
)
def test_cells_of_a_slice_run_in_the_guest_where_there_is_one(
    tmp_path, monkeypatch, capsys, backend, summary, against, said
):
    ran = []
    monkeypatch.setattr(run_command, "against_a_guest", lambda: against)
    monkeypatch.setattr(run_command, "run_in_guest_too", lambda *_: ran.append(1))
    folder = create(tmp_path / "run", cell(1))
    request = Request(experiment="x", backend=backend, slice="mine")
    run_command._in_guest_too(run_command.Terminal(), request, folder, summary)
    out = " ".join(capsys.readouterr().out.split())
    assert said in out
    assert bool(out) == bool(said)
    assert bool(ran) == (said == "the same cells in the guest")


@pytest.mark.parametrize(
    ("argv", "compares"),
    [
        (("slice", "run", "mine", "x"), True),
        (("slice", "run", "mine", "x", "--no-guest"), False),
        (("run", "x"), False),
    ],
)
def test_no_guest_leaves_them_out(argv, compares):
    assert run_command._compares(build_parser().parse_args(argv)) is compares


def test_in_a_guest_there_is_none(tmp_path, monkeypatch):
    cpus = tmp_path / "cpuinfo"
    cpus.write_text("processor\t: 0\nvendor_id\t: User Mode Linux\n", encoding="utf-8")
    monkeypatch.setattr(repeat, "_CPUS", cpus)
    assert "a guest already" in repeat.against_a_guest()


def test_guest_repeat_reports_on_both(tmp_path, guest, monkeypatch, capsys):
    folder = recorded(tmp_path / "run", cell(1))
    monkeypatch.setattr(repeat, "report_on", lambda *_: folder.path / "report.html")
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert cli.main(["guest", "repeat", str(folder.path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["run"] == str(folder.path / BESIDE)
    assert told["certified"] == [cell(1).id]


def test_verify_looks_at_both(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *_: None)
    folder = recorded(tmp_path / "run", cell(1))
    beside = create(folder.path / BESIDE, cell(1), backend="guest", clock="virtual")
    record(beside, cell(1), backend="guest", clock="virtual")
    assert cli.main(["verify", str(folder.path)]) == 0
    next((beside.path / "cells").rglob("flow-0.client.json")).write_text("{}")
    assert cli.main(["verify", str(folder.path)]) == 7
    assert "flow-0.client.json does not match its sha256" in capsys.readouterr().out


# The report


@pytest.fixture
def run_set(tmp_path):
    """A testbed on which every flow gets half of what it gets in the guest."""
    there = synthetic.run_set(PLAN, tmp_path / "run", period_s=10.0, gain=SLOWER)
    there.__dict__["beside"] = synthetic.run_set(PLAN, tmp_path / "run" / BESIDE, seed=2, period_s=10.0)
    return there


def test_a_run_set_has_its_cells_in_the_guest_beside_it(tmp_path):
    folder = recorded(tmp_path / "run", cell(1))
    assert RunSet.open(folder.path).beside is None
    beside = create(folder.path / BESIDE, cell(1), backend="guest", clock="virtual")
    record(beside, cell(1), backend="guest", clock="virtual")
    assert list(RunSet.open(folder.path).beside.cells["backend"]) == ["guest"]


def test_every_condition_has_its_marks_of_both_places_with_intervals(run_set):
    assert added.NAME in figure_names(run_set)
    drawn = figure(run_set, added.NAME)
    assert len(drawn.data) == 2 * len(added.COLUMNS)
    for trace in drawn.data:
        assert len(trace.x) == CONDITIONS
        assert all(each >= 0 for each in trace.error_x.array)
    assert list(drawn.layout.yaxis.ticktext) == list(run_set.runs["condition"].drop_duplicates())
    here, emulated = (drawn.data[place].x for place in (0, len(added.COLUMNS)))
    assert all(a < b for a, b in zip(here, emulated, strict=True))


def test_without_a_guest_there_is_neither_figure_nor_section(tmp_path):
    alone = synthetic.run_set(PLAN, tmp_path / "run", period_s=10.0)
    assert added.NAME not in figure_names(alone)
    assert comparison(alone) is None
    path = write_report([alone], tmp_path / "report")
    assert "What the testbed adds" not in path.read_text(encoding="utf-8")
    assert not (path.parent / "testbed_adds.csv").exists()


def test_conditions_without_a_certified_run_on_either_side_are_left_out(tmp_path, run_set):
    first = run_set.runs["condition"].iloc[0]
    broken = tuple(run_set.runs[run_set.runs["condition"] == first]["cell_id"])
    fewer = dataclasses.replace(PLAN, broken_cells=broken)
    run_set.__dict__["beside"] = synthetic.run_set(fewer, tmp_path / "fewer", period_s=10.0)
    assert len(added.shared(run_set)) == CONDITIONS - 1
    assert first not in set(comparison(run_set)["condition"])


def test_the_report_has_figure_and_table_and_names_what_changed(tmp_path, run_set):
    path = write_report([run_set], tmp_path / "report")
    page = path.read_text(encoding="utf-8")
    assert page.count("<h3>What the testbed adds</h3>") == 1
    assert re.search(
        r"Of 12 comparisons of a metric at a condition between \w+ and the guest: \d+ changed", page
    )
    text = (path.parent / "testbed_adds.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == CONDITIONS * len(added.COLUMNS)
    goodput = [row for row in rows if row["metric"] == "goodput_bps"]
    for row in goodput:
        assert float(row["difference_high"]) < 0
        assert float(row["ratio"]) == pytest.approx(SLOWER, abs=0.1)
    lines = (path.parent / "report.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("### What the testbed adds")
    table = [line for line in lines[start : start + 20] if line.startswith("| ")]
    assert len(table) == 1 + len(rows)

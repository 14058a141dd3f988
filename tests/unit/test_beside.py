"""Tables made while cells finish: by another process, and never at the cost of the run."""

from __future__ import annotations

import contextlib

import many_cells
import places
import pytest

from fabbbr.commands import beside
from fabbbr.commands.beside import TablesBeside
from fabbbr.execute import Event
from fabbbr_analysis.tables import pieces
from fabbbr_analysis.tables.build import build_tables
from fabbbr_analysis.tables.follow import follow

REAL = places.place("real")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(beside, "_FEWEST_CELLS", 3)
    return many_cells.make(tmp_path / "run", 3, turns=1)


def finished(cell, kind="certified"):
    return Event(kind=kind, cell=cell)


def parts(folder):
    return {path.stem for path in (folder.path / "tables" / "made").glob("*.json")}


def test_parts_are_there_when_the_run_is_over_and_no_cell_is_read_again(folder, tmp_path, monkeypatch):
    # A module of the name that stands where the user does is not the one that is imported.
    (tmp_path / "fabbbr_analysis.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    one, other, failed = folder.manifest.cells
    with TablesBeside() as tables:
        tables.start(folder, 3, places.GUEST)
        tables.listen(finished(one, "started"))
        tables.listen(finished(one))
        tables.listen(finished(other, "uncertified"))
        tables.listen(finished(failed, "failed"))
    assert parts(folder) == {one.id, other.id}
    made = []
    make = pieces.make
    monkeypatch.setattr(pieces, "make", lambda stored, *more: made.append(stored.id) or make(stored, *more))
    build_tables(folder)
    assert made == [failed.id]


@pytest.mark.parametrize(("missing", "testbed"), [(2, places.GUEST), (3, REAL)])
def test_few_cells_and_real_time_start_no_process(folder, missing, testbed):
    with TablesBeside() as tables:
        tables.start(folder, missing, testbed)
        assert tables._process is None
        tables.listen(finished(folder.manifest.cells[0]))
    assert parts(folder) == set()


def test_a_process_that_cannot_be_started_is_done_without(folder, monkeypatch):
    monkeypatch.setattr(beside.sys, "executable", str(folder.path / "nothing"))
    with TablesBeside() as tables:
        tables.start(folder, 3, places.GUEST)
        tables.listen(finished(folder.manifest.cells[0]))


def test_a_process_that_died_stops_no_run(folder):
    with TablesBeside() as tables:
        tables.start(folder, 3, places.GUEST)
        tables._process.kill()
        tables._process.wait()
        tables.listen(finished(folder.manifest.cells[0]))


def test_a_process_that_does_not_listen_stops_no_run(folder, monkeypatch):
    monkeypatch.setattr(beside, "_FOLLOW", "import time; time.sleep(600)")
    with TablesBeside() as tables:
        tables.start(folder, 3, places.GUEST)
        for _ in range(10_000):  # more than a pipe holds
            tables.listen(finished(folder.manifest.cells[0]))
        tables._process.kill()


def test_a_process_that_is_far_behind_is_not_waited_for_without_end_and_does_not_stay(folder, monkeypatch):
    monkeypatch.setattr(beside, "_FOLLOW", "import time; time.sleep(600)")
    monkeypatch.setattr(beside, "_PATIENCE_S", 0.2)
    told = []

    @contextlib.contextmanager
    def waiting():
        told.append("waiting")
        yield
        told.append("over")

    with TablesBeside(waiting) as tables:
        tables.start(folder, 3, places.GUEST)
        tables.listen(finished(folder.manifest.cells[0]))
        assert told == []
    assert told == ["waiting", "over"]
    assert tables._process.poll() is not None


def test_an_interrupt_while_waiting_ends_the_process(folder, monkeypatch):
    monkeypatch.setattr(beside, "_FOLLOW", "import time; time.sleep(600)")

    def waiting():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), TablesBeside(waiting) as tables:
        tables.start(folder, 3, places.GUEST)
    assert tables._process.poll() is not None


def test_a_run_that_is_interrupted_does_not_wait(folder, monkeypatch):
    monkeypatch.setattr(beside, "_FOLLOW", "import time; time.sleep(600)")
    tables = TablesBeside()
    tables.start(folder, 3, places.GUEST)
    tables.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert tables._process.poll() is None
    tables._process.kill()
    tables._process.wait()


def test_a_cell_that_cannot_be_read_is_left_to_whoever_opens_the_run(folder):
    one, damaged, other = (cell.id for cell in folder.manifest.cells)
    folder.cell(damaged).raw("sockets.a.txt").unlink()
    follow(folder.path, [f"{one}\n", f"{damaged}\n", "no such cell\n", f"{other}\n"])
    assert parts(folder) == {one, other}
    assert build_tables(folder).problems == (f"{damaged}: raw/sockets.a.txt is missing",)

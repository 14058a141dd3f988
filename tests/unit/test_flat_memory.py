"""What memory and work depend on when a run has many cells: counted and traced, with no clock."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import many_cells
import numpy as np
import pyarrow.parquet as pq
import pytest

from fabbbr_analysis import stats
from fabbbr_analysis.claims import judge
from fabbbr_analysis.report import write_report
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.tables import pieces

FEWER, MORE = 10, 40
MOST_KB_PER_CELL = 32
"""Of Python's memory. A cell's plan is 8 kB, its rows, its marks and its curve on the page a few more; its
manifest would be 20 kB, its samples 100 kB, and the resamples of its goodput 80 kB."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("many")
    return {cells: many_cells.make(place / str(cells), cells, turns=1) for cells in (FEWER, MORE)}


@pytest.fixture(scope="module")
def run_sets(folders):
    return {cells: RunSet.open(folder.path) for cells, folder in folders.items()}


class Alive:
    """How many cells' samples are there at once."""

    def __init__(self):
        self.now = self.most = self.seen = 0

    def watch(self, thing, cells):
        self.now += cells
        self.seen += cells
        self.most = max(self.most, self.now)
        weakref.finalize(thing, self._gone, cells)

    def _gone(self, cells):
        self.now -= cells


def watched(run_set):
    """The run set, and what is alive of all samples that are read through it."""
    alive = Alive()
    read = run_set._read

    def watching(table, columns, cell_ids):
        frame = read(table, columns, cell_ids)
        if table in pieces.sample_schemas():
            alive.watch(frame, len(run_set.cells) if cell_ids is None else len(set(cell_ids)))
        return frame

    return RunSet(
        path=run_set.path,
        manifest=run_set.manifest,
        experiment=run_set.experiment,
        read=watching,
        found=run_set.found,
    ), alive


def test_tables_are_made_with_the_samples_of_one_cell_at_a_time(tmp_path, monkeypatch):
    alive = Alive()
    read = pieces.read_cell

    def watching(stored):
        tables = read(stored)
        alive.watch(tables["sockets"], 1)
        return tables

    monkeypatch.setattr(pieces, "read_cell", watching)
    RunSet.open(many_cells.make(tmp_path / "run", 6, turns=1).path)
    assert (alive.seen, alive.most) == (6, 1)


@pytest.mark.parametrize("cells", [FEWER, MORE])
def test_claims_hold_the_samples_of_one_cell_at_a_time(run_sets, cells):
    run_set, alive = watched(run_sets[cells])
    judge([run_set])
    assert alive.seen >= cells  # of every cell the trace
    assert alive.most <= 2  # the next one is read before the last one is let go


@pytest.mark.parametrize("cells", [FEWER, MORE])
def test_windows_of_received_bytes_hold_the_intervals_of_one_cell_at_a_time(tmp_path, cells):
    run_set, alive = watched(
        RunSet.open(many_cells.make(tmp_path / "run", cells, turns=1, experiment="cardwell_f8").path)
    )
    judge([run_set])
    assert alive.seen >= cells
    assert alive.most <= 2


@pytest.mark.parametrize("cells", [FEWER, MORE])
def test_a_report_holds_the_samples_of_the_cells_that_one_figure_shows(run_sets, tmp_path, cells):
    run_set, alive = watched(run_sets[cells])
    write_report([run_set], tmp_path)
    assert alive.seen >= cells
    # Over time one run of each of the two conditions is drawn: goodput, RTT and queue.
    assert alive.most <= 3 * len(many_cells.CCAS)


@pytest.mark.parametrize("cells", [FEWER, MORE])
def test_to_read_a_cell_one_file_is_opened_however_many_cells_there_are(run_sets, monkeypatch, cells):
    opened = []
    real = pq.ParquetFile
    monkeypatch.setattr(pq, "ParquetFile", lambda path, *more: opened.append(path) or real(path, *more))
    run_set = run_sets[cells]
    assert len(run_set.sockets(["t_s"], ["cca=bbr1,r1"]))
    assert opened == [run_set.path / "tables" / "sockets" / "cca=bbr1,r1.parquet"]
    assert real(opened[0]).metadata.num_row_groups == 1


def judged(run, _folder):
    judge([run])


def reported(run, folder):
    write_report([run], folder)


def remade(run, _folder):
    for path in (run.path / "tables").rglob("*.*"):
        path.unlink()
    RunSet.open(run.path)


def peak_bytes(act, *arguments):
    """Of Python's memory. What was there before is frozen, so that garbage is collected as it comes."""
    gc.collect()
    gc.freeze()
    gc.collect()
    tracemalloc.start()
    try:
        act(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.unfreeze()


@pytest.mark.parametrize("act", [remade, judged, reported])
def test_a_cell_more_takes_little_more_memory(run_sets, tmp_path, act):
    act(RunSet.open(run_sets[FEWER].path), tmp_path)  # what is kept for ever, such as imports, is there then
    peaks = {
        cells: peak_bytes(lambda run: act(RunSet.open(run), tmp_path), made.path)
        for cells, made in run_sets.items()
    }
    assert (peaks[MORE] - peaks[FEWER]) / (MORE - FEWER) < MOST_KB_PER_CELL * 1000


@pytest.mark.parametrize("runs", [1, 2, 3, 26, 27, 500, 4001])
def test_means_of_resamples_are_those_of_all_resamples_at_once(runs):
    values = np.random.default_rng(runs).lognormal(size=runs)
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    together = stats.mean(stats.resamples(values, one, 1000))
    np.testing.assert_array_equal(stats.means_of_resamples(values, other, 1000), together)
    assert one.bit_generator.state == other.bit_generator.state  # what is drawn next is the same too

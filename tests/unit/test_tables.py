"""The tables of a run folder: complete, reproducible to the byte, rebuilt when and only when they must be."""

from __future__ import annotations

import json
import os
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import recorded_run

from fabbbr.errors import AnalysisError, ParseError, StoreError
from fabbbr_analysis.metrics import of_cell
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.tables import build, pieces
from fabbbr_analysis.tables.build import build_tables, make_part, table_path
from fabbbr_analysis.tables.cell import as_frames, read_cell
from fabbbr_analysis.tables.index import altered
from fabbbr_analysis.tables.pieces import sample_path, sample_schemas

NAMES = ("cells", "flows", "intervals", "sockets", "queues", "runs")
OF_SAMPLES = ("intervals", "sockets", "queues")
TWO = (recorded_run.cell(1), recorded_run.cell(2))
THIRD = recorded_run.cell(3)


def recorded(path, *cells):
    """A run folder whose plan has one cell more than it holds."""
    folder = recorded_run.create(path, *cells, THIRD)
    for cell in cells:
        recorded_run.record(folder, cell)
    return folder


@pytest.fixture
def run(tmp_path):
    return recorded(tmp_path / "run", *TWO)


def contents(folder):
    """The bytes of every table, and what was made of each cell."""
    tables = folder.path / "tables"
    return {path.relative_to(tables): path.read_bytes() for path in sorted(tables.rglob("*.parquet"))}


def cells_in(folder, name):
    return set(pq.read_table(table_path(folder.path, name), columns=["cell_id"])["cell_id"].to_pylist())


def file_of(folder, name, cell_id="rivals-r1"):
    if name in OF_SAMPLES:
        return sample_path(folder.path / "tables", name, cell_id)
    return table_path(folder.path, name)


def made_by(monkeypatch):
    """The ids of the cells whose part is made from now on."""
    seen = []
    make = pieces.make
    monkeypatch.setattr(pieces, "make", lambda stored, *more: seen.append(stored.id) or make(stored, *more))
    return seen


def mark(folder):
    """Leave a trace in the tables that a rebuild removes."""
    (folder.path / "tables" / "trace").touch()


def is_rebuilt(folder):
    build_tables(folder)
    return not (folder.path / "tables" / "trace").exists()


def test_every_table_has_rows_of_every_cell(run):
    build_tables(run)
    for name in NAMES:
        assert cells_in(run, name) == {"rivals-r1", "rivals-r2"}, name


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_samples_of_a_cell_are_a_file_so_that_they_can_be_read_alone(run, name):
    build_tables(run)
    for cell_id in ("rivals-r1", "rivals-r2"):
        table = pq.read_table(file_of(run, name, cell_id))
        assert set(table["cell_id"].to_pylist()) == {cell_id}
        assert table.schema == sample_schemas()[name]


def test_tables_are_what_each_cell_says_by_itself(run):
    build_tables(run)
    alone = [read_cell(run.cell(cell.id)) for cell in TWO]
    for name in ("cells", "flows", *OF_SAMPLES):
        expected = pa.concat_tables([tables[name] for tables in alone])
        assert pq.read_table(table_path(run.path, name)).equals(expected), name
    measured = [of_cell(as_frames(tables), cell) for tables, cell in zip(alone, TWO, strict=True)]
    metrics = pd.DataFrame(measured)
    runs = pd.read_parquet(table_path(run.path, "runs"))
    pd.testing.assert_frame_equal(runs[metrics.columns], metrics, check_dtype=False, check_exact=True)


def test_rows_are_in_the_order_of_the_cells_however_many_are_put_together_at_once(run, monkeypatch):
    build_tables(run)
    together = {name: pq.read_table(table_path(run.path, name)) for name in ("cells", "flows", "runs")}
    monkeypatch.setattr(build, "_CELLS_AT_ONCE", 1)
    shutil.rmtree(run.path / "tables")
    build_tables(run)
    for name, table in together.items():
        assert pq.read_table(table_path(run.path, name)).equals(table)


# What is made, and when


def test_a_new_cell_is_read_and_no_other(run, monkeypatch):
    build_tables(run)
    made = made_by(monkeypatch)
    recorded_run.record(run, THIRD)
    build_tables(run)
    assert made == ["rivals-r3"]
    assert all(cells_in(run, name) == {"rivals-r1", "rivals-r2", "rivals-r3"} for name in NAMES)


def test_a_run_that_grew_has_the_tables_of_one_that_was_whole_at_once(run, tmp_path):
    build_tables(run)
    recorded_run.record(run, THIRD)
    build_tables(run)
    at_once = recorded(tmp_path / "elsewhere", *TWO)
    recorded_run.record(at_once, THIRD)
    build_tables(at_once)
    assert contents(run) == contents(at_once)


def test_a_cell_that_was_run_again_is_read_again_and_no_other(run, monkeypatch):
    build_tables(run)
    made = made_by(monkeypatch)
    recorded_run.record(run, recorded_run.cell(2), status="uncertified")
    build_tables(run)
    assert made == ["rivals-r2"]


def test_another_plan_reads_no_cell_again(run, monkeypatch):
    build_tables(run)
    made = made_by(monkeypatch)
    build_tables(recorded_run.create(run.path, *TWO))
    assert made == []


def test_a_cell_that_is_gone_leaves_nothing_in_the_tables(run):
    build_tables(run)
    recorded_run.remove(run, "rivals-r2")
    build_tables(run)
    assert not list((run.path / "tables").rglob("rivals-r2*"))


def test_a_part_is_made_as_soon_as_its_cell_is_whole_and_never_again(run, monkeypatch):
    for cell in TWO:
        make_part(run, cell.id)
    made = made_by(monkeypatch)
    assert altered(run.path / "tables") == []  # parts without an index are nothing wrong
    build_tables(run)
    assert made == []
    assert all(cells_in(run, name) == {"rivals-r1", "rivals-r2"} for name in NAMES)


def test_a_part_of_a_cell_that_came_meanwhile_stays(run, monkeypatch):
    """Another process makes parts while this one looks at what is there."""
    build_tables(run)
    recorded_run.remove(run, "rivals-r2")
    look = build.inspect

    def meanwhile(folder, **more):
        found = look(folder, **more)
        if not folder.has("rivals-r3"):
            recorded_run.record(folder, THIRD)
            make_part(folder, "rivals-r3")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(build, "inspect", meanwhile)
        build_tables(run)
    made = made_by(monkeypatch)
    build_tables(run)
    assert made == []


def test_tables_of_the_former_layout_are_taken_away(run):
    (run.path / "tables").mkdir()
    former = run.path / "tables" / "sockets.parquet"
    former.write_bytes(b"PAR1")
    build_tables(run)
    assert not former.exists()


# What is noticed


def test_the_same_cells_give_the_same_bytes(run, tmp_path):
    again = recorded(tmp_path / "elsewhere", *TWO)
    build_tables(run)
    build_tables(again)
    assert contents(run) == contents(again)


def test_a_run_that_took_longer_on_the_wall_has_the_same_tables(run, tmp_path):
    slower = recorded_run.create(tmp_path / "slower", *TWO, THIRD)
    for cell in TWO:
        recorded_run.record(slower, cell, wall_s=500.0)
    build_tables(run)
    build_tables(slower)
    assert contents(run) == contents(slower)


def test_runs_are_cells_with_metrics(run):
    build_tables(run)
    cells, runs = (pq.read_table(table_path(run.path, name)) for name in ("cells", "runs"))
    assert runs.select(cells.column_names).equals(cells)
    assert {"goodput_bps", "queue_drops", "jain_groups"} <= set(runs.column_names) - set(cells.column_names)


def test_tables_are_kept_as_long_as_no_cell_changes(run):
    build_tables(run)
    mark(run)
    assert not is_rebuilt(run)


def test_a_new_cell_makes_tables_stale(run):
    build_tables(run)
    mark(run)
    recorded_run.record(run, THIRD)
    assert is_rebuilt(run)
    assert pq.read_table(table_path(run.path, "runs")).num_rows == 3


def test_a_removed_cell_makes_tables_stale(run):
    build_tables(run)
    mark(run)
    recorded_run.remove(run, "rivals-r2")
    assert is_rebuilt(run)


def test_a_cell_that_was_run_again_makes_tables_stale(run):
    build_tables(run)
    mark(run)
    recorded_run.record(run, recorded_run.cell(2), status="uncertified")
    assert is_rebuilt(run)


def test_another_plan_makes_tables_stale(run):
    build_tables(run)
    mark(run)
    assert is_rebuilt(recorded_run.create(run.path, *TWO))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["changed", "gone", "another's", "link"])
def test_a_table_that_is_not_what_was_written_is_made_again(run, tmp_path, name, how):
    build_tables(run)
    before = contents(run)
    mark(run)
    file = file_of(run, name)
    text = file.read_bytes()
    file.unlink()
    if how == "changed":
        file.write_bytes(text[:40] + bytes([text[40] ^ 1]) + text[41:])
    elif how == "another's":
        other = file_of(run, "cells" if name == "runs" else "runs")
        file.write_bytes((file_of(run, name, "rivals-r2") if name in OF_SAMPLES else other).read_bytes())
    elif how == "link":
        (tmp_path / "target").write_bytes(text)
        file.symlink_to(tmp_path / "target")
    assert is_rebuilt(run)
    assert contents(run) == before


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_only_the_cell_of_an_altered_file_is_read_again(run, monkeypatch, name):
    build_tables(run)
    file_of(run, name, "rivals-r2").write_bytes(b"PAR1")
    assert altered(run.path / "tables") == [
        f"tables/{name}/rivals-r2.parquet is not what was written; fabbbr report makes the tables again"
    ]
    made = made_by(monkeypatch)
    build_tables(run)
    assert made == ["rivals-r2"]
    assert altered(run.path / "tables") == []


@pytest.mark.parametrize("how", ["edited", "gone", "another's", "nothing"])
def test_a_record_of_a_cell_that_is_not_what_was_written_is_made_again(run, monkeypatch, how):
    build_tables(run)
    before = contents(run)
    record = run.path / "tables" / "made" / "rivals-r1.json"
    text = record.read_text()
    record.unlink()
    if how == "edited":
        record.write_text(text.replace('"goodput_bps": ', '"goodput_bps": 1', 1))
        assert record.read_text() != text
    elif how == "another's":
        record.write_text((record.parent / "rivals-r2.json").read_text())
    elif how == "nothing":
        record.write_text("")
    made = made_by(monkeypatch)
    build_tables(run)
    assert made == ["rivals-r1"]
    assert contents(run) == before


@pytest.mark.parametrize("name", [*OF_SAMPLES, "made"])
def test_a_folder_of_parts_that_is_a_link_is_not_followed(run, tmp_path, name):
    build_tables(run)
    kept = tmp_path / "kept"
    (run.path / "tables" / name).rename(kept)
    (run.path / "tables" / name).symlink_to(kept)
    before = {path: path.read_bytes() for path in kept.iterdir()}
    assert len(altered(run.path / "tables")) == 2
    build_tables(run)
    assert not (run.path / "tables" / name).is_symlink()
    assert {path: path.read_bytes() for path in kept.iterdir()} == before
    assert altered(run.path / "tables") == []


def test_tables_of_another_version_are_stale_and_every_cell_is_read_again(run, monkeypatch):
    build_tables(run)
    mark(run)
    for module in (build, pieces):
        monkeypatch.setattr(module, "TABLES_VERSION", build.TABLES_VERSION + 1)
    made = made_by(monkeypatch)
    assert is_rebuilt(run)
    assert made == ["rivals-r1", "rivals-r2"]


@pytest.mark.parametrize("text", ["", "[", "[]", '{"cells": {}}'])
def test_a_damaged_index_makes_tables_stale(run, text):
    build_tables(run)
    mark(run)
    (run.path / "tables" / "index.json").write_text(text)
    assert is_rebuilt(run)


def test_a_cell_that_cannot_be_read_leaves_the_old_tables_and_nothing_else(run):
    build_tables(run)
    before, names = contents(run), sorted(path.name for path in run.path.iterdir())
    recorded_run.record(run, THIRD, files={"sockets.a.txt": b"nothing\n"})
    with pytest.raises(ParseError, match="cell rivals-r3"):
        build_tables(run)
    assert contents(run) == before
    assert sorted(path.name for path in run.path.iterdir()) == names


def test_a_damaged_cell_is_in_no_table_and_named_until_it_is_whole_again(run):
    file = run.cell("rivals-r1").raw("flow-0.server.json")
    text = file.read_bytes()
    file.write_bytes(text.replace(b'"bytes":\t', b'"bytes":\t1', 1))
    assert file.read_bytes() != text
    for _ in range(2):  # the second time the tables are there
        assert build_tables(run).problems == ("rivals-r1: raw/flow-0.server.json does not match its sha256",)
        for name in NAMES:
            assert cells_in(run, name) == {"rivals-r2"}, name
        mark(run)
    assert not is_rebuilt(run)
    file.write_bytes(text)
    assert is_rebuilt(run)
    assert build_tables(run).problems == ()


def test_tables_that_are_a_link_are_refused_and_their_target_left_alone(run, tmp_path):
    (tmp_path / "target").mkdir()
    (run.path / "tables").symlink_to(tmp_path / "target")
    with pytest.raises(StoreError, match="tables is a symbolic link"):
        build_tables(run)
    assert list((tmp_path / "target").iterdir()) == []


@pytest.mark.parametrize("end", ["partial", "old"])
def test_a_link_where_tables_are_prepared_is_not_followed(run, tmp_path, end):
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "mine").touch()
    (run.path / f".tables.{os.getpid()}.{end}").symlink_to(tmp_path / "target")
    build_tables(run)
    assert [file.name for file in (tmp_path / "target").iterdir()] == ["mine"]


def test_a_run_folder_without_cells_has_empty_tables(tmp_path):
    folder = recorded_run.create(tmp_path / "run", recorded_run.cell())
    build_tables(folder)
    run_set = RunSet.open(folder.path)
    assert [len(getattr(run_set, name)) for name in ("cells", "flows", "runs", "intervals")] == [0] * 4
    assert list(run_set.sockets().columns) == sample_schemas()["sockets"].names
    assert run_set.sockets().empty
    assert "axis_cca" in pq.read_schema(table_path(folder.path, "cells")).names


def test_progress_counts_the_cells(run):
    seen = []
    build_tables(run, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


def test_the_index_names_the_cells_that_are_in_the_tables(run):
    build_tables(run)
    index = json.loads((run.path / "tables" / "index.json").read_text())
    assert list(index["cells"]) == ["rivals-r1", "rivals-r2"]


def test_a_place_that_cannot_be_written_is_named(run, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build.pq.ParquetWriter, "write_table", full)
    with pytest.raises(AnalysisError, match="tables: No space left on device"):
        build_tables(run)
    assert not (run.path / "tables").exists()

"""The tables of a run folder: complete, reproducible to the byte, rebuilt when and only when they must be."""

from __future__ import annotations

import json
import os

import pyarrow.parquet as pq
import pytest
import recorded_run

from fabbbr.errors import AnalysisError, ParseError, StoreError
from fabbbr_analysis.tables import build
from fabbbr_analysis.tables.build import build_tables, table_path

NAMES = ("cells", "flows", "intervals", "sockets", "queues", "runs")
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
    return {name: table_path(folder.path, name).read_bytes() for name in NAMES}


def mark(folder):
    """Leave a trace in the tables that a rebuild removes."""
    (folder.path / "tables" / "trace").touch()


def is_rebuilt(folder):
    build_tables(folder)
    return not (folder.path / "tables" / "trace").exists()


def test_every_table_has_rows_of_every_cell(run):
    build_tables(run)
    for name in NAMES:
        ids = pq.read_table(table_path(run.path, name), columns=["cell_id"])["cell_id"].to_pylist()
        assert set(ids) == {"rivals-r1", "rivals-r2"}, name


def test_a_cell_is_a_row_group_so_that_it_can_be_read_alone(run):
    build_tables(run)
    for name in ("flows", "intervals", "sockets", "queues"):
        file = pq.ParquetFile(table_path(run.path, name))
        groups = [
            set(file.read_row_group(i, ["cell_id"])["cell_id"].to_pylist())
            for i in range(file.num_row_groups)
        ]
        assert groups == [{"rivals-r1"}, {"rivals-r2"}]


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
    file = table_path(run.path, name)
    text = file.read_bytes()
    file.unlink()
    if how == "changed":
        file.write_bytes(text[:40] + bytes([text[40] ^ 1]) + text[41:])
    elif how == "another's":
        file.write_bytes(table_path(run.path, "cells" if name == "runs" else "runs").read_bytes())
    elif how == "link":
        (tmp_path / "target").write_bytes(text)
        file.symlink_to(tmp_path / "target")
    assert is_rebuilt(run)
    assert contents(run) == before


def test_tables_of_another_version_are_stale(run, monkeypatch):
    build_tables(run)
    mark(run)
    monkeypatch.setattr(build, "TABLES_VERSION", build.TABLES_VERSION + 1)
    assert is_rebuilt(run)


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
            ids = pq.read_table(table_path(run.path, name), columns=["cell_id"])["cell_id"].to_pylist()
            assert set(ids) == {"rivals-r2"}, name
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
    assert {name: pq.read_table(table_path(folder.path, name)).num_rows for name in NAMES} == dict.fromkeys(
        NAMES, 0
    )
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

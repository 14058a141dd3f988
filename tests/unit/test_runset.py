"""What metrics, claims, figures and notebooks see of a run."""

from __future__ import annotations

import pandas as pd
import pytest
import recorded_run

from fabbbr.errors import AnalysisError, StoreError
from fabbbr_analysis.runset import DamagedRunWarning, RunSet


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = recorded_run.create(tmp_path_factory.mktemp("runs") / "run", *map(recorded_run.cell, (1, 2)))
    recorded_run.record(folder, recorded_run.cell(1))
    recorded_run.record(folder, recorded_run.cell(2), status="uncertified")
    return folder.path


@pytest.fixture(scope="module")
def run_set(path):
    return RunSet.open(path)


def test_a_run_set_knows_what_it_is(run_set, path):
    assert (run_set.path, run_set.experiment, run_set.manifest.source_name) == (path, "rivals", "rivals")


def test_a_run_set_names_the_files_that_its_folder_has(run_set, path):
    assert {"run.json", "experiment.yaml", "tables/runs.parquet", "tables/sockets"} <= set(run_set.files)
    assert all((path / name).exists() for name in run_set.files)


@pytest.mark.parametrize("table", ["cells", "flows", "intervals", "runs"])
def test_tables_are_read_once(run_set, table):
    frame = getattr(run_set, table)
    assert set(frame["cell_id"]) == {"rivals-r1", "rivals-r2"}
    assert getattr(run_set, table) is frame


def test_a_cell_without_certificate_is_shown_but_not_certified(run_set):
    assert run_set.runs["status"].tolist() == ["certified", "uncertified"]
    assert run_set.certified["cell_id"].tolist() == ["rivals-r1"]


@pytest.mark.parametrize("table", ["sockets", "queues"])
def test_samples_are_read_by_column_and_cell(run_set, table):
    read = getattr(run_set, table)
    everything = read()
    assert list(read(["t_s", "cell_id"]).columns) == ["t_s", "cell_id"]
    some = read(cell_ids=["rivals-r2"])
    pd.testing.assert_frame_equal(
        some, everything[everything["cell_id"] == "rivals-r2"].reset_index(drop=True)
    )
    assert read(["t_s"], ["rivals-r2"])["t_s"].tolist() == some["t_s"].tolist()
    assert read(cell_ids=[]).empty
    assert read(cell_ids=["elsewhere"]).empty


def test_intervals_are_read_by_cell_too(run_set):
    some = run_set.intervals_of(["rivals-r2"])
    everything = run_set.intervals
    pd.testing.assert_frame_equal(
        some, everything[everything["cell_id"] == "rivals-r2"].reset_index(drop=True)
    )
    assert list(run_set.intervals_of(["rivals-r1"], ["end_s"]).columns) == ["end_s"]


def test_rows_are_in_the_order_of_the_cells_and_not_of_asking(run_set):
    asked = run_set.sockets(["cell_id"], ["rivals-r2", "rivals-r1", "rivals-r2"])
    pd.testing.assert_frame_equal(asked, run_set.sockets(["cell_id"]))


def test_the_origins_of_cells_are_named_once_each_and_without_options(run_set):
    (origin,) = run_set.origins()
    assert (origin.testbed.backend, origin.options) == ("replay", {})


@pytest.mark.parametrize("name", ["sockets", "queues", "intervals"])
def test_samples_that_are_damaged_after_the_run_was_opened_are_named_with_the_remedy(tmp_path, name):
    opened = RunSet.open(recorded_run.recorded(tmp_path / "run", recorded_run.cell()).path)
    (tmp_path / "run" / "tables" / name / "rivals-r1.parquet").write_bytes(b"PAR1")
    with pytest.raises(AnalysisError, match=rf"{name}/rivals-r1\.parquet.*remove .*tables"):
        opened._read(name, None, ["rivals-r1"])


def test_an_unknown_column_is_refused_with_those_there_are(run_set):
    with pytest.raises(AnalysisError, match="'sockets' has no column rtt; it has cell_id, host"):
        run_set.sockets(["rtt"])


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(StoreError, match="not a run folder"):
        RunSet.open(tmp_path)


def test_a_table_that_is_damaged_after_the_run_was_opened_is_named_with_the_remedy(tmp_path):
    opened = RunSet.open(recorded_run.recorded(tmp_path / "run", recorded_run.cell()).path)
    (tmp_path / "run" / "tables" / "runs.parquet").write_bytes(b"PAR1")
    with pytest.raises(AnalysisError, match=r"runs\.parquet.*remove .*tables"):
        _ = opened.runs


def test_a_notebook_is_warned_of_a_damaged_cell_that_is_left_out(tmp_path):
    folder = recorded_run.recorded(tmp_path / "run", *map(recorded_run.cell, (1, 2)))
    folder.cell("rivals-r2").raw("flows.json").write_text("[]")
    with pytest.warns(DamagedRunWarning, match=r"rivals-r2: raw/flows\.json does not match its sha256"):
        opened = RunSet.open(folder.path)
    assert opened.problems == ("rivals-r2: raw/flows.json does not match its sha256",)
    assert opened.runs["cell_id"].tolist() == ["rivals-r1"]


def test_a_run_set_of_frames_behaves_like_one_on_disk(run_set):
    names = ("cells", "flows", "intervals", "runs")
    frames = {name: getattr(run_set, name) for name in names} | {"queues": run_set.queues()}
    made = RunSet.from_frames(frames, experiment="rivals")
    for name in names:
        pd.testing.assert_frame_equal(getattr(made, name), getattr(run_set, name))
    pd.testing.assert_frame_equal(made.certified, run_set.certified)
    pd.testing.assert_frame_equal(made.queues(["t_s"], ["rivals-r2"]), run_set.queues(["t_s"], ["rivals-r2"]))
    with pytest.raises(AnalysisError, match="has no column rtt"):
        made.queues(["rtt"])
    with pytest.raises(AnalysisError, match="no table 'sockets'"):
        made.sockets()
    with pytest.raises(AnalysisError, match="without a manifest"):
        _ = made.manifest

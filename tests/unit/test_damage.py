"""What is done to a run folder is noticed or changes no number; no write follows a link."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from pathlib import Path

import corruptions
import pytest
import recorded_run
from older_shape import as_in_format_2

from fabbbr import cli
from fabbbr.errors import StoreError
from fabbbr.files import LARGEST_RECORD_BYTES
from fabbbr.store import RunFolder, only_writer
from fabbbr_analysis.report import write_comparison, write_report
from fabbbr_analysis.runset import DamagedRunWarning, RunSet

RAW = "cells/rivals-r1/raw"
FILES = (
    "run.json", "experiment.yaml", "cells/rivals-r1/manifest.json", f"{RAW}/flow-0.server.json",
    f"{RAW}/sockets.a.txt",
    f"{RAW}/queues.s1.times", "tables/index.json", "tables/runs.parquet",
)  # fmt: skip
"""One of each sort; ``benchmarks/damage.py`` takes all."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("damage")


@pytest.fixture(scope="module")
def whole(place):
    return corruptions.make(place / "whole")


@pytest.fixture(scope="module")
def other(place):
    return corruptions.make_other(place / "other")


@pytest.fixture(scope="module")
def untouched(whole):
    return corruptions.tables(RunSet.open(whole))


@pytest.fixture
def copy(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "run"))


def seeded(*words):
    return random.Random(" ".join(words))  # noqa: S311 - where to damage a file is no secret


def damaged(copy, other, untouched, name, kind):
    corruptions.corrupt(copy, other, name, kind, seeded(name, kind))
    return corruptions.outcome(copy, untouched)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", [*corruptions.CONTENT, *corruptions.FILE])
def test_a_damaged_file_is_noticed_or_changes_no_number(copy, other, untouched, name, kind):
    if name.startswith(RAW):
        shutil.rmtree(copy / "tables")  # those that are there are right, whatever becomes of raw files
    assert not damaged(copy, other, untouched, name, kind).missed


@pytest.mark.parametrize("kind", corruptions.FOLDER)
def test_a_folder_with_something_in_the_wrong_place_is_noticed_or_has_the_same_numbers(
    copy, other, untouched, kind
):
    assert not damaged(copy, other, untouched, "", kind).missed


def test_the_untouched_folder_is_neither_named_nor_warned_of(copy, untouched):
    assert corruptions.outcome(copy, untouched) == corruptions.Outcome(
        named=False, warned=False, equal=True, rest_equal=True
    )


# What the commands say


@pytest.fixture
def fabbbr(capsys, monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def call(*words):
        status = cli.main([str(word) for word in words])
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


NAMED = {
    "another rate everywhere": "run.json is damaged or was edited",
    "planned cells dropped": "run.json is damaged or was edited",
    "a cell under a second name": "rivals-r4 says that it is rivals-r1",
    "a cell under a planned name": "rivals-r3 says that it is rivals-r1",
    "a cell of another run": "rivals-r1 is another than the one planned in run.json, by its seed",
    "a status edited": "rivals-r1/manifest.json is damaged or was edited",
    "a raw file more": r"raw/\x1b[31mred\udcff is not in the manifest",
    "a link for a cell": "rivals-r1 is a symbolic link",
}


@pytest.mark.parametrize("kind", NAMED)
def test_every_command_names_the_damage_and_ends_with_7(fabbbr, copy, other, tmp_path, kind):
    corruptions.corrupt(copy, other, "", kind, seeded())
    for words in (
        ("verify", copy),
        ("claims", copy),
        ("compare", copy, copy),
        ("report", copy, "--to", tmp_path),
    ):
        status, out, complaint = fabbbr(*words)
        assert status == 7, words
        assert NAMED[kind] in out + complaint, words


def test_a_cell_of_the_same_plan_on_another_clock_is_not_mixed_in(fabbbr, copy, tmp_path):
    there = corruptions.make_on_another_clock(tmp_path / "there")
    corruptions.corrupt(copy, there, "", "a cell of another run", seeded())
    status, out, _ = fabbbr("verify", copy)
    assert status == 7
    assert "rivals-r1 ran in replay on clock virtual, and this run is one in replay on clock real" in out


def test_tables_that_were_edited_are_named_by_verify_and_made_again_by_the_others(
    fabbbr, copy, other, untouched
):
    corruptions.corrupt(copy, other, "", "goodput tripled in runs.parquet", seeded())
    status, out, _ = fabbbr("verify", copy)
    assert (status, "tables/runs.parquet" in out) == (7, True)
    assert fabbbr("claims", copy)[0] == 0
    assert fabbbr("verify", copy)[0] == 0
    assert RunSet.open(copy).runs.equals(untouched["runs"])


def test_a_run_of_which_no_cell_is_left_is_refused_for_its_damage_and_not_called_unfinished(
    fabbbr, copy, other
):
    corruptions.corrupt(copy, other, "", "two cells swapped", seeded())
    status, _, complaint = fabbbr("report", copy)
    assert status == 7
    assert "no cell left to report on: cell rivals-r1 says that it is rivals-r2" in complaint
    assert not (copy / "report.html").exists()


def test_what_is_planned_and_not_there_is_said_and_no_damage(fabbbr, copy):
    status, out, _ = fabbbr("verify", copy)
    assert status == 0
    assert "2 whole cells" in out
    assert "not run yet: rivals-r3" in out


def test_pages_say_what_was_left_out_and_whole_ones_give_the_digest(fabbbr, copy, tmp_path):
    digest = json.loads(fabbbr("verify", copy, "--json")[1])["digests"][str(copy)]
    page = write_report([RunSet.open(copy)], tmp_path / "whole").read_text(encoding="utf-8")
    assert page.count(f"sha256 {digest}") == 1
    assert f"digest sha256 <code>{digest}</code>" in page
    assert "verify</code> does not pass" not in page
    (copy / RAW / "flows.json").write_text("[]")
    shutil.rmtree(copy / "tables")
    with pytest.warns(DamagedRunWarning):
        run_set = RunSet.open(copy)
    write_comparison(run_set, run_set, tmp_path / "page")
    write_report([run_set], tmp_path / "page")
    for name in ("report.html", "report.md", "comparison.html"):
        text = (tmp_path / "page" / name).read_text(encoding="utf-8")
        assert "rivals-r1: raw/flows.json does not match its sha256" in text, name
        assert digest not in text, name
    report = (tmp_path / "page" / "report.md").read_text(encoding="utf-8")
    assert "- damaged, not averaged: rivals-r1" in report
    assert "none: the run folder is damaged" in report


# Format 1 had no digests


def as_format_1(folder):
    for file in (folder / "run.json", *folder.glob("cells/*/manifest.json")):
        record = as_in_format_2(json.loads(file.read_text()))
        record.pop("experiment_sha256", None)
        file.write_text(json.dumps(record | {"format_version": 1}, indent=1))
    shutil.rmtree(folder / "tables")


def test_a_folder_of_format_1_opens_with_a_remark_and_the_same_numbers(fabbbr, copy, untouched, tmp_path):
    as_format_1(copy)
    status, out, _ = fabbbr("verify", copy)
    assert (status, "3 manifests are of format 1 and have no digest" in out) == (0, True)
    run_set = RunSet.open(copy)
    assert run_set.runs.equals(untouched["runs"])
    assert "3 manifests are of format 1" in write_report([run_set], tmp_path / "page").read_text(
        encoding="utf-8"
    )


def test_a_folder_of_format_1_still_notices_mixed_up_cells_and_raw_files(copy, other):
    as_format_1(copy)
    corruptions.corrupt(copy, other, "", "two cells swapped", seeded())
    with pytest.warns(DamagedRunWarning):
        assert len(RunSet.open(copy).problems) == 2


def test_a_format_is_not_lowered_to_take_the_digest_away(copy):
    text = (copy / "run.json").read_text().splitlines(keepends=True)
    (copy / "run.json").write_text("".join((text[0], *text[2:])))
    with pytest.raises(StoreError, match="has no digest"):
        RunFolder.open(copy)


# Links


LINKED = (".lock", ".partial", "failed", "failed/rivals-r1", "cells", "tables", "run.json", "experiment.yaml")


@pytest.mark.parametrize("name", LINKED)
def test_a_run_does_not_enter_a_folder_in_which_it_would_write_through_a_link(copy, tmp_path, name):
    target = tmp_path / "target"
    target.mkdir()
    (target / "mine").write_text("kept")
    place = copy / name
    place.parent.mkdir(exist_ok=True)
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target / "mine" if place.suffix in (".json", ".yaml") or name == ".lock" else target)
    with pytest.raises(StoreError, match=f"{name} is a symbolic link"), only_writer(copy):
        pass
    assert [(file.name, file.read_text()) for file in target.iterdir()] == [("mine", "kept")]


@pytest.mark.parametrize("name", ["summary.csv", "claims.csv", "report.md", "report.html"])
def test_a_report_does_not_write_through_a_link(copy, tmp_path, name):
    mine = tmp_path / "mine"
    mine.write_text("kept")
    prepared = copy / f".{name}.{os.getpid()}.partial"
    prepared.symlink_to(mine)
    run_set = RunSet.open(copy)
    write_report([run_set], copy)
    (copy / name).unlink()
    (copy / name).symlink_to(mine)
    with pytest.raises(StoreError, match=f"{name} is a symbolic link"):
        write_report([run_set], copy)
    assert mine.read_text() == "kept"
    assert not prepared.is_symlink()


def test_work_is_not_begun_behind_a_link(copy, tmp_path):
    (copy / ".partial").rmdir()
    (copy / ".partial").symlink_to(tmp_path)
    with pytest.raises(StoreError, match="partial is a symbolic link"):
        RunFolder.open(copy).begin("rivals-r3")


# What a crash leaves


class Killed(BaseException):
    pass


@pytest.mark.parametrize("writes", range(4))
def test_a_run_that_grows_and_is_killed_at_any_write_verifies_and_goes_on(copy, fabbbr, monkeypatch, writes):
    """``create`` on a folder that is there writes twice; each rename is where a kill would be seen."""
    done = 0
    replace, rename = Path.replace, Path.rename

    def counted(act):
        def maybe(*words):
            nonlocal done
            if done == writes:
                raise Killed
            done += 1
            return act(*words)

        return maybe

    plan = RunFolder.open(copy).manifest
    grown = plan.model_copy(update={"cells": (*plan.cells, recorded_run.cell(4))})
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", counted(replace))
        patch.setattr(Path, "rename", counted(rename))
        with contextlib.suppress(Killed):
            folder = RunFolder.create(copy, grown, "id: rivals  # and more\n")
            recorded_run.record(folder, recorded_run.cell(3))
    assert fabbbr("verify", copy)[0] == 0
    folder = RunFolder.create(copy, grown, "id: rivals  # and more\n")
    for number in (3, 4):
        recorded_run.record(folder, recorded_run.cell(number))
    assert "4 whole cells" in fabbbr("verify", copy)[1]


@pytest.mark.parametrize("renames", range(3))
def test_a_cell_that_replaces_another_is_never_half_there(copy, fabbbr, monkeypatch, renames):
    folder, done, rename = RunFolder.open(copy), 0, Path.rename

    def maybe(*words):
        nonlocal done
        if done == renames:
            raise Killed
        done += 1
        return rename(*words)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", maybe)
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        with contextlib.suppress(Killed):
            recorded_run.record(folder, recorded_run.cell(1), wall_s=7.0)
    status, out, _ = fabbbr("verify", copy)
    assert status == 0
    assert ("1 whole cell" in out) == (renames == 1)


def test_a_record_of_more_bytes_than_any_run_has_is_refused_before_it_is_read(copy):
    with (copy / "run.json").open("r+b") as file:
        file.truncate(LARGEST_RECORD_BYTES + 1)
    with pytest.raises(StoreError, match=r"run\.json has 134217729 bytes"):
        RunFolder.open(copy)


def test_opening_a_run_reads_each_manifest_the_same_number_of_times_however_many_there_are(
    tmp_path, monkeypatch
):
    from fabbbr import store

    seen = []
    read = store.read_own
    monkeypatch.setattr(store, "read_own", lambda path, **more: seen.append(path) or read(path, **more))
    counts = []
    for cells in (2, 4, 8):
        folder = recorded_run.recorded(tmp_path / str(cells), *map(recorded_run.cell, range(1, cells + 1)))
        seen.clear()
        RunSet.open(folder.path)
        counts.append(len(seen))
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])

"""The run folder: whole cells or none, damage is named, one writer at a time."""

import os
import subprocess
import sys

import pytest
from synthetic import CARDWELL_F10, manifest_of, run_set

from fabbbr.errors import StoreError
from fabbbr.files import write_atomically
from fabbbr.manifest import FORMAT_VERSION
from fabbbr.seal import opened, sealed
from fabbbr.store import RunFolder, hashes_of_raw_files, only_writer


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "run"
    run_set(CARDWELL_F10, path)
    return path


@pytest.fixture
def folder(made, tmp_path):
    """A run folder without cells."""
    manifest = RunFolder.open(made).manifest
    return RunFolder.create(tmp_path / "run", manifest, "id: x\n")


def commit(folder, number=0, files=None):
    cell = folder.manifest.cells[number]
    work = folder.begin(cell.id)
    for name, text in (files or {"a.txt": "one", "b.json": "[]"}).items():
        (work / "raw" / name).write_text(text, encoding="utf-8")
    manifest = manifest_of(CARDWELL_F10, cell).model_copy(update={"files": hashes_of_raw_files(work)})
    return folder.commit(cell.id, manifest)


def test_a_committed_cell_is_whole_and_undamaged(folder):
    stored = commit(folder)
    assert folder.has(stored.id)
    assert [cell.id for cell in folder.cells()] == [stored.id]
    assert folder.cell(stored.id).damage() == []
    assert stored.raw("a.txt").read_text(encoding="utf-8") == "one"


def test_work_in_progress_is_not_a_cell(folder):
    cell = folder.manifest.cells[0]
    folder.begin(cell.id)
    assert not folder.has(cell.id)
    assert list(folder.cells()) == []
    folder.discard(cell.id)
    assert not (folder.partial / cell.id).exists()


def test_beginning_again_starts_from_an_empty_folder(folder):
    cell = folder.manifest.cells[0]
    (folder.begin(cell.id) / "raw" / "left").write_text("over", encoding="utf-8")
    assert list((folder.begin(cell.id) / "raw").iterdir()) == []


def test_committing_again_replaces_the_cell_as_a_whole(folder):
    commit(folder, files={"old.txt": "1"})
    stored = commit(folder, files={"new.txt": "2"})
    assert [file.name for file in (stored.folder / "raw").iterdir()] == ["new.txt"]


def test_every_damaged_missing_and_unknown_file_is_named(folder):
    stored = commit(folder, files={"a": "1", "b": "2", "c": "3"})
    stored.raw("a").write_text("x", encoding="utf-8")
    stored.raw("b").unlink()
    stored.raw("d").write_text("new", encoding="utf-8")
    assert stored.damage() == [
        f"{stored.id}: raw/d is not in the manifest",
        f"{stored.id}: raw/a does not match its sha256",
        f"{stored.id}: raw/b is missing",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format_version": 1}', "\x00\x01", "\udcff"])
@pytest.mark.parametrize("name", ["run.json", "manifest.json"])
def test_a_damaged_manifest_is_a_store_error_that_names_the_file(folder, text, name):
    stored = commit(folder)
    file = folder.path / "run.json" if name == "run.json" else stored.folder / "manifest.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StoreError, match=name):
        RunFolder.open(folder.path).cell(stored.id)


def edit(file, old, new, *, seal=sealed):
    """Change a sealed record as somebody would who gives it a digest again."""
    record = opened(file.read_bytes())[0].decode()
    assert old in record
    file.write_text(seal(record.replace(old, new, 1)), encoding="utf-8")


def test_a_manifest_from_a_newer_format_is_refused(folder):
    edit(
        folder.path / "run.json",
        f'"format_version": {FORMAT_VERSION}',
        '"format_version": 99, "unheard_of": 1',
    )
    with pytest.raises(StoreError, match="newer fabbbr"):
        RunFolder.open(folder.path)


def test_a_folder_without_run_json_is_no_run_folder(tmp_path):
    with pytest.raises(StoreError, match="is not a run folder"):
        RunFolder.open(tmp_path)


def test_an_atomic_write_leaves_the_old_text_when_it_cannot_write(tmp_path):
    file = tmp_path / "file"
    write_atomically(file, "old")
    with pytest.raises(StoreError, match="choose another --out"):
        write_atomically(tmp_path / "missing" / "file", "new")
    assert file.read_text(encoding="utf-8") == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_second_writer_of_a_run_folder_is_refused_until_the_first_is_done(tmp_path):
    with (
        only_writer(tmp_path / "run"),
        pytest.raises(StoreError, match="another fabbbr runs in"),
        only_writer(tmp_path / "run"),
    ):
        pass
    with only_writer(tmp_path / "run"):
        pass


def test_a_writer_that_was_killed_holds_nothing(tmp_path):
    code = (
        "import pathlib, sys, time; from fabbbr.store import only_writer\n"
        "with only_writer(pathlib.Path(sys.argv[1])):\n print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen((sys.executable, "-c", code, tmp_path / "run"), stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match="another fabbbr"), only_writer(tmp_path / "run"):
            pass
        process.kill()
        process.wait()
    with only_writer(tmp_path / "run"):
        pass


@pytest.mark.parametrize("out", ["/proc/run", "/dev/null/run"])
def test_a_place_where_nothing_can_be_written_is_refused_with_the_remedy(out):
    from pathlib import Path

    with pytest.raises(StoreError, match="choose another --out"), only_writer(Path(out)):
        pass


def test_a_folder_that_may_not_be_searched_is_refused_with_its_name(tmp_path, monkeypatch):
    """As one that was made under umask 777; root would not be stopped, so the call itself is refused here."""

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", os.fspath(path))

    for call in ("lstat", "stat", "open", "unlink"):
        monkeypatch.setattr(os, call, refuse)
    with pytest.raises(StoreError, match=r"cannot write .*summary.csv: Permission denied; free some space"):
        write_atomically(tmp_path / "summary.csv", "text")

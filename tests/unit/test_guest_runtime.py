"""Folders of temporary files: made, held while their runner lives, swept when it does not."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabbbr.backends.guest import runtime
from fabbbr.backends.guest.runtime import runtime_folder, sweep
from fabbbr.errors import EnvironmentUnfitError


@pytest.fixture
def temp(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


KILLED = """
import os, signal, sys, tempfile
tempfile.tempdir = sys.argv[1]
from fabbbr.backends.guest.runtime import runtime_folder
with runtime_folder() as folder:
    (folder / "file").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_runner_left_is_swept(temp):
    subprocess.run((sys.executable, "-c", KILLED, temp), check=False)
    (left,) = temp.iterdir()
    assert (left / "file").exists()
    sweep()
    assert list(temp.iterdir()) == []


def test_the_folder_of_a_runner_that_lives_is_left_alone_and_removed_by_it(temp):
    with runtime_folder() as folder:
        sweep()
        assert list(temp.iterdir()) == [folder]
    assert list(temp.iterdir()) == []


def test_what_is_not_a_folder_of_ours_is_left_alone(temp):
    elsewhere = temp / "elsewhere"
    elsewhere.mkdir()
    (temp / "fabbbr_link").symlink_to(elsewhere)
    (temp / "fabbbr_file").write_text("x", encoding="utf-8")
    sweep()
    assert sorted(path.name for path in temp.iterdir()) == ["elsewhere", "fabbbr_file", "fabbbr_link"]


def test_a_folder_that_a_sweep_took_before_it_was_held_is_made_again(temp, monkeypatch):
    make, swept = tempfile.mkdtemp, []

    def make_and_sweep(**options):
        made = make(**options)
        if not swept:
            swept.append(made)
            sweep()
        return made

    monkeypatch.setattr(runtime.tempfile, "mkdtemp", make_and_sweep)
    with runtime_folder() as folder:
        assert folder.exists()
        assert str(folder) not in swept


@pytest.mark.parametrize("name", ["with blanks", 'a "quote"', "back\\slash", "new\nline", "größe", "l" * 250])
def test_what_the_kernels_command_line_would_break_at_is_not_used(temp, monkeypatch, name):
    folder = temp / name
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with runtime_folder() as made:
        assert made.parent == Path("/tmp")  # noqa: S108


def test_a_folder_that_cannot_be_made_is_refused_with_its_place_and_remedy(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    with pytest.raises(EnvironmentUnfitError, match=r"in /proc: .*; set TMPDIR"):
        runtime_folder().__enter__()


def test_a_folder_that_is_missing_is_refused_with_its_place_and_remedy(temp, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(temp / "none"))
    monkeypatch.setattr(runtime, "_ALWAYS", str(temp / "neither"))
    with pytest.raises(
        EnvironmentUnfitError, match=f"in {temp}/none nor in {temp}/neither: no such folder; set TMPDIR"
    ):
        runtime_folder().__enter__()


def test_a_folder_from_which_nothing_may_be_executed_is_not_used(temp, monkeypatch):
    def told(folder):
        return SimpleNamespace(f_flag=os.ST_NOEXEC if Path(folder) == temp else 0)

    monkeypatch.setattr(runtime.os, "statvfs", told)
    with runtime_folder() as made:
        assert made.parent == Path("/tmp")  # noqa: S108
    monkeypatch.setattr(runtime, "_ALWAYS", str(temp))
    with pytest.raises(EnvironmentUnfitError, match="mounted noexec; set TMPDIR"):
        runtime_folder().__enter__()

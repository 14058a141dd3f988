"""Where a guest's memory stands: where there is room and files may be executed, or a refusal says why."""

import os
from types import SimpleNamespace

import pytest

from fabbbr.backends.guest import memory
from fabbbr.backends.guest.memory import LEAST_BYTES, memory_folder
from fabbbr.errors import EnvironmentUnfitError

ROOMY = {"f_flag": 0, "f_bavail": LEAST_BYTES >> 12, "f_frsize": 4096}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Say what each of the candidate folders is like; the first is TMPDIR."""

    def say(*told):
        paths = []
        for number, one in enumerate(told):
            paths.append(tmp_path / f"f{number}")
            if one is not None:
                paths[-1].mkdir(exist_ok=True)
        monkeypatch.setattr(memory, "_candidates", lambda: paths)
        known = {
            str(path): SimpleNamespace(**(ROOMY | (one or {}))) for path, one in zip(paths, told, strict=True)
        }

        def statvfs(folder):
            if not folder.exists():
                raise FileNotFoundError(2, "No such file or directory")
            return known[str(folder)]

        monkeypatch.setattr(memory.os, "statvfs", statvfs)
        return paths

    return say


UNFIT = {
    "missing": (None, "cannot be used: No such file or directory"),
    "noexec": ({"f_flag": os.ST_NOEXEC}, "is mounted noexec"),
    "read-only": ({"f_flag": os.ST_RDONLY}, "cannot be written"),
    "64 MB": ({"f_bavail": 64 << 8}, "has 64 MB free"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_folder_that_will_not_do_is_passed_over(folders, what):
    unfit, _ = UNFIT[what]
    _, second = folders(unfit, {})
    assert memory_folder() == second


def test_where_no_folder_will_do_each_is_named_with_its_reason_and_the_remedy(folders):
    paths = folders(*(told for told, _ in UNFIT.values()))
    with pytest.raises(EnvironmentUnfitError) as refusal:
        memory_folder()
    for path, (_, why) in zip(paths, UNFIT.values(), strict=True):
        assert f"{path} {why}" in str(refusal.value)
    assert "set TMPDIR to one with 256 MB, or enlarge /dev/shm" in str(refusal.value)


def test_a_folder_that_the_user_names_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert memory_folder() == tmp_path

"""Where a guest's memory stands, and for how many there is room; or a refusal says why."""

import os
from types import SimpleNamespace

import pytest

from fabbbr.backends.guest import memory
from fabbbr.backends.guest.memory import LEAST_BYTES, guests_at_once, memory_folder
from fabbbr.commands import doctor
from fabbbr.errors import EnvironmentUnfitError

ROOMY = {
    "f_flag": 0,
    "f_bavail": LEAST_BYTES >> 12,
    "f_frsize": 4096,
    "f_blocks": 1 << 20,
    "f_bfree": 1 << 19,
}


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


MB = 1 << 20


@pytest.fixture
def room(tmp_path, monkeypatch):
    """Say how much is free in the folder and of memory, and how many CPUs there are."""

    def say(*, in_folder, of_memory, cpus=8):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr(memory.shutil, "disk_usage", lambda _: SimpleNamespace(free=in_folder))
        for module in (memory, doctor):
            monkeypatch.setattr(module, "free_memory_bytes", lambda: of_memory)
        monkeypatch.setattr(memory, "cpus_at_once", lambda: cpus)

    return say


@pytest.mark.parametrize(
    ("in_folder", "of_memory", "guests"),
    [
        (64 << 30, 64 << 30, 8),
        (1000 * MB, 64 << 30, 5),
        (64 << 30, 1320 * MB, 5),
        (300 * MB, 520 * MB, 1),
        (300 * MB, 100 * MB, 1),
    ],
)
def test_as_many_guests_run_as_there_is_room_for_and_one_is_tried(room, in_folder, of_memory, guests):
    """With 320 MB of memory left for fabbbr itself."""
    room(in_folder=in_folder, of_memory=of_memory)
    assert guests_at_once(200 * MB) == guests


def test_the_doctor_says_for_how_many(room):
    room(in_folder=900 * MB, of_memory=900 * MB)
    (found,) = (one for one in doctor._findings() if one.name == "guest memory")
    assert found.fit
    assert "room for 4 guests of the smallest kind" in found.said


def test_the_doctor_finds_a_machine_unfit_without_room_for_one(room):
    room(in_folder=900 * MB, of_memory=400 * MB)
    (found,) = (one for one in doctor._findings() if one.name == "guest memory")
    assert not found.fit
    assert found.said.endswith(
        "room for 0 guests of the smallest kind; end what takes it, or give the container more"
    )


def test_the_doctor_looks_where_a_guest_would(folders):
    """Docker gives /dev/shm 64 MB: a guest's memory goes elsewhere, and no harm is done."""
    _, second = folders(UNFIT["64 MB"][0], {})
    (found,) = (one for one in doctor._findings() if one.name == "guest memory")
    assert found.fit
    assert f"free in {second}" in found.said


def test_where_no_folder_will_do_the_doctor_says_why(folders):
    folders(*(told for told, _ in UNFIT.values()))
    (found,) = (one for one in doctor._findings() if one.name == "guest memory")
    assert not found.fit
    assert "is mounted noexec" in found.said

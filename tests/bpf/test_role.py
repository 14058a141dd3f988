"""The role on this machine by way of BPF programs: dry run, two runs, another profile, removal."""

import hashlib
import json
import subprocess
from pathlib import Path

import confined
import pytest
from bpf.machine import loaded, offered, wait_until

pytestmark = [pytest.mark.bpf, pytest.mark.xdist_group("bpf")]

OURS = {"fab_bbr2", "fab_bbr3"}
FILES = Path(__file__).parents[2] / "playbooks" / "roles" / "bbr" / "files"
HASHED = (
    "fab_bbr_core.h",
    "fab_bbr_core.c",
    "bpf/fab_app_mark.h",
    "bpf/fab_app_mark.c",
    "bpf/fab_bbr_bpf.h",
    "bpf/fab_conn.h",
    "bpf/fab_bbr.bpf.c",
)
ASKED = {
    "bbr_way": "bpf",
    "bbr_versions": [2, 3],
    # Compiler and loader are there already, under whatever names this distribution has for them.
    "bbr_packages": {"ground": [], "bpf": []},
}
HOLD_S = 900
"""The holder of the room ends by itself after so long, should nobody end it."""
ROOM = f"mount -t bpf bpf /sys/fs/bpf && echo ready && exec sleep {HOLD_S}"


class Room:
    """Namespaces that last, in which the role has its own files; algorithms are the whole kernel's."""

    def __init__(self, folder, inventory, holder):
        self.folder, self.inventory = folder, inventory
        self._enter = ("nsenter", f"--target={holder.pid}", "--mount", "--net")

    def play(self, *arguments, **asked):
        inside = (*self._enter, "sh", "-c", confined.PLAY, "sh", self.folder)
        return confined.play(inside, self.inventory, *arguments, "-e", json.dumps(ASKED | asked))

    def says(self, *argv):
        done = subprocess.run((*self._enter, *argv), capture_output=True, text=True, check=False, timeout=60)
        return done.stdout.strip()


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    assert not OURS & set(offered()), "this machine offers fab_bbr2 already: unload it before these tests"
    folder = tmp_path_factory.mktemp("room")
    holder = subprocess.Popen(
        ("unshare", "--mount", "--net", "sh", "-c", confined.LAY_OVER + ROOM, "sh", folder),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout.readline() == "ready\n"
    found = Room(folder, folder.with_name("hosts.ini"), holder)
    yield found
    found.says("/usr/local/sbin/fab-bbr-bpf", "unload")
    holder.kill()
    holder.communicate()


@pytest.fixture(scope="module")
def dry_run(room):
    return room.play("--check")


@pytest.fixture(scope="module")
def first_run(room, dry_run):
    return room.play()


@pytest.fixture(scope="module")
def second_run(room, first_run):
    return room.play()


@pytest.fixture(scope="module")
def other_profile(room, second_run):
    return room.play(bbr_profile="draft01")


@pytest.fixture(scope="module")
def removed(room, other_profile):
    return room.play(bbr_state="absent")


def test_a_dry_run_says_what_it_would_do_and_does_not(room, dry_run):
    assert dry_run.status == 0, dry_run.output
    assert dry_run.changed > 0
    assert room.says("ls", "/usr/local/sbin/fab-bbr-bpf") == ""


def test_the_first_run_brings_them_from_these_sources_and_proves_it(room, first_run):
    assert first_run.status == 0, first_run.output
    assert set(offered()) >= OURS
    assert '"fab_bbr_way": "bpf"' in first_run.output
    source = hashlib.sha256(b"".join((FILES / name).read_bytes() for name in HASHED)).hexdigest()[:16]
    assert f'"fab_bbr_source": "{source}"' in first_run.output
    for name in OURS:
        assert f'"{name}": "ESTAB ' in first_run.output


def test_a_second_run_changes_nothing(second_run):
    assert (second_run.status, second_run.changed) == (0, 0), second_run.output


def test_another_profile_holds_at_once(room, other_profile):
    assert other_profile.status == 0, other_profile.output
    assert other_profile.changed == 2, "the file for the next boot and the map in force"
    assert room.says("/usr/local/sbin/fab-bbr-bpf", "profile") == "draft01"


def test_removal_leaves_nothing(room, removed):
    assert removed.status == 0, removed.output
    assert not OURS & set(offered())
    wait_until(lambda: not loaded(), limit_s=10)
    assert (
        room.says("find", "/etc", "/usr", "/var", "/run", "/sys/fs/bpf", "-xdev", "-name", "fab[-_]bbr*")
        == ""
    )

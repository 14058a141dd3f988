"""``fabbbr guest run``: a command as root in a guest that sees this machine's files."""

import os
import subprocess
import sys
import time

import pytest
from guest.cells import WALL_LIMIT_S, command, in_guest

pytestmark = pytest.mark.guest


def test_it_is_root_in_the_current_folder_and_its_streams_and_status_are_its_own(tmp_path):
    done = in_guest("sh", "-c", "id -u; pwd; echo to a file >left; echo aside >&2; exit 7", cwd=tmp_path)
    assert done.stdout == f"0\n{tmp_path}\n"
    assert done.stderr == "aside\n"
    assert done.returncode == 7
    assert (tmp_path / "left").read_text() == "to a file\n"


def test_waiting_takes_no_time_and_the_clock_of_the_command_knows(tmp_path):
    began = time.monotonic()
    done = in_guest("sh", "-c", "date +%s; sleep 3000; date +%s", cwd=tmp_path)
    first, last = map(int, done.stdout.split())
    assert last - first >= 3000
    assert time.monotonic() - began < 3000


def test_it_may_shape_and_lose_packets_whatever_this_machines_kernel_can(tmp_path):
    done = in_guest(
        "sh", "-c", "tc qdisc add dev lo root netem delay 10ms loss 1% && tc qdisc show dev lo", cwd=tmp_path
    )
    assert "delay 10ms loss 1%" in done.stdout


def test_other_folders_are_read_only_unless_they_are_named(tmp_path):
    here, other = tmp_path / "here", tmp_path / "with blank"
    here.mkdir()
    other.mkdir()
    command = ("touch", str(other / "new"))
    assert in_guest(*command, cwd=here).returncode != 0
    assert in_guest(*command, cwd=here, options=("--mount", str(other))).returncode == 0
    assert (other / "new").exists()
    assert in_guest("touch", "/etc/new", cwd=here).returncode != 0


def test_the_same_command_does_the_same_again(tmp_path):
    command = ("sh", "-c", "od -An -tx1 -N16 /dev/urandom; date +%s%N; ls /proc | grep -c '^[0-9]'")
    once = in_guest(*command, cwd=tmp_path)
    assert once.stdout.split()
    assert in_guest(*command, cwd=tmp_path).stdout == once.stdout


def test_a_command_that_is_missing_is_said(tmp_path):
    done = in_guest(cwd=tmp_path)
    assert done.returncode == 2
    assert "COMMAND" in done.stderr


def test_what_one_that_was_killed_left_the_next_one_removes(tmp_path):
    temporary = tmp_path / "t"
    temporary.mkdir()
    where = {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary)}
    words = command("guest", "run", "--", "sh", "-c", "echo runs; while :; do :; done", **where)
    with subprocess.Popen(**words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "runs\n"
        process.kill()
    assert list(temporary.iterdir()), "it was killed before it could remove anything"
    done = command("guest", "run", "--", "true", **where)
    assert subprocess.run(**done, cwd=tmp_path, timeout=WALL_LIMIT_S, check=False).returncode == 0
    assert not list(temporary.iterdir())

"""A folder goes with its process, however that ends."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fabbbr.backends.ssh import own_folder
from fabbbr.backends.ssh.own_folder import OwnFolder
from fabbbr.errors import EnvironmentUnfitError

HOLDER = """
import sys, time
from fabbbr.backends.ssh.own_folder import OwnFolder
held = OwnFolder("fabbbr-test-", last=("sh", "-c", "ls >$0", sys.argv[1]))
(held.path / "kept").touch()
print(held.path, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_goes_with_a_process_that_is_killed_after_its_last_command(tmp_path, how):
    said = tmp_path / "said"
    command = (sys.executable, "-c", HOLDER, said)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        path = Path(process.stdout.readline().strip())
        assert (path / "kept").exists()
        process.send_signal(how)
    until_gone(path)
    assert said.read_text() == "kept\n", "the command runs in the folder, as it was"


def test_closed_it_is_gone_at_once():
    held = OwnFolder("fabbbr-test-")
    (held.path / "a folder").mkdir()
    held.close()
    assert not held.path.exists()


def test_without_its_shell_it_goes_all_the_same():
    held = OwnFolder("fabbbr-test-")
    os.kill(held._shell.pid, signal.SIGKILL)
    held.close()
    assert not held.path.exists()


def test_a_last_command_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(own_folder, "_CLOSE_S", 1.0)
    pid = tmp_path / "pid"
    held = OwnFolder("fabbbr-test-", last=("sh", "-c", "echo $$ >$0; sleep 60", str(pid)))
    held.close()
    assert not held.path.exists()
    until_gone(Path("/proc", pid.read_text().strip()))


@pytest.mark.parametrize("name", ["a" * 80, "100 %"])
def test_where_a_socket_could_not_be_it_is_elsewhere(monkeypatch, name):
    with tempfile.TemporaryDirectory() as short:
        folder = Path(short) / name
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        held = OwnFolder("fabbbr-test-")
        assert held.path.parent != folder
        assert len(str(held.path / "c.0123456789abcdef")) <= 107
        held.close()


def test_where_none_can_be_made_the_place_and_the_remedy_are_said(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    with pytest.raises(EnvironmentUnfitError, match=r"made in /nonexistent: No such file.*; set TMPDIR"):
        OwnFolder("fabbbr-test-")


def until_gone(path):
    until = time.monotonic() + 20
    while path.exists():
        assert time.monotonic() < until, f"{path} is still there"
        time.sleep(0.02)

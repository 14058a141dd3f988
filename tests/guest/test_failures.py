"""Whatever breaks, nothing is left running, nothing that was finished is lost, and the reason is said."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from guest.cells import WALL_LIMIT_S, command, experiment, fabbbr, started

from fabbbr.backends.guest.cpus import Cpus
from fabbbr.backends.guest.machine import Machine, Watch, boot
from fabbbr.backends.keeper import Keeper
from fabbbr.backends.tools import NODE_PYTHON
from fabbbr.errors import GuestError
from fabbbr.store import RunFolder

pytestmark = pytest.mark.guest

SHORT = experiment("short", path="rate: 5 Mbit/s, rtt: 10 ms", flows="{cca: cubic, duration: 1 s}")
# Heavy enough to be caught in the act on any machine: two minutes of a gigabit.
LONG = experiment(
    "long",
    path="rate: $rate, rtt: 10 ms, buffer: 100 packets",
    flows="{cca: cubic, duration: $duration}",
    more="vary:\n  - zip: {rate: [2 Mbit/s, 1 Gbit/s], duration: [1 s, 120 s]}",
)
SHORT_CELL, LONG_CELL = "rate=2Mbit,duration=1s,r1", "rate=1Gbit,duration=120s,r1"
NOBODY = 65_534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and change users")


def until(condition, limit_s=30.0):
    """Wait for ``condition`` to hold, at most ``limit_s``."""
    end = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return found


@pytest.fixture
def temp(tmp_path):
    """The folder for temporary files of the commands under test: what they leave there can be seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def own_temp(temp, monkeypatch):
    """The same for what runs in this process."""
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    return temp


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "long.yaml"
    path.write_text(LONG, encoding="utf-8")
    return path


def guests(temp):
    """Process ids of the guests whose runtime folder is below ``temp``: they are started there."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            below = entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(temp)
            if below and b"\0uml_dir=" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def nothing_left(temp):
    return not guests(temp) and not list(temp.iterdir())


@contextlib.contextmanager
def running(file, out, temp, *more):
    """A run whose long cell is under way, its short one finished."""
    done = fabbbr("run", file, "--out", out, "--no-report", "--only", "duration=1s", TMPDIR=str(temp))
    assert done.returncode == 0, done.stderr
    process = started("run", file, "--out", out, "--no-report", "--jobs", "1", *more, TMPDIR=str(temp))
    try:
        beat = out / ".partial" / LONG_CELL / "heartbeat"
        until(lambda: beat.exists() and beat.read_text() and guests(temp))
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        until(lambda: nothing_left(temp))


def test_killing_the_runner_leaves_no_guest_and_loses_no_finished_cell(file, tmp_path, temp):
    out = tmp_path / "run"
    with running(file, out, temp) as process:
        process.kill()
        process.wait()
        until(lambda: nothing_left(temp), 5)
        assert not (out / "cells" / LONG_CELL).exists()
    assert [stored.id for stored in RunFolder.open(out).cells()] == [SHORT_CELL]
    again = fabbbr("run", file, "--out", out, "--only", "duration=1s", "--no-report", "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["skipped"] == [SHORT_CELL]
    assert not (out / ".partial").exists()


def keeper_of(runner):
    """The process id of its keeper."""
    for child in Path(f"/proc/{runner}/task/{runner}/children").read_text(encoding="ascii").split():
        if b"keeper.py" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("the runner has no keeper")


def group_of(guest):
    """The processes of a guest that are alive."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            state, _, group = (entry / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[:3]
            if group == str(guest) and state not in "ZX":
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("whom", ["runner", "keeper runner", "runner keeper"])
def test_no_process_of_a_guest_outlives_its_runner_whatever_is_killed(file, tmp_path, temp, whom):
    out = tmp_path / "run"
    with running(file, out, temp) as process:
        (guest,) = (pid for pid in guests(temp) if os.getpgid(pid) == pid)
        pids = {"runner": process.pid, "keeper": keeper_of(process.pid)}
        assert len(group_of(guest)) > 1
        for name in whom.split():
            os.kill(pids[name], signal.SIGKILL)
        until(lambda: not group_of(guest), 5)
        process.wait()
        assert not (out / "cells" / LONG_CELL).exists()
        again = fabbbr("run", file, "--out", out, "--only", "duration=1s", "--no-report", TMPDIR=str(temp))
        assert again.returncode == 0, again.stderr
        assert nothing_left(temp)


def test_a_killed_keeper_does_not_stop_the_run(tmp_path, temp):
    file, out = tmp_path / "two.yaml", tmp_path / "run"
    file.write_text(LONG.replace("duration: [1 s, 120 s]", "duration: [1 s, 4 s]"), encoding="utf-8")
    process = started("run", file, "--out", out, "--jobs", "1", TMPDIR=str(temp))
    try:
        until(lambda: guests(temp))
        os.kill(keeper_of(process.pid), signal.SIGKILL)
        told, complaint = process.communicate(timeout=WALL_LIMIT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 0, complaint
    assert "2 certified" in told
    assert nothing_left(temp)


def test_a_run_whose_output_nobody_reads_goes_on(tmp_path, temp):
    file, out = tmp_path / "two.yaml", tmp_path / "run"
    file.write_text(LONG.replace("duration: [1 s, 120 s]", "duration: [1 s, 2 s]"), encoding="utf-8")
    process = started("run", file, "--out", out, "--no-report", "--jobs", "1", TMPDIR=str(temp))
    process.stdout.readline()
    process.stdout.close()
    complaint = process.stderr.read()
    assert process.wait(WALL_LIMIT_S) == 0, complaint
    assert complaint == ""
    assert len(list(RunFolder.open(out).cells())) == 2
    process.stderr.close()


def test_a_run_in_which_every_cell_fails_says_why_and_has_nothing_to_report(tmp_path, temp):
    file, out = tmp_path / "fails.yaml", tmp_path / "run"
    file.write_text(SHORT.replace("cca: cubic", "cca: bbr2, implementation: google"), encoding="utf-8")
    done = fabbbr("run", file, "--out", out, "--json", TMPDIR=str(temp))
    assert done.returncode == 10, done.stderr
    told = json.loads(done.stdout)
    assert list(told["failed"]) == ["r1"]
    assert "h1 has no bbr2" in told["failed"]["r1"]
    assert (told["report"], told["certified"], told["run"]) == (None, [], str(out))
    assert "1 cell failed: r1: " in done.stderr
    assert "h1 has no bbr2" in done.stderr
    assert "no finished cell" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_130_and_leaves_no_guest_and_no_half_a_cell(
    file, tmp_path, temp, number
):
    out = tmp_path / "run"
    with running(file, out, temp) as process:
        process.send_signal(number)
        _, told = process.communicate(timeout=20)
        assert nothing_left(temp)
    assert process.returncode == 130
    assert "finished cells are kept" in told
    assert "Traceback" not in told
    assert [path.name for path in (out / "cells").iterdir()] == [SHORT_CELL]
    assert not (out / ".partial").exists()
    assert not (out / "failed").exists()


def test_a_killed_guest_is_a_failed_cell_that_the_next_run_tries_again(tmp_path, temp):
    file, out = tmp_path / "two.yaml", tmp_path / "run"
    file.write_text(LONG.replace("duration: [1 s, 120 s]", "duration: [1 s, 4 s]"), encoding="utf-8")
    cell = "rate=1Gbit,duration=4s,r1"
    process = started("run", file, "--out", out, "--no-report", "--jobs", "1", TMPDIR=str(temp))
    beat = out / ".partial" / cell / "heartbeat"
    try:
        until(lambda: beat.exists() and guests(temp), WALL_LIMIT_S)
        os.kill(min(guests(temp)), signal.SIGKILL)
        _, told = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 10
    assert "signal 9" in told
    assert nothing_left(temp)
    assert "signal 9" in (out / "failed" / cell / "reason.txt").read_text(encoding="utf-8")
    assert not (out / "cells" / cell).exists()
    plan = fabbbr("run", file, "--out", out, "--no-report", "--only", "duration=4s", "--jobs", "1")
    assert plan.returncode == 0, plan.stderr
    assert (out / "cells" / cell / "manifest.json").exists()


def test_two_runs_in_one_folder_the_second_is_refused_and_the_first_goes_on(file, tmp_path, temp):
    out = tmp_path / "run"
    with running(file, out, temp) as process:
        second = fabbbr("run", file, "--out", out, "--no-report")
        assert second.returncode == 7
        assert f"another fabbbr runs in {out}" in second.stderr
        assert process.poll() is None
        assert (out / ".partial" / LONG_CELL).exists()


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=300k", "small", folder), check=True)
    yield folder
    subprocess.run(("umount", folder), check=True)


@needs_root
def test_a_full_disk_ends_the_run_with_its_remedy_and_keeps_the_finished_cells(small_disk, tmp_path, temp):
    file = tmp_path / "full.yaml"
    file.write_text(
        experiment("full", path="rate: 5 Mbit/s, rtt: 10 ms", flows="{cca: cubic, duration: $s}",
                   more="vary: {s: [1 s, 40 s]}\nsample_period: 10 ms"),
        encoding="utf-8",
    )  # fmt: skip
    done = fabbbr("run", file, "--out", small_disk / "run", "--no-report", "--jobs", "1", TMPDIR=str(temp))
    assert done.returncode == 7, done.stderr + done.stdout
    assert "free some space" in done.stderr
    assert "Traceback" not in done.stderr
    assert nothing_left(temp)
    finished = list((small_disk / "run" / "cells").iterdir())
    assert all(not RunFolder.open(small_disk / "run").cell(cell.name).damage() for cell in finished)


INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -a -T "$FABBBR_RUNTIME/fstab"
cd /run/fabbbr || exit 1
exec </dev/null
{body}
echo $? > work/exit
exec "$FABBBR_PYTHON" -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""
SPIN = "echo 1.000 > work/heartbeat; while :; do :; done"
WAIT_FOR_EVER = 'timeout "$FABBBR_LIMIT" sleep 1000000000'
RACE = "i=0; while :; do i=$((i+1)); echo $i > work/heartbeat; sleep 100; done"
PANIC = "exit 3"


@pytest.mark.parametrize(
    ("body", "limits", "reason"),
    [
        (SPIN, (60, 1.5), "at 1.000 s of its own clock: its agent has said nothing for 2 s of wall time"),
        (WAIT_FOR_EVER, (60, 60), "clock ran past its limit: something inside waits for what never comes"),
        (RACE, (2, 60), "2 s of wall time are over"),
        (PANIC, (60, 60), "the guest died"),
    ],
    ids=["spins", "waits for ever", "races", "panics"],
)
def test_a_guest_that_hangs_is_ended_with_its_reason(kernel, tmp_path, own_temp, body, limits, reason):
    wall_s, stall_s = limits
    init = tmp_path / "init.sh"
    init.write_text(INIT.format(body=body), encoding="utf-8")
    work = tmp_path / "work"
    (work / "raw").mkdir(parents=True)
    machine = Machine(
        kernel=kernel.binary, seccomp=kernel.seccomp, seed=1, memory_bytes=256 << 20,
        clock_limit_s=1000, init=init,
    )  # fmt: skip
    told = []
    watch = Watch(
        wall_limit_s=wall_s, stall_limit_s=stall_s, progress=told.append, cancelled=threading.Event()
    )
    with contextlib.closing(Keeper()) as keeper, pytest.raises(GuestError, match=reason):
        boot(machine, work, watch, keeper, Cpus())
    assert nothing_left(own_temp)


@pytest.mark.parametrize("name", ["with blanks in it", "für_Größe_測定", "quote'dollar$star*"])
def test_a_run_folder_may_have_any_name(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "short.yaml").write_text(SHORT, encoding="utf-8")
    done = fabbbr("run", folder / "short.yaml", "--out", folder / "run", "--no-report", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["certified"] == ["r1"]


def test_temporary_files_may_be_below_a_path_with_blanks(tmp_path):
    """The kernel splits its command line at blanks."""
    folder = tmp_path / "with blanks"
    folder.mkdir()
    (folder / "short.yaml").write_text(SHORT, encoding="utf-8")
    done = fabbbr("run", folder / "short.yaml", "--out", folder / "run", "--no-report", TMPDIR=str(folder))
    assert done.returncode == 0, done.stderr


@pytest.fixture
def ordinary_user(image):
    """Run words of a fabbbr command as a user without rights, in a home of its own with the image in it."""
    if os.geteuid() != 0:
        pytest.skip("only root may change users")
    if not all(parent.stat().st_mode & 0o001 for parent in Path(__file__).parents):
        pytest.skip(f"only its owner may enter {Path(__file__).parents[2]}")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    told = subprocess.run((NODE_PYTHON, "--version"), capture_output=True, text=True, check=True).stdout
    if f"Python {version}." not in told:
        pytest.skip(f"{NODE_PYTHON} is not the Python {version} that these packages are for")
    home = Path(tempfile.mkdtemp(prefix="home-", dir="/var/tmp"))
    shutil.copytree(image.folder, home / ".cache" / "fabbbr" / "images" / "one")
    (home / "short.yaml").write_text(SHORT, encoding="utf-8")
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)

    def run_as_user(*words):
        return subprocess.run(
            ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all",
             NODE_PYTHON, "-m", "fabbbr.cli", *words),
            env={"HOME": str(home), "PATH": "/usr/bin:/bin",
                 "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd=home, capture_output=True, text=True, timeout=WALL_LIMIT_S, check=False,
        )  # fmt: skip

    yield run_as_user
    shutil.rmtree(home)


def test_an_ordinary_user_needs_nothing_but_the_image(ordinary_user):
    done = ordinary_user("run", "./short.yaml", "--out", "run", "--no-report", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["certified"] == ["r1"]


@pytest.mark.parametrize("out", ["/root/run", "/root/deep/run", "/usr/run"])
def test_a_folder_that_is_closed_to_the_user_is_refused_before_anything_runs(ordinary_user, out):
    done = ordinary_user("run", "./short.yaml", "--out", out, "--no-report")
    assert done.returncode == 7, done.stderr
    assert "choose another --out" in done.stderr
    assert "Traceback" not in done.stderr


MOUNT = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'
"""In a mount name space of its own: other processes see nothing of it."""


def with_mount(options, place):
    return ("unshare", "--mount", "sh", "-c", MOUNT, "sh", options, place)


SHARED_MEMORY = "/dev/shm"  # noqa: S108
ENVIRONMENTS = {
    "shared memory of 64 MB": (with_mount("size=64m", SHARED_MEMORY), 0, ""),
    "shared memory from which nothing may be executed": (with_mount("noexec", SHARED_MEMORY), 0, ""),
    "TMPDIR is missing": (("env", "TMPDIR=/nonexistent"), 0, ""),
    "TMPDIR is read-only": (("env", "TMPDIR=/proc"), 0, ""),
    "TMPDIR from which nothing may be executed": (
        (*with_mount("noexec", "/mnt"), "env", "TMPDIR=/mnt"),
        0,
        "",
    ),
    "no docstrings": (("env", "PYTHONOPTIMIZE=2"), 0, ""),
    "umask 777": (("sh", "-c", 'umask 777; exec "$@"', "sh"), 0, ""),
    "64 open files": (("sh", "-c", 'ulimit -n 64; exec "$@"', "sh"), 5, "raise ulimit -n"),
}


@needs_root
@pytest.mark.parametrize("what", ENVIRONMENTS)
def test_in_a_hostile_environment_a_run_works_or_says_what_is_missing(tmp_path, what):
    before, status, said = ENVIRONMENTS[what]
    (tmp_path / "short.yaml").write_text(SHORT, encoding="utf-8")
    run = command("run", tmp_path / "short.yaml", "--out", tmp_path / "run")
    done = subprocess.run(
        **run | {"args": [*before, *run["args"]]}, capture_output=True, timeout=WALL_LIMIT_S, check=False
    )
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "no finished cell" not in done.stderr


@pytest.mark.parametrize("length", [100, 1000, 2000])
def test_the_path_of_temporary_files_may_be_long(tmp_path, length):
    folder = tmp_path
    while len(str(folder)) < length:
        folder /= "d" * min(200, length - len(str(folder)))
    folder.mkdir(parents=True)
    (tmp_path / "short.yaml").write_text(SHORT, encoding="utf-8")
    done = fabbbr(
        "run", tmp_path / "short.yaml", "--out", tmp_path / "run", "--no-report", TMPDIR=str(folder)
    )
    assert done.returncode == 0, done.stderr


def test_a_run_folder_whose_name_is_not_utf_8_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "short.yaml").write_text(SHORT, encoding="utf-8")
    out = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    done = fabbbr("run", tmp_path / "short.yaml", "--out", out)
    assert done.returncode == 2, done.stderr
    assert "is not UTF-8, which tables need; choose another" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["short.yaml"]

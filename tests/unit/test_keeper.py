"""The keeper ends what its runner leaves behind, and only that."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fabbbr.backends import keeper
from fabbbr.backends.keeper import Keeper, keep, kill_group

SLEEP = ("sleep", "60")
FAMILY = ("sh", "-c", "sleep 60 & sleep 60 & wait")


def line(sign, group, *folder):
    return json.dumps([sign, group, *map(str, folder)]) + "\n"


def sleeper(argv=SLEEP):
    return subprocess.Popen(argv, start_new_session=True)


def gone(process, limit_s=10):
    return process.wait(timeout=limit_s) == -signal.SIGKILL


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def group_is_empty(group, limit_s=10):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_what_is_still_listed_at_the_end_is_killed_and_its_folder_removed(tmp_path):
    folder = tmp_path / "a folder with blanks and\na line"
    folder.mkdir()
    (folder / "file").write_text("x", encoding="utf-8")
    with sleeper() as process:
        keep([line("+", process.pid, folder)])
        assert gone(process)
    assert not folder.exists()


def test_what_was_taken_off_the_list_lives_on_and_keeps_its_folder(tmp_path):
    with sleeper() as process:
        keep([line("+", process.pid, tmp_path), line("-", process.pid)])
        assert process.poll() is None
        assert tmp_path.exists()
        process.kill()


def test_a_group_dies_with_all_its_children():
    with sleeper(FAMILY) as process:
        kill_group(process.pid)
        assert gone(process)
        assert group_is_empty(process.pid)


def test_killing_a_group_that_is_gone_is_no_error():
    with sleeper(("true",)) as process:
        process.wait()
    kill_group(process.pid)


def test_closing_the_keeper_ends_what_is_left(tmp_path):
    folder = tmp_path / "left"
    folder.mkdir()
    watching = Keeper()
    with sleeper() as one, sleeper() as other:
        watching.add(one.pid, str(folder))
        watching.add(other.pid, str(tmp_path / "none"))
        watching.remove(other.pid)
        watching.close()
        assert gone(one)
        assert other.poll() is None
        other.kill()
    assert not folder.exists()


RUNNER = """
import subprocess, sys, time
from fabbbr.backends.keeper import Keeper
process = subprocess.Popen(("sleep", "60"), start_new_session=True)
Keeper().add(process.pid, sys.argv[1])
print(process.pid, flush=True)
time.sleep(60)
"""


def test_a_runner_that_is_killed_takes_its_group_with_it(tmp_path):
    folder = tmp_path / "runtime"
    folder.mkdir()
    with subprocess.Popen((sys.executable, "-c", RUNNER, folder), stdout=subprocess.PIPE) as runner:
        group = int(runner.stdout.readline())
        runner.kill()
    # The orphan is nobody's child here: a zombie that nobody reaps would still count as a member of its
    # group. And a signal has been sent before it has been obeyed: the folder may go first.
    end = time.monotonic() + 10
    while (folder.exists() or alive(group)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not folder.exists()
    assert not alive(group)


def test_a_keeper_that_was_killed_is_replaced_by_one_that_knows_the_same(tmp_path):
    folder = tmp_path / "left"
    folder.mkdir()
    watching = Keeper()
    with sleeper() as one, sleeper() as other:
        watching.add(one.pid, str(folder))
        first = watching.pid
        os.kill(first, signal.SIGKILL)
        until_dead(first)
        watching.add(other.pid, str(tmp_path / "none"))
        assert watching.pid != first
        watching.close()
        assert gone(one)
        assert gone(other)
    assert not folder.exists()


def test_a_keeper_that_was_killed_does_not_hinder_the_end():
    watching = Keeper()
    os.kill(watching.pid, signal.SIGKILL)
    watching.close()


DYING = """
import os, subprocess, sys, threading, time
from fabbbr.backends.keeper import die_with_runner
runner = os.getpid()
def work():
    process = subprocess.Popen(("sleep", "60"), preexec_fn=lambda: die_with_runner(runner), start_new_session=True)
    print(process.pid, flush=True)
    process.wait()
threading.Thread(target=work).start()
"""  # noqa: E501


def test_the_kernel_ends_what_a_killed_runner_leaves_without_any_keeper():
    with subprocess.Popen((sys.executable, "-c", DYING), stdout=subprocess.PIPE) as runner:
        pid = int(runner.stdout.readline())
        assert alive(pid)
        runner.kill()
    until_dead(pid)


def test_what_starts_after_its_runner_has_died_ends_at_once():
    code = "from fabbbr.backends.keeper import die_with_runner; die_with_runner(1 << 22); print('lives')"
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def until_dead(pid, limit_s=10):
    end = time.monotonic() + limit_s
    while alive(pid):
        assert time.monotonic() < end, "it lives"
        time.sleep(0.01)


def test_the_keeper_needs_nothing_but_the_standard_library():
    code = f"import sys, runpy; runpy.run_path({keeper.__file__!r}); print(*sys.modules)"
    done = subprocess.run((sys.executable, "-S", "-c", code), capture_output=True, text=True, check=True)
    assert "fabbbr" not in done.stdout.split()

"""A part of a job: it waits for the others, stops when told to, and one machine carries out one at a time."""

import fcntl
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import fabbbr
from fabbbr.agent import clearing
from fabbbr.agent.lines import read_line, write_line
from fabbbr.agent.meeting import LateError, Meeting
from fabbbr.agent.timeline import Barrier

PACKAGE = Path(fabbbr.__file__).parent
LIMIT_S = 60
WAITING_PART = """
import sys, time
from agent import lab, part
def carry_out(job_path, results, barrier, build):
    try:
        barrier.wait("configure")
    except lab.StageError as error:
        return {"ok": False, "stage": "configure", "error": str(error), "elapsed_s": 1.0}
    with open(results + "/raw/a", "w") as file:
        file.write("left")
    return {"ok": True, "elapsed_s": 1.0}
lab.carry_out = carry_out
sys.exit(part.main(sys.argv[1:]))
"""
"""The agent without a network: the barrier is all that there is."""


def say(folder, name, text):
    write_line(str(folder / name), text)


def await_file(path):
    until = time.monotonic() + LIMIT_S
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} did not come"
        time.sleep(0.01)


def test_alone_nobody_is_waited_for():
    alone = Barrier()
    before = time.monotonic()
    alone.wait("pings")
    assert before <= alone.start("burst") <= time.monotonic()
    assert alone.met("over")


def test_a_part_says_that_it_is_ready_and_goes_on_when_it_is_told(tmp_path):
    waiting = threading.Thread(target=Meeting(str(tmp_path)).wait, args=("pings",))
    waiting.start()
    await_file(tmp_path / "ready.pings")
    waiting.join(0.1)
    assert waiting.is_alive()
    say(tmp_path, "go.pings", "0")
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()


def test_a_stage_starts_at_the_instant_that_is_told_and_not_before(tmp_path):
    instant = time.monotonic() + 0.3
    say(tmp_path, "go.flows", repr(instant))
    assert Meeting(str(tmp_path)).start("flows") == instant
    assert time.monotonic() >= instant


def test_an_instant_that_has_passed_is_refused(tmp_path):
    say(tmp_path, "go.burst", repr(time.monotonic() - 1))
    with pytest.raises(LateError, match="late when burst begins"):
        Meeting(str(tmp_path)).start("burst")


def test_whether_all_are_ready_is_asked_without_waiting(tmp_path):
    meeting = Meeting(str(tmp_path))
    assert not meeting.met("over")
    assert (tmp_path / "ready.over").exists()
    say(tmp_path, "go.over", "0")
    assert meeting.met("over")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "machine" / "0123456789abcdef"
    made.mkdir(parents=True)
    say(made, "coordinator", "0")
    return made


@pytest.fixture
def start(folder):
    started = []

    def one(patience_s=LIMIT_S, in_folder=folder):
        started.append(
            subprocess.Popen(
                (sys.executable, "-c", WAITING_PART, str(in_folder), str(patience_s)),
                cwd=PACKAGE,
                stdin=subprocess.DEVNULL,
            )
        )
        return started[-1]

    yield one
    for process in started:
        process.kill()
        process.wait()


def outcome(folder):
    return json.loads(read_line(str(folder / "outcome.json")))


def test_what_a_part_leaves_is_named_with_its_digest(folder, start):
    running = start()
    await_file(folder / "ready.configure")
    await_file(folder / "alive")  # said by a thread of its own
    say(folder, "go.configure", "0")
    assert running.wait(LIMIT_S) == 0
    digest = subprocess.run(("sha256sum", folder / "raw" / "a"), capture_output=True, check=True, text=True)
    assert outcome(folder)["files"] == {"a": digest.stdout.split()[0]}


def test_a_part_that_is_told_to_stop_says_by_whom_and_why(folder, start):
    running = start()
    await_file(folder / "ready.configure")
    say(folder, "abort", "machine b failed")
    assert running.wait(LIMIT_S) == 1
    assert outcome(folder)["error"] == "machine b failed"


def test_a_part_stops_on_a_signal(folder, start):
    running = start()
    await_file(folder / "ready.configure")
    running.send_signal(signal.SIGTERM)
    assert running.wait(LIMIT_S) == 1
    assert outcome(folder)["error"] == "stopped by signal 15"


def test_a_part_whose_coordinator_is_silent_for_too_long_stops(folder, start):
    assert start(patience_s=1).wait(LIMIT_S) == 1
    assert outcome(folder)["error"] == "no word from the coordinator for 1 s"


def test_a_second_start_of_the_same_part_does_nothing_and_one_of_another_is_refused(folder, start):
    running = start()
    await_file(folder / "ready.configure")
    assert start().wait(LIMIT_S) == 0
    assert running.poll() is None
    other = folder.parent / "other"
    other.mkdir()
    assert start(in_folder=other).wait(LIMIT_S) == 1
    assert outcome(other)["error"] == f"this machine carries out {folder}; wait for its end"
    assert not (other / "raw").exists()
    say(folder, "go.configure", "0")
    assert running.wait(LIMIT_S) == 0
    before = outcome(folder)
    assert start().wait(LIMIT_S) == 0
    assert outcome(folder) == before


def test_a_part_that_was_killed_is_not_begun_again(folder, start):
    running = start()
    await_file(folder / "ready.configure")
    running.kill()
    running.wait()
    assert start().wait(LIMIT_S) == 1
    assert outcome(folder)["error"] == "the agent was killed while it carried out this part"


def test_the_lock_goes_with_the_process_that_held_it(folder, start):
    running = start()
    await_file(folder / "ready.configure")
    running.kill()
    running.wait()
    with (folder.parent / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert (folder.parent / "lock").read_text() == str(folder)


def test_a_part_that_is_told_to_stop_before_it_has_begun_says_so(folder, start):
    say(folder, "abort", "machine b failed")
    assert start().wait(LIMIT_S) == 1
    assert outcome(folder)["error"] == "machine b failed"


def cleared(folder, capsys, *silent_s):
    assert clearing.main([str(folder.parent), *silent_s]) == 0
    return json.loads(capsys.readouterr().out)["runs"]


def test_what_is_left_of_parts_goes_where_none_runs_and_nothing_else(folder, capsys):
    say(folder, "abort", "told before it was there")
    (folder.parent / "paths").mkdir()
    assert cleared(folder, capsys) is None
    assert sorted(entry.name for entry in folder.parent.iterdir()) == ["lock", "paths"]
    assert cleared(folder.parent / "new" / "task", capsys) is None


def test_a_part_whose_run_is_gone_is_ended_and_removed_and_one_that_is_not_asked_about_goes_on(
    folder, start, capsys
):
    running = start()
    await_file(folder / "ready.configure")
    assert cleared(folder, capsys) == str(folder)
    assert running.poll() is None
    assert cleared(folder, capsys, "0.3") is None
    assert running.wait(LIMIT_S) == 1
    assert not folder.exists()


def test_a_part_whose_coordinator_says_that_it_lives_goes_on(folder, start, capsys):
    running = start()
    await_file(folder / "ready.configure")
    beats = threading.Timer(0.3, say, (folder, "coordinator", "20.0"))
    beats.start()
    assert cleared(folder, capsys, str(LIMIT_S)) == str(folder)
    beats.join()
    assert running.poll() is None
    assert not (folder / "abort").exists()

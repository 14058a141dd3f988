"""Limits of a guest: what they count, and what is said of one that died."""

import os
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest

from fabbbr.backends.guest import machine
from fabbbr.backends.guest.denied import Denied
from fabbbr.errors import GuestError

SECOND = 1_000_000_000


class Proc:
    """A folder that looks like /proc."""

    def __init__(self, folder):
        self.folder = folder

    def tell(self, waited_s, ran_s=None):
        """``waited_s``: process → seconds on a queue; the first is the kernel. ``ran_s``: on a CPU."""
        kernel, *children = waited_s
        for process, seconds in waited_s.items():
            (self.folder / process).mkdir(exist_ok=True)
            (self.folder / process / "schedstat").write_text(
                f"{int((ran_s or {}).get(process, 0) * SECOND)} {int(seconds * SECOND)} 7\n"
            )
        task = self.folder / kernel / "task" / kernel
        task.mkdir(parents=True, exist_ok=True)
        (task / "children").write_text(" ".join(children))


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def test_the_waiting_of_the_kernel_and_its_processes_is_added_up_and_that_of_ended_ones_stays(proc):
    denied = Denied(7, proc=proc.folder)
    told = []
    for waited_s in ({"7": 1}, {"7": 2, "8": 3}, {"7": 2.5, "9": 1}, {"7": 2.5, "9": 0.25}, {"7": 3}):
        proc.tell(waited_s)
        told.append(denied.seconds())
    # 8 is gone with its 3 s; a second 9 begins anew, after the 1 s of the first, and is gone with 0.25 s.
    assert told == [1, 5, 2.5 + 3 + 1, 2.5 + 3 + 1 + 0.25, 3 + 3 + 1 + 0.25]


def test_what_they_ran_is_added_up_and_that_of_ended_ones_stays(proc):
    denied = Denied(7, proc=proc.folder)
    told = []
    for ran_s in ({"7": 1}, {"7": 2, "8": 3}, {"7": 2.5, "9": 1}):
        proc.tell(dict.fromkeys(ran_s, 1), ran_s=ran_s)
        denied.seconds()
        told.append(denied.ran_s)
    assert told == [1, 5, 2.5 + 3 + 1]


def test_where_the_host_does_not_count_nothing_was_denied(proc):
    assert Denied(7, proc=proc.folder).seconds() == 0


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="this kernel does not count")  # noqa: PTH110
def test_a_process_that_shares_its_cpu_with_two_is_denied_most_of_it_and_never_more_than_went_by():
    cpu = max(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    began = time.monotonic()
    spinners = [subprocess.Popen((sys.executable, "-c", spin)) for _ in range(3)]
    try:
        denied, shares = Denied(spinners[0].pid), []
        # Whoever stops one of the three for a while may do so: then another second tells.
        while not shares or (shares[-1] < 1 / 2 and len(shares) < 60):
            before, at_first = time.monotonic(), denied.seconds()
            time.sleep(1)
            waited_s = denied.seconds()
            shares.append((waited_s - at_first) / (time.monotonic() - before))
            # Of its whole life: a wait is counted when it ends, and may have begun before this second.
            assert waited_s <= time.monotonic() - began
        assert shares[-1] > 1 / 2
    finally:
        for one in spinners:
            one.kill()
            one.wait()


@pytest.mark.parametrize(
    ("denied_s", "ended"), [(0.0, True), (31.0, False)], ids=["spins", "waits for a busy machine"]
)
def test_a_limit_does_not_count_the_time_for_which_others_had_the_cpu(monkeypatch, denied_s, ended):
    wall = iter([100.0, 132.0])
    monkeypatch.setattr(machine.time, "monotonic", lambda: next(wall))
    monkeypatch.setattr(machine.Denied, "seconds", lambda _: denied_s)
    own = machine._OwnTime(os.getpid(), Mock())
    limit = machine.Watch(wall_limit_s=10, stall_limit_s=99, progress=print, cancelled=None)
    assert (machine._hopeless(limit, own.seconds(), 0.0, 0.0) is not None) == ended
    assert ("31 s for which others had its CPU are not counted" in own.aside()) == (not ended)


def test_what_a_guest_ran_was_not_denied_however_much_its_processes_waited_together(proc, monkeypatch):
    """Kernel and process of a guest that spun waited at the same time on a busy machine.

    In 740 s of wall time they had run for 225 s and waited, added up, for 890: it was never given up.
    """
    proc.tell({"7": 237, "8": 653}, ran_s={"7": 25, "8": 200})
    wall = iter([100.0, 840.0])
    monkeypatch.setattr(machine.time, "monotonic", lambda: next(wall))
    monkeypatch.setattr(machine, "Denied", lambda pid: Denied(pid, proc=proc.folder))
    own_s = machine._OwnTime(7, Mock()).seconds()
    limit = machine.Watch(wall_limit_s=999, stall_limit_s=120, progress=print, cancelled=None)
    assert own_s == 225
    assert "the agent hangs or a process" in machine._hopeless(limit, own_s, 0.0, own_s)


DEATHS = [
    ("boot\nOut of memory: Killed process 31 (iperf3)\nKernel panic - not syncing: System is deadlocked", 0,
     "its memory was too small for what was asked of it; use fewer flows"),
    ("Bus error - the host /dev/shm or /tmp mount likely just ran out of space\n", 1,
     "no room for its memory; lower --jobs, or make room in /dev/shm"),
    ("eth0: up\nKernel panic - not syncing: Attempted to kill init! exitcode=0x00000300\nrest\n", 1,
     "(status 1) before it finished, and said 'Kernel panic - not syncing: Attempted to kill init! exit"),
    ("", -signal.SIGKILL, "was killed from outside (signal 9): mostly by a system that is out of memory"),
    ("", 3, "(status 3) before it finished, and said 'nothing'"),
]  # fmt: skip


@pytest.mark.parametrize(("console", "returncode", "said"), DEATHS)
def test_the_last_words_of_a_guest_are_one_sentence(tmp_path, console, returncode, said):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "console.log").write_text(console)
    with pytest.raises(GuestError) as caught:
        machine._require_orderly_end(tmp_path, returncode)
    assert said in str(caught.value)
    assert "|" not in str(caught.value)
    assert "\n" not in str(caught.value)

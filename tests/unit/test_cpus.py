"""Which CPU a guest is pinned to: one that it has for itself, where there is one."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from itertools import count

import pytest

from fabbbr.backends.guest import cpus
from fabbbr.backends.guest.cpus import Cpus, Use, idle_s
from fabbbr.backends.guest.denied import processes

FAMILY = """\
import os, subprocess, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
child = subprocess.Popen((sys.executable, "-c", "import time; time.sleep(600)"))
print("there", flush=True)
child.wait()
"""


@pytest.fixture
def four(monkeypatch):
    """A machine of four CPUs, on which the second begins; what was pinned where."""
    monkeypatch.setattr(cpus, "usable_cpus", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(cpus.os, "getpid", lambda: 41)
    monkeypatch.setattr(cpus, "processes", lambda pid: [pid, pid + 1])
    told = []
    monkeypatch.setattr(cpus, "_pin", lambda process, cpu: told.append((process, cpu)))
    return told


@pytest.fixture
def half_seconds(monkeypatch):
    """Each look at the clock is half a second after the last."""
    wall = count()
    monkeypatch.setattr(cpus.time, "monotonic", lambda: next(wall) / 2)


def idling(*idle):
    """What Linux says where only these idle: half a second more at each look."""
    looks = count()
    return lambda: {cpu: next_s / 2 if cpu in idle else 7.0 for next_s in [next(looks)] for cpu in range(4)}


def uses(*shares):
    """After each half second, when the guest got these shares of it, and waited for the rest."""
    wall_s = ran_s = 0.0
    for share in (1, *shares):
        wall_s, ran_s = wall_s + 0.5, ran_s + share * 0.5
        # Its processes wait for each other too, for a quarter of the time: no cause to go away.
        yield Use(wall_s=wall_s, ran_s=ran_s, waited_s=wall_s - ran_s + wall_s / 4)


@pytest.mark.parametrize(
    ("ran_s", "waited_s", "share"),
    [
        (1.0, 0.0, 0.0),
        (1.0, 0.25, 0.0),  # for its own processes
        (0.5, 0.75, 0.5),  # one other process has half of the CPU
        (0.1, 0.02, 0.02),  # it sleeps: a guest in real time, or one that waits for a disk
        (0.0, 0.0, 0.0),  # where Linux does not count
    ],
)
def test_denied_is_what_it_did_not_run_though_it_wanted_to(ran_s, waited_s, share):
    before = Use(wall_s=3, ran_s=2, waited_s=5)
    use = Use(wall_s=4, ran_s=2 + ran_s, waited_s=5 + waited_s)
    assert use.denied_since(before) == pytest.approx(share)


def test_guests_of_one_runner_have_cpus_of_their_own_until_there_are_no_more(four):
    of_runner = Cpus()
    with ExitStack() as all_of_them:
        got = [all_of_them.enter_context(of_runner.pinned()).cpu for _ in range(6)]
    assert got[:4] == [1, 2, 3, 0]
    assert len(set(got[4:])) == 2
    with of_runner.pinned() as alone:
        assert alone.cpu == 1


@pytest.mark.usefixtures("half_seconds")
@pytest.mark.parametrize(
    ("idle", "shares", "goes_to"),
    [
        ((0, 3), (0.5, 0.5), 3),
        ((2,), (0.5, 0.5), 1),  # where another of ours is
        ((), (0.5, 0.5), 1),
        ((3,), (0.95, 0.9), 1),
        ((3,), (0.5, 1.0, 0.5), 1),  # it must last
    ],
    ids=["to the next that idles", "not to our own", "not to a busy one", "not for little", "not at once"],
)
def test_a_guest_that_has_to_wait_goes_where_nobody_is(four, idle, shares, goes_to):
    of_runner = Cpus(idling(*idle))
    with of_runner.pinned() as pinned, of_runner.pinned() as second:
        assert (pinned.cpu, second.cpu) == (1, 2)
        for use in uses(*shares):
            pinned.reconsider(70, use)
        assert pinned.cpu == goes_to
    assert four == ([(70, goes_to), (71, goes_to)] if goes_to != 1 else [])


@pytest.mark.usefixtures("half_seconds", "four")
def test_the_next_guest_does_not_begin_where_the_last_had_to_wait():
    of_runner = Cpus(idling(0))
    with of_runner.pinned() as pinned:
        for use in uses(0.5, 0.5):
            pinned.reconsider(70, use)
    with ExitStack() as all_of_them:
        assert [all_of_them.enter_context(of_runner.pinned()).cpu for _ in range(4)] == [2, 3, 0, 1]


@pytest.mark.usefixtures("half_seconds")
def test_a_guest_whose_processes_linux_does_not_tell_of_stays(four, monkeypatch):
    monkeypatch.setattr(cpus, "processes", lambda pid: [pid])
    with Cpus(idling(0, 2, 3)).pinned() as pinned:
        for use in uses(0.5, 0.5, 0.5):
            pinned.reconsider(70, use)
        assert pinned.cpu == 1
    assert four == []


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")
def test_all_processes_of_a_guest_go_and_what_they_start_goes_along(half_seconds):
    every = os.sched_getaffinity(0)
    looks = count()
    of_runner = Cpus(lambda: dict.fromkeys(every, next(looks) / 2))
    with of_runner.pinned() as pinned:
        began = pinned.cpu
        words = (sys.executable, "-c", FAMILY, str(began))
        with subprocess.Popen(words, stdout=subprocess.PIPE) as parent:
            parent.stdout.readline()
            family = processes(parent.pid)
            try:
                assert len(family) == 2
                for use in uses(0.5, 0.5):
                    pinned.reconsider(parent.pid, use)
                assert pinned.cpu != began
                assert [os.sched_getaffinity(process) for process in family] == [{pinned.cpu}] * 2
            finally:
                for process in family:
                    os.kill(process, 9)


def test_linux_tells_of_each_cpu_how_long_it_idled_and_never_more_than_went_by():
    began, before = time.monotonic(), idle_s()
    time.sleep(0.5)
    now, went_by_s = idle_s(), time.monotonic() - began
    assert before
    # Linux counts ticks: one may have begun before.
    assert all(0 <= now[cpu] - before[cpu] <= went_by_s + 0.05 for cpu in before)

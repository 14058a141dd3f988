"""Backends as they can be chosen: names, clocks, and a printed plan that is what runs."""

import json
import platform
import time

import pytest
from places import place

from fabbbr.backends.guest import GuestBackend
from fabbbr.backends.guest.image.found import found_image
from fabbbr.backends.mininet import MininetBackend
from fabbbr.backends.registry import BACKENDS, DEFAULT, clock_of, described
from fabbbr.cli import main
from fabbbr.errors import UsageError
from fabbbr.physics import burst_bytes
from fabbbr.plan.estimate import estimate
from fabbbr.plan.opening import open_plan
from fabbbr.units import Rate

FAST = """id: fast
title: t
slice: two_site
path: {rate: 1 Gbit/s, rtt: 10 ms}
flows: [{cca: cubic, duration: 90 s}]
"""
CLOCK_MONOTONIC_COARSE = 6


@pytest.fixture
def fabbbr(capsys):
    """The command line: arguments → exit status, output, errors."""

    def run(*argv):
        status = main([str(word) for word in argv])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "fast.yaml"
    path.write_text(FAST, encoding="utf-8")
    return path


@pytest.fixture
def printed(fabbbr, file):
    def plan(*options):
        status, out, err = fabbbr("plan", file, "--json", "--commands", *options)
        assert status == 0, err
        return json.loads(out)

    return plan


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_describes_itself_wherever_it_is_asked(name):
    for clock in BACKENDS[name].clocks:
        testbed = described(name, clock)
        assert (testbed.backend, testbed.clock) == (name, clock)
        assert testbed.machines


def test_without_a_choice_a_backend_has_its_first_clock():
    assert [clock_of(name, None) for name in BACKENDS] == [each.clocks[0] for each in BACKENDS.values()]
    assert clock_of(DEFAULT, "real") == "real"


def test_a_clock_that_a_backend_does_not_have_is_refused_and_not_ignored(fabbbr, file):
    status, _, err = fabbbr("run", file, "--backend", "mininet", "--clock", "virtual")
    assert status == UsageError.exit_status
    assert "--clock virtual: backend mininet has real time only" in err


def test_the_printed_plan_of_a_host_has_the_burst_of_the_hosts_own_timer(printed):
    tick_s = time.clock_getres(CLOCK_MONOTONIC_COARSE)
    told = printed("--backend", "mininet")
    wanted = burst_bytes(Rate.parse("1 Gbit/s"), timer_hz=round(1 / tick_s), frame_bytes=1514)
    (batch,) = [
        command["stdin"]
        for command in told["cells"][0]["job"]["configure"]
        if " tbf " in (command["stdin"] or "")
    ]
    assert f" burst {wanted} " in batch
    (machine,) = told["testbed"]["machines"].values()
    assert machine["kernel"]["release"] == platform.release()


def test_the_printed_plan_says_which_clock_and_what_it_costs_on_it(printed):
    virtual, real = printed(), printed("--clock", "real")
    assert (virtual["testbed"]["clock"], real["testbed"]["clock"]) == ("virtual", "real")
    assert real["estimate"]["wall_s_on_one_core"] >= real["estimate"]["clock_s"] == 5 * 90


def test_on_a_real_clock_a_cell_lasts_as_long_as_its_flows(tmp_path):
    """A slow path is computed in no time, and still takes its time."""
    slow = tmp_path / "slow.yaml"
    slow.write_text(FAST.replace("1 Gbit", "5 Mbit"), encoding="utf-8")
    cells = open_plan(str(slow), seed=1).cells
    virtual_s, real_s = (estimate(cells, place(clock)).wall_s for clock in ("virtual", "real"))
    assert virtual_s < 30
    assert real_s >= 90


def test_mininet_refuses_more_than_one_cell_at_a_time_and_does_not_ignore_it():
    backend = object.__new__(MininetBackend)
    assert backend.cells_at_once(None, ()) == backend.cells_at_once(1, ()) == 1
    with pytest.raises(UsageError, match=r"--jobs 2: .*leave --jobs out"):
        backend.cells_at_once(2, ())


def test_a_guest_takes_as_many_cells_as_asked():
    backend = object.__new__(GuestBackend)
    assert backend.cells_at_once(3, ()) == 3
    assert backend.cells_at_once(None, ()) >= 1


@pytest.mark.guest
def test_an_open_guest_is_what_its_plan_said():
    assert found_image() is not None
    backend = BACKENDS["guest"].open("virtual")
    try:
        assert backend.testbed == described("guest", None)
    finally:
        backend.close()


def test_no_record_of_a_cell_knows_a_machine():
    """The same plan for every place: what differs is in the testbed."""
    (cell, *_) = open_plan("cardwell_f10", seed=1).cells
    assert cell.kernel is None  # the name of one that is asked for, and never what runs
    said = cell.model_dump_json()
    machine = json.loads(place(tools={"iperf3": "iperf 3.12"}).model_dump_json())
    assert not {"timer_hz", "release", "tools", "clock", "backend", "burst_bytes"} & set(json.loads(said))
    assert set(machine) & set(json.loads(said)) == set()

"""What goes wrong while a slice is made and run on, and that the same command said again completes.

The lines of the table in docs/slices.md: `inside/during.py` does it all on one slice beside the double.
"""

import json
import sys
from pathlib import Path

DURING = Path(__file__).with_name("inside") / "during.py"
INTERRUPTED = 130
FAILED = 10
REFUSED = 6
RUNS = ("Ctrl-C: survey", "Ctrl-C: cells")
NOTHING = {machine: ["0", "0"] for machine in ("h1", "sw", "h2")}
"""No agent, no interface of a job, no folder of a part."""


def scenarios(sandbox, *names):
    outcome = sandbox((sys.executable, str(DURING), *names), on="guest")
    assert outcome.status == 0, outcome.output
    lines = [json.loads(line) for line in outcome.output.splitlines() if line.startswith('{"scenario"')]
    return {line["scenario"]: line for line in lines}


def is_whole(line):
    """All three cells are there, and nothing failed."""
    assert line["status"] == 0, line["said"]
    assert "failed" not in line["said"]
    assert "not tried" not in line["said"]


def test_interrupted_in_each_phase_the_same_command_goes_on(sandbox):
    told = scenarios(sandbox, "interrupted_while_it_runs")
    phases = {name: line for name, line in told.items() if name.startswith("Ctrl-C") and "again" not in name}
    for name, line in phases.items():
        if "left" not in line:
            assert line["status"] == INTERRUPTED, line["said"]
            kept = "finished cells are kept" if name in RUNS else "what was reached is remembered"
            assert f"interrupted; {kept}, the same command continues" in line["said"]
    assert told["Ctrl-C: create again"]["status"] == 0
    assert told["Ctrl-C: survey: left"]["left"] == told["Ctrl-C: cells: left"]["left"] == NOTHING
    is_whole(told["Ctrl-C: run again"])
    assert "1 there already" in told["Ctrl-C: run again"]["said"]


def test_a_bastion_that_is_away_for_a_minute_ends_no_cell_and_two_runs_do_not_meet(sandbox):
    told = scenarios(sandbox, "bastion_away", "two_at_once")
    is_whole(told["bastion away for 60 s"])
    assert told["two at once: second"]["status"] == 2
    assert "another fabbbr is at work on slice study; wait for it" in told["two at once: second"]["said"]
    is_whole(told["two at once: first"])


def test_a_node_that_dies_stops_the_run_and_after_its_reboot_the_same_command_completes(sandbox):
    told = scenarios(sandbox, "node_dies")
    first = told["node dies"]
    assert first["status"] == FAILED
    assert "machine h2" in first["said"]
    assert "1 were not tried" in first["said"]
    assert told["node dies: run again"]["status"] == REFUSED
    assert "machine h2" in told["node dies: run again"]["said"]
    is_whole(told["node dies: rebooted"])
    assert told["node dies: left"]["left"] == NOTHING


def test_a_lease_that_ends_in_a_sweep_stops_the_run_and_a_new_slice_takes_the_rest(sandbox):
    told = scenarios(sandbox, "lease_ends")
    assert told["lease ends"]["status"] == FAILED
    assert told["lease ends: run again"]["status"] == REFUSED
    assert "gone, as after its lease" in told["lease ends: run again"]["said"]
    assert told["lease ends: create again"]["status"] == 0
    is_whole(told["lease ends: run on the new slice"])
    assert "1 there already" in told["lease ends: run on the new slice"]["said"]


def test_a_runner_that_is_killed_is_no_loss(sandbox):
    told = scenarios(sandbox, "killed_while_it_runs")
    is_whole(told["kill -9: run again"])
    assert told["teardown"]["status"] == 0

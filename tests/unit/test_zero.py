"""The instant at which the flows of a job begin: chosen beforehand where the clock is virtual."""

import time

import pytest
from places import GUEST, place, several

from fabbbr.agent.instants import sleep_until
from fabbbr.job.build import prepare
from fabbbr.plan.opening import open_plan

TEXT = """id: made
title: made for a test
slice: two_site
path: {{{path}}}
flows: [{flows}]
repeat: 1
"""
PATHS = (
    "rate: 100 Mbit/s, rtt: 20 ms",
    "rate: 10 kbit/s, rtt: 4 s, buffer: 100 packets",
    "rate: 10 Mbit/s, rtt: 2 s, ack_aggregation: {least: 1 ms, most: 1 s}",
    "rate: 1 Mbit/s, rtt: 200 ms, loss: 1 %",
    "rate: 1 Mbit/s, rtt: 200 ms, reordering: {rate: 0.01 %, late: 900 ms}",
)


@pytest.fixture
def job_on(tmp_path):
    def prepared(path, testbed=GUEST, flows="{cca: cubic, duration: 10 s}"):
        file = tmp_path / "made.yaml"
        file.write_text(TEXT.format(path=path, flows=flows), encoding="utf-8")
        return prepare(open_plan(str(file), seed=1).cells[0], testbed).job

    return prepared


@pytest.mark.parametrize("path", PATHS)
def test_all_that_is_planned_before_the_flows_fits_before_their_instant(job_on, path):
    job = job_on(path)
    burst = job.burst
    # Three pings 0.2 s apart, each there and back; acknowledgements that are held come on top.
    rtt_s = {PATHS[0]: 0.02, PATHS[1]: 4.0, PATHS[2]: 3.0, PATHS[3]: 0.2, PATHS[4]: 0.2}[path]
    probes = [each for each in (burst, job.train) if each is not None]
    probes_ns = sum(each.drain_ns + each.refills * each.refill_every_ns for each in probes)
    least_s = 0.4 + rtt_s + (probes_ns + job.settle_ns) * 1e-9
    assert job.flows_at_ns * 1e-9 > least_s + 10
    assert job.flows_at_ns % 10**10 == 0


def test_every_netem_is_set_again_as_it_is_with_a_seed_of_its_own_at_that_instant(job_on):
    job = job_on("rate: 1 Mbit/s, rtt: 200 ms, loss: 1 %")
    batches = [c.stdin for c in job.configure if c.argv[0] == "tc"]
    added = [line for text in batches for line in text.splitlines() if "netem" in line and " add " in line]
    assert batches[-1:] == [command.stdin for command in job.anew], "and at the beginning"
    again = [line for command in job.anew for line in command.stdin.splitlines()]
    seeds = [line.partition(" seed ")[2] for line in again]
    assert len({int(seed) for seed in seeds}) == len(added) == 3
    plain = [line.removesuffix(f" seed {seed}") for line, seed in zip(again, seeds, strict=True)]
    assert [line.replace(" change ", " add ") for line in plain] == added
    assert any("loss random 1%" in line for line in again)


def test_on_a_real_clock_flows_begin_when_all_is_ready(job_on):
    job = job_on(PATHS[0], place("real"))
    assert (job.flows_at_ns, job.anew) == (None, ())
    set_up = "".join(command.stdin or "" for command in job.configure)
    assert " seed " not in set_up, "not every tc knows the word"


def test_on_several_machines_there_is_no_common_zero_of_their_clocks(job_on):
    job = job_on(PATHS[0], several({"h1": "ma", "s1": "mb", "w1": "mb", "h2": "mb"}))
    assert (job.flows_at_ns, job.anew) == (None, ())


def test_a_sleep_ends_at_its_instant_and_not_before_and_one_that_is_over_at_once():
    due = time.monotonic() + 0.02
    sleep_until(due)
    # To a nanosecond: the instant is rounded to one.
    assert time.monotonic() > due - 2e-9
    sleep_until(0.0)
    sleep_until(-5.0)

"""Settings that the certificate reads back: what tc tells decides, not what was asked of it."""

import json

import pytest
from places import GUEST

from fabbbr.certify.evidence import Answer
from fabbbr.certify.settings import settings
from fabbbr.job.build import prepare
from fabbbr.model import THRESHOLD_AQMS
from fabbbr.plan.opening import open_plan

TEXT = """id: made
title: made for a test
slice: two_site
path: {rate: 9 Mbit/s, rtt: 20 ms, aqm: %s, %s}
flows: [{cca: cubic, duration: 10 s, maxrate: 8.5 Mbit/s}]
repeat: 1
"""


@pytest.fixture
def check(tmp_path):
    """Checks by name, of a cell whose switch and sender told these options."""

    def make(asked="ecn: true, ce_threshold: 242 us", aqm="fq_codel", options=None, fq=None):
        file = tmp_path / "made.yaml"
        file.write_text(TEXT % (aqm, asked))
        prepared = prepare(open_plan(str(file), seed=1).cells[0], GUEST)
        queue, pacing = prepared.expected.queues[0], prepared.expected.pacings[0]
        own = {"rate": 1_125_000, "limit": queue.buffer_bytes, "burst": queue.burst_bytes}
        told = {
            queue.captured: [
                {"kind": "tbf", "dev": queue.interface.name, "options": own},
                {"kind": aqm, "dev": queue.interface.name, "options": options or {}},
            ],
            pacing.captured: [{"kind": "prio", "dev": pacing.interface.name, "options": {"bands": 2}}]
            + ([{"kind": "fq", "dev": pacing.interface.name, "options": fq}] if fq is not None else []),
        }
        readback = {
            each.name: Answer.model_validate(
                {
                    "argv": each.command.argv, "node": each.command.node, "exit": 0, "stderr": "",
                    "stdout": json.dumps(told.get(each.name, [])),
                }
            )
            for each in prepared.job.readback
        }  # fmt: skip
        return {each.name: each for each in settings(prepared, readback)}

    return make


# CoDel keeps 242 us as 236 steps of 1024 ns, and tells 241.
@pytest.mark.parametrize(
    ("asked", "told", "passed"),
    [
        ("242 us", {"ce_threshold": 241}, True),
        ("242 us", {"ce_threshold": 242}, True),
        ("242 us", {"ce_threshold": 245}, False),
        ("242 us", {}, False),
        ("0 s", {}, True),
        ("0 s", {"ce_threshold": 241}, False),
    ],
)
@pytest.mark.parametrize("aqm", THRESHOLD_AQMS)
def test_the_threshold_that_is_in_force_is_the_one_that_was_asked(check, aqm, asked, told, passed):
    found = check(f"ecn: true, ce_threshold: {asked}", aqm, told)["bottleneck trunk at s1-eth1"]
    assert found.passed == passed
    assert ("marks after" in found.measured) == bool(told)


@pytest.mark.parametrize(
    ("aqm", "asked", "told", "passed"),
    [
        ("codel", "aqm_target: 20 ms", {"target": 19_999, "interval": 99_999}, True),
        ("codel", "aqm_target: 20 ms", {"target": 4_999, "interval": 99_999}, False),
        ("codel", "aqm_interval: 300 ms", {"target": 4_999, "interval": 299_999}, True),
        ("codel", "aqm_interval: 300 ms", {"target": 4_999, "interval": 99_999}, False),
        ("codel", "aqm_target: 20 ms", {}, False),
        ("codel", "ecn: true", {"target": 4_999, "interval": 99_999}, True),
        ("pie", "aqm_target: 20 ms", {"target": 20_000, "tupdate": 15_000}, True),
        ("fq_pie", "aqm_target: 20 ms", {"target": 15_000, "tupdate": 15_000}, False),
        ("cake", "aqm_interval: 300 ms", {"rtt": 300_000}, True),
        ("cake", "aqm_interval: 300 ms", {"rtt": 100_000}, False),
    ],
)
def test_the_times_that_are_in_force_are_those_that_were_asked(check, aqm, asked, told, passed):
    assert check(asked, aqm, told)["bottleneck trunk at s1-eth1"].passed == passed


@pytest.fixture
def wire(tmp_path):
    """The check of the way there, whose netems told these delays of data and of the rest."""

    def make(path, data, rest):
        file = tmp_path / "late.yaml"
        text = TEXT.partition("path:")[0] + f"path: {{rate: 9 Mbit/s, rtt: 20 ms, {path}}}\n"
        file.write_text(text + "flows: [{cca: cubic, duration: 10 s}]\nrepeat: 1\n")
        prepared = prepare(open_plan(str(file), seed=1).cells[0], GUEST)
        (there,) = (each for each in prepared.expected.wires if each.late_s)
        netems = [
            {"kind": "netem", "dev": there.interface.name,
             "options": {"limit": there.limit_packets, "delay": {"correlation": 0, **delay}}}
            for delay in (data, rest)
        ]  # fmt: skip
        readback = {
            each.name: Answer.model_validate(
                {"argv": each.command.argv, "node": each.command.node, "exit": 0, "stderr": "",
                 "stdout": json.dumps(netems if each.name == there.captured else [])}
            )
            for each in prepared.job.readback
        }  # fmt: skip
        name = f"wire of trunk at {there.interface.name}"
        return next(each for each in settings(prepared, readback) if each.name == name)

    return make


@pytest.mark.parametrize(
    ("data", "rest", "passed"),
    [
        ({"delay": 0.01, "jitter": 0.005}, {"delay": 0.01, "jitter": 0}, True),
        ({"delay": 0.01, "jitter": 0.004}, {"delay": 0.01, "jitter": 0}, False),
        ({"delay": 0.01, "jitter": 0}, {"delay": 0.01, "jitter": 0}, False),
        ({"delay": 0.01, "jitter": 0.005}, {"delay": 0.01, "jitter": 0.005}, False),
        ({"delay": 0.02, "jitter": 0.005}, {"delay": 0.01, "jitter": 0}, False),
    ],
)
def test_data_alone_comes_as_late_as_was_asked(wire, data, rest, passed):
    assert wire("reordering: {rate: 1 %, late: 5 ms}", data, rest).passed == passed


@pytest.mark.parametrize(
    ("told", "passed", "said"),
    [
        ({"maxrate": 1_062_500}, True, "maxrate 8500000 bit/s"),
        ({"maxrate": 1_062_499}, False, "maxrate 8499992 bit/s"),
        ({}, False, "maxrate 0 bit/s"),
        (None, False, "no fq"),
    ],
)
def test_the_limit_that_is_in_force_is_the_one_that_was_asked(check, told, passed, said):
    found = check(fq=told)["fq at h1-eth0"]
    assert (found.passed, found.measured) == (passed, said)

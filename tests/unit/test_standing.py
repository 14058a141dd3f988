"""A bottleneck that still holds packets at the end, and whether it sends them."""

import json
from types import SimpleNamespace

import pytest
from places import GUEST

from fabbbr.certify import standing
from fabbbr.certify.counters import Counters, NodeCounters, QdiscCounters
from fabbbr.certify.evidence import Looks
from fabbbr.errors import BackendError
from fabbbr.job.build import prepare
from fabbbr.plan.opening import open_plan

TEXT = """id: made
title: made for a test
slice: two_site
path: {rate: 200 Mbit/s, rtt: 10 ms, offloads: true}
flows: [{cca: cubic, duration: 8 s}]
steps: [{at: 4 s, rate: RATE}]
repeat: 1
"""


def tbf(sent, backlog):
    return {
        "kind": "tbf", "handle": "1:", "dev": "s1-eth1", "root": True, "packets": sent // 1000, "bytes": sent,
        "drops": 0, "backlog": backlog, "qlen": backlog // 1000,
    }  # fmt: skip


@pytest.fixture
def checks(tmp_path):
    """Those of a cell whose queue told (s, bytes sent, bytes in it), the last when the flows were over."""
    file = tmp_path / "made.yaml"

    def made(*samples, lines=None, rate="50 Mbit/s"):
        file.write_text(TEXT.replace("RATE", rate))
        prepared = prepare(open_plan(str(file), seed=1).cells[0], GUEST)
        *looks, (_, sent, backlog) = samples
        told = [json.dumps([tbf(*each)]) for _, *each in looks] if lines is None else lines
        (tmp_path / "queues.s1.json").write_text("\n".join(told) + "\n")
        (tmp_path / "queues.s1.times").write_text("".join(f"{t_s:.9f}\n" for t_s, *_ in looks))
        after = NodeCounters(links=(), qdiscs=(QdiscCounters(**tbf(sent, backlog)),), netstat="")
        evidence = SimpleNamespace(
            after=Counters("counters.after.json", {"s1": after}),
            looks={"s1": Looks(tmp_path / "queues.s1.json")},
        )
        queues = tuple(queue for queue in prepared.expected.queues if not queue.reverse)
        only = SimpleNamespace(cell=prepared.cell, expected=SimpleNamespace(queues=queues))
        return list(standing.checks(only, evidence))

    return made


def test_one_that_holds_packets_and_sends_none_is_refused(checks):
    (check,) = checks((7.8, 99_000_000, 651_000), (7.9, 99_000_000, 651_000), (8.0, 99_000_000, 651_000))
    assert (check.name, check.passed) == ("bottleneck trunk at s1-eth1 moves", False)
    assert check.measured == "0 B in the last 0.1 s"
    assert check.detail == "651 packets, 651000 B, stand in it when the flows are over"


def test_one_that_sends_what_it_holds_passes(checks):
    (check,) = checks((7.8, 98_000_000, 900_000), (7.9, 98_600_000, 700_000), (8.0, 99_000_000, 651_000))
    assert check.passed
    assert check.measured == "1000000 B in the last 0.1 s"


def test_one_to_which_something_came_just_now_passes(checks):
    (check,) = checks((7.8, 99_000_000, 0), (7.9, 99_000_000, 0), (8.0, 99_000_000, 1_000))
    assert check.passed


def test_of_an_empty_one_nothing_is_said(checks):
    assert checks((7.8, 99_000_000, 0), (7.9, 99_000_000, 0), (8.0, 99_000_000, 0)) == []


@pytest.mark.parametrize(("rate", "needed_s"), [("50 Mbit/s", 0.1), ("5 Mbit/s", 0.315)])
def test_looks_that_reach_less_far_than_three_super_packets_take_tell_nothing(checks, rate, needed_s):
    """Of 65 kB each, at the slowest rate; 0.1 s at least."""
    late = (8.0, 99_000_000, 651_000), (8.01, 99_000_000, 651_000)
    assert checks((8.002 - needed_s, 99_000_000, 651_000), *late, rate=rate) == []
    assert not checks((7.998 - needed_s, 99_000_000, 651_000), *late, rate=rate)[0].passed


def test_a_look_that_cannot_be_read_is_a_broken_tool(checks):
    with pytest.raises(BackendError, match=r"raw/queues\.s1\.json, from tc -s -j qdisc show"):
        checks((7.8, 1, 1), (7.9, 1, 1), (8.0, 1, 1), lines=['[{"kind": "tbf"}]', "[]"])

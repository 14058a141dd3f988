"""The window with which connections begin: of whom it is asked, how hosts get it, and what they tell."""

import json
import re

import pytest
from places import GUEST

from fabbbr.certify.evidence import Answer
from fabbbr.certify.settings import settings
from fabbbr.errors import PlanError, SpecError
from fabbbr.job.build import prepare
from fabbbr.plan import definitions, expand
from fabbbr.spec import read

ONE = "{cca: cubic, size: 30 kB, initial_window: 32}"


def cells(flows=ONE, *, path="rate: 10 Mbit/s, rtt: 20 ms", slice_="two_site"):
    text = f"id: made\ntitle: made\nslice: {slice_}\npath: {{{path}}}\nflows: [{flows}]\nrepeat: 1\n"
    return expand.cells(read.parse(text, source="made"), definitions.load, seed=1)


def routes(job):
    lines = ((command.node, command.stdin or "") for command in job.configure if command.argv[0] == "ip")
    return [(node, line) for node, text in lines for line in text.splitlines() if "initcwnd" in line]


def test_the_route_of_its_sender_to_its_receiver_has_it_and_no_other():
    (cell,) = cells(f"{ONE}, {{cca: cubic, duration: 5 s, from: h2}}", slice_="dumbbell")
    prepared = prepare(cell, GUEST)
    (asked,) = prepared.expected.initial_windows
    assert (asked.node, asked.receiver, asked.segments) == ("h1", "r1", 32)
    assert routes(prepared.job) == [("h1", f"route add {asked.address}/32 dev h1-eth0 initcwnd 32")]


def test_what_is_not_asked_for_changes_no_job():
    prepared = prepare(cells("{cca: cubic, size: 30 kB}")[0], GUEST)
    assert prepared.expected.initial_windows == ()
    assert routes(prepared.job) == []
    assert not [each for each in prepared.job.readback if each.name.startswith("routes")]


@pytest.mark.parametrize(
    ("flows", "path", "said"),
    [
        ("{cca: cubic, size: 1 kB, initial_window: 0}", "", "greater than or equal to 1"),
        ("{cca: cubic, size: 1 kB, initial_window: 46}", "", "46 segments of 1448 bytes .*; 45 at most"),
        ("{cca: cubic, size: 1 kB, initial_window: 8}", ", mtu: 9000", "of 8948 bytes .*; 7 at most"),
        ("{udp: 1 Mbit/s, duration: 5 s, initial_window: 4}", "", "means nothing for a group of kind udp"),
        ("{cca: cubic, size: 1 kB, initcwnd: 4}", "", "did you mean 'initial_window'"),
    ],
)
def test_a_window_that_no_connection_can_begin_with_is_refused(flows, path, said):
    with pytest.raises(SpecError, match=said):
        cells(flows, path="rate: 10 Mbit/s, rtt: 20 ms" + path)


def test_what_the_handshake_just_offers_is_taken():
    assert cells("{cca: cubic, size: 1 kB, initial_window: 45}")[0].flows[0].initial_window == 45


@pytest.mark.parametrize("other", ["", ", initial_window: 10"])
def test_groups_between_the_same_hosts_that_differ_are_refused_and_others_are_not(other):
    flows = f"{ONE}, {{cca: reno, duration: 5 s{other}%s}}"
    with pytest.raises(PlanError, match="holds for all that h1 sends to r1, but cubic 32 and reno"):
        cells(flows % ", from: h1", slice_="dumbbell")
    assert len(cells(flows % ", from: h2", slice_="dumbbell")[0].flows) == 2
    assert len(cells(f"{ONE}, {{udp: 1 Mbit/s, duration: 5 s}}")[0].flows) == 2


def test_where_the_slice_has_one_sender_the_remedy_is_a_slice_that_has_two():
    flows = f"{ONE}, {{cca: reno, duration: 5 s%s}}"
    with pytest.raises(PlanError) as refused:
        cells(flows % "")
    ((slice_, other),) = re.findall(r"\(slice: ({.*}) has two: from: h1, (from: \w+)\)", str(refused.value))
    assert len(cells(flows % f", {other}", slice_=slice_)[0].flows) == 2
    with pytest.raises(PlanError, match=r"\(from: h1, from: x1\)"):
        cells(flows % ", from: h1", slice_="parking_lot")


@pytest.mark.parametrize(
    ("metrics", "passed", "told"),
    [
        ([{"initcwnd": 32}], True, "32 segments"),
        ([{"initcwnd": 31}], False, "31 segments"),
        ([{"mtu": 1500}], False, "no segments"),
        (None, False, "no route of its own"),
    ],
)
def test_the_route_as_the_host_tells_it_decides(metrics, passed, told):
    prepared = prepare(cells()[0], GUEST)
    (asked,) = prepared.expected.initial_windows
    others = [{"dst": "10.77.0.0/16", "dev": "h1-eth0", "flags": []}]
    of_it = [] if metrics is None else [{"dst": asked.address, "dev": "h1-eth0", "metrics": metrics}]
    readback = {
        each.name: Answer.model_validate(
            {
                "argv": each.command.argv, "node": each.command.node, "exit": 0, "stderr": "",
                "stdout": json.dumps(others + of_it if each.name == asked.captured else []),
            }
        )
        for each in prepared.job.readback
    }  # fmt: skip
    (check,) = (each for each in settings(prepared, readback) if each.name == "initial window h1–h2")
    assert (check.passed, check.asked, check.measured) == (passed, "32 segments", told)

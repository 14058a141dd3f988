"""A bottleneck whose way back has a rate and a queue of its own: from the experiment file to the job."""

import pytest
from places import GUEST

from fabbbr.capacity import RateOverTime
from fabbbr.capturing import room_of
from fabbbr.commands.plan import row_of
from fabbbr.errors import FabbbrError
from fabbbr.job.build import prepare
from fabbbr.job.cabling import lay_cables
from fabbbr.job.configure import configure_commands, step_tasks
from fabbbr.job.flows import block_bytes
from fabbbr.job.headroom import longest_answer_ns, window_bytes
from fabbbr.physics import end_of
from fabbbr.plan.estimate import estimate, offered_loads
from fabbbr.plan.opening import open_plan
from fabbbr.units import Duration
from fabbbr.ways import first_queue

TEXT = """id: made
title: made for a test
slice: {slice}
path: {{rate: 50 Mbit/s, rtt: 30 ms, {path}}}
flows: [{flows}]
repeat: 1
{more}
"""
THERE = "{cca: cubic, duration: 10 s}"
BACK = "{cca: cubic, duration: 10 s, direction: reverse}"


@pytest.fixture
def planned(tmp_path):
    def plan(path="reverse: 5 Mbit/s", flows=THERE, slice_="two_site", more=""):
        file = tmp_path / "made.yaml"
        text = TEXT.format(path=path, flows=flows, slice=slice_, more=more)
        file.write_text(text, encoding="utf-8")
        return open_plan(str(file), seed=1).cells[0]

    return plan


def shapers(commands):
    """(node, line) of every rate limit that is set."""
    return [
        (command.node, line)
        for command in commands
        for line in (command.stdin or "").splitlines()
        if " tbf " in line
    ]


@pytest.mark.parametrize(
    ("path", "rate", "buffer_bytes", "asked"),
    [
        ("reverse: 5 Mbit/s", "5 Mbit/s", 18_750, "1 BDP"),
        ("buffer: 2 BDP, reverse: 5 Mbit/s", "5 Mbit/s", 37_500, "2 BDP"),
        ("buffer: 90 kB, reverse: {rate: 5 Mbit/s}", "5 Mbit/s", 90_000, "90 kB"),
        (
            "buffer: 90 kB, reverse: {rate: 80 Mbit/s, buffer: 100 packets}",
            "80 Mbit/s",
            151_400,
            "100 packets",
        ),
        # As long to drain each way: 200 ms of 5 Mbit/s.
        ("buffer: 200 ms, reverse: 5 Mbit/s", "5 Mbit/s", 125_000, "200 ms"),
    ],
)
def test_the_way_back_has_its_own_rate_and_the_buffer_of_the_way_there_unless_it_has_one(
    planned, path, rate, buffer_bytes, asked
):
    queue = planned(path).bottleneck
    back = queue.way_back
    assert (str(queue.rate), str(back.rate)) == ("50 Mbit/s", rate)
    assert (back.buffer_bytes, back.buffer_asked) == (buffer_bytes, asked)
    assert queue.distinct == (queue, back)


@pytest.mark.parametrize(
    ("path", "there", "back"),
    [
        ("aqm: fq_codel, reverse: 5 Mbit/s", "fq_codel", "fq_codel"),
        ("reverse: {rate: 5 Mbit/s, aqm: cake}", "taildrop", "cake"),
        ("aqm: pie, reverse: {rate: 5 Mbit/s, aqm: taildrop}", "pie", "taildrop"),
    ],
)
def test_the_way_back_has_the_aqm_of_the_way_there_unless_it_has_one(planned, path, there, back):
    cell = planned(f"buffer: 100 packets, {path}")
    assert (cell.bottleneck.aqm, cell.bottleneck.way_back.aqm) == (there, back)
    queues = prepare(cell, GUEST).expected.queues
    assert [(queue.aqm, queue.reverse) for queue in queues] == [(there, False), (back, True)]


def test_a_queue_that_marks_on_the_way_back_alone_is_enough_for_ecn(planned):
    asked = "buffer: 100 packets, ecn: true, ce_threshold: 1 ms, reverse: {rate: 5 Mbit/s, aqm: fq_codel}"
    queue = planned(asked).bottleneck
    assert (queue.ecn, queue.ce_threshold) == (False, None)
    assert (queue.way_back.ecn, str(queue.way_back.ce_threshold)) == (True, "1 ms")
    with pytest.raises(FabbbrError, match="tail drop cannot mark"):
        planned("buffer: 100 packets, ecn: true, reverse: 5 Mbit/s")


def test_a_link_may_have_a_way_back_of_its_own(planned):
    cell = planned(
        slice_="parking_lot", more="links: {hop2: {reverse: {rate: 1 Mbit/s, buffer: 10 packets}}}"
    )
    rates = {name: str(queue.way_back.rate) for name, queue in cell.bottlenecks.items()}
    assert rates == {"hop1": "5 Mbit/s", "hop2": "1 Mbit/s"}
    assert cell.bottlenecks["hop2"].way_back.buffer_bytes == 15_140


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": "reverse: 1 kbit/s"}, "path.reverse: 1 kbit/s is out of range"),
        ({"path": "reverse: {buffer: 9 packets}"}, "path.reverse: needs a rate, e.g. rate: 5 Mbit/s"),
        ({"path": "reverse: {rate: 5 Mbit/s, buffer: 200 B}"}, "path.reverse.buffer: 200 B does not hold"),
        (
            {"path": "reverse: 100 kbit/s"},
            "path.buffer: way back of link trunk: a buffer of 1 BDP is 375 bytes",
        ),
        (
            {"path": "reverse: 5 Mbit/s", "slice_": "rtt_pair"},
            "path.reverse: h3 at the far end of link trunk is a host, and what it sends leaves s1 over near",
        ),
        (
            {"path": "buffer: 1 BDP", "more": "links: {access: {reverse: 1 Mbit/s}}"},
            "links.access.reverse: link access is no bottleneck",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(planned, arguments, said):
    with pytest.raises(FabbbrError) as refused:
        planned(**arguments)
    assert said in str(refused.value)


@pytest.mark.parametrize("flows", [THERE, BACK, f"{THERE}, {BACK}"])
@pytest.mark.parametrize(("slice_", "node"), [("two_site", "s1"), ("dumbbell", "s2")])
def test_all_that_goes_back_is_shaped_whether_or_not_it_is_data(planned, flows, slice_, node):
    cell = planned("reverse: {rate: 5 Mbit/s, buffer: 100 packets}", flows, slice_)
    there, back = shapers(configure_commands(cell, GUEST, lay_cables(cell, GUEST)))
    assert (there[0], back[0]) == ("s1", node)
    assert there[1].endswith("tbf rate 50000000bit burst 6250 limit 187500")
    assert back[1].endswith("tbf rate 5000000bit burst 1514 limit 151400")


def test_without_a_reverse_nothing_limits_acknowledgements(planned):
    cell = planned("buffer: 1 BDP")
    assert [node for node, _ in shapers(configure_commands(cell, GUEST, lay_cables(cell, GUEST)))] == ["s1"]
    assert (cell.bottleneck.way_back, prepare(cell, GUEST).job.burst_back) == (None, None)


STEPS = "steps: [{at: 4 s, rate: 20 Mbit/s, buffer: 60 kB}]"


@pytest.mark.parametrize(("path", "ways"), [("reverse: 5 Mbit/s", 1), ("buffer: 1 BDP", 2)])
def test_steps_change_a_way_back_only_where_it_is_as_the_way_there(planned, path, ways):
    cell = planned(path, f"{THERE}, {BACK}", more=STEPS)
    (step,) = step_tasks(cell, GUEST, lay_cables(cell, GUEST))
    assert len(shapers(step.commands)) == ways
    back = RateOverTime.of(cell, "trunk", reverse=True)
    assert back.at(5.0) == (20_000_000 if ways == 2 else 5_000_000)
    assert RateOverTime.of(cell, "trunk").at(5.0) == 20_000_000


def test_super_packets_of_a_way_back_are_cut_by_its_own_rate_alone(planned):
    """A burst of 1514 bytes cuts all super-packets; one of the steps would let smaller ones pass."""
    steps = "steps: [{at: 4 s, rate: 1 Gbit/s}]"
    cell = planned("offloads: true, reverse: 5 Mbit/s", f"{THERE}, {BACK}", more=steps)
    there, back = prepare(cell, GUEST).expected.super_packets.sizes
    assert any(each.may_be_cut and not each.is_cut for each in there.classes)
    assert all(each.is_cut for each in back.classes if each.may_be_cut)


def test_a_trace_is_followed_there_while_data_goes_back_at_its_own_rate(tmp_path):
    (tmp_path / "made.up").write_text("".join(f"{ms}\n" for ms in range(1, 200, 2)), encoding="utf-8")
    file = tmp_path / "made.yaml"
    text = TEXT.format(path="reverse: 5 Mbit/s", flows=f"{THERE}, {BACK}", slice="two_site", more="")
    file.write_text(text.replace("rate: 50 Mbit/s", "trace: made.up"), encoding="utf-8")
    (cell,) = open_plan(str(file), seed=1).cells
    assert cell.bottleneck.trace is not None
    assert cell.bottleneck.way_back.trace is None
    job = prepare(cell, GUEST).job
    assert len(job.gates) == 1
    assert [line.split(" rate ")[1].split()[0] for _, line in shapers(job.configure)] == ["5000000bit"]


def test_a_flow_is_sized_by_the_queue_that_it_meets(planned):
    cell = planned(
        "reverse: 1 Mbit/s, buffer: 40 kB", f"{THERE}, {{udp: 500 kbit/s, duration: 9 s, direction: reverse}}"
    )
    there, back = cell.flows
    assert [str(first_queue(cell, flow).rate) for flow in (there, back)] == ["50 Mbit/s", "1 Mbit/s"]
    assert block_bytes(cell, there) > block_bytes(cell, back)
    assert offered_loads(cell) == {back.group: pytest.approx(0.5)}


def test_a_transfer_over_the_way_back_is_expected_to_take_as_long_as_that_allows(planned):
    transfer = "{cca: cubic, size: 1 MB, direction: reverse}"
    slow, fast = (planned(f"reverse: {rate}, buffer: 40 kB", transfer) for rate in ("1 Mbit/s", "50 Mbit/s"))
    assert end_of(slow.flows, slow.links) == Duration(50 * end_of(fast.flows, fast.links).ns)
    tasks = [prepare(cell, GUEST).job.flows[0] for cell in (slow, fast)]
    assert tasks[0].deadline_ns > tasks[1].deadline_ns


def test_windows_and_patience_allow_for_acknowledgements_that_stand_in_a_full_way_back(planned):
    cells = [planned(f"buffer: 400 kB, reverse: {rate}") for rate in ("50 Mbit/s", "5 Mbit/s", "1 Mbit/s")]
    windows = [window_bytes(cell) for cell in cells]
    waits = [longest_answer_ns(cell, cell.flows[0].rtt) for cell in cells]
    assert windows == sorted(windows)
    assert windows[0] < windows[2]
    assert waits[2] - waits[0] == pytest.approx(400_000 * 8 * (1 / 1e6 - 1 / 50e6) * 1e9, rel=1e-6)


def test_both_queues_are_timed_and_there_is_memory_for_that(planned):
    one, two = (planned(path, more="queue_delay: packets") for path in ("buffer: 1 BDP", "reverse: 5 Mbit/s"))
    files = [[task.file for task in prepare(cell, GUEST).job.captures] for cell in (one, two)]
    assert [len(each) for each in files] == [1, 2]
    taken = sum(tap.ring_bytes for task in prepare(two, GUEST).job.captures for tap in task.taps)
    assert room_of(two).memory_bytes == taken > room_of(one).memory_bytes


def test_an_upload_that_is_faster_than_the_way_there_has_room_in_its_ring(planned):
    """At 200 Mbit/s for 10 s some 165 000 full frames come and leave."""
    cell = planned(
        "reverse: {rate: 200 Mbit/s, buffer: 100 packets}", f"{THERE}, {BACK}", more="queue_delay: packets"
    )
    slots = [tap.slots for task in prepare(cell, GUEST).job.captures for tap in task.taps]
    assert min(slots) > 2 * 200e6 * 10 / 8 / 1514


def test_the_second_burst_has_its_time_before_the_flows(planned):
    slow = prepare(planned("buffer: 2 MB, reverse: 100 kbit/s"), GUEST).job
    quick = prepare(planned("buffer: 2 MB"), GUEST).job
    assert slow.burst_back.drain_ns > 2_000_000 * 8 / 100e3 * 1e9
    assert slow.flows_at_ns - quick.flows_at_ns >= slow.burst_back.drain_ns - 10_000_000_000


@pytest.mark.parametrize(
    ("path", "flows", "megabits"),
    [
        ("", f"{THERE}, {BACK}", 2 * 50 * 10),
        ("reverse: 5 Mbit/s", THERE, 50 * 10),
        ("reverse: 5 Mbit/s", BACK, 5 * 10),
        ("reverse: 5 Mbit/s", f"{THERE}, {BACK}", (50 + 5) * 10),
        (
            "reverse: 5 Mbit/s",
            f"{THERE}, {BACK.replace('direction', 'pacing: 1 Mbit/s, direction')}",
            (50 + 1) * 10,
        ),
    ],
)
def test_an_estimate_has_each_way_carry_what_its_own_flows_send(planned, path, flows, megabits):
    assert estimate([planned(path, flows)], GUEST).bottleneck_bytes == megabits * 1e6 / 8


def test_a_plan_shows_the_buffer_of_each_way_that_has_its_own(planned):
    told = row_of(planned("buffer: 200 ms, reverse: {rate: 5 Mbit/s, buffer: 100 packets}"))
    assert told["bottleneck"] == "50 Mbit/s, back 5 Mbit/s"
    assert told["buffer"] == "200 ms = 1250000 B, back 100 packets = 151400 B"
    assert row_of(planned("buffer: 90 kB", THERE))["buffer"] == "90 kB = 90000 B"
    held = planned("buffer: 90 kB, aqm: codel, reverse: {rate: 5 Mbit/s, buffer: 9 kB, aqm: pie}", THERE)
    assert row_of(held)["buffer"] == "90 kB = 90000 B (codel), back 9 kB = 9000 B (pie)"

"""A way back that follows a trace: from the experiment file to the job, and what is told of it."""

import pytest
from places import GUEST

from fabbbr.capacity import Opportunities, RateOverTime, capacity_of
from fabbbr.commands.plan import row_of
from fabbbr.errors import FabbbrError
from fabbbr.job.build import prepare
from fabbbr.job.cabling import lay_cables
from fabbbr.job.headroom import longest_answer_ns
from fabbbr.plan.opening import open_plan
from fabbbr.units import Duration
from fabbbr_analysis.report.provenance import conditions

TEXT = """id: made
title: made for a test
slice: {slice}
path: {{{path}, rtt: 30 ms}}
flows: [{flows}]
repeat: {repeat}
{more}
"""
THERE = "{cca: cubic, duration: 10 s}"
BACK = "{cca: cubic, duration: 10 s, direction: reverse}"
BOTH_WAYS = "trace: made.down, reverse: {trace: made.up}"
S = 1_000_000_000


@pytest.fixture
def planned(tmp_path):
    def plan(path=BOTH_WAYS, flows=THERE, slice_="two_site", more="", repeat=1):
        # 12 Mbit/s, then twice as much; 2 Mbit/s, with a second of nothing.
        down = [*range(1, 2001), *(at for at in range(2001, 3001) for _ in "ab")]
        up = [*range(6, 3001, 6), 4000]
        for name, times in (("made.down", down), ("made.up", up)):
            (tmp_path / name).write_text("".join(f"{at}\n" for at in times), encoding="ascii")
        file = tmp_path / "made.yaml"
        text = TEXT.format(path=path, flows=flows, slice=slice_, more=more, repeat=repeat)
        file.write_text(text, encoding="utf-8")
        return open_plan(str(file), seed=1)

    return plan


def test_the_way_back_has_the_mean_rate_of_its_trace_and_a_buffer_of_its_own(planned):
    (cell,) = planned("rate: 20 Mbit/s, buffer: 2 BDP, reverse: {trace: made.up}").cells
    there, back = cell.bottleneck, cell.bottleneck.way_back
    assert (there.trace, back.trace.name, back.trace.opportunities) == (None, "made.up", 501)
    assert back.rate.bps == 501 * 12_000 // 4
    assert back.buffer_bytes == int(2 * back.rate.bps * 0.030 / 8)
    assert isinstance(capacity_of(cell, "trunk"), RateOverTime)
    assert isinstance(capacity_of(cell, "trunk", reverse=True), Opportunities)


@pytest.mark.parametrize("slice_", ["two_site", "dumbbell"])
def test_each_way_has_a_gate_in_the_wire_and_no_rate_limit(planned, slice_):
    (cell,) = planned(slice_=slice_).cells
    job, cabling = prepare(cell, GUEST).job, lay_cables(cell, GUEST)
    (ends,) = (ends for ends in cabling.ends if ends.link.bottleneck is not None)
    there, back = job.gates
    assert (there.into, there.out) == (ends.wire_backward.name, ends.wire_forward.name)
    assert (back.into, back.out) == (ends.wire_forward.name, ends.wire_backward.name)
    assert (there.interface, back.interface) == (ends.queue.name, ends.reverse_queues[0].name)
    assert not any(" tbf " in (command.stdin or "") for command in job.configure)
    dropped = [line for command in job.configure for line in (command.stdin or "").splitlines()]
    assert sum(line.endswith("action drop") for line in dropped) == 2


def test_both_are_begun_at_one_instant_of_their_recording(planned):
    cells = planned(f"{BOTH_WAYS}, trace_start: random", repeat=6).cells
    begun = planned(f"{BOTH_WAYS}, trace_start: 3.5 s").cells[0].bottleneck
    still = planned().cells[0].bottleneck
    starts = {cell.bottleneck.trace_start for cell in cells}
    assert len(starts) == 6
    # Of the longer one, 4 s, all instants are as likely.
    assert max(starts).ns < 4 * S
    assert all(cell.shares_draws for cell in cells)
    # 500 ms after 3 s comes the one of 4 s; of the other, whose pass takes 3 s, it is 500 ms.
    assert begun.reverse.trace.gaps_ms.split()[:2] == ["1000", "6x500"]
    assert begun.trace.gaps_ms != still.trace.gaps_ms
    assert (begun.trace.opportunities, still.trace.opportunities) == (4000, 4000)


def test_data_goes_both_ways_packet_by_packet(planned):
    (cell,) = planned(flows=f"{THERE}, {BACK}").cells
    assert cell.steps == ()
    assert [queue.trace.name for queue in cell.bottleneck.of_data] == ["made.down", "made.up"]


@pytest.mark.parametrize(
    ("path", "row", "fact"),
    [
        (
            BOTH_WAYS,
            "16 Mbit/s by made.down, back 1.503 Mbit/s by made.up",
            "made.down, packet by packet; back made.up, packet by packet",
        ),
        (
            "rate: 20 Mbit/s, reverse: {trace: made.up}, trace_start: 1 s",
            "20 Mbit/s, back 1.503 Mbit/s by made.up from 1 s on",
            "back made.up, packet by packet; from 1 s on",
        ),
        (
            "trace: made.down, aqm: codel, reverse: {trace: made.up, aqm: taildrop}",
            "16 Mbit/s by made.down in bins of 100 ms, back 1.503 Mbit/s by made.up",
            "made.down, as a rate per 100 ms; back made.up, packet by packet",
        ),
    ],
)
def test_a_plan_and_a_report_say_which_way_follows_which(planned, path, row, fact):
    found = planned(path)
    assert row_of(found.cells[0])["bottleneck"] == row
    told = {each.name: each.value for each in conditions(found)}
    assert told["Link trace"] == fact
    assert told["Way back"].startswith("1.503 Mbit/s on average (made.up), ")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("rate: 20 Mbit/s, reverse: {buffer: 9 kB}", "path.reverse: needs a rate, e.g. rate: 5 Mbit/s"),
        (
            "rate: 20 Mbit/s, reverse: {rate: 5 Mbit/s, trace: made.up}",
            "path.reverse: give a rate or a trace, not both",
        ),
        (
            "rate: 20 Mbit/s, reverse: {trace: made.up, burst: 20 kB}",
            "path.reverse.burst: a trace says when packets leave",
        ),
        ("rate: 20 Mbit/s, reverse: {trace: other.up}", "path.reverse.trace: "),
        (
            "rate: 20 Mbit/s, reverse: {trace: made.up, aqm: codel}",
            "path.reverse.trace: is followed packet by packet, by a queue that drops at its tail, and aqm is",
        ),
        (
            "rate: 20 Mbit/s, aqm: pie, reverse: {trace: made.up}",
            "add aqm: taildrop to reverse",
        ),
        (
            "rate: 20 Mbit/s, offloads: true, reverse: {trace: made.up}",
            "path.offloads: a trace delivers packets of 1500 bytes one by one",
        ),
        (
            "rate: 20 Mbit/s, reverse: 5 Mbit/s, trace_start: random",
            "path.trace_start: begins in no trace",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(planned, path, said):
    with pytest.raises(FabbbrError) as caught:
        planned(path)
    assert said in str(caught.value)


def test_a_path_without_a_rate_lacks_that_and_no_trace(planned):
    with pytest.raises(FabbbrError) as caught:
        planned("reverse: 5 Mbps")
    found = [line.split(":4: ")[1].split(":")[0] for line in str(caught.value).splitlines()]
    assert found == ["path", "path.reverse"]


def test_no_qdisc_times_the_packets_of_a_way_back_by_a_trace(planned):
    with pytest.raises(FabbbrError, match="queue_delay: a queue of trunk delivers by a trace"):
        planned("rate: 20 Mbit/s, reverse: {trace: made.up}", more="queue_delay: packets")


def test_a_bucket_of_the_way_there_is_none_of_a_trace(planned):
    (cell,) = planned("rate: 20 Mbit/s, burst: 100 kB, reverse: {trace: made.up}").cells
    assert (cell.bottleneck.burst_bytes, cell.bottleneck.reverse.burst_bytes) == (100_000, None)
    assert row_of(cell)["burst"] == "100 kB = 100000 B, back none"


def test_a_link_may_have_a_way_back_by_a_trace_of_its_own(planned):
    (cell,) = planned(
        "rate: 20 Mbit/s", slice_="parking_lot", more="links: {hop2: {reverse: {trace: made.up}}}"
    ).cells
    traces = [queue.reverse and queue.reverse.trace.name for queue in cell.bottlenecks.values()]
    assert traces == [None, "made.up", None][: len(traces)]
    assert len(prepare(cell, GUEST).job.gates) == 1


def test_an_answer_may_wait_for_the_longest_hole_of_a_trace(planned):
    """1 packet and 1514 bytes queued: two opportunities each, and the hole is of a second."""
    one, two = (
        planned(f"rate: 20 Mbit/s, buffer: 100 kB, reverse: {{{back}, buffer: 1 packet}}").cells[0]
        for back in ("rate: 1.503 Mbit/s", "trace: made.up")
    )
    rtt = Duration.parse("30 ms")
    at_rate_ns = 1514 * 8 * S // 1_503_000
    longer_ns = longest_answer_ns(two, rtt) - (longest_answer_ns(one, rtt) - at_rate_ns)
    assert longer_ns == 1_012_000_000  # from 3000 to 4000 ms, and two more of 6 ms

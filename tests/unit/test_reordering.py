"""Data that comes late: from the experiment file to the train that measures it, and what is believed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import GUEST, place

from fabbbr.certify.evidence import BurstTold
from fabbbr.certify.reordering import checks
from fabbbr.commands.plan import row_of
from fabbbr.errors import FabbbrError
from fabbbr.job.build import prepare
from fabbbr.job.cabling import lay_cables
from fabbbr.job.configure import step_tasks
from fabbbr.job.headroom import longest_answer_ns, window_bytes
from fabbbr.job.qdiscs import delay_tables
from fabbbr.plan.opening import open_plan
from fabbbr.testbed import REAL_TIME, VIRTUAL_TIME

TEXT = """id: made
title: made for a test
slice: {slice}
path: {{rate: 10 Mbit/s, rtt: 20 ms, {path}}}
flows: [{flows}]
repeat: 1
{more}
"""
THERE = "{cca: cubic, duration: 10 s}"
BACK = "{cca: cubic, duration: 10 s, direction: reverse}"
MS = 1_000_000


@pytest.fixture
def planned(tmp_path):
    def plan(path="reordering: {rate: 1 %, late: 5 ms}", flows=THERE, slice_="two_site", more=""):
        file = tmp_path / "made.yaml"
        text = TEXT.format(path=path, flows=flows, slice=slice_, more=more)
        file.write_text(text, encoding="utf-8")
        return open_plan(str(file), seed=1).cells[0]

    return plan


def late_on(cell):
    """Link → (share, how late in ms)."""
    told = {link.name: link.reordering for link in cell.links if link.reordering is not None}
    return {name: (each.rate.value, each.late.ns / MS) for name, each in told.items()}


def netems(commands):
    return [line for command in commands for line in (command.stdin or "").splitlines() if " netem " in line]


@pytest.mark.parametrize(
    ("path", "more", "late"),
    [
        ("reordering: {rate: 1 %, late: 5 ms}", "", {"hop1": (0.01, 5), "hop2": (0.01, 5)}),
        (
            "reordering: {rate: 1 %, late: 5 ms}",
            "links: {hop2: {reordering: {rate: 0.25 %, late: 300 us}}}",
            {"hop1": (0.01, 5), "hop2": (0.0025, 0.3)},
        ),
        ("buffer: 1 BDP", "links: {hop2: {reordering: {rate: 2 %, late: 1 s}}}", {"hop2": (0.02, 1000)}),
        ("reordering: {rate: 0 %, late: 5 ms}", "", {}),
        ("reordering: {rate: 1 %, late: 0 ms}", "", {}),
        (
            "reordering: {rate: 1 %, late: 5 ms}",
            "links: {hop2: {reordering: {rate: 0 %, late: 5 ms}}}",
            {"hop1": (0.01, 5)},
        ),
    ],
)
def test_data_comes_late_from_every_bottleneck_unless_a_link_says_otherwise(planned, path, more, late):
    assert late_on(planned(path, slice_="{name: parking_lot, hops: 2}", more=more)) == late


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": "reordering: 1 %"}, "one a line or in braces, e.g. {rate: 1 %, late: 5 ms}"),
        ({"path": "reordering: {rate: 1 %}"}, "path.reordering.late: is missing; add e.g. late: 5 ms"),
        ({"path": "reordering: {late: 1 ms}"}, "path.reordering.rate: is missing"),
        ({"path": "reordering: {rate: 51 %, late: 1 ms}"}, "51 % is out of range; give 0 % to 50 %"),
        (
            {"path": "reordering: {rate: 0.015 %, late: 1 ms}"},
            "path.reordering.rate: 0.015 % is no whole number of hundredths of a percent",
        ),
        (
            {"path": "reordering: {rate: 1 %, late: 2 s}"},
            "path.reordering.late: 2 s is out of range; give 0 ns to 1 s",
        ),
        (
            {"path": "reordering: {rate: 1 %, late: 1.5 us}"},
            "path.reordering.late: 1.5 us is no whole number of microseconds",
        ),
        (
            {"more": "links: {trunk: {reordering: {rate: 1 %, late: 2 s}}}"},
            "links.trunk.reordering.late: 2 s is out of range",
        ),
        ({"flows": BACK}, "path.reordering: reordering on link trunk would fall on the acknowledgements"),
        (
            {"flows": BACK, "path": "mtu: 1500",
             "more": "links: {trunk: {reordering: {rate: 1 %, late: 2 ms}}}"},
            "links.trunk.reordering: reordering on link trunk would fall",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_place(planned, arguments, said):
    with pytest.raises(FabbbrError, match=re.escape(said)):
        planned(**arguments)


def test_a_plan_tells_of_what_comes_late(planned):
    assert row_of(planned())["late"] == "1 % by 5 ms"
    assert "late" not in row_of(planned("loss: 1 %"))


def test_only_data_that_goes_there_comes_late_and_still_does_after_a_step(planned):
    """The rest passes beside it: connections of control, pings, acknowledgements."""
    cell = planned("loss: 2 %, reordering: {rate: 1.25 %, late: 5 ms}", more="steps: [{at: 5 s, rtt: 30 ms}]")
    cabling = lay_cables(cell, GUEST)
    (ends,) = (ends for ends in cabling.ends if ends.link.name == "trunk")
    job = prepare(cell, GUEST).job
    after = next(step_tasks(cell, GUEST, cabling)).commands
    for commands, delay_us in ((job.configure, 10_000), (after, 15_000)):
        (data, *_) = late = [line for line in netems(commands) if "distribution" in line]
        assert all(f"dev {ends.wire_forward.name} parent 1:1 handle 10:" in line for line in late)
        assert f"delay {delay_us}us 5000us distribution late1of80 loss random 2%" in data
        assert any(line.endswith(f"delay {delay_us}us") for line in netems(commands))


@pytest.mark.parametrize(
    "link", ["access: {", "access: {rtt: 0 s, ", "access: {rtt: 4 ms}, trunk: {rtt: 0 s, "]
)
def test_a_link_without_a_delay_has_a_microsecond_of_it_since_tc_takes_no_distribution_without(planned, link):
    cell = planned("buffer: 50 kB", more=f"links: {{{link}reordering: {{rate: 10 %, late: 0.4 ms}}}}}}")
    (line, *_) = [line for line in netems(prepare(cell, GUEST).job.configure) if "distribution" in line]
    assert line.endswith("delay 1us 400us distribution late1of10")


@given(hundredths=st.integers(1, 5000))
def test_the_share_of_a_table_that_is_late_is_exactly_the_one_asked(tmp_path_factory, hundredths):
    file = tmp_path_factory.mktemp("share") / "made.yaml"
    late = f"reordering: {{rate: {hundredths / 100:g} %, late: 5 ms}}"
    file.write_text(TEXT.format(path=late, flows=THERE, slice="two_site", more=""), encoding="utf-8")
    cell = open_plan(str(file), seed=1).cells[0]
    ((name, text),) = delay_tables(cell).items()
    numbers = [int(line) for line in text.splitlines()]
    # tc takes 16 384 of at most 16 bits, and netem adds jitter × number / 8192.
    assert len(numbers) <= 16_384
    assert set(numbers) <= {0, 8192}
    assert numbers.count(8192) * 10_000 == hundredths * len(numbers)
    assert name == f"late{numbers.count(8192)}of{len(numbers)}"


def test_a_cell_in_which_nothing_comes_late_has_neither_table_nor_train(planned):
    job = prepare(planned("loss: 1 %"), GUEST).job
    assert (job.delay_tables, job.train) == ({}, None)


def test_windows_limits_and_patience_allow_for_what_comes_late(planned):
    prompt, late = planned("loss: 1 %"), planned("loss: 1 %, reordering: {rate: 1 %, late: 800 ms}")
    rtt = prompt.flows[0].rtt
    assert longest_answer_ns(late, rtt) - longest_answer_ns(prompt, rtt) == 800 * MS
    # While one is late, all that came meanwhile waits for it: 10 Mbit/s for 800 ms.
    assert window_bytes(late) - window_bytes(prompt) >= 1_000_000
    jobs = [prepare(cell, GUEST).job for cell in (prompt, late)]
    limits = [
        int(re.search(r"limit (\d+)", next(line for line in netems(job.configure) if "loss" in line))[1])
        for job in jobs
    ]
    assert limits[1] - limits[0] >= 1_000_000 / 1514
    assert jobs[1].settle_ns - jobs[0].settle_ns == 800 * MS


# Trains


def test_one_packet_of_a_train_has_left_the_slowest_queue_before_the_next_comes(planned):
    slow = prepare(planned(more="links: {trunk: {rate: 100 kbit/s, buffer: 9 kB}}"), GUEST)
    (train, probe) = slow.job.train, slow.expected.train
    frame_bytes = train.payload_bytes + 28 + 14
    assert probe.gap_ns == train.refill_every_ns >= frame_bytes * 8 / 100e3 * 1e9
    assert (train.packets, train.refill_packets) == (1, 1)
    assert train.source_port >= 2**15, "as data, or it passes beside"


@pytest.mark.parametrize(("share", "packets"), [("50 %", 200), ("1 %", 2000), ("0.01 %", 4000)])
def test_a_train_is_as_long_as_its_share_needs_and_no_longer_than_is_worth(planned, share, packets):
    train = prepare(planned(f"reordering: {{rate: {share}, late: 5 ms}}"), GUEST).job.train
    assert train.refills + 1 == packets


def test_a_train_has_its_time_before_the_flows(planned):
    late = prepare(planned("reordering: {rate: 0.01 %, late: 900 ms}"), GUEST).job
    train = late.train
    assert train.drain_ns > 900 * MS
    without = prepare(planned("mtu: 1500"), GUEST).job
    longer_ns = train.refills * train.refill_every_ns + train.drain_ns
    assert late.flows_at_ns - without.flows_at_ns > longer_ns - 10_000_000_000


def test_a_train_takes_the_way_over_most_links_that_let_packets_come_late(planned):
    flows = "{cca: cubic, duration: 1 s, from: x1, to: y1}, {cca: cubic, duration: 1 s, from: h1, to: r1}"
    cell = planned(flows=flows, slice_="{name: parking_lot, hops: 2}")
    prepared = prepare(cell, GUEST)
    long = max(cell.flows, key=lambda flow: flow.rtt)
    assert (prepared.job.train.sender, prepared.job.train.receiver) == (long.sender, long.receiver)
    assert prepared.expected.train.late_share == pytest.approx(1 - 0.99**2)
    assert prepared.expected.train.late_s == (0.005, 0.01)


# What is believed

ASKED = "reordering: {rate: 5 %, late: 5 ms}"


def arrived(probe, late, *, of=400, by_ns=5 * MS, without=(), jitter_ns=0):
    """A train of which these numbers came late."""
    arrivals = [
        (number, 10**9 + number * probe.gap_ns + (by_ns if number in late else number % 2 * jitter_ns))
        for number in range(of)
        if number not in without
    ]
    return BurstTold(sent=of, arrivals=tuple(arrivals), queues_at_peak=())


def believed(probe, told, allowed=VIRTUAL_TIME):
    (check,) = checks(probe, told, allowed)
    return check


@pytest.fixture
def probe(planned):
    return prepare(planned(ASKED), GUEST).expected.train


def test_what_was_asked_is_believed_and_told(probe):
    check = believed(probe, arrived(probe, range(0, 400, 20)))
    assert check.passed
    assert check.name == "reordering on trunk"
    assert check.measured == "20 of 400 (5.000%), 5 ms late"


@pytest.mark.parametrize("late", [(), range(0, 400, 200), range(0, 400, 6)])
def test_another_share_is_not(probe, late):
    assert not believed(probe, arrived(probe, late)).passed


@pytest.mark.parametrize("by_ns", [4 * MS, 4_890_000, 5_200_000, 9 * MS])
def test_another_lateness_is_not(probe, by_ns):
    assert not believed(probe, arrived(probe, range(0, 400, 20), by_ns=by_ns)).passed


def test_neither_is_a_path_on_which_the_others_come_unevenly(probe):
    check = believed(probe, arrived(probe, range(0, 400, 20), jitter_ns=MS))
    assert not check.passed
    assert check.measured.endswith("; 200 neither on time nor so late")


@pytest.mark.parametrize(("number", "passed"), [(8, True), (9, False)])
def test_a_machine_with_a_real_clock_may_hold_up_a_few(planned, number, passed):
    """Two in a hundred: its scheduler has other work too."""
    probe = prepare(planned("reordering: {rate: 5 %, late: 30 ms}"), place("real")).expected.train
    told = arrived(probe, range(0, 400, 20), by_ns=30 * MS)
    times = [(n, at + (12 * MS if n in range(21, 21 + number) and n % 20 else 0)) for n, at in told.arrivals]
    held_up = told.model_copy(update={"arrivals": tuple(times)})
    assert believed(probe, held_up, REAL_TIME).passed == passed
    assert not believed(probe, held_up).passed


def test_nor_one_over_which_nothing_came(probe):
    for told in (None, arrived(probe, (), without=range(400))):
        check = believed(probe, told)
        assert (check.passed, check.measured) == (False, "none arrived")


def test_injected_loss_takes_packets_of_the_train_without_harm(probe):
    check = believed(probe, arrived(probe, range(0, 400, 20), without=range(7, 400, 10)))
    assert check.passed
    assert "of 360" in check.measured


def test_a_packet_that_was_sent_late_is_none_that_comes_late(probe):
    told = arrived(probe, range(0, 400, 20), by_ns=5 * MS)
    held_up = tuple((n, at + (3 * MS if n in range(101, 110) else 0)) for n, at in told.arrivals)
    strayed = told.model_copy(update={"arrivals": held_up})
    assert not believed(probe, strayed).passed
    assert believed(probe, strayed.model_copy(update={"late": ((101, 110),)})).passed


@pytest.mark.parametrize(("late", "passed"), [((), False), (range(0, 400, 40), True), (range(400), False)])
def test_on_a_real_clock_too_a_share_that_is_far_off_is_noticed(planned, late, passed):
    probe = prepare(planned("reordering: {rate: 5 %, late: 30 ms}"), place("real")).expected.train
    assert believed(probe, arrived(probe, late, by_ns=30 * MS), REAL_TIME).passed == passed


def test_a_lateness_that_a_real_clock_cannot_tell_is_said_not_to_be_told(planned):
    probe = prepare(planned("reordering: {rate: 5 %, late: 2 ms}"), place("real")).expected.train
    check = believed(probe, arrived(probe, (), jitter_ns=MS), REAL_TIME)
    assert (check.passed, check.measured) == (True, "too little to be told apart here")


def test_nothing_is_asked_where_nothing_comes_late():
    assert list(checks(None, None, VIRTUAL_TIME)) == []

"""A token bucket of one's own: from the experiment file to what is measured of it, and what is believed."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import GUEST, place

from fabbbr.capturing import room_of
from fabbbr.certify.ceiling import _beyond_bytes
from fabbbr.certify.certificate import _burst
from fabbbr.certify.evidence import BurstTold
from fabbbr.commands.plan import row_of
from fabbbr.errors import FabbbrError
from fabbbr.job.build import prepare
from fabbbr.job.headroom import window_bytes
from fabbbr.physics import bucket_bytes
from fabbbr.plan.estimate import estimate
from fabbbr.plan.opening import open_plan
from fabbbr.testbed import REAL_TIME, VIRTUAL_TIME
from fabbbr.units import Rate
from fabbbr_analysis.ceilings import most_bps
from fabbbr_analysis.figures.conditions import varied
from fabbbr_analysis.report.diagram import queues_in_words

TEXT = """id: made
title: made for a test
slice: {slice}
path: {{rtt: 20 ms, {path}}}
flows: [{flows}]
repeat: 1
{more}
"""
THERE = "{cca: cubic, duration: 10 s}"
BACK = "{cca: cubic, duration: 10 s, direction: reverse}"
FRAME = 1514


@pytest.fixture
def planned(tmp_path):
    def plan(path="rate: 10 Mbit/s, burst: 250 kB", flows=THERE, slice_="two_site", more=""):
        file = tmp_path / "made.yaml"
        text = TEXT.format(path=path, flows=flows, slice=slice_, more=more)
        file.write_text(text, encoding="utf-8")
        return open_plan(str(file), seed=1).cells[0]

    return plan


def bursts(job):
    return [
        int(found[1])
        for each in job.configure
        for found in re.finditer(r"tbf .* burst (\d+)", each.stdin or "")
    ]


@pytest.mark.parametrize(
    ("path", "more", "held"),
    [
        ("rate: 10 Mbit/s, burst: 250 kB", "", {"hop1": 250_000, "hop2": 250_000}),
        ("rate: 10 Mbit/s, burst: 20 packets", "", {"hop1": 20 * FRAME, "hop2": 20 * FRAME}),
        ("rate: 10 Mbit/s, burst: 20 packets, mtu: 9000", "", {"hop1": 180_280, "hop2": 180_280}),
        # The long way has the delays of both hops.
        ("rate: 10 Mbit/s, burst: 0.5 BDP", "", {"hop1": 25_000, "hop2": 25_000}),
        (
            "rate: 10 Mbit/s, burst: 20 ms",
            "links: {hop2: {rate: 5 Mbit/s}}",
            {"hop1": 25_000, "hop2": 12_500},
        ),
        ("rate: 10 Mbit/s", "links: {hop2: {burst: 1 MB}}", {"hop1": None, "hop2": 1_000_000}),
        ("rate: 10 Mbit/s", "", {"hop1": None, "hop2": None}),
    ],
)
def test_every_bottleneck_has_the_bucket_of_the_path_unless_a_link_says_otherwise(planned, path, more, held):
    cell = planned(path, slice_="{name: parking_lot, hops: 2}", more=more)
    assert {name: queue.burst_bytes for name, queue in cell.bottlenecks.items()} == held


@pytest.mark.parametrize(
    ("reverse", "back"),
    [
        ("5 Mbit/s", 25_000),
        ("{rate: 5 Mbit/s, burst: 10 ms}", 6_250),
        ("{rate: 5 Mbit/s, burst: 90 kB}", 90_000),
    ],
)
def test_a_way_back_of_its_own_has_the_bucket_of_the_way_there_unless_it_says_otherwise(
    planned, reverse, back
):
    cell = planned(f"rate: 10 Mbit/s, burst: 25 kB, reverse: {reverse}")
    assert cell.bottleneck.burst_bytes == 25_000
    assert cell.bottleneck.way_back.burst_bytes == back
    assert sorted(bursts(prepare(cell, GUEST).job)) == sorted([25_000, back])


def test_both_ways_alike_have_a_bucket_each(planned):
    assert bursts(prepare(planned(flows=f"{THERE}, {BACK}"), GUEST).job) == [250_000, 250_000]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": "rate: 10 Mbit/s, burst: 1 kB"},
         "path.burst: 1 kB does not hold one packet of 1514 bytes; give at least 1514 B"),
        ({"path": "rate: 10 Mbit/s, burst: 1 ms"},
         "path.burst: link trunk: a burst of 1 ms is 1250 bytes at 10 Mbit/s and 20 ms; give 1514 B"),
        ({"path": "rate: 1 Gbit/s, burst: 17 MB"},
         "give 1514 B, a packet, to 16000000 B, which is the most that is measured before the flows"),
        ({"path": "rate: 1 Mbit/s, burst: 61 s"},
         "give 1514 B, a packet, to 7500000 B, which is what 1 Mbit/s brings in 60 s"),
        ({"path": "rate: 10 Mbit/s, burst: 0 B"}, "path.burst: '0 B' holds nothing"),
        ({"path": "rate: 10 Mbit/s, burst: deep"}, "path.burst: 'deep'"),
        ({"path": "rate: 10 Mbit/s, reverse: {rate: 1 Mbit/s, burst: 1 kB}"},
         "path.reverse.burst: 1 kB does not hold one packet"),
        ({"path": "rate: 10 Mbit/s", "more": "links: {trunk: {burst: 1 kB}}"},
         "links.trunk.burst: 1 kB does not hold one packet"),
        ({"path": "rate: 10 Mbit/s", "more": "links: {access: {burst: 100 kB}}"},
         "links.access.burst: link access is no bottleneck; give it a rate too (bottlenecks: trunk)"),
        ({"path": "rate: 10 Mbit/s", "more": "links: {access: {buffer: 100 kB}}"},
         "links.access.buffer: link access is no bottleneck"),
        ({"path": "rate: 10 Mbit/s", "more": "links: {access: {aqm: codel}}"},
         "links.access.aqm: link access is no bottleneck"),
        ({"path": "rate: 10 Mbit/s, bucket: 100 kB"}, "path.bucket: unknown key; did you mean 'burst'?"),
        ({"path": "rate: 10 Mbit/s, policer: 100 kB"}, "a policer is a burst and a buffer of 2 packets"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_place(planned, arguments, said):
    with pytest.raises(FabbbrError, match=re.escape(said)):
        planned(**arguments)


@pytest.mark.parametrize(("path", "more", "place_"), [
    ("burst: 100 kB, trace: made.up", "", "path.burst"),
    ("trace: made.up", "links: {trunk: {burst: 100 kB}}", "links.trunk.burst"),
])  # fmt: skip
def test_a_trace_has_no_bucket(planned, tmp_path, path, more, place_):
    (tmp_path / "made.up").write_text("1\n2\n3\n", encoding="utf-8")
    with pytest.raises(FabbbrError, match=re.escape(f"{place_}: a trace says when packets leave")):
        planned(path, more=more)


def test_plan_and_report_say_how_deep_it_is(planned):
    assert row_of(planned())["burst"] == "250 kB = 250000 B"
    assert "burst" not in row_of(planned("rate: 10 Mbit/s"))
    assert queues_in_words([planned().bottleneck]) == "buffer 1 BDP, token bucket 250 kB"
    assert queues_in_words([planned("rate: 10 Mbit/s").bottleneck]) == "buffer 1 BDP"


@pytest.mark.parametrize(("burst", "held"), [("", 1514), (", burst: 250 kB", 250_000)])
def test_a_bucket_that_was_asked_for_stays_as_it_is_while_the_rate_changes(planned, burst, held):
    cell = planned(f"rate: 10 Mbit/s{burst}", more="steps: [{at: 5 s, rate: 100 Mbit/s}]")
    (before,) = bursts(prepare(cell, GUEST).job)
    (after,) = re.findall(r"burst (\d+)", str(prepare(cell, GUEST).job.steps))
    assert (before, int(after)) == (held, max(held, 12_500))
    assert bucket_bytes(cell.bottleneck, Rate(10**7), timer_hz=1000, frame_bytes=FRAME) == held


def test_windows_delay_lines_and_captures_have_room_for_what_passes_at_once(planned):
    small, deep = planned("rate: 10 Mbit/s"), planned("rate: 10 Mbit/s, burst: 8 MB")
    # Linux counts twice what is payload, and as much again waits for what was lost.
    assert window_bytes(deep) >= 4 * 8_000_000 > window_bytes(small)
    limits = [
        min(int(found) for found in re.findall(r"netem limit (\d+)", str(prepare(cell, GUEST).job.configure)))
        for cell in (small, deep)
    ]
    assert limits[1] - limits[0] >= 8_000_000 / FRAME
    kept = [room_of(planned(path, more="capture: [trunk]")).disk_bytes
            for path in ("rate: 10 Mbit/s", "rate: 10 Mbit/s, burst: 8 MB")]  # fmt: skip
    assert kept[1] > kept[0]


def test_a_step_of_rate_or_buffer_fills_the_bucket_so_more_may_have_come(planned):
    steps = "steps: [{at: 3 s, rate: 20 Mbit/s}, {at: 4 s, rtt: 30 ms}, {at: 5 s, buffer: 90 kB}]"
    beyond = []
    for more in ("", steps):
        prepared = prepare(planned(more=more), GUEST)
        beyond.append(_beyond_bytes(prepared, prepared.expected.queues[0]))
    assert beyond[1] - beyond[0] == 2 * 250_000


# The probe


def sending(job, spread_ns):
    """Instants at which a probe sends, its packets ``spread_ns`` apart, and its refills that are late."""
    times = [number * spread_ns for number in range(job.packets)]
    late = []
    for number in range(job.refills):
        due_ns = (number + 1) * job.refill_every_ns
        first, begins_ns = len(times), max(due_ns, times[-1])
        times += [begins_ns + each * spread_ns for each in range(job.refill_packets)]
        if times[-1] > due_ns + job.spare_ns:
            late.append((first, len(times)))
    return times, tuple(late)


def departures(job, *, bucket, buffer, rate, spread_ns=0):
    """A probe behind a token bucket and a queue of so many bytes."""
    per_ns = rate / 8e9
    tokens, filled_ns, queue, left = float(bucket), 0.0, [], []
    times, late = sending(job, spread_ns)
    for number, at_ns in enumerate(times):
        queue = [leaves for leaves in queue if leaves > at_ns]
        if queue and (len(queue) + 1) * FRAME > buffer:
            continue
        goes_ns = max(float(at_ns), filled_ns)
        held = min(bucket, tokens + (goes_ns - filled_ns) * per_ns)
        if held < FRAME:
            goes_ns += (FRAME - held) / per_ns
            held = FRAME
        tokens, filled_ns = held - FRAME, goes_ns
        left.append((number, 10**9 + round(goes_ns)))
        if goes_ns > at_ns:
            queue.append(goes_ns)
    sent, first = len(times), job.packets
    return BurstTold(sent=sent, refills_from=first, arrivals=tuple(left), late=late, queues_at_peak=())


def checks_of(planned, testbed, allowed, *, bucket=250_000, spread_ns=0, path="buffer: 20 packets"):
    prepared = prepare(planned(f"rate: 10 Mbit/s, burst: 250 kB, {path}"), testbed)
    probe, job = prepared.expected.burst, prepared.job.burst
    buffer = probe.queue.buffer_bytes
    told = departures(job, bucket=bucket, buffer=buffer, rate=1e7, spread_ns=spread_ns)
    return {check.name: check for check in _burst(probe, told, allowed, of="")}


@pytest.mark.parametrize("path", ["buffer: 1 packet", "buffer: 2 packets", "buffer: 1 BDP", "aqm: codel"])
@pytest.mark.parametrize(
    ("testbed", "allowed", "spread_ns"),
    [(GUEST, VIRTUAL_TIME, 0), (place("real"), REAL_TIME, 100_000), (place("real"), REAL_TIME, 500_000)],
)
def test_what_was_asked_is_measured_even_where_packets_come_slowly(
    planned, testbed, allowed, spread_ns, path
):
    """At up to twice the rate: the bucket fills while they do."""
    found = checks_of(planned, testbed, allowed, spread_ns=spread_ns, path=path)
    assert found["burst"].passed, found["burst"]
    held = float(found["burst"].measured.removesuffix(" B"))
    assert held == pytest.approx(250_000, abs=FRAME)
    assert found["rate"].passed or path == "buffer: 1 packet", found["rate"]


@pytest.mark.parametrize("bucket", [1514, 125_000, 247_000, 253_500, 500_000])
def test_another_bucket_is_not_believed(planned, bucket):
    assert not checks_of(planned, GUEST, VIRTUAL_TIME, bucket=bucket)["burst"].passed


def test_nor_one_over_which_nothing_came(planned):
    probe = prepare(planned(), GUEST).expected.burst
    nothing = BurstTold(sent=0, arrivals=(), queues_at_peak=())
    assert not {check.name: check for check in _burst(probe, nothing, VIRTUAL_TIME, of="")}["burst"].passed


def test_without_a_bucket_of_its_own_nothing_more_is_checked(planned):
    probe = prepare(planned("rate: 10 Mbit/s"), GUEST).expected.burst
    nothing = BurstTold(sent=0, arrivals=(), queues_at_peak=())
    assert "burst" not in {check.name for check in _burst(probe, nothing, VIRTUAL_TIME, of="")}


@given(kB=st.integers(2, 1000), mbps=st.integers(1, 100), packets=st.integers(1, 200))
def test_before_the_flows_the_bucket_is_full_again(tmp_path_factory, kB, mbps, packets):  # noqa: N803 - a unit
    file = tmp_path_factory.mktemp("full") / "made.yaml"
    path = f"rate: {mbps} Mbit/s, burst: {kB} kB, buffer: {packets} packets"
    file.write_text(TEXT.format(path=path, flows=THERE, slice="two_site", more=""), encoding="utf-8")
    job = prepare(open_plan(str(file), seed=1).cells[0], GUEST).job.burst
    empties_ns = packets * FRAME * 8000 / mbps
    fills_ns = kB * 1000 * 8000 / mbps
    assert job.drain_ns >= empties_ns + min(fills_ns, job.packets * FRAME * 8000 / mbps - empties_ns)


def test_what_is_lost_behind_the_queue_makes_no_rate_higher(planned):
    """On a testbed the network loses some: then fewer come, and those that came at once still did."""
    cell = planned("rate: 1 Gbit/s, buffer: 300 packets")
    prepared = prepare(cell, place("real"))
    probe, job = prepared.expected.burst, prepared.job.burst
    told = departures(job, bucket=probe.queue.burst_bytes, buffer=cell.bottleneck.buffer_bytes, rate=1e9)
    assert probe.queue.burst_bytes >= 2 * FRAME, "a bucket of a packet lets none pass at once"
    kept = tuple(each for each in told.arrivals if each[0] % 9 != 8)
    (rate, *_) = _burst(probe, told.model_copy(update={"arrivals": kept}), REAL_TIME, of="")
    assert rate.passed, rate


def test_the_estimate_counts_what_passes_at_once(planned):
    small, deep = (
        estimate([planned(path, flows="{udp: 20 Mbit/s, duration: 10 s}")], GUEST)
        for path in ("rate: 10 Mbit/s", "rate: 10 Mbit/s, burst: 2 MB")
    )
    assert deep.bottleneck_bytes - small.bottleneck_bytes == 2_000_000


# What is said of a run


def test_utilisation_counts_a_bucket_as_often_as_it_can_be_full(planned):
    def stored_bytes(cell, *spans):
        covered = sum(end - start for start, end in spans)
        return (most_bps(cell, cell.trunk.name, spans, timer_hz=1000) - 10e6) * covered / 8

    assert stored_bytes(planned(), (0.0, 9.0)) == pytest.approx(250_000)
    # A pause of 0.1 s at 10 Mbit/s brings 125 kB, one of 1 s fills it.
    assert stored_bytes(planned(), (0.0, 5.0), (5.1, 9.0), (10.0, 11.0)) == pytest.approx(625_000)
    # One that nobody asked for holds what its rate sends in a tick, or a frame.
    assert stored_bytes(planned("rate: 10 Mbit/s"), (0.0, 5.0)) == pytest.approx(FRAME)
    assert stored_bytes(planned("rate: 10 Mbit/s"), (0.0, 5.0), (5.001, 6.0)) == pytest.approx(FRAME + 1250)
    # A step of the buffer makes a new bucket, which is full; one of the RTT leaves it as it is.
    stepped = planned(more="steps: [{at: 2 s, buffer: 50 kB}, {at: 4 s, rtt: 30 ms}]")
    assert stored_bytes(stepped, (0.0, 9.0)) == pytest.approx(500_000)
    assert stored_bytes(stepped, (3.0, 9.0)) == pytest.approx(250_000)


def test_a_way_back_of_its_own_has_its_own_bucket_and_no_steps(planned):
    cell = planned(
        "rate: 10 Mbit/s, burst: 250 kB, reverse: {rate: 2 Mbit/s, burst: 100 kB, buffer: 50 kB}",
        f"{THERE}, {BACK}",
        more="steps: [{at: 2 s, rate: 4 Mbit/s}]",
    )
    there, back = (
        most_bps(cell, cell.trunk.name, [(0.0, 4.0)], timer_hz=1000, reverse=way) for way in (False, True)
    )
    assert there == pytest.approx((10e6 + 4e6) / 2 + 2 * 250_000 * 8 / 4)
    assert back == pytest.approx(2e6 + 100_000 * 8 / 4)


def runs_with(texts, held, column="burst_bytes", **others):
    known = {"rate_bps": 10**7, "bdp_bytes": 50_000, "mtu_bytes": 1500, "buffer_bytes": 3028} | others
    frame = pd.DataFrame({"axis_depth": texts, "ccas": "cubic", column: held})
    return frame.assign(**{name: value for name, value in known.items() if name != column})


@pytest.mark.parametrize("column", ["burst_bytes", "buffer_bytes"])
def test_sizes_in_several_units_stand_in_their_order(column):
    texts = ["1 MB", "2 BDP", "1 packet", "20 ms"]
    (axis,) = varied(runs_with(texts, [1_000_000, 100_000, 1514, 25_000], column))
    assert axis.texts == ("1 packet", "20 ms", "2 BDP", "1 MB")
    assert axis.shown == pytest.approx((1.514, 25, 100, 1000))
    assert (axis.condition.column, axis.unit, axis.log) == (column, "kB", True)


@pytest.mark.parametrize(
    ("texts", "held", "others"),
    [
        (["1 packet", "50 kB"], [1514, 60_000], {}),
        (["1 packet", "2 BDP", "2 BDP"], [1514, 100_000, 200_000], {"bdp_bytes": [50_000, 50_000, 100_000]}),
        (["1 packet", "fq"], [1514, 60_000], {}),
        (["1 packet", "50 kB"], [1514, None], {}),
    ],
)
def test_but_not_where_they_are_something_else_or_differ_between_runs(texts, held, others):
    (axis,) = varied(runs_with(texts, held, **others))
    assert axis.condition is None or axis.condition.column != "burst_bytes"


# Where it is measured


def test_a_bucket_is_measured_where_no_other_queue_is_on_the_way(planned):
    """What passes at once would stand in the next queue; without a bucket of one's own nothing changes."""
    flows = f"{THERE[:-1]}, from: h1, to: r1}}, {THERE[:-1]}, from: x1, to: y1}}"
    slice_ = "{name: parking_lot, hops: 2}"
    for path, sender in (("rate: 10 Mbit/s", "h1"), ("rate: 10 Mbit/s, burst: 90 kB", "x1")):
        prepared = prepare(planned(path, flows=flows, slice_=slice_), GUEST)
        assert prepared.job.burst.sender == sender
        assert prepared.expected.burst.queued > 0
    alone = f"{THERE[:-1]}, from: h1, to: r1}}"
    behind = prepare(planned("rate: 10 Mbit/s, burst: 90 kB", flows=alone, slice_=slice_), GUEST)
    assert (behind.job.burst.sender, behind.expected.burst.queued) == ("h1", 0)


@pytest.mark.parametrize(("held", "passed"), [("", False), (", ack_aggregation: 2 ms", True)])
def test_behind_aggregates_a_bucket_is_known_to_what_the_rate_brings_meanwhile(planned, held, passed):
    reverse = "reverse: {rate: 10 Mbit/s, buffer: 20 packets, burst: 250 kB}"
    prepared = prepare(planned(f"rate: 10 Mbit/s, {reverse}{held}", slice_="dumbbell"), GUEST)
    probe, job = prepared.expected.burst_back, prepared.job.burst_back
    told = departures(job, bucket=250_000, buffer=probe.queue.buffer_bytes, rate=1e7)
    first = [at for number, at in told.arrivals if number < job.packets][-probe.queued]
    late = tuple((number, at + (2_000_000 if at == first else 0)) for number, at in told.arrivals)
    found = _burst(probe, told.model_copy(update={"arrivals": late}), VIRTUAL_TIME, of="")
    assert {check.name: check.passed for check in found}["burst"] is passed

"""A link that follows a trace, by packets: each leaves at an opportunity, and none at another time.

The oracle is Mahimahi's rule, written down once more: at each opportunity 1500 bytes of what waits pass, the
oldest first; a packet has passed with its last byte; what the queue does not use is lost.
"""

import json
import os
import random
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest
from guest.cells import experiment, run

import fabbbr
from fabbbr.capacity import opportunities_by
from fabbbr.job.cabling import lay_cables
from fabbbr.plan import link_traces
from fabbbr.units import Duration

pytestmark = pytest.mark.guest

ROOM = Path(fabbbr.__file__).parent
WOKEN_LATE_MS = 0.002
"""select counts microseconds, rounded up."""


def expected(times_ms, sends, limit_bytes, until_ms):
    """Number of each packet and when it must have left [ms], and how many were dropped."""
    length, waiting, left, backlog, dropped = times_ms[-1], deque(), [], 0, 0
    opportunities = [p * length + at for p in range(until_ms // length + 1) for at in times_ms]
    arriving = deque(enumerate(sends))
    for at in opportunities:
        if at > until_ms:
            break
        while arriving and arriving[0][1][0] <= at:
            number, (_, size) = arriving.popleft()
            if backlog + size + 14 > limit_bytes:
                dropped += 1
                continue
            waiting.append([number, size, size + 14])
            backlog += size + 14
        credit = 1500
        while waiting and credit:
            taken = min(credit, waiting[0][1])
            credit, waiting[0][1] = credit - taken, waiting[0][1] - taken
            if waiting[0][1] == 0:
                number, _, frame = waiting.popleft()
                backlog -= frame
                left.append((number, at))
    return left, dropped


def through_a_gate(tmp_path, times_ms, sends, limit_bytes, until_ms):
    gaps = link_traces.parse("".join(f"{at}\n" for at in times_ms), source="t").link("t").gaps_ms
    task = {"limit_bytes": limit_bytes, "every_ns": 1e6, "gaps_ms": gaps, "until_ms": until_ms}
    script = ("/usr/bin/python3", str(Path(__file__).parent / "gate_alone.py"), str(ROOM))
    done = subprocess.run(
        (
            sys.executable,
            "-m",
            "fabbbr.cli",
            "guest",
            "run",
            "--",
            *script,
            json.dumps(task),
            json.dumps(sends),
        ),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def uneven():
    """Three seconds of bursts and holes, and datagrams of all sizes that come in bursts of their own."""
    draw = random.Random(7)  # noqa: S311 - a path, not a secret
    times = [
        at for at in range(1, 3001) if not 800 < at < 1100 for _ in range(draw.choice((0, 0, 0, 1, 1, 3)))
    ]
    times.append(3000)
    sends, now = [], 0.25
    for _ in range(60):
        now += draw.choice((1, 3, 40, 90))
        sends += [[now, draw.choice((60, 400, 750, 1499, 1500))] for _ in range(draw.choice((1, 2, 20, 60)))]
    return times, sends


def written(path, times):
    path.write_text("".join(f"{at}\n" for at in times), encoding="ascii")
    return times


@pytest.mark.parametrize("limit_bytes", [10_000_000, 30_000])
def test_each_packet_leaves_at_its_opportunity_and_at_no_other_time(tmp_path, limit_bytes):
    times, sends = uneven()
    until = 9000
    left, dropped = expected(times, sends, limit_bytes, until)
    found = through_a_gate(tmp_path, times, sends, limit_bytes, until)
    assert [number for number, _ in found["arrivals"]] == [number for number, _ in left]
    late = [came - at for (_, came), (_, at) in zip(found["arrivals"], left, strict=True)]
    assert min(late) >= 0
    assert max(late) < WOKEN_LATE_MS
    shown = found["shown"]
    assert (shown["drops"], shown["packets"], shown["unheard"]) == (dropped, len(left), 0)
    assert (dropped > 0) == (limit_bytes < 100_000)


def behind(ran):
    """The ends of the bottleneck, and interface that a gate queues for → what it counted in the end."""
    cabling = lay_cables(ran.cell().manifest.cell, ran.cell().manifest.provenance.testbed)
    (ends,) = (ends for ends in cabling.ends if ends.link.bottleneck is not None)
    gates = ran.json("counters.after.json")[ends.wire_forward.node]["gates"]
    return ends, {gate["dev"]: gate for gate in gates}


def carried(ran, interface):
    """Bytes of IP packets that an interface has sent since before the flows, as the kernel counts."""

    def sent(when):
        links = ran.json(f"counters.{when}.json")[interface.node]["links"]
        (link,) = (each["stats64"]["tx"] for each in links if each["ifname"] == interface.name)
        return link["bytes"] - 14 * link["packets"]

    return sent("after") - sent("before")


def was_offered(gate, times):
    """All opportunities of a trace; the one of this very instant may still be used."""
    followed_ns = round(gate["followed_s"] * 1e9)
    least, most = opportunities_by(followed_ns - 1000, times), opportunities_by(followed_ns, times)
    assert least <= gate["offered"] <= most


@pytest.mark.parametrize("start", [None, "1 s"])
def test_a_flow_through_a_trace_is_given_its_opportunities_and_no_byte_more(tmp_path, start):
    """Interface counters behind the link, which the gate does not write, agree with what it says it used."""
    times, _ = uneven()
    written(tmp_path / "uneven.up", times)
    begins = ""
    if start is not None:
        begins = f"trace_start: {start}, "
        times = link_traces.Trace(opportunities_ms=tuple(times)).begun(Duration.parse(start)).opportunities_ms
    text = experiment(
        "uneven",
        path=f"trace: uneven.up, {begins}rtt: 40 ms, buffer: 10 MB",
        flows="{cca: cubic, duration: 8 s}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    ends, gates = behind(ran)
    gate, payload = gates[ends.queue.name], carried(ran, ends.wire_forward)
    assert payload <= gate["used"] * 1500
    # All data packets are full: they use an opportunity each, and nothing else is large.
    assert payload > 0.99 * gate["used"] * 1500
    was_offered(gate, times)
    assert gate["drops"] == 0
    # From slow start on, some ten round trips, the queue is never empty: it uses what there is.
    runs = ran.set.runs
    assert 1 - 10 * 0.040 / 8 < runs["utilisation"].item() <= 1
    assert runs["rate_changes"].item()


def in_their_ideal_time(tmp_path, text):
    """The groups of six cells of one transfer each, which are to 50 us as fast as they can be."""
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    groups = ran.set.groups[ran.set.groups["phase"] == 0]
    late_s = groups["completion_median_s"] * (1 - 1 / groups["slowdown_median"])
    assert len(late_s) == 6
    assert late_s.between(0, 50e-6).all()
    return groups


def test_a_transfer_in_one_window_takes_what_the_trace_alone_allows(tmp_path):
    """SYN, answer, at most ten packets and the way of the last: to 50 us the first opportunities for each.

    Nothing of 40.5 ms comes at the very millisecond of an opportunity, just in time or not.
    """
    times, _ = uneven()
    written(tmp_path / "uneven.up", times)
    text = experiment(
        "small",
        path="trace: uneven.up, trace_start: $start, rtt: 40.5 ms, buffer: 1 MB",
        flows="{cca: cubic, size: $size}",
        more="vary: {size: [1 kB, 14 kB], start: [0 s, 0.7 s, 2.5 s]}",
    )
    groups = in_their_ideal_time(tmp_path, text)
    assert groups["completion_median_s"].nunique() > 3


def test_a_small_transfer_waits_for_its_acknowledgements_too_where_they_come_by_a_trace(tmp_path):
    """To 50 us what SYN, answer and data need, each at the first opportunity of its own way."""
    times, _ = uneven()
    written(tmp_path / "uneven.up", times)
    written(tmp_path / "slow.up", range(50, 351, 50))
    text = experiment(
        "small",
        path="trace: uneven.up, reverse: {trace: slow.up}, trace_start: $start, rtt: 40.5 ms, buffer: 1 MB",
        flows="{cca: cubic, size: 14 kB, direction: $way}",
        more="vary: {way: [forward, reverse], start: [0 s, 0.7 s, 2.5 s]}",
    )
    groups = in_their_ideal_time(tmp_path, text)
    # Of 14 kB, ten packets: they take ten opportunities of the way that they go.
    slow = groups["cell_id"].str.contains("way=reverse")
    assert groups.loc[slow, "completion_median_s"].min() > 9 * 0.050
    assert groups.loc[~slow, "completion_median_s"].max() < 9 * 0.050


def test_acknowledgements_share_the_opportunities_of_their_way_back(tmp_path):
    """Some eight hundred come in a second, of 52 bytes and more; at each of 21 opportunities 1500 leave."""
    times = written(tmp_path / "slow.up", range(47, 941, 47))
    text = experiment(
        "held",
        path="rate: 20 Mbit/s, rtt: 40 ms, buffer: 1 MB, reverse: {trace: slow.up, buffer: 10 packets}",
        flows="{cca: cubic, duration: 20 s}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    ends, gates = behind(ran)
    (reverse,) = ends.reverse_queues
    gate = gates[reverse.name]
    was_offered(gate, times)
    assert 0.98 * 1500 * gate["used"] < carried(ran, ends.wire_backward) <= 1500 * gate["used"]
    assert gate["drops"] > 0
    assert 1514 < ran.set.runs["queue_reverse_median_bytes"].item() <= 15_140


@pytest.mark.parametrize("slice_", ["two_site", "dumbbell"])
def test_each_way_follows_its_own_trace(tmp_path, slice_):
    """Flows both ways, which fill both queues: each way has its own opportunities, and its own queue."""
    there, _ = uneven()
    written(tmp_path / "uneven.down", there)
    back = written(tmp_path / "slow.up", range(4, 2001, 4))
    text = experiment(
        "both",
        path="trace: uneven.down, reverse: {trace: slow.up, buffer: 60 kB}, rtt: 40 ms, buffer: 400 kB",
        flows="{cca: cubic, duration: 8 s}, {cca: cubic, duration: 8 s, direction: reverse}",
        slice_=slice_,
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    ends, gates = behind(ran)
    (reverse,) = ends.reverse_queues
    ways = (ends.queue, ends.wire_forward, there, "forward"), (reverse, ends.wire_backward, back, "reverse")
    flows = ran.set.flows.set_index("direction")
    for interface, out, times, way in ways:
        gate = gates[interface.name]
        was_offered(gate, times)
        assert 0.8 * 1500 * gate["used"] < carried(ran, out) <= 1500 * gate["used"]
        flow = flows.loc[way]
        zero_s = flow["receiver_zero_s"] - 0.020
        first, last = (
            opportunities_by(round(at_s * 1e9), times) for at_s in (zero_s, zero_s + flow["receiver_s"])
        )
        full = flow["received_bytes"] / 1448 / (last - first)
        assert ran.set.runs[f"utilisation_{way}"].item() == pytest.approx(full, rel=0.002)
    assert ran.set.runs["queue_reverse_median_bytes"].item() > 0


def test_an_echo_that_waits_for_the_end_of_an_outage_is_not_lost(tmp_path):
    """Ten seconds without an opportunity, in which the pings end: their answers come when it does."""
    written(tmp_path / "outage.up", [*range(1, 6001), 16_000])
    text = experiment(
        "outage",
        path="rate: 20 Mbit/s, reverse: {trace: outage.up, buffer: 100 kB}, rtt: 40 ms, buffer: 100 kB",
        flows="{cca: cubic, duration: 8 s}, {ping: 500 ms, duration: 8 s}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    samples = ran.json("ping-0.json")["samples"]
    late = {sent_s: rtt_s for sent_s, rtt_s in samples if sent_s > 6}
    assert len(late) > 2
    for sent_s, rtt_s in late.items():
        assert 16 < sent_s + rtt_s < 16.1

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

pytestmark = [pytest.mark.guest, pytest.mark.xdist_group(__name__)]

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


@pytest.mark.parametrize("start", [None, "1 s"])
def test_a_flow_through_a_trace_is_given_its_opportunities_and_no_byte_more(tmp_path, start):
    """Interface counters behind the link, which the gate does not write, agree with what it says it used."""
    times, _ = uneven()
    (tmp_path / "uneven.up").write_text("".join(f"{at}\n" for at in times), encoding="ascii")
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
    cell = ran.cell().manifest.cell
    cabling = lay_cables(cell, ran.cell().manifest.provenance.testbed)
    (ends,) = (ends for ends in cabling.ends if ends.link.bottleneck is not None)
    before, after = (ran.json(f"counters.{when}.json") for when in ("before", "after"))

    def sent(counters):
        (link,) = (
            one
            for one in counters[ends.wire_forward.node]["links"]
            if one["ifname"] == ends.wire_forward.name
        )
        return link["stats64"]["tx"]["bytes"], link["stats64"]["tx"]["packets"]

    (early, few), (late, many) = sent(before), sent(after)
    (gate,) = after[ends.wire_forward.node]["gates"]
    payload = late - early - 14 * (many - few)
    assert payload <= gate["used"] * 1500
    # All data packets are full: they use an opportunity each, and nothing else is large.
    assert payload > 0.99 * gate["used"] * 1500
    followed_ns = round(gate["followed_s"] * 1e9)
    # The one of this very instant may still be used.
    assert (
        opportunities_by(followed_ns - 1000, times) <= gate["offered"] <= opportunities_by(followed_ns, times)
    )
    assert gate["drops"] == 0
    # From slow start on, some ten round trips, the queue is never empty: it uses what there is.
    runs = ran.set.runs
    assert 1 - 10 * 0.040 / 8 < runs["utilisation"].item() <= 1
    assert runs["rate_changes"].item()


def test_a_transfer_in_one_window_takes_what_the_trace_alone_allows(tmp_path):
    """SYN, answer, at most ten packets and the way of the last: to 50 us the first opportunities for each.

    Nothing of 40.5 ms comes at the very millisecond of an opportunity, just in time or not.
    """
    times, _ = uneven()
    (tmp_path / "uneven.up").write_text("".join(f"{at}\n" for at in times), encoding="ascii")
    text = experiment(
        "small",
        path="trace: uneven.up, trace_start: $start, rtt: 40.5 ms, buffer: 1 MB",
        flows="{cca: cubic, size: $size}",
        more="vary: {size: [1 kB, 14 kB], start: [0 s, 0.7 s, 2.5 s]}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    groups = ran.set.groups[ran.set.groups["phase"] == 0]
    late_s = groups["completion_median_s"] * (1 - 1 / groups["slowdown_median"])
    assert len(late_s) == 6
    assert late_s.between(0, 50e-6).all()
    assert groups["completion_median_s"].nunique() > 3

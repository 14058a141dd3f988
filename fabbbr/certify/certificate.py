"""Does the emulated path do what was asked? Measured against asked, before and after the flows.

Every check compares raw files of one cell with the cell itself, and none is a matter of taste: settings read
back, physics (propagation, serialisation, conservation of packets) and the statistics of injected loss. Where
segmentation offloads are on, what is counted are super-packets and their segments.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter

from fabbbr.capacity import OPPORTUNITY_BYTES
from fabbbr.certify import (
    captured,
    carried,
    ceiling,
    controls,
    datagrams,
    gates,
    packets,
    reordering,
    standing,
    superpackets,
)
from fabbbr.certify.evidence import BurstTold, Evidence, Preflight, answer_to
from fabbbr.certify.hosts import kept_by_receivers, unlimited
from fabbbr.certify.settings import settings
from fabbbr.job.expected import BurstProbe, Prepared, RoundTrip
from fabbbr.job.records import placed
from fabbbr.manifest import Certificate, Check
from fabbbr.testbed import Tolerances
from fabbbr.units import NANOSECONDS_PER_SECOND

_NUMBER = r"(\d+(?:\.\d+)?)"
_PING_SUMMARY = re.compile(rf"= {_NUMBER}/{_NUMBER}/{_NUMBER}/")
_FEWEST_GAPS = 5
_ZERO_S = 0.2

_NO_BURST = BurstTold(sent=0, arrivals=(), queues_at_peak=())
_Ranges = Sequence[tuple[int, int]]
"""Each from its first number to the one after its last."""


def certify(prepared: Prepared, evidence: Evidence, *, lossy_links: int) -> Certificate:
    """The certificate of one cell.

    ``lossy_links`` is how many links the run has with injected loss, those of each cell counted: the binomial
    interval is widened so that all of them together, and not each by itself, pass with 99 % when the
    emulator is right.
    """
    cell, expected, allowed = prepared.cell, prepared.expected, prepared.testbed.tolerances
    ran = carried.ran(cell, evidence)
    return Certificate(
        checks=(
            *settings(prepared, evidence.readback),
            *controls.checks(expected.controls, evidence.readback),
            *(_rtt(one, evidence.preflight, allowed) for one in expected.round_trips),
            *_bursts(prepared, evidence.preflight),
            *reordering.checks(expected.train, evidence.preflight.train, allowed),
            *gates.checks(expected.queues, evidence, allowed),
            *_conserved_and_lost(prepared, evidence, lossy_links),
            *ceiling.checks(prepared, evidence),
            *standing.checks(prepared, evidence),
            *captured.checks(prepared, evidence),
            *unlimited(cell, evidence),
            kept_by_receivers(cell, evidence.before, evidence.after),
            *_clocks(prepared, evidence),
            *_zero(prepared, evidence),
            *carried.pinged(cell, evidence),
            *datagrams.checks(prepared, evidence),
            ran,
        )
    )


def _conserved_and_lost(prepared: Prepared, evidence: Evidence, lossy_links: int) -> Iterator[Check]:
    counted = prepared.expected.super_packets
    if counted is not None:
        yield from superpackets.checks(prepared, counted, evidence, lossy_links=lossy_links)
    else:
        yield from packets.checks(prepared, evidence, lossy_links=lossy_links)


# Probes


def _rtt(trip: RoundTrip, preflight: Preflight, allowed: Tolerances) -> Check:
    least_s, most_s = trip.held_s
    told = answer_to(trip.capture, preflight.pings, "preflight.json").stdout
    match = _PING_SUMMARY.search(told)
    low, high = (float(match[1]) / 1e3, float(match[3]) / 1e3) if match else (-1.0, -1.0)
    latest = trip.propagation_s + most_s + trip.serialisation_s + allowed.rtt_s
    return Check(
        name=f"RTT {trip.sender}–{trip.receiver}",
        passed=match is not None and low >= trip.propagation_s + least_s - allowed.rtt_s and high <= latest,
        asked=f"{trip.propagation_s * 1e3:g} ms"
        + (f" and {least_s * 1e3:g} to {most_s * 1e3:g} ms of being held" if most_s else ""),
        measured=f"{low * 1e3:.3f} to {high * 1e3:.3f} ms" if match else "no answer",
        detail=f"{' to '.join(trip.addresses)}, tolerance {allowed.rtt_s * 1e6:g} us",
    )


def _bursts(prepared: Prepared, preflight: Preflight) -> Iterator[Check]:
    """There, and back where the way back has a rate of its own."""
    expected, allowed = prepared.expected, prepared.testbed.tolerances
    for probe, burst in ((expected.burst, preflight.burst), (expected.burst_back, preflight.burst_back)):
        if probe is not None:
            of = " of the way back" if probe.queue.reverse else ""
            of += f" of {probe.queue.link}" if probe.queue.link != prepared.cell.trunk.name else ""
            yield from _burst(probe, burst or _NO_BURST, allowed, of=of)


def _burst(probe: BurstProbe, burst: BurstTold, allowed: Tolerances, *, of: str) -> Iterator[Check]:
    queue, frame = probe.queue, probe.frame_bytes
    at_once = _passed_at_once(probe, burst)
    steady = burst.arrivals[at_once + 2 :] if probe.queued > 1 else ()
    rate = _departure_rate_bps(steady, frame, all_departed=probe.departs_whole, late=burst.late)
    yield Check(
        name=f"rate{of}",
        # With room for a single frame the queue runs dry between two, and what a deep bucket lets pass at
        # once stands in other queues on the way: what was read back must do.
        passed=abs(rate / queue.rate.bps - 1) <= allowed.rate + _unevenness(probe, len(steady))
        if rate is not None
        else probe.queued < 2,
        asked=f"{queue.rate}",
        measured="not measurable" if rate is None else f"{rate / 1e6:.6g} Mbit/s",
        detail=f"spacing of {burst.sent} packets behind the bottleneck{_less(burst.late)}",
    )
    if probe.fills_buffer:
        yield _buffer(probe, burst, allowed, of=of)
    if queue.burst_is_asked and probe.queued:
        yield _bucket(probe, burst.arrivals[: at_once + 1], allowed, of=of)


def _passed_at_once(probe: BurstProbe, burst: BurstTold) -> int:
    """How many of the first packets did not wait for others: all but those that stood in the queue.

    More than a full bucket pays for where they come slowly, and never less: some may be lost behind it.
    """
    first = sum(1 for sequence, _ in burst.arrivals if sequence < burst.refills_from)
    return max(first - probe.queued, probe.tokens)


def _bucket(probe: BurstProbe, arrivals: Sequence[Sequence[int]], allowed: Tolerances, *, of: str) -> Check:
    """What a token bucket held, from the departure of the first packet that had to wait for it.

    Packet k leaves no sooner than the bucket, full at the start, and what the rate has added pay for k of
    them: bucket = k × frame - rate × time.
    """
    queue, frame = probe.queue, probe.frame_bytes
    took_ns = arrivals[-1][1] - arrivals[0][1] if arrivals else 0
    held = len(arrivals) * frame - queue.rate.bps / 8 * took_ns / NANOSECONDS_PER_SECOND
    slack = frame + queue.rate.bps / 8 * (allowed.look_s + probe.held_s)
    return Check(
        name=f"burst{of}",
        passed=abs(held - queue.burst_bytes) <= slack,
        asked=f"{queue.burst_bytes} B",
        measured=f"{held:.0f} B",
        detail=f"packet {len(arrivals)} left {took_ns / 1e6:.6g} ms after the first; within {slack:.0f} B",
    )


def _less(late: _Ranges) -> str:
    return f", less {sum(end - first for first, end in late)} that came to it too late" if late else ""


def _holds_late(late: _Ranges, first: int, last: int) -> bool:
    """Whether one of the packets from ``first`` to ``last`` is in a range; these are in order and apart."""
    at = bisect_right(late, last, key=itemgetter(0))
    return at > 0 and late[at - 1][1] > first


def _unevenness(probe: BurstProbe, departures: int) -> float:
    """Relative error of a rate from so many departures, where they come at opportunities or in aggregates.

    What a packet leaves of one opportunity goes to the next; so the first and the last departure are each up
    to an opportunity off. Either may have waited in an aggregate, and the other not.
    """
    if departures == 0:
        return 0.0
    off_bytes = probe.held_s * probe.queue.rate.bps / 8
    if probe.queue.trace is not None:
        off_bytes += 2 * OPPORTUNITY_BYTES
    return off_bytes / (departures * probe.frame_bytes)


def _buffer(probe: BurstProbe, burst: BurstTold, allowed: Tolerances, *, of: str) -> Check:
    queue, frame = probe.queue, probe.frame_bytes
    peaks = [
        (one.backlog, one.drops)
        for one in burst.queues_at_peak
        if (one.kind, one.dev) == ("tbf", queue.interface.name)
    ]
    backlog, drops = max(peaks, key=lambda peak: peak[0], default=(0, 0))
    # What drains between the burst's arrival and the look; on a real clock a process start may come between.
    slack = frame + int(queue.rate.bps / 8 * allowed.look_s)
    full = drops > 0 and queue.buffer_bytes < backlog + slack
    return Check(
        name=f"buffer{of}",
        passed=bool(peaks)
        and backlog <= queue.buffer_bytes
        and (full or (drops == 0 and not allowed.fills_buffer)),
        asked=f"{queue.buffer_bytes} B",
        measured=f"full at {backlog} B ({backlog // frame} frames), {drops} dropped",
        detail=(
            f"at most {slack} B below the limit: a frame that does not fit, and "
            f"{allowed.look_s * 1e6:g} us of draining"
        ),
    )


def _departure_rate_bps(
    steady: Sequence[Sequence[int]], frame_bytes: int, *, all_departed: bool, late: _Ranges = ()
) -> float | None:
    """Rate at which packets left the bottleneck, from arrivals behind those that passed on stored tokens.

    A packet that is missing between two others was lost behind the queue, where it took its time, or in
    it, where it took none: unless all departed, only neighbours by sequence number
    count. (Departures come in pairs and threes at the rate's own spacing; a sum over torn pieces would
    be off by as much at each tear.) What was sent ``late`` may have found an empty queue: before it, and
    within it, the bottleneck waited for packets.
    """
    gaps = [
        (later - earlier, later_ns - earlier_ns)
        for (earlier, earlier_ns), (later, later_ns) in pairwise(steady)
        if (later == earlier + 1 or (all_departed and later > earlier))
        and not _holds_late(late, earlier + 1, later)
    ]
    if len(gaps) < _FEWEST_GAPS:
        return None
    departures, took_ns = sum(frames for frames, _ in gaps), sum(ns for _, ns in gaps)
    return departures * frame_bytes * 8 * NANOSECONDS_PER_SECOND / max(took_ns, 1)


# Clocks


def _zero(prepared: Prepared, evidence: Evidence) -> Iterator[Check]:
    """Where the clock is virtual, the flows' time begins at the instant that was chosen beforehand."""
    asked_ns = prepared.job.flows_at_ns
    if asked_ns is None:
        return
    asked_s = asked_ns / NANOSECONDS_PER_SECOND
    began = {record.epoch_s for record in evidence.flows.values()}
    yield Check(
        name="time zero",
        passed=all(0 <= epoch_s - asked_s < _ZERO_S for epoch_s in began),
        asked=f"{asked_s:g} s after boot",
        measured=" and ".join(f"{epoch_s:.6f} s" for epoch_s in sorted(began)),
        detail=f"the flows' time begins at most {_ZERO_S:g} s later; the set-up must be over by then",
    )


def _clocks(prepared: Prepared, evidence: Evidence) -> Iterator[Check]:
    """Series of several machines share an axis: it must be known well enough where each one's zero is."""
    testbed = prepared.testbed
    machines = dict.fromkeys(placed(prepared.job.nodes, prepared.job.cables, testbed).values())
    if len(machines) < 2:
        return
    known = {machine: clock.uncertain_s for machine, clock in evidence.clocks.items()}
    unknown = [machine for machine in machines if known.get(machine) is None]
    worst_s = max((seconds for seconds in known.values() if seconds is not None), default=0.0)
    yield Check(
        name="clocks",
        passed=not unknown and worst_s <= testbed.tolerances.clock_s,
        asked=f"of {len(machines)} machines, each known to {testbed.tolerances.clock_s * 1e3:g} ms",
        measured=f"not measured: {', '.join(unknown)}" if unknown else f"known to {worst_s * 1e3:.6g} ms",
        detail="bounds before and after the flows, and the drift between",
    )

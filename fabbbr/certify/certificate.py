"""Does the emulated path do what was asked? Measured against asked, before and after the flows.

Every check compares raw files of one cell with the cell itself, and none is a matter of taste: settings read
back, physics (propagation, serialisation, conservation of packets) and the statistics of injected loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from fabbbr.certify import carried, controls
from fabbbr.certify.evidence import Counters, Evidence, Preflight, answer_to
from fabbbr.certify.hosts import kept_by_receivers, unlimited
from fabbbr.certify.settings import Slots, settings, slots_s
from fabbbr.job.cabling import Cabling, lay_cables
from fabbbr.job.probes import burst_departs_whole, burst_fills_buffer, pings
from fabbbr.job.records import Interface
from fabbbr.model import Cell, Certificate, Check, Loss
from fabbbr.physics import correlated_spread, stationary_loss
from fabbbr.units import ETHERNET_HEADER_BYTES, NANOSECONDS_PER_SECOND

RTT_TOLERANCE_S = 10e-6
"""Beyond serialisation of the ping itself; ping prints microseconds."""
REAL_CLOCK_RTT_TOLERANCE_S = 2e-3
RATE_TOLERANCE = 0.002
LOOK_S = 10e-6
REAL_CLOCK_LOOK_S = 0.02
REAL_CLOCK_RATE_TOLERANCE = 0.02
LOSS_CONFIDENCE = 0.99
_PING_FRAME_BYTES = 98
_NUMBER = r"(\d+(?:\.\d+)?)"
_PING_SUMMARY = re.compile(rf"= {_NUMBER}/{_NUMBER}/{_NUMBER}/")
_FEWEST_GAPS = 5


def certify(cell: Cell, evidence: Evidence, *, real_clock: bool, lossy_cells: int) -> Certificate:
    """The certificate of one cell.

    ``lossy_cells`` is how many cells of the run have injected loss: the binomial interval is widened so that
    all of them together, and not each by itself, pass with 99 % when the emulator is right.
    """
    cabling = lay_cables(cell)
    ran = carried.ran(cell, evidence)
    return Certificate(
        checks=(
            *settings(cell, cabling, evidence.readback),
            *controls.checks(cell, evidence.readback),
            *_rtt(cell, cabling, evidence.preflight, real_clock=real_clock),
            *_burst(cell, cabling, evidence.preflight, real_clock=real_clock),
            *_conservation(cabling, evidence),
            *_loss(cabling, evidence, lossy_cells, offloads=cell.offloads),
            *unlimited(cell, evidence),
            kept_by_receivers(cell, evidence.before, evidence.after),
            ran,
        )
    )


# Probes


def _rtt(cell: Cell, cabling: Cabling, preflight: Preflight, *, real_clock: bool) -> Iterator[Check]:
    tolerance = REAL_CLOCK_RTT_TOLERANCE_S if real_clock else RTT_TOLERANCE_S
    wait_s = sum(_PING_FRAME_BYTES * 8 / link.rate.bps for link in cell.links if link.rate is not None)
    asked_for = {capture.name: capture for capture in pings(cell, cabling)}
    for sender, receiver in dict.fromkeys((flow.sender, flow.receiver) for flow in cell.flows):
        asked = next(f.rtt.seconds for f in cell.flows if (f.sender, f.receiver) == (sender, receiver))
        least_s, most_s = _held_s(cell, cabling, sender, receiver)
        told = answer_to(asked_for[f"ping.{sender}.{receiver}"], preflight.pings, "preflight.json").stdout
        match = _PING_SUMMARY.search(told)
        low, high = (float(match[1]) / 1e3, float(match[3]) / 1e3) if match else (-1.0, -1.0)
        yield Check(
            name=f"RTT {sender}–{receiver}",
            passed=match is not None
            and low >= asked + least_s - tolerance
            and high <= asked + most_s + wait_s + tolerance,
            asked=f"{asked * 1e3:g} ms"
            + (f" and {least_s * 1e3:g} to {most_s * 1e3:g} ms for the aggregate" if most_s else ""),
            measured=f"{low * 1e3:.3f} to {high * 1e3:.3f} ms" if match else "no answer",
            detail=(
                f"{cabling.address(sender)} to {cabling.address(receiver)}, tolerance {tolerance * 1e6:g} us"
            ),
        )


def _held_s(cell: Cell, cabling: Cabling, sender: str, receiver: str) -> Slots:
    """How long an answer that comes alone waits on its way back, at least and at most."""
    crossed = cabling.links_between(sender, receiver)
    held = [slots_s(link.ack_aggregation) for link in cell.links if link.name in crossed]
    return sum(least for least, _ in held), sum(most for _, most in held)


def _burst(cell: Cell, cabling: Cabling, preflight: Preflight, *, real_clock: bool) -> Iterator[Check]:
    link = cell.bottleneck
    assert link.rate is not None
    assert link.buffer_bytes is not None
    assert link.burst_bytes is not None
    burst = preflight.burst
    frame = cell.mtu_bytes + ETHERNET_HEADER_BYTES
    steady = burst.arrivals[link.burst_bytes // frame + 2 :]
    rate = _departure_rate_bps(steady, frame, all_departed=burst_departs_whole(cell))
    tolerance = REAL_CLOCK_RATE_TOLERANCE if real_clock else RATE_TOLERANCE
    yield Check(
        name="rate",
        # With room for a single frame the queue runs dry between two: what was read back must do.
        passed=abs(rate / link.rate.bps - 1) <= tolerance
        if rate is not None
        else link.buffer_bytes < 2 * frame,
        asked=f"{link.rate}",
        measured="not measurable" if rate is None else f"{rate / 1e6:.6g} Mbit/s",
        detail=f"spacing of {burst.sent} packets behind the bottleneck",
    )
    if not burst_fills_buffer(cell):
        return
    device = next(ends.queue.name for ends in cabling.ends if ends.link.name == link.name)
    peaks = [(q.backlog, q.drops) for q in burst.queues_at_peak if (q.kind, q.dev) == ("tbf", device)]
    backlog, drops = max(peaks, key=lambda peak: peak[0], default=(0, 0))
    # What drains between the burst's arrival and the look; on a real clock a process start may come between.
    late_s = REAL_CLOCK_LOOK_S if real_clock else LOOK_S
    slack = frame + int(link.rate.bps / 8 * late_s)
    yield Check(
        name="buffer",
        # In real time a sender may be too slow to fill the queue; then the limit that was read back must do.
        passed=bool(peaks)
        and backlog <= link.buffer_bytes
        and ((drops > 0 and link.buffer_bytes < backlog + slack) or (drops == 0 and real_clock)),
        asked=f"{link.buffer_bytes} B",
        measured=f"full at {backlog} B ({backlog // frame} frames), {drops} dropped",
        detail=(
            f"at most {slack} B below the limit: a frame that does not fit, and "
            f"{late_s * 1e6:g} us of draining"
        ),
    )


def _departure_rate_bps(
    steady: Sequence[Sequence[int]], frame_bytes: int, *, all_departed: bool
) -> float | None:
    """Rate at which packets left the bottleneck, from arrivals behind those that passed on stored tokens.

    A packet that is missing between two others was lost behind the queue, where it took its time, or in
    front of or in it, where it took none: unless all departed, only neighbours by sequence number
    count. (Departures come in pairs and threes at the rate's own spacing; a sum over torn pieces would
    be off by as much at each tear.)
    """
    gaps = [
        (later - earlier, later_ns - earlier_ns)
        for (earlier, earlier_ns), (later, later_ns) in pairwise(steady)
        if later == earlier + 1 or (all_departed and later > earlier)
    ]
    if len(gaps) < _FEWEST_GAPS:
        return None
    departures, took_ns = sum(frames for frames, _ in gaps), sum(ns for _, ns in gaps)
    return departures * frame_bytes * 8 * NANOSECONDS_PER_SECOND / max(took_ns, 1)


# Conservation and loss


class _Grown(NamedTuple):
    """What the counters of one interface grew by, in packets."""

    entered: int
    left: int
    dropped: int
    """By the root queueing discipline, like what stands in it."""
    standing: int


def _grown(evidence: Evidence, interface: Interface) -> _Grown:
    node, device = interface.node, interface.name
    early, late = (_counted(counters, node, device) for counters in (evidence.before, evidence.after))
    return _Grown(*(last - first for first, last in zip(early, late, strict=True)))


def _counted(counters: Counters, node: str, device: str) -> _Grown:
    link, root = counters.link(node, device).stats64, counters.root(node, device)
    return _Grown(link.rx.packets + link.rx.dropped, link.tx.packets, root.drops, root.qlen)


def _conservation(cabling: Cabling, evidence: Evidence) -> Iterator[Check]:
    for node in cabling.nodes:
        if node.kind == "host":
            continue
        grown = [_grown(evidence, interface) for interface in cabling.interfaces(node.name)]
        entered, left, dropped, standing = map(sum, zip(*grown, strict=True))
        unexplained = entered - left - dropped - standing
        yield Check(
            name=f"packets of {node.name}",
            passed=unexplained == 0,
            asked="entered = left + dropped + standing",
            measured=f"{entered} = {left} + {dropped} + {standing}"
            + (f", {unexplained} unexplained" if unexplained else ""),
        )
    lost = [
        f"{cable.a.name}→{cable.b.name}: {sent - received}"
        for cable in cabling.cables
        for sent, received in _both_ways(evidence, cable.a, cable.b)
        if sent != received
    ]
    yield Check(
        name="packets on cables",
        passed=not lost,
        asked="received = sent",
        measured="; ".join(lost) if lost else "equal on every cable",
    )


def _both_ways(evidence: Evidence, a: Interface, b: Interface) -> Iterator[tuple[int, int]]:
    one, other = _grown(evidence, a), _grown(evidence, b)
    yield one.left, other.entered
    yield other.left, one.entered


def _loss(cabling: Cabling, evidence: Evidence, lossy_cells: int, *, offloads: bool) -> Iterator[Check]:
    for ends in cabling.ends:
        if ends.link.rate is not None:
            yield Check(
                name=f"congestion drops at {ends.queue.name}",
                passed=True,
                asked="counted apart from injected loss",
                measured=f"{_grown(evidence, ends.queue).dropped} packets",
            )
        if ends.link.loss is None or ends.wire_forward is None:
            continue
        node, device = ends.wire_forward.node, ends.wire_forward.name
        early, late = (counters.qdisc(node, device, "10:") for counters in (evidence.before, evidence.after))
        dropped = late.drops - early.drops
        offered = dropped + late.packets - early.packets + late.qlen - early.qlen
        check = _loss_check(ends.link.loss, ends.link.name, dropped, offered, lossy_cells)
        yield _in_super_packets(check) if offloads else check


def _in_super_packets(check: Check) -> Check:
    said = "offloads are on: netem drops, and counts as one, super-packets of up to 44 segments"
    return check.model_copy(update={"detail": f"{check.detail}; {said}"})


def _loss_check(loss: Loss, link: str, dropped: int, offered: int, lossy_cells: int) -> Check:
    from scipy.stats import binom

    asked = stationary_loss(loss)
    offered = max(offered, 0)
    confidence = 1 - (1 - LOSS_CONFIDENCE) / max(lossy_cells, 1)
    low, high = (int(bound) for bound in binom.interval(confidence, offered, asked))
    if loss.model == "gilbert_elliott":
        # Bursts are correlated: the count spreads as if there were fewer independent packets.
        middle, spread = offered * asked, correlated_spread(loss)
        low, high = (int(middle - (middle - low) * spread), int(middle + (high - middle) * spread) + 1)
    return Check(
        name=f"injected loss on {link}",
        passed=offered > 0 and low <= dropped <= high,
        asked=f"{asked:.6%} of {offered} packets: {low} to {high}",
        measured=f"{dropped} ({dropped / offered:.6%})" if offered else "no packets",
        detail=f"binomial interval, {LOSS_CONFIDENCE:.0%} over the {lossy_cells} cells with loss",
    )

"""Does the emulated path do what was asked? Measured against asked, before and after the flows.

Every check compares raw files of one cell with the cell itself, and none is a matter of taste: settings read back,
physics (propagation, serialisation, conservation of packets) and the statistics of injected loss.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

from fabbbr import congestion
from fabbbr.cabling import Cabling, lay_cables
from fabbbr.configure import stationary_loss
from fabbbr.errors import BackendError
from fabbbr.hosts import kept_by_receivers, unlimited
from fabbbr.model import Cell, Certificate, Check, Loss
from fabbbr.probes import burst_departs_whole, burst_fills_buffer
from fabbbr.readback import Slots, settings, slots_s
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
_FEWEST_GAPS = 5

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The raw files that a certificate is made from."""

    readback: Raw
    preflight: Raw
    before: Raw
    after: Raw
    sockets: Mapping[str, str]
    """Host → ``ss`` text."""

    @classmethod
    def read(cls, raw: Path) -> Evidence:
        """Load from a cell's ``raw/``; raise BackendError when the emulator did not write them."""
        return cls(
            readback=_load(raw / "readback.json"),
            preflight=_load(raw / "preflight.json"),
            before=_load(raw / "counters.before.json"),
            after=_load(raw / "counters.after.json"),
            sockets={
                path.name.removeprefix("sockets.").removesuffix(".txt"): path.read_text(encoding="utf-8")
                for path in sorted(raw.glob("sockets.*.txt"))
            },
        )


def certify(cell: Cell, evidence: Evidence, *, real_clock: bool, lossy_cells: int) -> Certificate:
    """The certificate of one cell.

    ``lossy_cells`` is how many cells of the run have injected loss: the binomial interval is widened so that
    all of them together, and not each by itself, pass with 99 % when the emulator is right.
    """
    cabling = lay_cables(cell)
    return Certificate(
        checks=(
            *settings(cell, cabling, evidence.readback),
            *congestion.checks(cell, evidence.readback),
            *_rtt(cell, cabling, evidence.preflight, real_clock=real_clock),
            *_burst(cell, evidence.preflight, real_clock=real_clock),
            *_conservation(cabling, evidence),
            *_loss(cabling, evidence, lossy_cells, offloads=cell.offloads),
            *unlimited(cell, evidence.sockets),
            kept_by_receivers(cell, evidence.before, evidence.after),
        )
    )


def _load(path: Path) -> Raw:
    try:
        return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        message = f"the emulator left no usable {path.name}: {error}"
        raise BackendError(message) from error


# Probes


def _rtt(cell: Cell, cabling: Cabling, preflight: Raw, *, real_clock: bool) -> Iterator[Check]:
    tolerance = REAL_CLOCK_RTT_TOLERANCE_S if real_clock else RTT_TOLERANCE_S
    wait_s = sum(_PING_FRAME_BYTES * 8 / link.rate.bps for link in cell.links if link.rate is not None)
    for sender, receiver in dict.fromkeys((flow.sender, flow.receiver) for flow in cell.flows):
        asked = next(f.rtt.seconds for f in cell.flows if (f.sender, f.receiver) == (sender, receiver))
        least_s, most_s = _held_s(cell, cabling, sender, receiver)
        told = preflight["pings"][f"ping.{sender}.{receiver}"]["stdout"]
        match = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)/", told)
        low, high = (float(match[1]) / 1e3, float(match[3]) / 1e3) if match else (-1.0, -1.0)
        yield Check(
            name=f"RTT {sender}–{receiver}",
            passed=match is not None
            and low >= asked + least_s - tolerance
            and high <= asked + most_s + wait_s + tolerance,
            asked=f"{asked * 1e3:g} ms"
            + (f" and {least_s * 1e3:g} to {most_s * 1e3:g} ms for the aggregate" if most_s else ""),
            measured=f"{low * 1e3:.3f} to {high * 1e3:.3f} ms" if match else "no answer",
            detail=f"{cabling.address(sender)} to {cabling.address(receiver)}, tolerance {tolerance * 1e6:g} us",
        )


def _held_s(cell: Cell, cabling: Cabling, sender: str, receiver: str) -> Slots:
    """How long an answer that comes alone waits on its way back, at least and at most."""
    crossed = cabling.links_between(sender, receiver)
    held = [slots_s(link.ack_aggregation) for link in cell.links if link.name in crossed]
    return sum(least for least, _ in held), sum(most for _, most in held)


def _burst(cell: Cell, preflight: Raw, *, real_clock: bool) -> Iterator[Check]:
    link = cell.bottleneck
    assert link.rate is not None
    assert link.buffer_bytes is not None
    assert link.burst_bytes is not None
    burst = preflight["burst"]
    frame = cell.mtu_bytes + ETHERNET_HEADER_BYTES
    steady = burst["arrivals"][link.burst_bytes // frame + 2 :]
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
        detail=f"spacing of {burst['sent']} packets behind the bottleneck",
    )
    if not burst_fills_buffer(cell):
        return
    peaks = [q for q in burst["queues_at_peak"] if q["kind"] == "tbf"]
    fullest = max(peaks, key=lambda q: int(q["backlog"]), default={"backlog": 0, "drops": 0})
    backlog, drops = int(fullest["backlog"]), int(fullest["drops"])
    # What drains between the burst's arrival and the look; on a real clock a process start may come between.
    late_s = REAL_CLOCK_LOOK_S if real_clock else LOOK_S
    slack = frame + int(link.rate.bps / 8 * late_s)
    yield Check(
        name="buffer",
        # In real time a sender may be too slow to fill the queue; then the limit that was read back must do.
        passed=backlog <= link.buffer_bytes
        and ((drops > 0 and link.buffer_bytes < backlog + slack) or (drops == 0 and real_clock)),
        asked=f"{link.buffer_bytes} B",
        measured=f"full at {backlog} B ({backlog // frame} frames), {drops} dropped",
        detail=f"at most {slack} B below the limit: a frame that does not fit, and {late_s * 1e6:g} us of draining",
    )


def _departure_rate_bps(steady: list[list[int]], frame_bytes: int, *, all_departed: bool) -> float | None:
    """Rate at which packets left the bottleneck, from arrivals behind those that passed on stored tokens.

    A packet that is missing between two others was lost behind the queue, where it took its time, or in front of or
    in it, where it took none: unless all departed, only neighbours by sequence number count. (Departures come in pairs
    and threes at the rate's own spacing; a sum over torn pieces would be off by as much at each tear.)
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


def _delta(evidence: Evidence, node: str, kind: str) -> dict[str, dict[str, int]]:
    """Device → growth of its counters; for qdiscs, of the root one."""
    return {
        device: {key: late[key] - early.get(key, 0) for key in late}
        for (device, early), late in (
            (pair, _counters(evidence.after[node], kind)[pair[0]])
            for pair in _counters(evidence.before[node], kind).items()
        )
    }


def _counters(node: Raw, kind: str) -> dict[str, dict[str, int]]:
    if kind == "links":
        return {
            entry["ifname"]: {
                "rx": entry["stats64"]["rx"]["packets"] + entry["stats64"]["rx"]["dropped"],
                "tx": entry["stats64"]["tx"]["packets"],
            }
            for entry in node["links"]
        }
    return {
        entry["dev"]: {"drops": entry["drops"], "standing": entry["qlen"]}
        for entry in node["qdiscs"]
        if entry.get("root")
    }


def _conservation(cabling: Cabling, evidence: Evidence) -> Iterator[Check]:
    for node in cabling.nodes:
        if node.kind == "host":
            continue
        links, roots = _delta(evidence, node.name, "links"), _delta(evidence, node.name, "qdiscs")
        ports = [interface.name for interface in cabling.interfaces(node.name)]
        entered = sum(links[port]["rx"] for port in ports)
        left = sum(links[port]["tx"] for port in ports)
        dropped = sum(roots[port]["drops"] for port in ports if port in roots)
        standing = sum(roots[port]["standing"] for port in ports if port in roots)
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
        for sent, received in _both_ways(evidence, cable.a.node, cable.a.name, cable.b.node, cable.b.name)
        if sent != received
    ]
    yield Check(
        name="packets on cables",
        passed=not lost,
        asked="received = sent",
        measured="; ".join(lost) if lost else "equal on every cable",
    )


def _both_ways(evidence: Evidence, a: str, a_port: str, b: str, b_port: str) -> Iterator[tuple[int, int]]:
    one, other = _delta(evidence, a, "links")[a_port], _delta(evidence, b, "links")[b_port]
    yield one["tx"], other["rx"]
    yield other["tx"], one["rx"]


def _loss(cabling: Cabling, evidence: Evidence, lossy_cells: int, *, offloads: bool) -> Iterator[Check]:
    for ends in cabling.ends:
        if ends.link.rate is not None:
            grown = _delta(evidence, ends.queue.node, "qdiscs")[ends.queue.name]
            yield Check(
                name=f"congestion drops at {ends.queue.name}",
                passed=True,
                asked="counted apart from injected loss",
                measured=f"{grown['drops']} packets",
            )
        if ends.link.loss is None or ends.wire_forward is None:
            continue
        node, device = ends.wire_forward.node, ends.wire_forward.name
        early, late = (
            next(q for q in counters[node]["qdiscs"] if q["dev"] == device and q["handle"] == "10:")
            for counters in (evidence.before, evidence.after)
        )
        dropped = late["drops"] - early["drops"]
        offered = dropped + late["packets"] - early["packets"] + late["qlen"] - early["qlen"]
        check = _loss_check(ends.link.loss, ends.link.name, dropped, offered, lossy_cells)
        yield _in_super_packets(check) if offloads else check


def _in_super_packets(check: Check) -> Check:
    said = "offloads are on: netem drops, and counts as one, super-packets of up to 44 segments"
    return check.model_copy(update={"detail": f"{check.detail}; {said}"})


def _loss_check(loss: Loss, link: str, dropped: int, offered: int, lossy_cells: int) -> Check:
    from scipy.stats import binom

    asked = stationary_loss(loss)
    confidence = 1 - (1 - LOSS_CONFIDENCE) / max(lossy_cells, 1)
    low, high = (int(bound) for bound in binom.interval(confidence, offered, asked))
    if loss.model == "gilbert_elliott":
        # Bursts are correlated: the count spreads as if there were fewer independent packets.
        middle, spread = offered * asked, correlated_spread(loss)
        low, high = (int(middle - (middle - low) * spread), int(middle + (high - middle) * spread) + 1)
    return Check(
        name=f"injected loss on {link}",
        passed=low <= dropped <= high,
        asked=f"{asked:.6%} of {offered} packets: {low} to {high}",
        measured=f"{dropped} ({dropped / offered:.6%})" if offered else "no packets",
        detail=f"binomial interval, {LOSS_CONFIDENCE:.0%} over the {lossy_cells} cells with loss",
    )


def correlated_spread(loss: Loss) -> float:
    """Standard deviation relative to independent packets, of a two-state chain with correlation 1 - p - r."""
    p, r = loss.rate.value, (loss.recovery.value if loss.recovery else 1.0)
    correlation = 1 - p - r
    return sqrt((1 + correlation) / max(1 - correlation, 1e-9)) if correlation > 0 else 1.0

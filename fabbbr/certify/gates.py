"""Links that deliver by a trace: did the gate follow it? From what it counted, against the trace itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabbbr.capacity import OPPORTUNITY_BYTES, Opportunities
from fabbbr.certify.counters import GateCounters
from fabbbr.certify.evidence import Evidence
from fabbbr.job.expected import Queue
from fabbbr.manifest import Check
from fabbbr.model import LinkTrace
from fabbbr.testbed import Tolerances
from fabbbr.units import ETHERNET_HEADER_BYTES


def checks(queues: Sequence[Queue], evidence: Evidence, allowed: Tolerances) -> Iterator[Check]:
    """Two for each queue that delivers by a trace: what it was given, and what it made of it."""
    for queue in queues:
        if queue.trace is None or queue.gate_node is None:
            continue
        early, late = (
            counters.gate(queue.gate_node, queue.interface.name)
            for counters in (evidence.before, evidence.after)
        )
        yield _settings(queue, queue.trace, late)
        yield _followed(queue, queue.trace, early, late, allowed)


def dropped(node: str, device: str, evidence: Evidence) -> int:
    """Packets that the gate which queues for an interface dropped."""
    return evidence.after.gate(node, device).drops - evidence.before.gate(node, device).drops


def held(node: str, evidence: Evidence) -> Iterator[tuple[int, int]]:
    """What the gates of a node dropped, and by how much more stands in them, in packets."""
    for early, late in zip(evidence.before.gates(node), evidence.after.gates(node), strict=True):
        yield late.drops - early.drops, late.qlen - early.qlen


def _settings(queue: Queue, trace: LinkTrace, told: GateCounters) -> Check:
    return Check(
        name=f"trace of {queue.link} at {queue.interface.name}",
        passed=(told.trace_opportunities, told.trace_ms, told.limit_bytes)
        == (trace.opportunities, trace.length_ms, queue.buffer_bytes),
        asked=_said(trace.opportunities, trace.length_ms, queue.buffer_bytes),
        measured=_said(told.trace_opportunities, told.trace_ms, told.limit_bytes),
        detail=f"{trace.name}, {queue.rate} on average",
    )


def _said(opportunities: int, length_ms: int, limit_bytes: int) -> str:
    return f"{opportunities} opportunities in {length_ms} ms, limit {limit_bytes} B"


def _followed(
    queue: Queue, trace: LinkTrace, early: GateCounters, late: GateCounters, allowed: Tolerances
) -> Check:
    """As many opportunities as the trace has until then, none late, and no more in them than they carry."""
    seconds = late.followed_s if late.followed_s is not None else 0.0
    edges = (-allowed.look_s - 1e-6, allowed.look_s + 1e-6)
    least, most = (Opportunities.of(trace).by(seconds + edge) for edge in edges)
    packets, sent = late.packets - early.packets, late.bytes - early.bytes
    payload = sent - packets * ETHERNET_HEADER_BYTES
    return Check(
        name=f"opportunities of {'the way back of ' if queue.reverse else ''}{queue.link}",
        passed=least <= late.offered <= most
        and late.used <= late.offered
        and payload <= late.used * OPPORTUNITY_BYTES
        and late.late_s <= allowed.look_s + 1e-5
        and late.unheard == 0,
        asked=f"{least} to {most} in {seconds:.3f} s, each on time and of {OPPORTUNITY_BYTES} B",
        measured=f"{late.offered}, of which {late.used} were used for {payload} B, at most "
        f"{late.late_s * 1e6:.3g} us late; {late.unheard} frames unheard",
    )

"""Does a bottleneck that holds packets send them? For what still stands in one when the flows are over.

A queue that never moves again counts each packet rightly, and its flows say themselves that nothing came.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabbbr.capacity import RateOverTime
from fabbbr.certify.counters import QdiscCounters
from fabbbr.certify.evidence import Evidence
from fabbbr.job.expected import Prepared, Queue
from fabbbr.manifest import Check
from fabbbr.units import LARGEST_SUPER_PACKET_BYTES

_LARGEST, _LEAST_S = 3, 0.1
"""So many of the largest packets it must have had the time to send; and where a real machine is kept from its
work for a moment, this long."""


def checks(prepared: Prepared, evidence: Evidence) -> Iterator[Check]:
    """One for each bottleneck that is not empty at the end; gates of traces count what they deliver."""
    for queue in prepared.expected.queues:
        now = evidence.after.root(queue.interface.node, queue.interface.name)
        if queue.trace is None and now.backlog:
            yield from _moves(prepared, queue, evidence, now)


def _moves(prepared: Prepared, queue: Queue, evidence: Evidence, now: QdiscCounters) -> Iterator[Check]:
    cell = prepared.cell
    slowest_bps = min(RateOverTime.of(cell, queue.link, reverse=queue.reverse).bps)
    largest = LARGEST_SUPER_PACKET_BYTES if cell.offloads else cell.frame_bytes
    looks = evidence.looks.get(queue.interface.node)
    needed_s = max(_LARGEST * 8 * largest / slowest_bps, _LEAST_S)
    before = None if looks is None else looks.before_the_last(needed_s)
    earlier = None if before is None else _root(before[1], queue)
    if before is None or earlier is None:
        return
    sent = now.bytes - earlier.bytes
    yield Check(
        name=f"bottleneck {queue.link} at {queue.interface.name} moves",
        passed=sent > 0 or not earlier.backlog,
        asked="sends what it holds",
        measured=f"{sent} B in the last {before[0]:.3g} s",
        detail=f"{now.qlen} packets, {now.backlog} B, stand in it when the flows are over",
    )


def _root(qdiscs: tuple[QdiscCounters, ...], queue: Queue) -> QdiscCounters | None:
    return next((one for one in qdiscs if one.dev == queue.interface.name and one.root), None)

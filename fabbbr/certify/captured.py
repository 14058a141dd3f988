"""Of cells that capture packets: is each in the file? Held against what devices and qdiscs counted."""

from __future__ import annotations

from collections.abc import Iterator

from fabbbr.certify.evidence import CapturesTold, Evidence, TapTold
from fabbbr.certify.packets import grown
from fabbbr.errors import BackendError
from fabbbr.job.expected import Prepared
from fabbbr.job.records import Interface, Tap
from fabbbr.manifest import Check
from fabbbr.testbed import Tolerances


def checks(prepared: Prepared, evidence: Evidence) -> Iterator[Check]:
    """One of each tap, and whether the clock that stamps packets ran as the flows' own."""
    tasks = prepared.job.captures
    if not tasks:
        return
    if evidence.captures is None:
        message = "raw/captures.json, from the agent: the file is missing; run the cell again"
        raise BackendError(message)
    for task in tasks:
        for tap in task.taps:
            told = evidence.captures.tap(task.file, tap.node, tap.interface)
            counted = _at_queue if tap.arrivals_for else _at_end
            yield _whole(told, counted(_interface(prepared, tap), evidence))
    yield _clock(evidence.captures, prepared.testbed.tolerances)


def _interface(prepared: Prepared, tap: Tap) -> Interface:
    sides = (side for cable in prepared.job.cables for side in (cable.a, cable.b))
    return next(side for side in sides if (side.node, side.name) == (tap.node, tap.interface))


_Counts = tuple[int, int | None, int, int]
"""Packets received, their bytes (None where nobody counts them), packets sent, their bytes."""


def _at_end(interface: Interface, evidence: Evidence) -> _Counts:
    """What the device counted."""
    first, last = (
        counters.link(interface.node, interface.name).stats64
        for counters in (evidence.before, evidence.after)
    )
    return (
        last.rx.packets - first.rx.packets,
        last.rx.bytes - first.rx.bytes,
        last.tx.packets - first.tx.packets,
        last.tx.bytes - first.tx.bytes,
    )


def _at_queue(interface: Interface, evidence: Evidence) -> _Counts:
    """What the queueing discipline sent, and what came to it: sent, dropped or standing in it."""
    root = [counters.root(interface.node, interface.name) for counters in (evidence.before, evidence.after)]
    sent, size = (getattr(root[1], name) - getattr(root[0], name) for name in ("packets", "bytes"))
    changed = grown(evidence, interface)
    return sent + changed.dropped + changed.standing, None, sent, size


def _whole(told: TapTold, counted: _Counts) -> Check:
    received, received_bytes, sent, sent_bytes = counted
    seen = (told.received_packets, told.received_bytes, told.sent_packets, told.sent_bytes)
    wanted = (received, told.received_bytes if received_bytes is None else received_bytes, sent, sent_bytes)
    return Check(
        name=f"{told.file} at {told.interface}",
        passed=told.lost == 0 and seen == wanted,
        asked=f"{_spelled(*wanted)}, as counted; none lost",
        measured=f"{_spelled(*seen)}; {told.lost} lost for want of memory",
        detail="a queue: what came to it and what it sent" if received_bytes is None else "a device",
    )


def _spelled(received: int, received_bytes: int, sent: int, sent_bytes: int) -> str:
    return f"{received} packets in ({received_bytes} B), {sent} out ({sent_bytes} B)"


def _clock(told: CapturesTold, allowed: Tolerances) -> Check:
    """Stamps are of the clock that shows the date, which may be set while flows run; theirs may not."""
    offset = told.realtime_minus_monotonic
    moved_s = abs(offset.after_s - offset.before_s)
    return Check(
        name="clock of the captures",
        passed=moved_s <= allowed.clock_s,
        asked=f"set by at most {allowed.clock_s * 1e3:g} ms while flows run",
        measured=f"{moved_s * 1e3:.3g} ms",
    )

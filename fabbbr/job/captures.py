"""Cell → what is captured where. Pure.

A capture must change nothing of what it watches, so a tap is a packet socket with a ring in the kernel's
memory that nobody reads until the flows are over: the kernel copies and stamps each packet and wakes no
process. On a clock that computing does not move, flows cannot tell.

The kernel shows a packet that leaves after the queueing discipline, in the instant in which the device gets
it, and one that comes in before anything else sees it. So

* a link is tapped at the interfaces of its two ends: the difference of the stamps is what the link took;
* a bottleneck queue is tapped in its node: what comes in, at whatever interface, for a host behind the
  queue, and what leaves the interface of the queue. A switch forwards at once, so the difference is the
  sojourn: waiting, and the packet's own serialisation, for TBF lets a packet go when its last bit may leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabbbr.capturing import Slots, slots_at_end, slots_at_queue
from fabbbr.job.cabling import Cabling
from fabbbr.job.expected import Queue
from fabbbr.job.records import CaptureTask, Interface, Tap
from fabbbr.model import Cell
from fabbbr.testbed import Testbed


def misfit(cell: Cell, testbed: Testbed) -> str | None:
    """Why ``testbed`` cannot capture what ``cell`` asks for, with the remedy; None when it can."""
    key = "capture" if cell.captures else "queue_delay" if cell.queue_delay == "packets" else None
    if key is None or len(testbed.machines) == 1:
        return None
    return (
        f"{key}: the machines of {testbed.backend} stamp packets by clocks of their own, which differ by "
        f"more than a packet takes; run it on one machine (--backend guest), or remove {key}"
    )


def capture_tasks(cell: Cell, cabling: Cabling, queues: Sequence[Queue]) -> tuple[CaptureTask, ...]:
    """One file for each link that is captured, then one for each queue whose packets are timed."""
    return (*_of_links(cell, cabling), *(_of_queues(cell, cabling, queues)))


def _of_links(cell: Cell, cabling: Cabling) -> Iterator[CaptureTask]:
    ends_of = {ends.link.name: ends for ends in cabling.ends}
    for capture in cell.captures:
        ends, slots = ends_of[capture.link], slots_at_end(cell, capture)
        taps = tuple(_tap(interface, slots) for interface in (ends.queue, ends.far))
        yield CaptureTask(file=f"capture.{capture.link}.pcapng", taps=taps)


def _of_queues(cell: Cell, cabling: Cabling, queues: Sequence[Queue]) -> Iterator[CaptureTask]:
    if cell.queue_delay != "packets":
        return
    for queue in queues:
        node, out = queue.interface.node, queue.interface
        behind = tuple(
            cabling.address(host) for host in cell.talking if cabling.next_hop(node, host).out == out
        )
        tap = _tap(out, slots_at_queue(cell, queue.link), behind)
        yield CaptureTask(file=f"queue.{out.name}.pcapng", taps=(tap,))


def _tap(interface: Interface, slots: Slots, arrivals_for: tuple[str, ...] = ()) -> Tap:
    return Tap(
        node=interface.node,
        interface=interface.name,
        arrivals_for=arrivals_for,
        keeps_bytes=slots.keeps_bytes,
        slots=slots.count,
        slot_bytes=slots.each_bytes,
    )

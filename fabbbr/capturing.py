"""How much room captures take: slots in the kernel's memory while flows run, bytes on disk afterwards. Pure.

A capture must not wake anybody while flows run, so all its packets stay in the kernel's memory until they are
over. How many there will be is a bound and no forecast: what does not fit is lost, and the cell with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from fabbbr.capacity import capacity_of
from fabbbr.model import Cell, LinkCapture
from fabbbr.physics import end_of, losses_of, stationary_loss
from fabbbr.units import ETHERNET_HEADER_BYTES, NANOSECONDS_PER_SECOND, Duration

HEADERS_BYTES = ETHERNET_HEADER_BYTES + 20 + 60
"""Ethernet, IPv4 without options, and the longest TCP header."""
IDENTITY_BYTES = ETHERNET_HEADER_BYTES + 48
"""What tells one packet from another: IPv4's header and the 28 bytes after it."""

_OVERRUN = 1.5
"""Packets that come, to those that a full bottleneck lets out: start-ups and shallow buffers lose a third."""
_ACKNOWLEDGED = 1.1
"""Acknowledgements to packets let out: at most one each, and some that say that one came twice."""
_ALWAYS = 4096
"""Of control connections, and what nobody thought of."""
_PER_CONNECTION = 40
"""Beginning and end of a connection, the control connection of its flow, segments that are not full."""
_SLOT_HEADER_BYTES = 66
"""What the kernel puts ahead of an Ethernet frame in a slot of its ring (TPACKET_V2)."""
_SLOT_ALIGNMENT_BYTES = 16
_PCAPNG_BYTES = 44
"""What a packet takes in a pcapng file besides its own bytes: an enhanced packet block with its direction."""


@dataclass(frozen=True, kw_only=True)
class Slots:
    """Of one ring."""

    count: int
    each_bytes: int
    keeps_bytes: int
    """Of a frame."""

    @property
    def memory_bytes(self) -> int:
        """Of the ring."""
        return self.count * self.each_bytes


@dataclass(frozen=True, kw_only=True)
class Room:
    """What all captures of a cell take."""

    memory_bytes: int
    """While it runs."""
    disk_bytes: int
    """Afterwards, were every bottleneck full all the time."""


def slots_at_end(cell: Cell, capture: LinkCapture) -> Slots:
    """Of the ring at either end of a link that is captured: data and acknowledgements."""
    data = _packets_over(cell, capture.link)
    count = round(data * (_offered(cell) + _ACKNOWLEDGED)) + _besides(cell)
    return _slots(count, _kept_bytes(cell, capture))


def slots_at_queue(cell: Cell, link: str) -> Slots:
    """Of the ring at a bottleneck queue: each packet as it comes and as it leaves."""
    data = _packets_over(cell, link)
    return _slots(round(data * (_offered(cell) + 1)) + _besides(cell), IDENTITY_BYTES)


def room_of(cell: Cell) -> Room:
    """Of all captures of ``cell``."""
    rings = [slots_at_end(cell, capture) for capture in cell.captures for _ in "ab"]
    kept = [
        2 * 1.5 * _packets_over(cell, capture.link) * _on_disk_bytes(_kept_bytes(cell, capture))
        for capture in cell.captures
    ]
    if cell.queue_delay == "packets":
        for link, queue in cell.bottlenecks.items():
            ways = 1 if queue.way_back is None else 2
            rings += [slots_at_queue(cell, link)] * ways
            kept.append(ways * 2 * _packets_over(cell, link) * _on_disk_bytes(IDENTITY_BYTES))
    return Room(memory_bytes=sum(ring.memory_bytes for ring in rings), disk_bytes=round(sum(kept)))


def _packets_over(cell: Cell, link: str) -> float:
    """Full packets that may cross ``link``, both directions of the data together.

    No more than its own bottleneck lets out, or than all of them where it has none; a second longer than the
    flows last, and what a buffer holds.
    """
    end = _end(cell)
    limiting = [link] if link in cell.bottlenecks else list(cell.bottlenecks)
    total = sum(
        capacity_of(cell, name, reverse=way is not queue).bits(0.0, end.seconds) / 8
        + way.buffer_bytes
        + (way.burst_bytes or 0)
        for name in limiting
        for queue in (cell.bottlenecks[name],)
        for way in queue.of_data
    )
    return total / cell.frame_bytes


def _end(cell: Cell) -> Duration:
    return Duration(end_of(cell.flows, cell.links).ns + NANOSECONDS_PER_SECOND)


def _besides(cell: Cell) -> int:
    """Packets that are no full segments: of connections, datagrams, echo requests with their answers."""
    connections = sum(flow.streams for flow in cell.flows)
    echoes = sum(2 * -(-_end(cell).ns // ping.interval.ns) for ping in cell.pings)
    datagrams = sum(
        flow.udp.count_in(flow.duration)
        for flow in cell.flows
        if flow.udp is not None and flow.duration is not None
    )
    return _ALWAYS + _PER_CONNECTION * connections + 2 * datagrams + echoes


def _offered(cell: Cell) -> float:
    """Packets sent to packets that arrive: injected loss comes on top."""
    worst: dict[str, float] = {}
    for name, loss in losses_of(cell):
        worst[name] = max(worst.get(name, 0.0), stationary_loss(loss))
    return _OVERRUN / max(prod(1 - loss for loss in worst.values()), 0.1)


def _kept_bytes(cell: Cell, capture: LinkCapture) -> int:
    return cell.frame_bytes if capture.bytes == "full" else HEADERS_BYTES


def _slots(count: int, keeps_bytes: int) -> Slots:
    each = -(-(_SLOT_HEADER_BYTES + keeps_bytes) // _SLOT_ALIGNMENT_BYTES) * _SLOT_ALIGNMENT_BYTES
    return Slots(count=count, each_bytes=each, keeps_bytes=keeps_bytes)


def _on_disk_bytes(keeps_bytes: int) -> int:
    return _PCAPNG_BYTES + 4 * ceil(keeps_bytes / 4)

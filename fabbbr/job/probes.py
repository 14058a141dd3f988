"""Cell → the probes before its flows: pings for the RTT, one burst of packets for rate and buffer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from fabbbr.job.cabling import Cabling
from fabbbr.job.records import Burst, Capture, Command
from fabbbr.model import Cell, CellLink
from fabbbr.physics import stationary_loss
from fabbbr.units import ETHERNET_HEADER_BYTES, NANOSECONDS_PER_SECOND

_PINGS = 3
_IP_UDP_HEADER_BYTES = 28
_PORT = 7
_SOURCE_PORT = 65_535
"""Its top bit is set: the burst is data and gets the injected loss."""
_FILL_PACKETS = 20_000
_MEASURED_PACKETS = 1_000
_AQM_DRAIN_S = 0.05
_FEWEST_STANDING = 8
_RED_LIMIT_PER_THRESHOLD = 12
"""tc's default: the upper threshold is a quarter of the limit, the lower one a third of that."""
_AFTER_ARRIVAL_NS = 2_000
"""A look at the very instant of the arrival could come just before it."""


def pings(cell: Cell, cabling: Cabling) -> tuple[Capture, ...]:
    """One ping per pair of hosts that talk, with small frames: serialisation is then negligible."""
    pairs = dict.fromkeys((flow.sender, flow.receiver) for flow in cell.flows)
    return tuple(
        Capture(
            name=f"ping.{sender}.{receiver}",
            command=Command(
                node=sender,
                argv=("ping", "-n", "-c", str(_PINGS), "-i", "0.2", "-W", "20", cabling.address(receiver)),
                timeout_s=120,
            ),
        )
        for sender, receiver in pairs
    )


@dataclass(frozen=True, kw_only=True)
class _Queue:
    """A bottleneck in frames of full size."""

    frame_bytes: int
    fits: int
    tokens: int
    """Frames that pass at once before the queue builds."""
    frame_ns: float

    @classmethod
    def of(cls, cell: Cell) -> _Queue:
        link = cell.bottleneck
        frame = cell.mtu_bytes + ETHERNET_HEADER_BYTES
        return cls(
            frame_bytes=frame,
            fits=_buffer_bytes(link) // frame,
            tokens=(link.burst_bytes or 0) // frame,
            frame_ns=frame * 8 * NANOSECONDS_PER_SECOND / _rate_bps(link),
        )


def burst_fills_buffer(cell: Cell) -> bool:
    """Whether the burst overfills the buffer: where that is cheap and tail drop counts bytes."""
    return cell.bottleneck.aqm == "taildrop" and _Queue.of(cell).fits <= _FILL_PACKETS


def burst_departs_whole(cell: Cell) -> bool:
    """Whether all packets of the burst leave the bottleneck: none is lost ahead of it, and all fit."""
    taildrop = cell.bottleneck.aqm == "taildrop"
    return taildrop and not burst_fills_buffer(cell) and not _loss_ahead(cell)


def burst(cell: Cell, cabling: Cabling) -> Burst:
    """Packets that reach the bottleneck at one instant, and refills that keep a small queue from running dry.

    A refill is as many packets as have left since the last one, so that none of them is dropped and sequence
    numbers behind the bottleneck count departures.
    """
    queue = _Queue.of(cell)
    sender, receiver = _forward_pair(cell)
    ahead_ns, lost_ahead = _delay_ahead_ns(cell, sender), _loss_ahead(cell)
    packets = _first_packets(cell, queue)
    if lost_ahead:
        packets = ceil(packets / (1 - min(lost_ahead, 0.9)) * 1.2)
    refill = max(queue.fits // 2, 1)
    refillable = cell.bottleneck.aqm == "taildrop" and not lost_ahead and queue.fits >= 2
    refills = ceil(max(_MEASURED_PACKETS - queue.fits, 0) / refill) if refillable else 0
    return Burst(
        sender=sender,
        receiver=receiver,
        receiver_address=cabling.address(receiver),
        packets=packets,
        refills=refills,
        refill_packets=refill,
        refill_every_ns=round(refill * queue.frame_ns),
        payload_bytes=cell.mtu_bytes - _IP_UDP_HEADER_BYTES,
        source_port=_SOURCE_PORT,
        port=_PORT,
        watch_node=cell.bottleneck.a,
        watch_ns=ahead_ns + (_AFTER_ARRIVAL_NS if ahead_ns else 0),
        drain_ns=round(packets * queue.frame_ns) + 2 * cell.flows[0].rtt.ns + NANOSECONDS_PER_SECOND // 10,
    )


def _first_packets(cell: Cell, queue: _Queue) -> int:
    if burst_fills_buffer(cell):
        return queue.fits + 2 * queue.tokens + 20
    packets = queue.tokens + min(_MEASURED_PACKETS, queue.fits)
    if cell.bottleneck.aqm == "taildrop":
        return packets
    # An AQM must not start to drop: keep the standing time of the burst below CoDel's interval.
    standing = int(_AQM_DRAIN_S * NANOSECONDS_PER_SECOND / queue.frame_ns)
    if cell.bottleneck.aqm == "red":
        # And RED's mean below its lower threshold: it forgets slowly, and would drop
        # the first packets of the flows.
        standing = min(standing, queue.fits // _RED_LIMIT_PER_THRESHOLD)
    standing = max(standing, _FEWEST_STANDING)
    return min(packets, queue.tokens + standing)


def _forward_pair(cell: Cell) -> tuple[str, str]:
    """Sender and receiver of the first flow in the data direction; a reverse flow read backwards will do."""
    first_hosts = {link.a for link in cell.links}
    for flow in cell.flows:
        if flow.sender in first_hosts:
            return flow.sender, flow.receiver
    return cell.flows[0].receiver, cell.flows[0].sender


def _delay_ahead_ns(cell: Cell, sender: str) -> int:
    """One-way delay from ``sender`` to the bottleneck's queue."""
    return sum(link.delay.ns for link in cell.links if link.a == sender and link.delay is not None)


def _loss_ahead(cell: Cell) -> float:
    """Share of the burst that is dropped before it reaches the queue."""
    ahead = [link.loss for link in cell.links if link.loss is not None and link.rate is None]
    return max((stationary_loss(loss) for loss in ahead), default=0.0)


def _rate_bps(link: CellLink) -> int:
    assert link.rate is not None
    return link.rate.bps


def _buffer_bytes(link: CellLink) -> int:
    assert link.buffer_bytes is not None
    return link.buffer_bytes

"""Cell → the probes before its flows: pings for the RTT, one burst of packets for rate and buffer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from fabbbr.job.cabling import Cabling
from fabbbr.job.expected import BurstProbe, Queue, RoundTrip, Slots, slots_s
from fabbbr.job.records import Burst, Capture, Command
from fabbbr.model import Cell, CellLink
from fabbbr.physics import burst_bytes, opportunity_s
from fabbbr.testbed import Testbed
from fabbbr.units import NANOSECONDS_PER_SECOND

_PINGS = 3
_PING_FRAME_BYTES = 98
_IP_UDP_HEADER_BYTES = 28
_PORT = 7
_SOURCE_PORT = 32_767
"""Its top bit is not set: the burst goes beside the injected loss, which hits data."""
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
    return tuple(
        Capture(
            name=f"ping.{sender}.{receiver}",
            command=Command(
                node=sender,
                argv=("ping", "-n", "-c", str(_PINGS), "-i", "0.2", "-W", "20", cabling.address(receiver)),
                timeout_s=120,
            ),
        )
        for sender, receiver in cell.pairs
    )


def round_trips(cell: Cell, cabling: Cabling) -> Iterator[RoundTrip]:
    """What each of the :func:`pings` must measure."""
    propagation_s = {(one.sender, one.receiver): one.rtt.seconds for one in reversed(cell.traffic)}
    serialisation_s = sum(_PING_FRAME_BYTES * 8 / queue.rate.bps for queue in cell.bottlenecks.values())
    waits = {link.name: list(_waits_s(link)) for link in cell.links}
    for capture, (sender, receiver) in zip(pings(cell, cabling), cell.pairs, strict=True):
        crossed = cabling.links_between(sender, receiver) if any(waits.values()) else ()
        slots = [slot for name in crossed for slot in waits[name]]
        yield RoundTrip(
            sender=sender,
            receiver=receiver,
            addresses=(cabling.address(sender), cabling.address(receiver)),
            capture=capture,
            propagation_s=propagation_s[sender, receiver],
            held_s=(sum(least for least, _ in slots), sum(most for _, most in slots)),
            serialisation_s=serialisation_s,
        )


def _waits_s(link: CellLink) -> Iterator[Slots]:
    """How long a lone packet is held, at least and at most: for its aggregate, for an opportunity."""
    if link.ack_aggregation is not None:
        yield slots_s(link.ack_aggregation)
    if link.bottleneck is not None and link.bottleneck.trace is not None:
        yield 0.0, opportunity_s(link.bottleneck.rate)


@dataclass(frozen=True, kw_only=True)
class _Standing:
    """A bottleneck in frames of full size."""

    fits: int
    tokens: int
    """Frames that pass at once before the queue builds."""
    frame_ns: float

    @classmethod
    def of(cls, cell: Cell, testbed: Testbed) -> _Standing:
        rate, frame = cell.bottleneck.rate, cell.frame_bytes
        held = burst_bytes(rate, timer_hz=testbed.kernel_of(cell.trunk.a).timer_hz, frame_bytes=frame)
        return cls(
            fits=cell.bottleneck.buffer_bytes // frame,
            tokens=held // frame if cell.bottleneck.trace is None else 0,
            frame_ns=cell.served_bytes * 8 * NANOSECONDS_PER_SECOND / rate.bps,
        )


def burst_probe(cell: Cell, testbed: Testbed, queues: Sequence[Queue]) -> BurstProbe:
    """What the :func:`burst` must measure, at the first bottleneck's queue."""
    standing = _Standing.of(cell, testbed)
    fills = _fills_buffer(cell, standing)
    return BurstProbe(
        queue=next(queue for queue in queues if queue.link == cell.trunk.name and not queue.reverse),
        frame_bytes=cell.served_bytes,
        tokens=standing.tokens,
        fills_buffer=fills,
        departs_whole=cell.bottleneck.aqm == "taildrop" and not fills,
    )


def _fills_buffer(cell: Cell, standing: _Standing) -> bool:
    held_by_tc = cell.bottleneck.aqm == "taildrop" and cell.bottleneck.trace is None
    return held_by_tc and standing.fits <= _FILL_PACKETS


def burst(cell: Cell, testbed: Testbed, cabling: Cabling) -> Burst:
    """Packets that reach the bottleneck at one instant, and refills that keep a small queue from running dry.

    A refill is as many packets as have left since the last one, so that none of them is dropped and sequence
    numbers behind the bottleneck count departures.
    """
    queue = _Standing.of(cell, testbed)
    sender, receiver = _forward_pair(cell)
    ahead_ns = _delay_ahead_ns(cell, sender)
    packets = _first_packets(cell, queue)
    refill = max(queue.fits // 2, 1)
    refillable = cell.bottleneck.aqm == "taildrop" and queue.fits >= 2
    refills = ceil(max(_MEASURED_PACKETS - queue.fits, 0) / refill) if refillable else 0
    return Burst(
        sender=sender,
        receiver=receiver,
        receiver_address=cabling.address(receiver),
        packets=packets,
        refills=refills,
        refill_packets=refill,
        refill_every_ns=round(refill * queue.frame_ns),
        spare_ns=round(max(queue.fits - refill, 0) * queue.frame_ns),
        payload_bytes=cell.mtu_bytes - _IP_UDP_HEADER_BYTES,
        source_port=_SOURCE_PORT,
        port=_PORT,
        watch_node=cell.trunk.a,
        watch_ns=ahead_ns + (_AFTER_ARRIVAL_NS if ahead_ns else 0),
        drain_ns=round(packets * queue.frame_ns) + 2 * cell.flows[0].rtt.ns + NANOSECONDS_PER_SECOND // 10,
    )


def _first_packets(cell: Cell, queue: _Standing) -> int:
    if _fills_buffer(cell, queue):
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

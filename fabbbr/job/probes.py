"""Cell → the probes before its flows: pings for the RTT, bursts of packets for rate and buffer. Pure.

One burst goes through the first bottleneck; another through a way back that has a rate of its own.
:mod:`fabbbr.job.reached` says between which hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from fabbbr.capacity import opportunity_s
from fabbbr.job.cabling import Cabling
from fabbbr.job.expected import BurstProbe, Queue, RoundTrip, Slots, slots_s
from fabbbr.job.reached import Reached, reached_back, reached_there
from fabbbr.job.records import Burst, Capture, Command
from fabbbr.model import AckAggregation, Cell, CellLink
from fabbbr.physics import bucket_bytes
from fabbbr.testbed import Testbed
from fabbbr.units import NANOSECONDS_PER_SECOND, Duration, Rate

_PINGS = 3
_PING_FRAME_BYTES = 98
_IP_UDP_HEADER_BYTES = 28
_PORT = 7
_SOURCE_PORT = 32_767
"""Its top bit is not set: the burst goes beside the injected loss, which hits data."""
_FILL_PACKETS = 20_000
_MEASURED_PACKETS = 1_000
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
    serialisation_s = sum(_PING_FRAME_BYTES * 8 / queue.rate.bps for queue in cell.queues)
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
        least_s, most_s = slots_s(link.ack_aggregation)
        yield 0.0 if _overlap(link.delay, link.ack_aggregation) else least_s, most_s
    for way in link.bottleneck.distinct if link.bottleneck is not None else ():
        if way.trace is not None:
            yield 0.0, opportunity_s(way.rate)


def _overlap(delay: Duration | None, held: AckAggregation) -> bool:
    """Whether a packet may be delayed and held at once.

    netem draws a slot as a packet comes, below ``most`` unless ``least`` is as long. One that opens while the
    packet is still delayed counts no more; one that opens then or later has waited for both at once.
    """
    return delay is not None and delay.ns > 0 and (delay < held.most or delay == held.least)


@dataclass(frozen=True, kw_only=True)
class _Probed:
    """The queue that a burst goes to, in frames of full size."""

    reached: Reached
    fits: int
    tokens: int
    """Frames that pass before the queue builds: at once, or as they come out of another queue."""
    spare: int
    """So many more at most, where they do not come all at the same instant: a bucket fills meanwhile."""
    served_bytes: int
    """What a frame takes of the rate: a trace counts IP packets."""

    @classmethod
    def of(cls, cell: Cell, testbed: Testbed, reached: Reached) -> _Probed:
        queue, frame = reached.queue, cell.frame_bytes
        hz = testbed.kernel_of(reached.interface.node).timer_hz
        held = bucket_bytes(queue, queue.rate, timer_hz=hz, frame_bytes=frame) // frame
        by_trace = queue.trace is not None
        tokens = 0 if by_trace else _spent_after(held, queue.rate, reached.paced_by)
        return cls(
            reached=reached,
            fits=reached.fits_bytes // frame,
            tokens=tokens,
            spare=0 if queue.burst_bytes is None else tokens,
            served_bytes=cell.mtu_bytes if by_trace else frame,
        )

    @property
    def frame_ns(self) -> float:
        return self.served_bytes * 8 * NANOSECONDS_PER_SECOND / self.reached.queue.rate.bps

    @property
    def is_filled(self) -> bool:
        """Whether the burst is larger than the buffer, and that is the queue's."""
        queue = self.reached.queue
        fillable = queue.aqm == "taildrop" and queue.trace is None and self.reached.paced_by is None
        return fillable and self.fits <= _FILL_PACKETS

    @property
    def packets(self) -> int:
        """That are sent before any refill."""
        if self.is_filled:
            return self.fits + 2 * self.tokens + 20
        packets = self.tokens + self.spare + min(_MEASURED_PACKETS, self.fits)
        # What comes out of another queue has to fit into that.
        return packets if self.reached.paced_by is None else min(packets, self.fits)

    @property
    def queued(self) -> int:
        """How many of these at least stand in the queue once all are sent; 0 where that cannot be told."""
        if not self.reached.shows_all:
            return 0
        return self.fits if self.is_filled else max(self.packets - self.tokens - self.spare, 0)


def _spent_after(tokens: int, rate: Rate, paced_by: Rate | None) -> int:
    """Frames that pass until a bucket of so many is empty: it fills at ``rate`` meanwhile."""
    return tokens if paced_by is None else ceil(tokens * paced_by.bps / (paced_by.bps - rate.bps))


def burst_probe(cell: Cell, testbed: Testbed, cabling: Cabling, queues: Sequence[Queue]) -> BurstProbe:
    """What the :func:`burst` must measure."""
    return _expected(_Probed.of(cell, testbed, reached_there(cell, cabling)), queues)


def burst_back_probe(
    cell: Cell, testbed: Testbed, cabling: Cabling, queues: Sequence[Queue]
) -> BurstProbe | None:
    """What the :func:`burst_back` must measure; None without one."""
    reached = reached_back(cell, cabling)
    return None if reached is None else _expected(_Probed.of(cell, testbed, reached), queues)


def _expected(probed: _Probed, queues: Sequence[Queue]) -> BurstProbe:
    reached = probed.reached
    fits_whole = not probed.is_filled and probed.packets <= probed.tokens + probed.fits
    return BurstProbe(
        queue=next(queue for queue in queues if queue.interface == reached.interface),
        frame_bytes=probed.served_bytes,
        tokens=probed.tokens,
        queued=probed.queued,
        fills_buffer=probed.is_filled,
        departs_whole=fits_whole and reached.paced_by is None,
        held_s=reached.held_ns / NANOSECONDS_PER_SECOND,
    )


def burst(cell: Cell, testbed: Testbed, cabling: Cabling) -> Burst:
    """Packets that reach the bottleneck at one instant, and refills that keep a small queue from running dry.

    An AQM is not there yet: the queue is the rate limit's own, which drops at its tail.

    A refill is as many packets as have left since the last one, so that none of them is dropped and sequence
    numbers behind the bottleneck count departures.
    """
    return _burst(cell, cabling, _Probed.of(cell, testbed, reached_there(cell, cabling)))


def burst_back(cell: Cell, testbed: Testbed, cabling: Cabling) -> Burst | None:
    """The same through a way back with a rate of its own; None where there is none that can be measured."""
    reached = reached_back(cell, cabling)
    return None if reached is None else _burst(cell, cabling, _Probed.of(cell, testbed, reached))


def _burst(cell: Cell, cabling: Cabling, probed: _Probed) -> Burst:
    reached, packets = probed.reached, probed.packets
    refill = max(probed.fits // 2, 1)
    refills = ceil(max(_MEASURED_PACKETS - probed.fits, 0) / refill) if probed.fits >= 2 else 0
    drain_ns = round(packets * probed.frame_ns) + 2 * cell.flows[0].rtt.ns + NANOSECONDS_PER_SECOND // 10
    return Burst(
        sender=reached.sender,
        receiver=reached.receiver,
        receiver_address=cabling.address(reached.receiver),
        packets=packets,
        refills=refills,
        refill_packets=refill,
        refill_every_ns=round(refill * probed.frame_ns),
        spare_ns=round(max(probed.fits - refill, 0) * probed.frame_ns),
        payload_bytes=cell.mtu_bytes - _IP_UDP_HEADER_BYTES,
        source_port=_SOURCE_PORT,
        port=_PORT,
        watch_node=reached.interface.node,
        watch_ns=reached.ahead_ns + (_AFTER_ARRIVAL_NS if reached.ahead_ns else 0),
        drain_ns=drain_ns + reached.held_ns,
    )

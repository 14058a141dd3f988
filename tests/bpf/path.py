"""A path in miniature that the core drives: one bottleneck, a drop-tail queue, a fixed delay, random loss.

It only has to lead the core through all its states with inputs of the kind that TCP gives; what BBR achieves
on a path is tested elsewhere.
"""

import heapq
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from bpf.replay import ACK, INIT, RECOVERY, UNKNOWN, Ack, Call, UserCore

MSS = 1448
REORDERING = 3
"""Packets that must be delivered past a lost one before it counts as lost."""


@dataclass(kw_only=True)
class Packet:
    number: int
    sent_us: int
    delivered: int
    delivered_us: int
    first_sent_us: int


@dataclass(kw_only=True)
class Path:
    """What a sender sees; counters start at ``origin`` so that they can be made to wrap."""

    packets_per_s: int
    rtt_us: int
    buffer_packets: int
    loss_ratio: float
    seed: int
    origin: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - a repeatable trace
        self._now_us = 1_000_000
        self._flying: dict[int, Packet] = {}
        self._arrivals: list[tuple[int, int]] = []
        self._departures: deque[int] = deque()
        self._free_us = self._next_send_us = self._delivered_us = self._first_sent_us = self._now_us
        self._sent = self._delivered = self._lost = 0
        self._recovery_end = -1

    def calls(self, core: UserCore, *, profile: int, duration_us: int) -> Iterator[Call]:
        """Each call that a shim would make; the caller has ``core`` take each before it asks for the next."""
        yield Call(kind=INIT, profile=profile, seed=self.seed, ack=self._ack(cwnd=10))
        end_us = self._now_us + duration_us
        while self._now_us < end_us:
            if len(self._flying) < core.cwnd and (
                not self._arrivals or self._next_send_us <= self._arrivals[0][0]
            ):
                self._send(core.pacing_rate)
            else:
                yield from self._receive(core.cwnd)

    def _send(self, pacing_rate: int) -> None:
        self._now_us = max(self._now_us, self._next_send_us)
        self._next_send_us = self._now_us + MSS * 1_000_000 // pacing_rate
        if not self._flying:
            self._first_sent_us = self._delivered_us = self._now_us
        packet = Packet(
            number=self._sent,
            sent_us=self._now_us,
            delivered=self._delivered,
            delivered_us=self._delivered_us,
            first_sent_us=self._first_sent_us,
        )
        self._flying[self._sent] = packet
        self._sent += 1
        while self._departures and self._departures[0] <= self._now_us:
            self._departures.popleft()
        if len(self._departures) < self.buffer_packets and self._random.random() >= self.loss_ratio:
            self._free_us = max(self._free_us, self._now_us) + 1_000_000 // self.packets_per_s
            self._departures.append(self._free_us)
            heapq.heappush(self._arrivals, (self._free_us + self.rtt_us, packet.number))

    def _receive(self, cwnd: int) -> Iterator[Call]:
        if not self._arrivals:  # all in flight was dropped: the timer finds it
            self._now_us += 3 * self.rtt_us
            self._lost += len(self._flying)
            self._flying.clear()
            return
        prior_in_flight = len(self._flying)
        self._now_us, number = heapq.heappop(self._arrivals)
        packet = self._flying.pop(number)
        self._delivered += 1
        self._delivered_us, self._first_sent_us = self._now_us, packet.sent_us
        lost = [other for other in self._flying if other < number - REORDERING]
        for other in lost:
            del self._flying[other]
        self._lost += len(lost)
        if lost and number > self._recovery_end:
            self._recovery_end = self._sent
            yield Call(kind=RECOVERY, ack=self._ack(cwnd=cwnd))
        yield Call(kind=ACK, ack=self._ack(cwnd=cwnd, packet=packet, prior_in_flight=prior_in_flight))

    def _ack(self, *, cwnd: int, packet: Packet | None = None, prior_in_flight: int = 0) -> Ack:
        ack = Ack(
            now_us=self._now_us,
            delivered=_counter(self._delivered + self.origin),
            lost=_counter(self._lost + self.origin),
            in_flight=len(self._flying),
            prior_in_flight=prior_in_flight,
            cwnd=cwnd,
            mss=MSS,
            rtt_us=UNKNOWN,
            cwnd_limited=prior_in_flight >= cwnd,
            sacks=True,
        )
        if packet is not None:
            send_us = packet.sent_us - packet.first_sent_us
            ack.prior_delivered = _counter(packet.delivered + self.origin)
            ack.sample_delivered = self._delivered - packet.delivered
            ack.interval_us = max(send_us, self._now_us - packet.delivered_us)
            ack.rtt_us = self._now_us - packet.sent_us
            ack.newly_acked = 1
            ack.in_recovery = packet.number <= self._recovery_end
        return ack


def _counter(value: int) -> int:
    return value & 0xFFFFFFFF

"""A deterministic path and a sender that keeps, with each packet, what the drafts want kept with it.

One bottleneck with a drop-tail queue, then a delay line; ACKs are never lost. The sender resembles Linux TCP
with SACK: a packet counts as lost when one that left three later arrives, recovery lasts until all that was
out when it began has arrived, and a timer ends a silence. The rate sample is the one of "Delivery Rate
Samples" in draft-ietf-ccwg-bbr.
"""

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bbr.core import Ack, Connection, Core, Profile, State

SECOND_NS = 10**9
REORDERING = 3
LEAST_RTO_NS = SECOND_NS // 5
INITIAL_CWND = 10


@dataclass(frozen=True, kw_only=True)
class Path:
    """``rate`` in bytes/s, ``rtt_us`` without queue, ``buffer`` in packets, ``loss`` probability per packet.

    ``aggregate_us``: ACKs arrive together, at multiples of it. ``changes``: (µs, bytes/s) of later rates.
    """

    rate: int
    rtt_us: int
    buffer: int
    loss: float = 0.0
    aggregate_us: int = 0
    mss: int = 1500
    changes: tuple[tuple[int, int], ...] = ()

    @property
    def bdp(self) -> float:
        """In packets."""
        return self.rate * self.rtt_us / 1e6 / self.mss


@dataclass(slots=True, eq=False)
class Packet:
    """``number`` counts transmissions, ``sequence`` what they carry; the rest is state P of the drafts."""

    number: int
    sequence: int
    sent_ns: int
    first_sent_ns: int
    delivered_ns: int
    delivered: int
    lost: int
    tx_in_flight: int
    epoch: int
    app_limited: bool
    done: bool = False


@dataclass(frozen=True)
class Seen:
    """One ACK as the core got it, and the packet whose delivery gave its sample."""

    ack: Ack
    packet: Packet


@dataclass
class Flow:
    """One connection on one path; ``look`` sees each ACK before the core, ``after`` when it has answered.

    ``app_rate``: the application writes so many packets per second, None: always more than can be sent.
    ``counters_from``: where the wrapping counters of the transport start.
    """

    path: Path
    connection: Connection
    seed: int = 0
    counters_from: int = 0
    app_pps: int | None = None
    look: Callable[[Seen], None] | None = None
    after: Callable[["Flow", Seen], None] | None = None
    now_ns: int = 0
    delivered: int = 0
    lost: int = 0
    in_flight: int = 0
    cwnd: int = INITIAL_CWND
    timeouts: int = 0
    dropped: int = 0
    transitions: list[tuple[int, State]] = field(default_factory=list)
    epoch_in_flight: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)  # noqa: S311  (losses, not secrets)
        self._rates = deque([(0, self.path.rate), *((at * 1000, rate) for at, rate in self.path.changes)])
        self._outstanding: deque[Packet] = deque()
        self._acks: deque[tuple[int, list[Packet]]] = deque()
        self._again: deque[int] = deque()
        self._arrived: set[int] = set()
        self._all_before = 0
        self._next_sequence = 0
        self._sent = 0
        self._next_send_ns = 0
        self._queue_free_ns = 0
        self._delivered_ns = self._first_sent_ns = 0
        self._app_limited_until = 0
        self._cwnd_limited_until = 0
        self._recovery_until: int | None = None
        self._written = 0 if self.app_pps is not None else 1 << 62
        self._restarting = False

    # ---- Sending ----

    def _may_send(self) -> bool:
        return self.in_flight < self.cwnd and (bool(self._again) or self._next_sequence < self._written)

    def _service_ns(self) -> int:
        while len(self._rates) > 1 and self._rates[1][0] <= self.now_ns:
            self._rates.popleft()
        return self.path.mss * SECOND_NS // self._rates[0][1]

    def _send(self) -> None:
        if not self.in_flight:
            self._delivered_ns = self._first_sent_ns = self.now_ns
            if self._app_limited_until:
                self.connection.on_restart(self.ack())
        if self._again:
            sequence = self._again.popleft()
        else:
            sequence = self._next_sequence
            self._next_sequence += 1
        self.in_flight += 1
        self._sent += 1
        packet = Packet(
            number=self._sent,
            sequence=sequence,
            sent_ns=self.now_ns,
            first_sent_ns=self._first_sent_ns,
            delivered_ns=self._delivered_ns,
            delivered=self.delivered,
            lost=self.lost,
            tx_in_flight=self.in_flight,
            epoch=len(self.epoch_in_flight) - 1,
            app_limited=self._app_limited_until > 0,
        )
        self.epoch_in_flight[-1] = self.in_flight
        self._outstanding.append(packet)
        if self.in_flight >= self.cwnd:
            self._cwnd_limited_until = self.delivered + self.in_flight
        self._next_send_ns = (
            max(self.now_ns, self._next_send_ns)
            + self.path.mss * SECOND_NS // self.connection.record.pacing_rate
        )
        self._enter_queue(packet)

    def _enter_queue(self, packet: Packet) -> None:
        service_ns = self._service_ns()
        waiting_ns = max(self._queue_free_ns - self.now_ns, 0)
        if waiting_ns >= self.path.buffer * service_ns or self._chance.random() < self.path.loss:
            self.dropped += 1
            return
        self._queue_free_ns = self.now_ns + waiting_ns + service_ns
        arrival_ns = self._queue_free_ns + self.path.rtt_us * 1000
        if self.path.aggregate_us:
            slot_ns = self.path.aggregate_us * 1000
            arrival_ns = -(-arrival_ns // slot_ns) * slot_ns
        if self._acks and self._acks[-1][0] == arrival_ns:
            self._acks[-1][1].append(packet)
        else:
            self._acks.append((arrival_ns, [packet]))

    # ---- Receiving ----

    def ack(self, **more: int | bool) -> Ack:
        """What the transport knows now."""
        return Ack(
            now_us=self.now_ns // 1000,
            delivered=self._wrapped(self.delivered),
            lost=self._wrapped(self.lost),
            cwnd=self.cwnd,
            mss=self.path.mss,
            in_flight=self.in_flight,
            cwnd_limited=self.delivered < self._cwnd_limited_until,
            in_recovery=self._recovery_until is not None,
            **more,  # type: ignore[arg-type]
        )

    def _wrapped(self, count: int) -> int:
        return (self.counters_from + count) % 2**32

    def _mark_lost(self, packets: Iterable[Packet]) -> None:
        for packet in packets:
            packet.done = True
            self.lost += 1
            self.in_flight -= 1
            if packet.sequence not in self._arrived:
                self._again.append(packet.sequence)

    def _enter_recovery(self) -> None:
        if self._recovery_until is None:
            self.connection.on_recovery(self.cwnd)
            self._recovery_until = self._next_sequence

    def _overtaken(self, newest: int) -> list[Packet]:
        overtaken: list[Packet] = []
        while self._outstanding and (
            self._outstanding[0].done or self._outstanding[0].number <= newest - REORDERING
        ):
            packet = self._outstanding.popleft()
            if not packet.done:
                overtaken.append(packet)
        return overtaken

    def _receive(self, packets: list[Packet]) -> None:
        prior_in_flight = self.in_flight
        newest = packets[-1]
        for packet in packets:
            packet.done = True
            self._arrived.add(packet.sequence)
            self.delivered += 1
            self.in_flight -= 1
        self._delivered_ns, self._first_sent_ns = self.now_ns, newest.sent_ns
        while self._all_before in self._arrived:
            self._arrived.discard(self._all_before)
            self._all_before += 1
        if self._recovery_until is not None and self._all_before >= self._recovery_until:
            self._recovery_until = None
        if overtaken := self._overtaken(newest.number):
            self._enter_recovery()
            self._mark_lost(overtaken)
        if self._app_limited_until and self.delivered > self._app_limited_until:
            self._app_limited_until = 0
        interval_ns = max(newest.sent_ns - newest.first_sent_ns, self.now_ns - newest.delivered_ns)
        self._answer(
            Seen(
                self.ack(
                    prior_in_flight=prior_in_flight,
                    prior_delivered=self._wrapped(newest.delivered),
                    sample_delivered=self.delivered - newest.delivered,
                    interval_us=interval_ns // 1000,
                    rtt_us=(self.now_ns - newest.sent_ns) // 1000,
                    newly_acked=len(packets),
                    app_limited=newest.app_limited,
                ),
                newest,
            )
        )

    def _answer(self, seen: Seen) -> None:
        if self.look:
            self.look(seen)
        self.connection.on_ack(seen.ack)
        self.epoch_in_flight.append(self.in_flight)
        self.cwnd = self.connection.record.cwnd
        if self.connection.record.mark_app_limited:
            self._app_limited_until = self.delivered + self.in_flight
        state = self.connection.state
        if not self.transitions or self.transitions[-1][1] is not state:
            self.transitions.append((seen.ack.now_us, state))
        if self.after:
            self.after(self, seen)

    def _time_out(self) -> None:
        self.timeouts += 1
        lost = [packet for packet in self._outstanding if not packet.done]
        self._outstanding.clear()
        self._mark_lost(lost)
        self._enter_recovery()
        self.cwnd = self.in_flight + 1
        self.connection.on_rto(self.ack())

    # ---- Time ----

    def _write(self) -> int | None:
        """Let the application write what it has by now; when it writes next, if that matters."""
        if self.app_pps is None:
            return None
        self._written = self.now_ns * self.app_pps // SECOND_NS
        if not self._may_send() and self.in_flight < self.cwnd and not self._app_limited_until:
            self._app_limited_until = max(self.delivered + self.in_flight, 1)
        return -(-(self._written + 1) * SECOND_NS // self.app_pps)

    def run(self, until_us: int) -> None:
        """Go on to that time."""
        while True:
            write_ns = self._write()
            times = [
                max(self._next_send_ns, self.now_ns) if self._may_send() else None,
                self._acks[0][0] if self._acks else None,
                write_ns,
            ]
            if not self._acks and self.in_flight:
                times.append(self.now_ns + LEAST_RTO_NS + 2 * self.path.rtt_us * 1000)
            next_ns = min(time for time in times if time is not None)
            if next_ns > until_us * 1000:
                return
            self.now_ns = next_ns
            if times[0] == next_ns:
                self._send()
            elif times[1] == next_ns:
                self._receive(self._acks.popleft()[1])
            elif write_ns != next_ns:
                self._time_out()

    def spells(self, state: State, end_us: int) -> list[tuple[int, int]]:
        """When ``state`` began and ended, µs; the one that lasts at ``end_us`` left out."""
        return [
            (at, end)
            for (at, kind), (end, _) in itertools.pairwise(self.transitions)
            if kind is state and end <= end_us
        ]


def open_flow(
    core: Core, path: Path, profile: Profile, *, seed: int = 1, capacity: int = 4096, **more: object
) -> Flow:
    """A flow whose handshake has measured the path's RTT."""
    start = more.get("counters_from", 0)
    assert isinstance(start, int)
    opening = Ack(
        cwnd=INITIAL_CWND, mss=path.mss, rtt_us=path.rtt_us, delivered=start % 2**32, lost=start % 2**32
    )
    connection = core.open(opening, profile, seed=seed, capacity=capacity)
    return Flow(path, connection, seed=seed, **more)  # type: ignore[arg-type]

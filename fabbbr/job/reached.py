"""Which bottleneck queue a burst of packets measures, and between which hosts. Pure.

Whoever receives a burst sees the slowest queue on its way, and only the first one is reached by all packets
at one instant. So a queue is measured best where it is the first on the way, and none behind it is slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fabbbr.job.cabling import Cabling, LinkEnds
from fabbbr.job.records import Interface
from fabbbr.model import Bottleneck, Cell
from fabbbr.units import Rate
from fabbbr.ways import crossed


@dataclass(frozen=True, kw_only=True)
class Reached:
    """A queue, and how packets of one host come to it."""

    queue: Bottleneck
    link: str
    interface: Interface
    """Of the switch that holds the queue: on the way back perhaps its port to another link."""
    sender: str
    receiver: str
    ahead_ns: int
    """One-way delay from the sender to the queue."""
    held_ns: int
    """How long a packet may wait behind the queue to leave in an aggregate."""
    fits_bytes: int
    """What it and the queues before it hold, whichever is less."""
    paced_by: Rate | None
    """What is sent at once comes at this rate, out of another queue; None: it comes at once."""
    alone: bool
    """Whether no other queue is on the way."""

    @property
    def shows_all(self) -> bool:
        """Whether its bucket can be measured, if it is as asked: in another queue what passed would stand."""
        return self.queue.burst_bytes is None or self.alone


def reached_there(cell: Cell, cabling: Cabling) -> Reached:
    """The first bottleneck, in the direction of the data; the slowest on the way where none shows that."""
    firsts = (way.first() for way in _ways(cell, cabling))
    of_trunk = (found for found in firsts if found is not None and found.link == cell.trunk.name)
    return _best(of_trunk) or next(_ways(cell, cabling)).slowest()


def _best(found: Iterable[Reached]) -> Reached | None:
    """The first that shows all that is asked, or the first.

    Each takes as long to find as there are links, and there may be thousands: no more than needed.
    """
    first: Reached | None = None
    for each in found:
        if each.shows_all:
            return each
        first = first or each
    return first


def reached_back(cell: Cell, cabling: Cabling) -> Reached | None:
    """A way back with a rate of its own that can be measured, that of the first bottleneck if any can.

    None without one. What comes through aggregates comes at no known time: a queue behind is not measured.
    """
    own = {name for name, queue in cell.bottlenecks.items() if queue.reverse is not None}
    others: list[Reached] = []
    for way in _ways(cell, cabling, back=True) if own else ():
        found = way.first()
        if found is not None and found.link in own:
            if found.link == cell.trunk.name and found.shows_all:
                return found
            others.append(found)
        elif way.limiting and not way.held_before(way.limiting[-1]):
            others.append(way.slowest())
    others.sort(key=lambda found: (found.paced_by is not None, found.link != cell.trunk.name))
    return _best(found for found in others if found.link in own)


class _Met(NamedTuple):
    """A link on the way."""

    ends: LinkEnds
    forward: bool

    @property
    def queues(self) -> tuple[tuple[Interface, Bottleneck], ...]:
        """Those that limit what goes this way."""
        return tuple(each for each in self.ends.queues if (each[0] == self.ends.queue) == self.forward)

    @property
    def delay_ns(self) -> int:
        delay = self.ends.link.delay
        return 0 if delay is None else delay.ns

    @property
    def held_ns(self) -> int:
        """How long this link holds what goes this way to make aggregates."""
        aggregation = self.ends.link.ack_aggregation
        return 0 if aggregation is None or self.forward else aggregation.most.ns

    @property
    def rate(self) -> Rate:
        """Of its queue."""
        return self.queues[0][1].rate


class _Way(NamedTuple):
    """The links from one host to another, in order."""

    sender: str
    receiver: str
    met: Sequence[_Met]

    @property
    def limiting(self) -> list[int]:
        """Places of the links with a queue."""
        return [place for place, met in enumerate(self.met) if met.queues]

    def first(self) -> Reached | None:
        """The first queue; None where a slower one is behind it, or packets would not come to it at once."""
        places = self.limiting
        slower = any(self.met[place].rate < self.met[places[0]].rate for place in places)
        if not places or slower or self.held_before(places[0]):
            return None
        return self._reached(places[0], paced_by=None)

    def slowest(self) -> Reached:
        """The slowest queue, the first of several."""
        place = min(self.limiting, key=lambda each: self.met[each].rate)
        rates = [self.met[each].rate for each in self.limiting if each < place]
        return self._reached(place, paced_by=min(rates, default=None))

    def held_before(self, place: int) -> bool:
        """Whether something makes aggregates before the queue of the link at ``place``."""
        return any(met.held_ns for met in self.met[: self._before(place)])

    def _reached(self, place: int, *, paced_by: Rate | None) -> Reached:
        before = self._before(place)
        interface, queue = self.met[place].queues[0]
        return Reached(
            queue=queue,
            link=self.met[place].ends.link.name,
            interface=interface,
            sender=self.sender,
            receiver=self.receiver,
            ahead_ns=sum(met.delay_ns for met in self.met[:before]),
            held_ns=sum(met.held_ns for met in self.met[before:]),
            fits_bytes=min(
                self.met[each].queues[0][1].buffer_bytes for each in self.limiting if each <= place
            ),
            paced_by=paced_by,
            alone=len(self.limiting) == 1,
        )

    def _before(self, place: int) -> int:
        """How many links a packet has crossed when it comes to the queue of the link at ``place``.

        A host does not shape what it sends: the switch at the other end does. The queue of a trace is in the
        link's wire.
        """
        met = self.met[place]
        interface, queue = met.queues[0]
        behind_link = interface.node == met.ends.link.a and queue.trace is None
        return place + (not met.forward and behind_link)


def _ways(cell: Cell, cabling: Cabling, *, back: bool = False) -> Iterator[_Way]:
    """Between the hosts of each flow, in the direction of the data or against it."""
    ends_of = {ends.link.name: ends for ends in cabling.ends}
    near = {link.a for link in cell.links}
    pairs = ((flow.sender, flow.receiver) for flow in cell.flows)
    for one, other in dict.fromkeys(pair if pair[0] in near else pair[::-1] for pair in pairs):
        sender, receiver = (other, one) if back else (one, other)
        way = crossed(cell.links, sender, receiver).items()
        yield _Way(sender, receiver, [_Met(ends_of[name], forward) for name, forward in way])

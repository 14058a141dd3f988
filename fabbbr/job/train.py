"""Cell → the train of small packets that shows which share of the data comes late. Pure.

netem counts what it loses, and not what it lets come late. So one packet after the other goes the way of the
data, each when the one before has long left every queue: then all take the same time but those that are late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod

from fabbbr.capacity import opportunity_s
from fabbbr.job.cabling import Cabling
from fabbbr.job.expected import TrainProbe
from fabbbr.job.records import Burst
from fabbbr.model import Cell, Reordering
from fabbbr.testbed import Testbed
from fabbbr.units import ETHERNET_HEADER_BYTES, NANOSECONDS_PER_SECOND, UDP_IPV4_HEADER_BYTES
from fabbbr.ways import crossed

_PAYLOAD_BYTES = 72
_FRAME_BYTES = _PAYLOAD_BYTES + UDP_IPV4_HEADER_BYTES + ETHERNET_HEADER_BYTES
_PORT = 7
_SOURCE_PORT = 65_535
"""Its top bit is set, as that of data."""
_LATE_PACKETS = 20
"""So many are late on average, if that takes no more than the most and no less than the fewest."""
_FEWEST, _MOST = 200, 4_000
_LONGEST_NS = 20 * NANOSECONDS_PER_SECOND
_SHORTEST_GAP_NS = 200_000
"""On a machine whose clock is real a program sleeps some 50 us too long."""


def train(cell: Cell, testbed: Testbed, cabling: Cabling) -> Burst | None:
    """The packets, as refills of one each; None where nothing comes late.

    One that is sent later than half of what a round trip may err does not count.
    """
    way, probe = _way(cell), train_probe(cell)
    if way is None or probe is None:
        return None
    rtt_ns = next(flow.rtt.ns for flow in cell.flows if (flow.sender, flow.receiver) == (way.one, way.other))
    return Burst(
        sender=way.one,
        receiver=way.other,
        receiver_address=cabling.address(way.other),
        packets=1,
        refills=_packets(probe) - 1,
        refill_packets=1,
        refill_every_ns=probe.gap_ns,
        spare_ns=round(testbed.tolerances.rtt_s * NANOSECONDS_PER_SECOND / 2),
        payload_bytes=_PAYLOAD_BYTES,
        source_port=_SOURCE_PORT,
        port=_PORT,
        watch_node=way.one,
        watch_ns=0,
        drain_ns=rtt_ns + round(probe.late_s[1] * NANOSECONDS_PER_SECOND) + NANOSECONDS_PER_SECOND // 10,
    )


def train_probe(cell: Cell) -> TrainProbe | None:
    """What the :func:`train` must measure."""
    way = _way(cell)
    if way is None:
        return None
    late = way.late.values()
    slowest = min(queue.rate.bps for queue in cell.queues)
    frame_ns = _FRAME_BYTES * 8 * NANOSECONDS_PER_SECOND / slowest
    traced = [queue.rate for queue in cell.queues if queue.trace is not None]
    return TrainProbe(
        links=tuple(way.late),
        gap_ns=max(ceil(2 * frame_ns), _SHORTEST_GAP_NS),
        late_share=1 - prod(1 - each.rate.value for each in late),
        late_s=(min(each.late.seconds for each in late), sum(each.late.seconds for each in late)),
        waits_s=len(cell.queues) * frame_ns / NANOSECONDS_PER_SECOND + sum(map(opportunity_s, traced)),
    )


def _packets(probe: TrainProbe) -> int:
    wanted = min(max(ceil(_LATE_PACKETS / probe.late_share), _FEWEST), _MOST)
    return min(wanted, max(_LONGEST_NS // probe.gap_ns, _FEWEST))


@dataclass(frozen=True, kw_only=True)
class _Way:
    """From one host to another, in the direction of some flow's data."""

    one: str
    other: str
    late: dict[str, Reordering]
    """Of each link on it that reorders."""


def _way(cell: Cell) -> _Way | None:
    """That over most links that reorder, the first flow's of several; None where no flow crosses any."""
    return max(_ways(cell), key=lambda way: len(way.late), default=None)


def _ways(cell: Cell) -> Iterator[_Way]:
    of = {link.name: link.reordering for link in cell.links if link.reordering is not None}
    for one, other in dict.fromkeys((flow.sender, flow.receiver) for flow in cell.flows) if of else ():
        there = [name for name, forward in crossed(cell.links, one, other).items() if forward]
        late = {name: of[name] for name in there if name in of}
        if late:
            yield _Way(one=one, other=other, late=late)

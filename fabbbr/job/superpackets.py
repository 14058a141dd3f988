"""Cells with segmentation offloads: what counts their super-packets, and the segments in these. Pure.

A super-packet is one packet to all that queues and drops, and as many as it has segments to some counters. In
Linux (read in the sources of 7.3):

* interface counters of a veth, and ``drops`` and ``qlen`` of a queueing discipline, count super-packets;
* ``packets`` of a queueing discipline and of a filter's action count segments;
* ``rule_hit`` of a matchall filter counts super-packets.

So each interface gets a matchall filter at its ingress, which counts both. TBF cuts a super-packet that is
larger than its burst into segments before it queues it, and counts a drop for each segment that does not fit;
CAKE cuts all. Filters in front of each bottleneck queue sort super-packets by size, so that it is known how
many were cut, and into how many segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from fabbbr.job.cabling import Cabling
from fabbbr.job.expected import Entrance, Queue, SizeClass, Sizes, SuperPackets
from fabbbr.job.records import Capture, Command, Interface
from fabbbr.model import Cell
from fabbbr.physics import burst_bytes
from fabbbr.testbed import Testbed
from fabbbr.units import ETHERNET_HEADER_BYTES, LARGEST_SUPER_PACKET_BYTES, TCP_IPV4_HEADER_BYTES, Rate

_CLASSES_UP_TO = (1, 3, 7, 15, 31)
"""Segments; the last class has those with more."""


def super_packets(
    cell: Cell, testbed: Testbed, cabling: Cabling, queues: Iterable[Queue]
) -> SuperPackets | None:
    """Where they are counted in ``cell``, whose bottleneck queues are ``queues``; None without offloads."""
    if not cell.offloads:
        return None
    interfaces = (side for cable in cabling.cables for side in (cable.a, cable.b))
    return SuperPackets(
        entrances=tuple(Entrance(interface=side, captured=f"entered.{side.name}") for side in interfaces),
        sizes=tuple(_sizes(cell, testbed, queue) for queue in queues),
        most_segments=_segments(cell, LARGEST_SUPER_PACKET_BYTES),
    )


def counting_commands(counted: SuperPackets | None, cabling: Cabling) -> Iterator[Command]:
    """Set up the filters. Those that pass frames on through a wire are there already, and count too."""
    if counted is None:
        return
    wires = {node.name for node in cabling.nodes if node.kind == "wire"}
    for entrance in counted.entrances:
        at = entrance.interface
        if at.node not in wires:
            ingress = f"filter add dev {at.name} ingress matchall action ok"
            yield _tc(at, f"qdisc add dev {at.name} clsact", ingress)
    for sizes in counted.sizes:
        yield _tc(sizes.interface, *_size_filters(sizes))


def counting_captures(counted: SuperPackets | None) -> Iterator[Capture]:
    """What to ask before the flows and after them."""
    if counted is None:
        return
    for entrance in counted.entrances:
        yield _filters(entrance.captured, entrance.interface, "ingress")
    for sizes in counted.sizes:
        yield _filters(sizes.captured, sizes.interface, "egress")


def _sizes(cell: Cell, testbed: Testbed, queue: Queue) -> Sizes:
    bursts = _bursts(cell, testbed, queue)
    whole = _largest_whole_bytes(cell, min(bursts)), _largest_whole_bytes(cell, max(bursts))
    edges = sorted(
        {*(_ip_bytes(cell, segments) for segments in _CLASSES_UP_TO), *whole, LARGEST_SUPER_PACKET_BYTES}
    )
    uppers = [edge for edge in edges if edge <= LARGEST_SUPER_PACKET_BYTES]
    classes = [
        _size_class(cell, chain, (least, most), (0, 0) if queue.aqm == "cake" else whole)
        for chain, (least, most) in enumerate(zip([0, *(edge + 1 for edge in uppers)], uppers, strict=False))
    ]
    return Sizes(
        interface=queue.interface,
        captured=f"sizes.{queue.interface.name}",
        classes=tuple(classes),
        whole_segments=1
        if queue.aqm == "cake"
        else _segments(cell, min(whole[1], LARGEST_SUPER_PACKET_BYTES)),
    )


def _bursts(cell: Cell, testbed: Testbed, queue: Queue) -> list[int]:
    if queue.burst_is_asked:
        return [queue.burst_bytes]
    hz = testbed.kernel_of(queue.interface.node).timer_hz
    rates = _rates(cell, queue)
    return [burst_bytes(rate, timer_hz=hz, frame_bytes=cell.frame_bytes) for rate in rates]


def _rates(cell: Cell, queue: Queue) -> list[Rate]:
    """All of which the queue has the burst while flows run: of each time the highest rate so far.

    Steps leave a way back of its own as it is.
    """
    if queue.reverse and cell.bottlenecks[queue.link].reverse is not None:
        return [queue.rate]
    steps = (step.rate for step in cell.steps if step.link == queue.link and step.rate)
    return list(accumulate(steps, max, initial=queue.rate))


def _size_class(cell: Cell, chain: int, span: tuple[int, int], whole: tuple[int, int]) -> SizeClass:
    """``whole`` is the largest that the smallest and the largest burst let pass uncut, in bytes."""
    least, most = span
    segments = _segments(cell, least), _segments(cell, most)
    return SizeClass(
        chain=chain,
        least_bytes=least,
        most_segments=segments[1],
        least_segments=segments[0],
        may_be_cut=segments[1] > 1 and most > whole[0],
        is_cut=segments[0] > 1 and least > whole[1],
    )


def _mss(cell: Cell) -> int:
    return cell.mtu_bytes - TCP_IPV4_HEADER_BYTES


def _ip_bytes(cell: Cell, segments: int) -> int:
    """Of a super-packet with so many full segments, as its IP header says."""
    return TCP_IPV4_HEADER_BYTES + segments * _mss(cell)


def _segments(cell: Cell, ip_bytes: int) -> int:
    """The segments of a super-packet of this size."""
    return max(-(-(ip_bytes - TCP_IPV4_HEADER_BYTES) // _mss(cell)), 1)


def _largest_whole_bytes(cell: Cell, burst: int) -> int:
    """The largest super-packet that a TBF with this burst does not cut, as its IP header says.

    TBF counts the headers of each segment.
    """
    full, rest = divmod(burst, cell.frame_bytes)
    partial = max(rest - TCP_IPV4_HEADER_BYTES - ETHERNET_HEADER_BYTES, 0)
    return _ip_bytes(cell, full) + partial


def _size_filters(sizes: Sizes) -> Iterator[str]:
    """The largest class first: what is as large as its least belongs to it, the rest to those below."""
    at = f"filter add dev {sizes.interface.name} egress"
    for each in reversed(sizes.classes[1:]):
        for value, mask in at_least(each.least_bytes):
            match = f"match u16 {value:#06x} {mask:#06x} at 2"
            yield f"{at} protocol ip prio 1 u32 {match} action goto chain {each.chain}"
        yield f"{at} chain {each.chain} matchall action ok"
    yield f"{at} prio 2 matchall action ok"


def at_least(least: int) -> Iterator[tuple[int, int]]:
    """Value and mask of the prefixes that cover the 16-bit numbers from ``least`` on, and no other.

    >>> [(hex(value), hex(mask)) for value, mask in at_least(0xBFFF)]
    [('0xbfff', '0xffff'), ('0xc000', '0xc000')]
    """
    while least < 1 << 16:
        span = least & -least or 1 << 16
        yield least, ~(span - 1) & 0xFFFF
        least += span


def _tc(interface: Interface, *lines: str) -> Command:
    return Command(node=interface.node, argv=("tc", "-batch", "-"), stdin="\n".join(lines) + "\n")


def _filters(name: str, interface: Interface, side: str) -> Capture:
    argv = ("tc", "-s", "-j", "filter", "show", "dev", interface.name, side)
    return Capture(name=name, command=Command(node=interface.node, argv=argv))

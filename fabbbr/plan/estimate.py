"""What a plan will cost, roughly: an expectation to decide by, not a promise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fabbbr.capacity import capacity_of
from fabbbr.model import Cell, Flow
from fabbbr.physics import (
    ROUND_TRIPS_OF_A_TRANSFER,
    bucket_bytes,
    cubic_window_segments,
    end_of,
    stationary_loss,
)
from fabbbr.testbed import Pace, Testbed
from fabbbr.units import LARGEST_SUPER_PACKET_BYTES, TCP_IPV4_HEADER_BYTES, Duration
from fabbbr.ways import first_queue, going_back

_SLOWED_DOWN = 2


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Of one cell, or of many added up."""

    cells: int
    clock_s: float
    """Of the flows alone."""
    bottleneck_bytes: float
    """Frames leaving the bottleneck queues, Ethernet headers included."""
    bottleneck_packets: float
    computing_s: float
    """One cell after the other, each on one core, with set-up and probes."""
    wall_s: float
    """The same; on a real clock a cell lasts at least as long as its flows."""


def estimate(cells: Iterable[Cell], testbed: Testbed) -> Estimate:
    """Add up what the cells should take on ``testbed``.

    Links are taken to be full, except where loss-based flows cannot fill them: those go at the rate of
    CUBIC's response function (RFC 9438, eq. 6) or Reno's sqrt(1.5/p), whichever is higher.
    """
    each = [_of_cell(cell, testbed) for cell in cells]
    return Estimate(
        cells=len(each),
        clock_s=sum(one.clock_s for one in each),
        bottleneck_bytes=sum(one.bottleneck_bytes for one in each),
        bottleneck_packets=sum(one.bottleneck_packets for one in each),
        computing_s=sum(one.computing_s for one in each),
        wall_s=sum(one.wall_s for one in each),
    )


def offered_loads(cell: Cell) -> dict[str, float]:
    """Group of UDP, or of flows that come at random → its share of the first bottleneck's rate.

    Frames of the segments that carry the payload, over the time within which flows come; what UDP sends.
    """
    payload = cell.mtu_bytes - TCP_IPV4_HEADER_BYTES
    loads: dict[str, float] = {}
    for flow in cell.flows:
        if flow.udp is not None:
            loads[flow.group] = (
                loads.get(flow.group, 0.0) + flow.udp.rate.bps / first_queue(cell, flow).rate.bps
            )
    for process in cell.arrivals:
        flows = [flow for flow in cell.flows if flow.group == process.group]
        sizes = [flow.size.bytes for flow in flows if flow.size]
        framed = sum(size + -(-size // payload) * (cell.frame_bytes - payload) for size in sizes)
        rate = first_queue(cell, flows[0]).rate if flows else cell.bottleneck.rate
        loads[process.group] = 8 * framed / process.duration.seconds / rate.bps
    return loads


def packets_per_s(cell: Cell, testbed: Testbed) -> float:
    """What one core forwards of this cell.

    With segmentation offloads a super-packet costs little more than a packet, unless a rate limit cuts it:
    one whose bucket does not hold the largest.
    """
    hz = testbed.kernel_of(cell.trunk.a).timer_hz
    # While rates fall, buckets stay.
    burst = min(
        bucket_bytes(queue, queue.rate, timer_hz=hz, frame_bytes=cell.frame_bytes)
        for queue in cell.bottlenecks.values()
    )
    whole = cell.offloads and burst >= LARGEST_SUPER_PACKET_BYTES
    return testbed.pace.whole_per_s if whole else testbed.pace.packets_per_s


def _of_cell(cell: Cell, testbed: Testbed) -> Estimate:
    end = end_of(cell.flows, cell.links)
    loss = max((stationary_loss(link.loss) for link in cell.links if link.loss is not None), default=0.0)
    sent = _sent_bytes(cell, end, loss)
    packets = sent / cell.frame_bytes
    per_s = packets_per_s(cell, testbed)
    around_s = _set_up_s(cell, testbed.pace)
    computing_s = _forwarding_s(cell, packets, per_s, testbed.pace) + _sampling_s(cell, end, testbed.pace)
    lasts_s = max(computing_s, end.seconds) if testbed.clock == "real" else computing_s
    return Estimate(
        cells=1,
        clock_s=end.seconds,
        bottleneck_bytes=sent,
        bottleneck_packets=packets,
        computing_s=around_s + computing_s,
        wall_s=around_s + lasts_s,
    )


def _sent_bytes(cell: Cell, end: Duration, loss: float) -> float:
    """Of all bottlenecks, each way by itself: what it carries, or what the flows of that way can send."""
    two_way = any(queue.both_directions for queue in cell.bottlenecks.values())
    back = going_back(cell) if two_way else frozenset()
    possible = {False: 0.0, True: 0.0}
    for flow in cell.flows:
        possible[flow.index in back] += _most_bytes(flow, cell, end, loss)
    return sum(
        min(
            capacity_of(cell, name, reverse=reverse).bits(0.0, end.seconds) / 8 + (way.burst_bytes or 0),
            possible[reverse],
        )
        for name, queue in cell.bottlenecks.items()
        for reverse, way in zip((False, True), queue.of_data, strict=False)
    )


def _set_up_s(cell: Cell, pace: Pace) -> float:
    hosts = {name for flow in cell.flows for name in (flow.sender, flow.receiver)}
    nodes = len(hosts) + len(cell.switches) + len(cell.links)
    random = [flow for flow in cell.flows if flow.at_random]
    batches = {(flow.group, flow.sender, flow.receiver) for flow in random}
    programs = len(cell.flows) - len(random) + len(batches)
    return pace.overhead_s + nodes * pace.node_s + programs * pace.flow_s + len(random) * pace.batched_s


def _forwarding_s(cell: Cell, packets: float, per_s: float, pace: Pace) -> float:
    if any(queue.trace is not None for queue in cell.queues):
        return packets / pace.handled_per_s
    sized = sum(flow.size.bytes for flow in cell.flows if flow.size is not None) / cell.frame_bytes
    datagrams = sum(
        flow.udp.count_in(flow.duration)
        for flow in cell.flows
        if flow.udp is not None and flow.duration is not None
    )
    return packets / per_s + min(packets, sized) / pace.sized_per_s + datagrams / pace.datagrams_per_s


def _sampling_s(cell: Cell, end: Duration, pace: Pace) -> float:
    """Each period reads the queues of every switch and wire, and a socket for each stream that is on."""
    queues_s = (len(cell.switches) + len(cell.links)) * end.seconds
    sockets_s = sum(flow.streams * _seconds_on(flow, cell, end) for flow in cell.flows if flow.udp is None)
    return (queues_s + sockets_s) / cell.sample_period.seconds / pace.samples_per_s


def _most_bytes(flow: Flow, cell: Cell, end: Duration, loss: float) -> float:
    """What a flow can send at most, by its size, its pacing and the injected loss."""
    seconds = _seconds_on(flow, cell, end)
    limits = [_loss_limited_bps(flow, cell.mtu_bytes, loss) * flow.streams * seconds / 8]
    sends = flow.udp.rate if flow.udp is not None else flow.video.bitrate if flow.video is not None else None
    own = [rate.bps for rate in (flow.pacing, flow.maxrate, sends) if rate is not None]
    limits += [bps * flow.streams * seconds / 8 for bps in own]
    if flow.size is not None:
        limits.append(float(flow.size.bytes))
    return min(limits)


def _loss_limited_bps(flow: Flow, mtu_bytes: int, ratio: float) -> float:
    """CUBIC's window each round trip; no limit for BBR or without loss."""
    if flow.cca is None or flow.cca.startswith("bbr") or ratio == 0 or flow.rtt.ns == 0:
        return float("inf")
    rtt = flow.rtt.seconds
    return cubic_window_segments(rtt_s=rtt, loss=ratio) * 8 * (mtu_bytes - TCP_IPV4_HEADER_BYTES) / rtt


def _seconds_on(flow: Flow, cell: Cell, end: Duration) -> float:
    """Of one that has a size: as long as it may take; at random, twice what it needs alone."""
    if flow.duration is not None:
        return flow.duration.seconds
    longest = max(end.seconds - flow.start.seconds, 0.0)
    if not flow.at_random or flow.size is None:
        return longest
    own = [rate.bps * flow.streams for rate in (flow.pacing, flow.maxrate) if rate is not None]
    bps = min([first_queue(cell, flow).rate.bps, *own])
    alone = ROUND_TRIPS_OF_A_TRANSFER * flow.rtt.seconds + 8 * flow.size.bytes / bps
    return min(_SLOWED_DOWN * alone, longest)

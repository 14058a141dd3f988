"""What a plan will cost, roughly: an expectation to decide by, not a promise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fabbbr.model import Cell, CellLink, Flow
from fabbbr.physics import end_of
from fabbbr.units import (
    ETHERNET_HEADER_BYTES,
    NANOSECONDS_PER_SECOND,
    TCP_IPV4_HEADER_BYTES,
    Duration,
    Rate,
)

PACKETS_PER_S = 150e3
"""What one core of a guest forwards, data and acknowledgements together."""

CELL_OVERHEAD_S = 3.0
"""Boot, probes and read-back of one cell, wall clock."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Of one cell, or of many added up."""

    cells: int
    virtual_s: float
    """Of the flows alone."""
    bottleneck_bytes: float
    """Frames leaving the bottleneck queues, Ethernet headers included."""
    bottleneck_packets: float
    wall_s: float
    """On one core."""


def estimate(cells: Iterable[Cell], *, packets_per_s: float = PACKETS_PER_S) -> Estimate:
    """Add up what the cells should take.

    Links are taken to be full, except where loss-based flows cannot fill them: those go at the rate of
    CUBIC's response function (RFC 9438, eq. 6) or Reno's sqrt(1.5/p), whichever is higher.
    """
    each = [_of_cell(cell, packets_per_s) for cell in cells]
    return Estimate(
        cells=len(each),
        virtual_s=sum(one.virtual_s for one in each),
        bottleneck_bytes=sum(one.bottleneck_bytes for one in each),
        bottleneck_packets=sum(one.bottleneck_packets for one in each),
        wall_s=sum(one.wall_s for one in each),
    )


def _of_cell(cell: Cell, packets_per_s: float) -> Estimate:
    end = end_of(cell.flows, cell.links)
    loss = max((link.loss.rate.value for link in cell.links if link.loss is not None), default=0.0)
    possible = sum(_most_bytes(flow, cell, end, loss) for flow in cell.flows)
    sent = sum(
        min(_capacity_bytes(link, cell, end), possible) for link in cell.links if link.rate is not None
    )
    packets = sent / (cell.mtu_bytes + ETHERNET_HEADER_BYTES)
    return Estimate(
        cells=1,
        virtual_s=end.seconds,
        bottleneck_bytes=sent,
        bottleneck_packets=packets,
        wall_s=packets / packets_per_s + CELL_OVERHEAD_S,
    )


def _capacity_bytes(link: CellLink, cell: Cell, end: Duration) -> float:
    """The integral of the rate over the run, steps included."""
    changes = [(Duration(0), link.rate or Rate(0))]
    changes += [
        (step.at, step.rate) for step in cell.steps if step.link == link.name and step.rate is not None
    ]
    until = [at for at, _ in changes[1:]] + [end]
    bits = sum(rate.bps * max(stop.ns - at.ns, 0) for (at, rate), stop in zip(changes, until, strict=True))
    return bits / (8 * NANOSECONDS_PER_SECOND)


def _most_bytes(flow: Flow, cell: Cell, end: Duration, loss: float) -> float:
    """What a flow can send at most, by its size, its pacing and the injected loss."""
    seconds = flow.duration.seconds if flow.duration is not None else end.seconds - flow.start.seconds
    limits = [_loss_limited_bps(flow, cell.mtu_bytes, loss) * flow.streams * seconds / 8]
    if flow.pacing is not None:
        limits.append(flow.pacing.bps * flow.streams * seconds / 8)
    if flow.size is not None:
        limits.append(float(flow.size.bytes))
    return min(limits)


def _loss_limited_bps(flow: Flow, mtu_bytes: int, ratio: float) -> float:
    """RFC 9438 with C = 0.4 and beta = 0.7, RTT in seconds; no limit for BBR or without loss."""
    if flow.cca.startswith("bbr") or ratio == 0 or flow.rtt.ns == 0:
        return float("inf")
    rtt = flow.rtt.seconds
    cubic: float = (0.4 * 3.7 / 1.2) ** 0.25 * (rtt / ratio) ** 0.75
    window: float = max(cubic, (1.5 / ratio) ** 0.5)
    return window * 8 * (mtu_bytes - TCP_IPV4_HEADER_BYTES) / rtt

"""Which flows ask for less than their fair share of each queue, and so limit themselves."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from fabbbr.capacity import RateOverTime, way_of
from fabbbr.model import Cell, Flow
from fabbbr.physics import end_of
from fabbbr.units import goodput_ceiling
from fabbbr.ways import Ways

_Queue: TypeAlias = tuple[str, bool]
"""A bottleneck, and whether data crosses it from ``a`` to ``b``."""


class _Asking(NamedTuple):
    flow: Flow
    each_bps: float
    """Of each of its connections, in bit/s of frames; inf for as much as may be."""
    start_ns: int
    end_ns: int


def limiting_themselves(cell: Cell) -> frozenset[int]:
    """The flows whose rate is what was asked for, which win and lose nothing.

    UDP, videos, and what is paced to less than the max-min fair share of a connection at each queue that it
    crosses, among all that run at some time while it does. Transfers of given sizes come and go, and count
    for none. Of a rate that steps change the highest counts, and of a trace the mean.
    """
    rigid = {flow.index for flow in cell.flows if not flow.elastic}
    paced = {flow.index for flow in cell.flows if math.isfinite(_each_bps(cell, flow))} - rigid
    if not paced:
        return frozenset(rigid)
    wanting_more = {
        one.flow.index
        for queue, asking in _by_queue(cell).items()
        for one in asking
        if one.flow.index in paced and one.each_bps > _share_bps(cell, queue, one, asking)
    }
    return frozenset(rigid | paced - wanting_more)


def fair_share(capacity: float, demands: Iterable[float]) -> float:
    """The max-min fair share: what each gets that asks for more; inf where all get what they ask for.

    >>> fair_share(100, [10, 60, 70])
    45.0
    """
    left, asked = capacity, sorted(demands)
    for place, demand in enumerate(asked):
        share = left / (len(asked) - place)
        if demand > share:
            return share
        left -= demand
    return math.inf


def _by_queue(cell: Cell) -> dict[_Queue, list[_Asking]]:
    ways, bottlenecks = Ways(cell.links), cell.bottlenecks
    found: dict[_Queue, list[_Asking]] = defaultdict(list)
    for flow in cell.flows:
        asking = _Asking(flow, _each_bps(cell, flow), flow.start.ns, end_of([flow], cell.links).ns)
        for name, forward in ways.between(flow.sender, flow.receiver).items():
            if name in bottlenecks:
                found[name, forward].append(asking)
    return found


def _each_bps(cell: Cell, flow: Flow) -> float:
    """A socket paces payload, and ``fq`` frames."""
    if flow.udp is not None:
        return flow.udp.rate.bps
    payload = [flow.pacing] if flow.pacing is not None else []
    payload += [flow.video.bitrate] if flow.video is not None else []
    frames = [flow.maxrate.bps] if flow.maxrate is not None else []
    return min((*(rate.bps / goodput_ceiling(cell.mtu_bytes) for rate in payload), *frames), default=math.inf)


def _share_bps(cell: Cell, queue: _Queue, one: _Asking, asking: Sequence[_Asking]) -> float:
    """The fair share of each connection of ``one`` at a queue, beside those that may run when it does."""
    beside = (
        each
        for each in asking
        if each is one
        or (each.flow.size is None and one.start_ns < each.end_ns and each.start_ns < one.end_ns)
    )
    return fair_share(
        _rate_bps(cell, queue), (each.each_bps for each in beside for _ in range(each.flow.streams))
    )


def _rate_bps(cell: Cell, queue: _Queue) -> float:
    link, forward = queue
    way = way_of(cell, link, reverse=not forward)
    return way.rate.bps if way.trace else max(RateOverTime.of(cell, link, reverse=not forward).bps)

"""Which way data goes: the links that it crosses between two hosts, and the queue that it meets there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from fabbbr.model import Bottleneck, Cell, CellLink, Flow


class _Up(NamedTuple):
    """From a node one link nearer to the root of its tree."""

    node: str
    link: str
    forward: bool
    """Whether going up is going from ``a`` to ``b``."""


class Ways:
    """Through links that are a tree: looked through once, and then a way costs no more than its length."""

    def __init__(self, links: Iterable[CellLink]) -> None:
        beside: dict[str, list[tuple[str, _Up]]] = defaultdict(list)
        for link in links:
            beside[link.a].append((link.b, _Up(link.a, link.name, forward=False)))
            beside[link.b].append((link.a, _Up(link.b, link.name, forward=True)))
        self._up: dict[str, _Up | None] = {}
        self._depth: dict[str, int] = {}
        for root in beside:
            if root not in self._depth:
                self._plant(root, beside)

    def _plant(self, root: str, beside: dict[str, list[tuple[str, _Up]]]) -> None:
        self._up[root], self._depth[root] = None, 0
        waiting = [root]
        for here in waiting:
            for there, up in beside[here]:
                if there not in self._depth:
                    self._up[there], self._depth[there] = up, self._depth[here] + 1
                    waiting.append(there)

    def between(self, sender: str, receiver: str) -> dict[str, bool]:
        """Name of each link, in order → whether data crosses it from ``a`` to ``b``.

        Nothing when the links do not join the two.
        """
        near: list[tuple[str, bool]] = []
        far: list[tuple[str, bool]] = []
        here, there = sender, receiver
        while here != there:
            climbs = self._depth.get(here, 0) >= self._depth.get(there, 0)
            up = self._up.get(here if climbs else there)
            if up is None:
                return {}
            if climbs:
                near.append((up.link, up.forward))
                here = up.node
            else:
                far.append((up.link, not up.forward))
                there = up.node
        return dict([*near, *reversed(far)])


def crossed(links: Iterable[CellLink], sender: str, receiver: str) -> dict[str, bool]:
    """One way through the links, as of :meth:`Ways.between`."""
    return Ways(links).between(sender, receiver)


def going_back(cell: Cell) -> frozenset[int]:
    """The flows whose data crosses some bottleneck from ``b`` to ``a``."""
    ways, bottlenecks = Ways(cell.links), cell.bottlenecks
    back = {
        pair
        for pair in cell.pairs
        if any(name in bottlenecks and not forward for name, forward in ways.between(*pair).items())
    }
    return frozenset(flow.index for flow in cell.flows if (flow.sender, flow.receiver) in back)


def goes_back(cell: Cell, link: str) -> frozenset[bool]:
    """Whether data crosses a link from ``b`` to ``a``: of each way that some flow's goes, nothing of none."""
    ways, pairs = Ways(cell.links), {(flow.sender, flow.receiver) for flow in cell.flows}
    met = (ways.between(*pair).get(link) for pair in pairs)
    return frozenset(not forward for forward in met if forward is not None)


def first_queue(cell: Cell, flow: Flow) -> Bottleneck:
    """The first bottleneck as data of ``flow`` meets it, which may go its way back."""
    forward = crossed(cell.links, flow.sender, flow.receiver).get(cell.trunk.name, True)
    return cell.bottleneck if forward else cell.bottleneck.way_back or cell.bottleneck

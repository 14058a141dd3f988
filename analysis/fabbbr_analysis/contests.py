"""Which flows compete: those that share a bottleneck queue, or share one with the same others."""

from __future__ import annotations

from collections.abc import Iterable

from fabbbr.model import Cell, Flow
from fabbbr.ways import Ways


def contests(cell: Cell) -> dict[str, str]:
    """Group → names of the queues in which it competes, as in ``trunk``, ``b1, b2`` or ``trunk back``.

    Rivals have the same: what a group meets alone is told of those too that meet it elsewhere. Data that goes
    from ``b`` to ``a`` of a link has a queue of its own there.
    """
    met: dict[str, set[str]] = {}
    ways, bottlenecks = Ways(cell.links), cell.bottlenecks
    for group, *pair in dict.fromkeys((flow.group, flow.sender, flow.receiver) for flow in cell.flows):
        way = ways.between(*pair).items()
        queues = {name if forward else f"{name} back" for name, forward in way if name in bottlenecks}
        met.setdefault(group, set()).update(queues)
    merged = _merged(met.values())
    order = [f"{name}{way}" for way in ("", " back") for name in bottlenecks]
    return {
        group: ", ".join(
            name for name in order if name in next((each for each in merged if each & queues), set())
        )
        for group, queues in met.items()
    }


def one_contest(cell: Cell, flows: Iterable[Flow]) -> bool:
    """Whether all of these flows compete with one another."""
    of = contests(cell)
    return len({of[flow.group] for flow in flows}) <= 1


def _merged(sets: Iterable[set[str]]) -> list[set[str]]:
    """Unions of those that have something in common."""
    merged: list[set[str]] = []
    for each in sets:
        joined = each.union(*(other for other in merged if other & each))
        merged = [other for other in merged if not other & each] + [joined]
    return merged

"""The phases of a cell: start-up, then what lies between steps and between starts and ends of groups.

Everything comes from the plan but the end, which is measured. Seconds count from the start of the first flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from fabbbr.model import Cell, CellLink
from fabbbr.units import Duration

Cause = Literal["start", "warm-up", "step", "flows"]
WHOLE_RUN = 0
"""The number of the phase that is the whole run."""
_LEAST_S = 1.0
"""Starts and ends of groups that are closer than this to another edge make none of their own."""
_MOST_STEPS = 50
"""More instants of steps than these are a trace, whose every rate is no phase."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of a cell during which nothing is changed from outside."""

    number: int
    """0 for the whole run, then in the order of time."""
    name: str
    start_s: float
    end_s: float
    begins_with: Cause


def phases_of(cell: Cell, end_s: float) -> tuple[Phase, ...]:
    """The whole run, then its phases in order; ``end_s`` is when the last flow ended.

    The first is the start-up. It lasts for the cell's warm-up, or until half of the time before the first
    step where that comes within the warm-up. Without a step, and with groups that run side by side, all that
    follows is the steady state. The last one ends when it was to, which is before the last byte came.
    """
    whole = Phase(number=WHOLE_RUN, name="whole run", start_s=0.0, end_s=end_s, begins_with="start")
    planned_s = planned_end_s(cell)
    # What arrives after the time that was asked for is the tail of some flows, and no phase.
    end_s = end_s if planned_s is None else min(end_s, planned_s)
    edges = _edges(cell, end_s)
    instants = [*edges, end_s]
    named = [_name(cell, start, None if end == end_s else end, edges) for start, end in pairwise(instants)]
    return (
        whole,
        *(
            Phase(number=number, name=name, start_s=start, end_s=end, begins_with=edges[start])
            for number, (name, (start, end)) in enumerate(
                zip(named, pairwise(instants), strict=True), start=1
            )
        ),
    )


def _edges(cell: Cell, end_s: float) -> dict[float, Cause]:
    """When each phase begins, and with what."""
    steps = {step.at.seconds for step in cell.steps}
    within = sorted(at_s for at_s in steps if 0 < at_s < end_s) if len(steps) <= _MOST_STEPS else []
    warm_up_s = cell.warm_up.seconds
    if within and within[0] <= warm_up_s:
        warm_up_s = within[0] / 2
    edges: dict[float, Cause] = {0.0: "start"}
    if 0 < warm_up_s < end_s:
        edges[warm_up_s] = "warm-up"
    edges |= dict.fromkeys(within, "step")
    for at_s in _comings_and_goings(cell):
        if warm_up_s < at_s < end_s and min(abs(at_s - edge) for edge in (*edges, end_s)) >= _LEAST_S:
            edges[at_s] = "flows"
    return dict(sorted(edges.items()))


def planned_end_s(cell: Cell) -> float | None:
    """When the last flow is to end; None where some flow has a size instead of a duration."""
    ends = [flow.start.seconds + flow.duration.seconds for flow in cell.flows if flow.duration is not None]
    return max(ends) if len(ends) == len(cell.flows) and ends else None


def _comings_and_goings(cell: Cell) -> Iterator[float]:
    """When the first flow of each group starts, and when the last one of those with a duration ends."""
    for group in dict.fromkeys(flow.group for flow in cell.flows):
        own = [flow for flow in cell.flows if flow.group == group]
        yield min(flow.start.seconds for flow in own)
        if all(flow.duration is not None for flow in own):
            yield max(flow.start.seconds + flow.duration.seconds for flow in own if flow.duration is not None)


def _name(cell: Cell, start_s: float, end_s: float | None, edges: Mapping[float, Cause]) -> str:
    """Equal phases of all runs have one name.

    So the end of the run is not said, which is measured (``end_s`` is None), nor that of the start-up, which
    is longer where round trips are.
    """
    if start_s == 0:
        return "start-up"
    if set(edges.values()) <= {"start", "warm-up"}:
        return "steady state"
    said = ", ".join(_state(cell, start_s))
    if edges[start_s] == "warm-up":
        when = f"after start-up, until {end_s:g} s"
    else:
        when = f"from {start_s:g} s" if end_s is None else f"{start_s:g} to {end_s:g} s"
    return f"{when}: {said}" if said else when


def _round_trip(link: CellLink) -> Duration:
    """Before any step."""
    return Duration(0 if link.delay is None else 2 * link.delay.ns)


def _state(cell: Cell, at_s: float) -> Iterator[str]:
    """What of the links a step changes, as it is then."""
    buffers = {link.name: queue.buffer_bytes for link in cell.links if (queue := link.bottleneck) is not None}
    for link in cell.links:
        own = [step for step in cell.steps if step.link == link.name]
        past = [step for step in own if step.at.seconds <= at_s]
        if any(step.rate is not None for step in own) and link.bottleneck is not None:
            yield str(next((step.rate for step in reversed(past) if step.rate), link.bottleneck.rate))
        if any(step.rtt is not None for step in own):
            since = next((step.rtt for step in reversed(past) if step.rtt is not None), None)
            yield f"RTT of {link.name} {since if since is not None else _round_trip(link)}"
        if any(step.buffer_bytes is not None for step in own):
            size = next((step.buffer_bytes for step in reversed(past) if step.buffer_bytes), None)
            yield f"buffer {size if size is not None else buffers.get(link.name)} B"

"""The phases of a cell: start-up, then what lies between steps and between starts and ends of groups.

Everything comes from the plan but the end, which is measured. Seconds count from the start of the first flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from fabbbr.model import Cell, CellLink
from fabbbr.physics import end_of, loses, loss_in_words
from fabbbr.units import Duration

Cause = Literal["start", "warm-up", "step", "flows"]
WHOLE_RUN = 0
"""The number of the phase that is the whole run."""
LEAST_S = 1.0
"""Starts and ends of groups that are closer than this to another edge make none of their own."""
_LONG = 10
"""So many times as long as a lot of steps what it leads to is at least."""
_LOSSLESS = "no loss"
_MOST_STEPS = 50
"""More than these are a recording, whose every row is no phase."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of a cell during which nothing is changed from outside."""

    number: int
    """0 for the whole run, then in the order of time."""
    name: str
    start_s: float
    end_s: float
    begins_with: Cause
    steady_from_s: float
    """From when on nothing changes: steps that come one upon another begin one phase."""


def phases_of(cell: Cell, ended_s: Mapping[int, float]) -> tuple[Phase, ...]:
    """The whole run, then its phases in order; ``ended_s``: flow → when its last byte came.

    The first is the start-up. It lasts for the cell's warm-up, or until half of the time before the first
    step where that comes within the warm-up. Without a step, and with groups that run side by side, all that
    follows is the steady state. The last one ends when the last flow has sent.
    """
    end_s = max(ended_s.values())
    whole = Phase(
        number=WHOLE_RUN,
        name="whole run",
        start_s=0.0,
        end_s=end_s,
        begins_with="start",
        steady_from_s=0.0,
    )
    # What arrives after the time that was asked for is the tail of some flows, and no phase.
    end_s = min(end_s, _sent_until_s(cell, ended_s))
    lots = _lots(cell, end_s)
    edges = _edges(cell, end_s, [*lots])
    instants = [*edges, end_s]
    phases = [
        Phase(
            number=number,
            name="",
            start_s=start,
            end_s=end,
            begins_with=edges[start],
            steady_from_s=lots.get(start, start),
        )
        for number, (start, end) in enumerate(pairwise(instants), start=1)
    ]
    return whole, *(replace(phase, name=_name(cell, phase, phases)) for phase in phases)


def planned_phases(cell: Cell) -> tuple[Phase, ...]:
    """As they will be, where transfers of given sizes take what the slowest bottleneck allows."""
    end_s = end_of(cell.flows, cell.links).seconds
    return phases_of(cell, {flow.index: end_s for flow in cell.flows})


def _lots(cell: Cell, end_s: float) -> dict[float, float]:
    """When each lot of steps begins that come one upon another, and when its last one comes.

    What a long lot leads to is not what it was until then, so it begins no phase.
    """
    lots = in_lots(step.at.seconds for step in cell.asked_steps if 0 < step.at.seconds < end_s)
    begins = [*(lot[0] for lot in lots), end_s]
    found = {
        start: lot[-1]
        for lot, (start, end) in zip(lots, pairwise(begins), strict=True)
        if _LONG * (lot[-1] - start) <= end - lot[-1]
    }
    return found if len(found) <= _MOST_STEPS else {}


def in_lots(instants: Iterable[float]) -> list[list[float]]:
    """Each instant once, in the order of time, those together that come one upon another [s]."""
    lots: list[list[float]] = []
    for at_s in sorted(set(instants)):
        if lots and at_s - lots[-1][-1] <= LEAST_S:
            lots[-1].append(at_s)
        else:
            lots.append([at_s])
    return lots


def _edges(cell: Cell, end_s: float, steps: Sequence[float]) -> dict[float, Cause]:
    """When each phase begins, and with what."""
    warm_up_s = cell.warm_up.seconds
    if steps and steps[0] <= warm_up_s:
        warm_up_s = steps[0] / 2
    edges: dict[float, Cause] = {0.0: "start"}
    if 0 < warm_up_s < end_s:
        edges[warm_up_s] = "warm-up"
    edges |= dict.fromkeys(steps, "step")
    for at_s in _comings_and_goings(cell):
        if warm_up_s < at_s < end_s and min(abs(at_s - edge) for edge in (*edges, end_s)) >= LEAST_S:
            edges[at_s] = "flows"
    return dict(sorted(edges.items()))


def planned_end_s(cell: Cell) -> float | None:
    """When the last flow is to end, or to come at random; None where some flow has a size instead."""
    if any(flow.duration is None and not flow.at_random for flow in cell.flows):
        return None
    return _sent_until_s(cell, {})


def _sent_until_s(cell: Cell, ended_s: Mapping[int, float]) -> float:
    """Until when flows send: those with a duration until it is over, those at random until no more come."""
    timed = [flow.start.seconds + flow.duration.seconds for flow in cell.flows if flow.duration is not None]
    random = [group.start.seconds + group.duration.seconds for group in cell.arrivals]
    others = (flow for flow in cell.flows if flow.duration is None and not flow.at_random)
    return max([*timed, *random, *(ended_s.get(flow.index, 0.0) for flow in others)])


def _comings_and_goings(cell: Cell) -> Iterator[float]:
    """When the first flow of each group starts, and when the last one of those with a duration ends."""
    for group in dict.fromkeys(flow.group for flow in cell.flows):
        own = [flow for flow in cell.flows if flow.group == group]
        yield min(flow.start.seconds for flow in own)
        if all(flow.duration is not None for flow in own):
            yield max(flow.start.seconds + flow.duration.seconds for flow in own if flow.duration is not None)


def _name(cell: Cell, phase: Phase, phases: Sequence[Phase]) -> str:
    """Equal phases of all runs have one name.

    So the end of the run is not said, which is measured, nor that of the start-up, which is longer where
    round trips are.
    """
    if phase.start_s == 0:
        return "start-up"
    if {each.begins_with for each in phases} <= {"start", "warm-up"}:
        return "steady state"
    said = _state(cell, phase.steady_from_s)
    passing = list(_passing(cell, phase, said))
    # Where nothing is lost, and there is more to say, that is not said.
    said = [*(words for words in said if words != _LOSSLESS), *passing] or said
    if phase.begins_with == "warm-up":
        when = f"after start-up, until {phase.end_s:g} s"
    elif phase is phases[-1]:
        when = f"from {phase.start_s:g} s"
    else:
        when = f"{phase.start_s:g} to {phase.end_s:g} s"
    return f"{when}: {', '.join(said)}" if said else when


def _round_trip(link: CellLink) -> Duration:
    """Before any step."""
    return Duration(0 if link.delay is None else 2 * link.delay.ns)


def _passing(cell: Cell, phase: Phase, left: Sequence[str]) -> Iterator[str]:
    """What held for a moment between the steps that begin a phase, beside what they have ``left``."""
    begin_s, end_s = phase.start_s, phase.steady_from_s
    instants = sorted({step.at.seconds for step in cell.steps if begin_s <= step.at.seconds <= end_s})
    for at_s, then_s in pairwise(instants):
        after = _state(cell, then_s)
        gone = (words for words in _state(cell, at_s) if words not in left and words not in after)
        yield from (f"{words} until {then_s:g} s" for words in gone)


def _state(cell: Cell, at_s: float) -> list[str]:
    """What of the links a step changes, as it is then."""
    return list(_in_words(cell, at_s))


def _in_words(cell: Cell, at_s: float) -> Iterator[str]:
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
        lost = next((step.loss for step in reversed(past) if step.loss is not None), link.loss)
        if any(step.loss is not None for step in own) and lost is not None:
            yield f"loss {loss_in_words(lost)}" if loses(lost) else _LOSSLESS

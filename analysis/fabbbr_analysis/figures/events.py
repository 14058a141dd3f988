"""What changes while flows run, as it was asked: steps of links, and groups of flows that start later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fabbbr.model import Cell, Step
from fabbbr.physics import loss_in_words

MOST_MARKS = 12
"""More instants than these are not marked one by one: the steps of a trace, or the starts of many flows."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """An instant of the cell's clock, s from the start of the first flow, and what happens then."""

    at_s: float
    text: str
    """Such as ``rate 10 Mbit/s``; empty for one of many flows that start."""


def something_changes(cell: Cell) -> bool:
    """Whether a reader wants to see first how a run goes: it has steps, or groups that start later."""
    return bool(cell.steps) or len({starts[0] for starts in _starts(cell).values()}) > 1


def events(cells: Iterable[Cell]) -> tuple[Event, ...]:
    """Everything that happens in any of these cells, in the order of time; one instant has one event."""
    said: dict[float, list[str]] = {}
    for cell in cells:
        for at_s, text in (*_of_steps(cell), *_of_starts(cell)):
            texts = said.setdefault(at_s, [])
            if text and text not in texts:
                texts.append(text)
    return tuple(Event(at_s=at_s, text=", ".join(said[at_s])) for at_s in sorted(said))


def step_in_words(cell: Cell, step: Step) -> str:
    """Say what a step sets; the link is named where it is not the only bottleneck."""
    parts = []
    if step.rate is not None:
        parts.append(f"rate {step.rate}")
    if step.rtt is not None:
        parts.append(f"RTT {step.rtt}")
    if step.buffer_bytes is not None:
        parts.append(f"buffer {step.buffer_bytes / 1000:g} kB")
    if step.loss is not None:
        parts.append(f"loss {loss_in_words(step.loss)}")
    alone = list(cell.bottlenecks) == [step.link]
    return ", ".join(parts) if alone else f"{step.link}: {', '.join(parts)}"


def _of_steps(cell: Cell) -> Iterator[tuple[float, str]]:
    if len({step.at for step in cell.steps}) <= MOST_MARKS:
        yield from ((step.at.seconds, step_in_words(cell, step)) for step in cell.steps)


def _of_starts(cell: Cell) -> Iterator[tuple[float, str]]:
    starts = _starts(cell)
    each = len({at_s for instants in starts.values() for at_s in instants}) <= MOST_MARKS
    for group, (first_s, *later) in starts.items():
        if first_s > 0:
            until = f" ({len(later) + 1} flows until {later[-1]:g} s)" if later[-1:] > [first_s] else ""
            yield first_s, f"{group} starts{until}"
        if each:
            yield from ((at_s, "") for at_s in later if at_s > 0)


def _starts(cell: Cell) -> dict[str, list[float]]:
    """Group of flows → when each of its flows starts, in the order of time."""
    starts: dict[str, list[float]] = {}
    for flow in cell.flows:
        starts.setdefault(flow.group, []).append(flow.start.seconds)
    return {group: sorted(instants) for group, instants in starts.items()}

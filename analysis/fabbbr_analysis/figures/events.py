"""What changes while flows run, as it was asked: steps of links, and groups of flows that start later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabbbr.model import Cell, Step
from fabbbr.physics import loses, loss_in_words
from fabbbr_analysis.phases import LEAST_S, in_lots

MOST_MARKS = 12
"""More instants than these are not marked one by one: rows of a recording, or the starts of many flows."""
_CHANGES = ("rate", "rtt", "buffer_bytes", "loss")
"""What a step may set."""


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
    """One of those that come one upon another within a second: what they leave, and what passes."""
    lots = in_lots(step.at.seconds for step in cell.asked_steps)
    apart = [[at_s] for lot in lots if lot[-1] - lot[0] > LEAST_S for at_s in lot]
    marked = sorted([lot for lot in lots if lot[-1] - lot[0] <= LEAST_S] + apart)
    for lot in marked if len(marked) <= MOST_MARKS else ():
        own = sorted((step for step in cell.asked_steps if step.at.seconds in lot), key=lambda step: step.at)
        for link in dict.fromkeys(step.link for step in own):
            of_link = [step for step in own if step.link == link]
            yield from ((lot[0], text) for text in _of_lot(cell, of_link))


def _of_lot(cell: Cell, steps: Sequence[Step]) -> Iterator[str]:
    """Say what steps of one link leave, and what held in between; that nothing is lost any more is clear."""
    left, passing = steps[0].model_copy(), []
    for step in steps[1:]:
        changed = {key: value for key, value in step if value is not None and key in _CHANGES}
        gone = {key: getattr(left, key) if key in changed else None for key in _CHANGES}
        passing.append(left.model_copy(update=gone | {"at": step.at}))
        left = left.model_copy(update=changed)
    ended = [step.loss for step in passing if step.loss is not None]
    if ended and not loses(left.loss):
        left = left.model_copy(update={"loss": None})
    if any(getattr(left, key) is not None for key in _CHANGES):
        yield step_in_words(cell, left)
    for each in passing:
        if any(getattr(each, key) is not None for key in _CHANGES):
            yield f"{step_in_words(cell, each)} until {each.at.seconds:g} s"


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

"""How long a packet and its answer are under way where no queue stands, while steps change it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabbbr.model import Cell, CellLink, Flow
from fabbbr.ways import Ways

Array = NDArray[np.float64]


def rtt_at_first_s(link: CellLink) -> float:
    """What it adds to a round trip before any step."""
    return 2 * link.delay.seconds if link.delay is not None else 0.0


def rtts_s(cell: Cell, link: CellLink, start_s: float, end_s: float) -> list[float]:
    """What it adds at ``start_s``, and after each step from then until ``end_s``."""
    found = [rtt_at_first_s(link)]
    for at_s, rtt_s in _steps(cell, link):
        if at_s < end_s:
            kept = found if at_s > start_s else []
            found = [*kept, rtt_s]
    return found


def changes(cell: Cell) -> bool:
    """Whether some step changes it."""
    return any(step.rtt is not None for step in cell.steps)


def round_trips(cell: Cell, flow: Flow, end_s: float) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Instants until ``end_s``, and the round trip of a flow's path from each on [s].

    None where no step changes it.
    """
    if not changes(cell):
        return None
    crossed = Ways(cell.links).between(flow.sender, flow.receiver)
    instants = {at_s for link in cell.links if link.name in crossed for at_s, _ in _steps(cell, link)}
    if not instants:
        return None
    since_s = sorted({0.0, *(at_s for at_s in instants if at_s < end_s)})
    rtts_s = flow.rtt.seconds + added_s(cell, flow, np.array([*since_s, since_s[-1]]))
    return (*since_s, end_s), tuple(rtts_s.tolist())


def added_s(cell: Cell, flow: Flow, times: Array) -> Array:
    """What steps have added to the round trip of a flow at these instants [s from the first flow's start].

    It is the same for all flows between two hosts.
    """
    crossed = Ways(cell.links).between(flow.sender, flow.receiver)
    found = np.zeros(times.shape)
    for link in cell.links:
        if link.name in crossed:
            held = [(-np.inf, rtt_at_first_s(link)), *_steps(cell, link)]
            instants, rtts = (np.array(each) for each in zip(*held, strict=True))
            found += rtts[np.searchsorted(instants, times, side="right") - 1] - rtts[0]
    return found


def _steps(cell: Cell, link: CellLink) -> list[tuple[float, float]]:
    """When they come, and what the link then adds, in the order of time."""
    own = (step for step in cell.steps if step.link == link.name)
    return sorted((step.at.seconds, step.rtt.seconds) for step in own if step.rtt is not None)

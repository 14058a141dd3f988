"""How soon after a step the link is filled again, and its queue has settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from fabbbr.model import Cell, CellLink, Flow
from fabbbr.physics import payload_share
from fabbbr_analysis.arrivals import Array, Arrival, known
from fabbbr_analysis.fairness import STEP_S, WINDOW_S
from fabbbr_analysis.measured_cell import MeasuredCell
from fabbbr_analysis.metrics import queue_of
from fabbbr_analysis.phases import Phase

FILLED = 0.9
"""Share of the ceiling that counts as filled again after a step."""
_STAYS = 1.25
"""A queue has settled when it is at most so many times what it is in the second half of the phase."""
_FRAMES = 10
"""Or at most so many frames more: a queue of none has no multiples."""


def recovery(measured: MeasuredCell, phase: Phase) -> dict[str, float | None]:
    """How long after a step all flows together fill 90 % of the ceiling over 1 s, and the queue has settled.

    Both of the link that the step changes. None in a phase that no step begins, and when it does not happen
    within the phase.
    """
    starts = np.arange(phase.start_s, phase.end_s - WINDOW_S + 1e-9, STEP_S)
    if phase.begins_with != "step" or not starts.size:
        return {"recovery_s": None, "queue_settled_s": None}
    link = _changed_link(measured.cell, phase)
    return {
        "recovery_s": _filled_after_s(measured, phase, link, starts),
        "queue_settled_s": _settled_after_s(measured, phase, link, starts),
    }


def on_average(after: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Of all steps of a run; None where there are none, or it does not happen after one of them."""
    return {name: _mean([each[name] for each in after]) for name in ("recovery_s", "queue_settled_s")}


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if there and len(there) == len(values) else None


def _changed_link(cell: Cell, phase: Phase) -> CellLink:
    """The first bottleneck that the step at the phase's start changes, or of all where it changes none."""
    begun = [step for step in cell.steps if phase.start_s <= step.at.seconds <= phase.steady_from_s]
    changed = {step.link for step in begun} & cell.bottlenecks.keys()
    return next((link for link in cell.links if link.name in changed), cell.trunk)


def _filled_after_s(measured: MeasuredCell, phase: Phase, link: CellLink, starts: Array) -> float | None:
    through = [flow for flow in measured.cell.flows if link.name in measured.ways[flow.index]]
    queue = link.bottleneck
    if queue is None or queue.both_directions or not through:
        return None
    crossed = (
        set.intersection(*(set(measured.ways[flow.index]) for flow in through)) & measured.bottlenecks.keys()
    )
    if any(measured.bottlenecks[name].trace is not None for name in crossed):
        return None
    own, behind_s = _curves(measured, phase, link, through)
    if own is None:
        return None
    shares = [payload_share(flow, measured.cell.mtu_bytes) for flow in through]
    rate_bps = min(measured.rate_of[name, True].at(phase.steady_from_s) for name in crossed)
    ceiling_bps = rate_bps * min(shares)
    begins = starts + behind_s
    came = np.array([sum(each.between(begin, begin + WINDOW_S) for each in own) for begin in begins])
    return _first(8 * came / WINDOW_S >= FILLED * ceiling_bps, starts, phase)


def _curves(
    measured: MeasuredCell, phase: Phase, link: CellLink, flows: Sequence[Flow]
) -> tuple[Sequence[Arrival] | None, float]:
    """What passed the first bottleneck when; of another, what arrived, and how much later that is [s]."""
    if link == measured.cell.trunk and all(flow.index in measured.passed for flow in flows):
        return [measured.passed[flow.index] for flow in flows], 0.0
    behind_s = measured.came(phase, flows[0])[0] - phase.start_s
    return known(measured.arrived, [flow.index for flow in flows]), behind_s


def _settled_after_s(measured: MeasuredCell, phase: Phase, link: CellLink, starts: Array) -> float | None:
    queue = queue_of(measured.tables.queues, link)
    times, backlog = (queue[name].to_numpy(dtype=np.float64) for name in ("t_s", "backlog_bytes"))
    later = backlog[(times >= (phase.start_s + phase.end_s) / 2) & (times <= phase.end_s)]
    if not later.size:
        return None
    stays = float(np.median(later))
    most = max(_STAYS * stays, stays + _FRAMES * measured.cell.frame_bytes)
    windows = [backlog[(times >= start) & (times <= start + WINDOW_S)] for start in starts]
    return _first(np.array([each.size > 0 and np.median(each) <= most for each in windows]), starts, phase)


def _first(holds: NDArray[np.bool_], starts: Array, phase: Phase) -> float | None:
    return round(float(starts[int(np.argmax(holds))] - phase.start_s), 6) if holds.any() else None

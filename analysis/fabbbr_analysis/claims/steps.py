"""The queue while the buffer changes step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from fabbbr.model import Cell
from fabbbr_analysis.claims.observed import Observed, RunSet
from fabbbr_analysis.claims.quantities import MEASURED, Quantity, certified
from fabbbr_analysis.metrics import queue_of

_SETTLE_S, _MARGIN_S = 10.0, 2.0
"""A buffer's queue is read from 10 s after its step to 2 s before the next, as the published figure was."""


@dataclass(frozen=True, kw_only=True)
class QueueOfSteps(Quantity):
    """Median queue of every step by congestion control, number of the step and buffer, in ``unit``."""

    unit: Literal["queue_bdp", "queue_buffers"]
    """``queue_bdp`` or ``queue_buffers``: the queue is divided by the BDP or by the buffer of that step."""

    def rows(self, observed: Observed) -> pd.DataFrame:
        steps = observed.once("steps", lambda: _steps(observed.run_set))
        return steps.rename(columns={self.unit: MEASURED})


def _steps(run_set: RunSet) -> pd.DataFrame:
    """One row per run and step; the queue is read cell by cell."""
    cells = {cell.id: cell for cell in run_set.manifest.cells}
    columns = ["cell_id", "node", "t_s", "backlog_bytes", "role", "link"]
    rows = [
        {"cca": run["cca"], "condition": run["condition"], **step}
        for _, run in certified(run_set).iterrows()
        for step in steps_of(
            run_set.queues(columns=columns, cell_ids=[run["cell_id"]]), cells[run["cell_id"]]
        )
    ]
    names = ["cca", "condition", "step", "buffer_bdp", "queue_bdp", "queue_buffers"]
    return pd.DataFrame(rows, columns=names)


def steps_of(queues: pd.DataFrame, cell: Cell) -> list[dict[str, float]]:
    """``step`` (from 0), ``buffer_bdp`` and median queue, in BDP and in buffers, of each constant buffer."""
    link, bottleneck = cell.trunk, cell.bottleneck
    if queues.empty or not bottleneck.bdp_bytes:
        return []
    changes = [
        (step.at.seconds, step.buffer_bytes)
        for step in cell.steps
        if step.buffer_bytes and step.link == link.name
    ]
    starts = [(0.0, bottleneck.buffer_bytes), *sorted(changes)]
    ends = [at for at, _ in starts[1:]] + [_end_s(cell)]
    queue = queue_of(queues, link)
    found: list[dict[str, float]] = []
    for number, ((start, buffer_bytes), end) in enumerate(zip(starts, ends, strict=True)):
        inside = (queue["t_s"] >= start + _SETTLE_S) & (queue["t_s"] <= end - _MARGIN_S)
        backlog = float(queue.loc[inside, "backlog_bytes"].median())
        bdp = bottleneck.bdp_bytes
        in_bdp = {"buffer_bdp": buffer_bytes / bdp, "queue_bdp": backlog / bdp}
        found.append({"step": number, **in_bdp, "queue_buffers": backlog / buffer_bytes})
    return found


def _end_s(cell: Cell) -> float:
    ends = [flow.start.seconds + flow.duration.seconds for flow in cell.flows if flow.duration is not None]
    return max(ends, default=float("inf"))

"""Gomez et al. 2023 (KNIT6 talk): RTT unfairness by buffer, and the queue as the buffer changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from fabbbr.model import Cell
from fabbbr_analysis.claims.observe import certified, flow_metric, metric
from fabbbr_analysis.claims.records import Band, Claim, Evidence, Part
from fabbbr_analysis.claims.sample import (
    Array,
    Means,
    MissingConditionError,
    Sample,
    average,
    highest,
    lowest,
    sample_of,
)
from fabbbr_analysis.metrics import queue_of

BBR = ("bbr1", "bbr2")
_BY_AQM = ("cca", "aqm", "buffer_bdp")

_SETTLE_S, _MARGIN_S = 10.0, 2.0
"""A buffer's queue is read from 10 s after its step to 2 s before the next, as the published figure was."""


# Experiment 3: two flows of 61 and 113 ms


def long_flow_share(flows: pd.DataFrame) -> float:
    """Share of the summed goodput that the flow with the longest RTT gets; NaN when a flow has none."""
    goodput = flows["goodput_bps"].to_numpy(dtype=np.float64, na_value=np.nan)
    longest = flows["rtt_propagation_s"] == flows["rtt_propagation_s"].max()
    total = goodput.sum()
    return float(goodput[longest.to_numpy()].sum() / total) if total > 0 else np.nan


def _above_1_bdp(x: Means, cca: str, aqm: str) -> list[Array]:
    return [x[cca, aqm, b] for b in x.levels(cca, aqm) if b > 1]


def average_above_1_bdp(x: Means) -> Array:
    """Mean of BBRv1's quantity over the drop-tail buffers above 1 BDP."""
    return average(_above_1_bdp(x, "bbr1", "taildrop"))


def least_of_bbr2(x: Means) -> Array:
    """Smallest of BBRv2's quantity over the drop-tail buffers."""
    return lowest([x["bbr2", "taildrop", b] for b in x.levels("bbr2", "taildrop")])


def gain_of_bbr2(x: Means) -> Array:
    """BBRv2's mean minus BBRv1's over the drop-tail buffers above 1 BDP."""
    return average(_above_1_bdp(x, "bbr2", "taildrop")) - average_above_1_bdp(x)


def least_with_fq_codel(x: Means) -> Array:
    """Smallest quantity over all buffers with FQ-CoDel."""
    run = [cca for cca in BBR if x.levels(cca, "fq_codel")]
    if len(run) < len(BBR):
        x.remarks.append(f"judged for {', '.join(run)} only")
    return lowest([x[cca, "fq_codel", b] for cca in run for b in x.levels(cca, "fq_codel")])


# Experiment 6: one flow, the buffer stepping from 1 to 4 BDP and back


def queue_of_steps(evidence: Evidence, *, unit: str) -> Sample:
    """Median queue of every step by congestion control, number of the step and buffer.

    ``unit`` is ``"bdp"`` or ``"buffer"``: the queue is divided by the BDP or by the buffer of that step.
    """
    run_set = evidence["knit6.e6"]
    runs = certified(run_set)
    cells = {cell.id: cell for cell in run_set.manifest.cells}
    queues = run_set.queues(
        columns=["cell_id", "node", "t_s", "backlog_bytes", "role", "link"], cell_ids=list(runs["cell_id"])
    )
    samples = dict(iter(queues.groupby("cell_id")))
    rows = [
        {"cca": run["cca"], "condition": run["condition"], **step}
        for _, run in runs.iterrows()
        if run["cell_id"] in samples
        for step in steps_of(samples[run["cell_id"]], cells[run["cell_id"]], unit=unit)
    ]
    columns = ["cca", "condition", "step", "buffer_bdp", "queue"]
    return sample_of(pd.DataFrame(rows, columns=columns), axes=("cca", "step", "buffer_bdp"), value="queue")


def steps_of(queues: pd.DataFrame, cell: Cell, *, unit: str) -> list[dict[str, float]]:
    """``step`` (from 0), ``buffer_bdp`` and median ``queue`` of each stretch of constant buffer."""
    link = cell.bottleneck
    if link.buffer_bytes is None or not link.bdp_bytes:
        return []
    changes = [
        (step.at.seconds, step.buffer_bytes)
        for step in cell.steps
        if step.buffer_bytes and step.link == link.name
    ]
    starts = [(0.0, link.buffer_bytes), *sorted(changes)]
    ends = [at for at, _ in starts[1:]] + [_end_s(cell)]
    queue = queue_of(queues, link)
    found: list[dict[str, float]] = []
    for number, ((start, buffer_bytes), end) in enumerate(zip(starts, ends, strict=True)):
        inside = (queue["t_s"] >= start + _SETTLE_S) & (queue["t_s"] <= end - _MARGIN_S)
        backlog = queue.loc[inside, "backlog_bytes"].median()
        divisor = link.bdp_bytes if unit == "bdp" else buffer_bytes
        found.append(
            {"step": number, "buffer_bdp": buffer_bytes / link.bdp_bytes, "queue": float(backlog) / divisor}
        )
    return found


def _end_s(cell: Cell) -> float:
    ends = [flow.start.seconds + flow.duration.seconds for flow in cell.flows if flow.duration is not None]
    return max(ends, default=float("inf"))


def queue_in_bdp(evidence: Evidence) -> Sample:
    """Median queue / BDP of every step."""
    return queue_of_steps(evidence, unit="bdp")


def queue_in_buffer(evidence: Evidence) -> Sample:
    """Median queue / buffer of every step."""
    return queue_of_steps(evidence, unit="buffer")


def _steps(x: Means, cca: str, *, least_bdp: float = 0.0) -> list[Array]:
    """Quantity in the steps with a buffer of at least ``least_bdp``."""
    return [x[key] for key in x.conditions() if key[0] == cca and float(key[2]) >= least_bdp]


def least_fill_of_cubic(x: Means) -> Array:
    """Smallest median queue / buffer of CUBIC over the steps."""
    return lowest(_steps(x, "cubic"))


def least_of_bbr1(x: Means) -> Array:
    """Smallest median queue / BDP of BBRv1 with 2 BDP of buffer or more."""
    return lowest(_steps(x, "bbr1", least_bdp=2))


def most_of_bbr1(x: Means) -> Array:
    """Largest median queue / BDP of BBRv1 with 2 BDP of buffer or more."""
    return highest(_steps(x, "bbr1", least_bdp=2))


def excess_over_bbr2(x: Means) -> Array:
    """Smallest difference of median queue / BDP, BBRv1 minus BBRv2, with 2 BDP of buffer or more."""
    first, second = _steps(x, "bbr1", least_bdp=2), _steps(x, "bbr2", least_bdp=2)
    if len(first) != len(second):
        message = "BBRv1 and BBRv2 were not run with the same steps"
        raise MissingConditionError(message)
    return lowest([a - b for a, b in zip(first, second, strict=True)])


def least_of_bbr2_steps(x: Means) -> Array:
    """Smallest median queue / BDP of BBRv2 over the steps."""
    return lowest(_steps(x, "bbr2"))


def most_of_bbr2_steps(x: Means) -> Array:
    """Largest median queue / BDP of BBRv2 over the steps."""
    return highest(_steps(x, "bbr2"))


def range_of_bbr2(x: Means) -> Array:
    """Largest minus smallest median queue / BDP of BBRv2 with 2 BDP of buffer or more."""
    values = _steps(x, "bbr2", least_bdp=2)
    return highest(values) - lowest(values)


_SHARE = flow_metric("knit6.e3", _BY_AQM, long_flow_share)
_JAIN = metric("knit6.e3", _BY_AQM, "jain_flows")


def _one(
    quantity: str, observe: Callable[[Evidence], Sample], formula: Callable[[Means], Array], band: Band
) -> tuple[Part, ...]:
    return (Part(quantity=quantity, observe=observe, formula=formula, band=band),)


CLAIMS = (
    Claim(
        id="K3.1",
        parts=(
            *_one(
                "mean share of the 113 ms flow above 1 BDP",
                _SHARE,
                average_above_1_bdp,
                Band(low=0.65, high=0.9),
            ),
            *_one("mean Jain's index above 1 BDP", _JAIN, average_above_1_bdp, Band(high=0.90, floor=0.5)),
        ),
    ),
    Claim(id="K3.2", parts=_one("least Jain's index of BBRv2", _JAIN, least_of_bbr2, Band(low=0.85))),
    Claim(
        id="K3.3",
        parts=_one(
            "mean Jain's index above 1 BDP, BBRv2 - BBRv1", _JAIN, gain_of_bbr2, Band(low=0.10, ceiling=0.5)
        ),
    ),
    Claim(
        id="K3.4",
        parts=_one("least Jain's index with FQ-CoDel", _JAIN, least_with_fq_codel, Band(low=0.97)),
    ),
    Claim(
        id="K6.1",
        parts=(
            *_one(
                "least median queue of BBRv2 [BDP]",
                queue_in_bdp,
                least_of_bbr2_steps,
                Band(low=0.75, high=1.35),
            ),
            *_one(
                "most median queue of BBRv2 [BDP]",
                queue_in_bdp,
                most_of_bbr2_steps,
                Band(low=0.75, high=1.35),
            ),
        ),
    ),
    Claim(
        id="K6.2",
        parts=_one(
            "range of BBRv2's median queue from 2 BDP on [BDP]", queue_in_bdp, range_of_bbr2, Band(high=0.30)
        ),
    ),
    Claim(
        id="K6.3",
        parts=_one(
            "least median queue / buffer of CUBIC", queue_in_buffer, least_fill_of_cubic, Band(low=0.80)
        ),
    ),
    Claim(
        id="K6.4",
        parts=(
            *_one(
                "least median queue of BBRv1 from 2 BDP on [BDP]",
                queue_in_bdp,
                least_of_bbr1,
                Band(low=1.0, high=1.7),
            ),
            *_one(
                "most median queue of BBRv1 from 2 BDP on [BDP]",
                queue_in_bdp,
                most_of_bbr1,
                Band(low=1.0, high=1.7),
            ),
            Part(
                quantity="least BBRv1 - BBRv2 median queue from 2 BDP on [BDP]",
                observe=queue_in_bdp,
                formula=excess_over_bbr2,
                band=Band(low=0, strict=True),
                optional=True,
            ),
        ),
    ),
)

"""How long pings and datagrams beside the flows are on their way, and how many never come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr_analysis.answers.extremes import At, by_mean
from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure
from fabbbr_analysis.summary import UNCHANGED_WITHIN
from fabbbr_analysis.wording import number, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_IDLE = BY_COLUMN["ping_idle_median_s"]


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """What goes beside the flows."""

    all: str
    that_came: str
    """Where some did not: percentiles are of these."""
    take: str
    delay: Measure
    loss: Measure
    are_lost: str
    none_came: str


_PINGS = _Kind(
    all="pings",
    that_came="answered pings",
    take="take",
    delay=BY_COLUMN["ping_p95_s"],
    loss=BY_COLUMN["ping_loss_ratio"],
    are_lost="have no answer",
    none_came="no ping has an answer",
)
_DATAGRAMS = _Kind(
    all="datagrams",
    that_came="datagrams that arrive",
    take="wait",
    delay=BY_COLUMN["pdv_p95_s"],
    loss=BY_COLUMN["datagram_loss_ratio"],
    are_lost="are lost",
    none_came="no datagram arrives",
)


def told_of_delays(run_set: RunSet, rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """A sentence on pings and one on datagrams, of those that there are beside flows under test."""
    runs = run_set.certified
    beside = any(not row.self_limited for row in rows)
    said = [_told(runs, axes, _PINGS, idle=_on_the_idle_path(runs))]
    said += [_told(runs, axes, _DATAGRAMS)] if beside else []
    return [tie(f"Beside the flows {each}.") for each in said if each]


def _on_the_idle_path(runs: pd.DataFrame) -> str:
    idle = runs[_IDLE.column].mean() * _IDLE.factor if _IDLE.column in runs else None
    return "" if pd.isna(idle) else f"on the idle path they take {number(idle)} {_IDLE.unit}"


def _told(runs: pd.DataFrame, axes: Sequence[Axis], kind: _Kind, *, idle: str = "") -> str:
    """Empty where there are none of this kind."""
    delays, losses = (by_mean(runs, axes, measure) for measure in (kind.delay, kind.loss))
    lost = bool(losses) and losses[-1].mean > 0
    if lost and losses[0].mean == 1:
        return kind.none_came
    said = [_delayed(delays, kind, lost=lost), idle] if delays else []
    said += [_lost(losses, kind)] if lost else []
    return "; ".join(filter(None, said))


def _delayed(delays: Sequence[At], kind: _Kind, *, lost: bool) -> str:
    what = kind.that_came if lost else kind.all
    least, most = delays[0], delays[-1]
    if len(delays) == 1:
        return f"95 % of the {what} {kind.take} at most {least.value} {least.where}".rstrip()
    if most.mean <= least.mean * (1 + UNCHANGED_WITHIN):
        return f"95 % of the {what} {kind.take} at most {least.value} to {most.value} everywhere"
    return (
        f"{what} {kind.take} least {least.where}, {least.value} in the 95th percentile, and "
        f"most {most.where}, {most.value}"
    )


def _lost(losses: Sequence[At], kind: _Kind) -> str:
    most = losses[-1]
    if len(losses) == 1:
        return f"{most.value} of all {kind.all} {kind.are_lost}"
    return f"up to {most.value} of all {kind.all} {kind.are_lost}, {most.where}"

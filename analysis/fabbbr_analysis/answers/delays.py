"""How long pings and datagrams beside the flows are on their way, and how many never come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr.counts import counted
from fabbbr_analysis.answers.extremes import At, by_mean
from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure
from fabbbr_analysis.metrics import of_datagrams
from fabbbr_analysis.summary import UNCHANGED_WITHIN
from fabbbr_analysis.wording import number, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_IDLE = BY_COLUMN["ping_idle_median_s"]
_GROUPS = 3
"""So many say what their datagrams suffered."""


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


def _datagrams(of: str = "") -> _Kind:
    """Of all flows of UDP, or of a group, as in `` of call``."""
    return _Kind(
        all=f"datagrams{of}",
        that_came=f"datagrams{of} that arrive",
        take="wait",
        delay=BY_COLUMN["pdv_p95_s"],
        loss=BY_COLUMN["datagram_loss_ratio"],
        are_lost="are lost",
        none_came=f"no datagram{of} arrives",
    )


def told_of_delays(run_set: RunSet, rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """A sentence on pings and one on the datagrams of each group, where there are flows under test beside."""
    runs = run_set.certified
    said = [_told(runs, axes, _PINGS, idle=_on_the_idle_path(runs))]
    each = _of_each_group(run_set) if any(not row.self_limited for row in rows) else []
    alone = len(each) == 1
    said += [_told(one, axes, _datagrams("" if alone else f" of {name}")) for name, one in each[:_GROUPS]]
    sentences = [f"Beside the flows {one}." for one in said if one]
    if len(each) > _GROUPS:
        more = counted(len(each) - _GROUPS, "more group")
        sentences.append(f"Table flows has {more} of datagrams.")
    return [tie(sentence) for sentence in sentences]


def _sends_datagrams(runs: pd.DataFrame) -> bool:
    columns = [measure.column for measure in (_datagrams().delay, _datagrams().loss)]
    return any(bool(runs[column].notna().any()) for column in columns if column in runs)


def _of_each_group(run_set: RunSet) -> list[tuple[str, pd.DataFrame]]:
    """Each group of UDP with the runs, which say of datagrams what those of that group suffered.

    Groups go either way and over other links: what one waits says nothing of another.
    """
    runs = run_set.certified
    if not _sends_datagrams(runs):
        return []
    flows = run_set.flows
    calls = flows[flows["udp_rate_bps"].notna()]
    found = []
    for name, of_group in calls.groupby("group", sort=False, observed=True):
        suffered = {cell: of_datagrams(each) for cell, each in of_group.groupby("cell_id", observed=True)}
        told = pd.DataFrame.from_dict(suffered, orient="index").astype("float64")
        found.append((str(name), runs.assign(**{str(key): runs["cell_id"].map(told[key]) for key in told})))
    return found


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
        span = least.value if least.value == most.value else f"{least.value} to {most.value}"
        return f"95 % of the {what} {kind.take} at most {span} everywhere"
    return (
        f"{what} {kind.take} least {least.where}, {least.value} in the 95th percentile, and "
        f"most {most.where}, {most.value}"
    )


def _lost(losses: Sequence[At], kind: _Kind) -> str:
    most = losses[-1]
    if len(losses) == 1:
        return f"{most.value} of all {kind.all} {kind.are_lost}"
    return f"up to {most.value} of all {kind.all} {kind.are_lost}, {most.where}"

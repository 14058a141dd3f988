"""How long pings and datagrams beside the flows are on their way, how many never come; what packets wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr.counts import counted
from fabbbr_analysis.answers.extremes import At, are_alike, by_mean
from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.answers.suffered import (
    ByName,
    datagrams_by_group,
    datagrams_by_phase,
    is_known_beside_flows,
    packets_by_phase,
    pings_by_group,
    pings_by_phase,
)
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure
from fabbbr_analysis.summary import UNCHANGED_WITHIN
from fabbbr_analysis.wording import capital, number, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_GROUPS = 3
"""So many say what their pings or datagrams suffered."""
_PHASES = 4
"""Of so many it is said by itself."""
_BESIDE = "Beside the flows"
_WITHOUT_TOO = "Beside the flows and without them"
_STAMP_S = 1e-6
"""How finely packets are stamped."""


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """What goes beside the flows."""

    all: str
    that_came: str
    """Where some did not: percentiles are of these."""
    take: str
    delay: Measure
    median: Measure | None = None
    loss: Measure | None = None
    are_lost: str = ""
    none_came: str = ""
    idle: Measure | None = None
    """What they take without flows beside."""


def _pings(of: str = "") -> _Kind:
    """All of them, or those of a group, as in `` of h1``."""
    return _Kind(
        all=f"pings{of}",
        that_came=f"answered pings{of}",
        take="take",
        delay=BY_COLUMN["ping_p95_s"],
        median=BY_COLUMN["ping_median_s"],
        loss=BY_COLUMN["ping_loss_ratio"],
        are_lost="have no answer",
        none_came=f"no ping{of} has an answer",
        idle=BY_COLUMN["ping_idle_median_s"],
    )


def _datagrams(of: str = "") -> _Kind:
    """Of all flows of UDP, or of a group."""
    return _Kind(
        all=f"datagrams{of}",
        that_came=f"datagrams{of} that arrive",
        take="wait",
        delay=BY_COLUMN["pdv_p95_s"],
        loss=BY_COLUMN["datagram_loss_ratio"],
        are_lost="are lost",
        none_came=f"no datagram{of} arrives",
    )


_PACKETS = _Kind(
    all="packets",
    that_came="packets",
    take="wait at the bottleneck",
    delay=BY_COLUMN["queue_delay_p95_s"],
)
"""Of all flows, where each was timed."""


def told_of_delays(run_set: RunSet, rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """A sentence on the pings of each group, one on its datagrams, and one on packets.

    Where steps change the path, one on those of each phase: what all of a run say is of its worst alone.
    """
    pings = replace(_pings(), idle=None)
    said = _in_phases(pings_by_phase(run_set), pings, axes) or _each(pings_by_group(run_set), _pings, axes)
    begin = ""
    if any(row.cca for row in rows):
        begin = _BESIDE if is_known_beside_flows(run_set) else _WITHOUT_TOO
    calls = _each(datagrams_by_group(run_set), _datagrams, axes, begin=begin)
    said += _in_phases(datagrams_by_phase(run_set), _datagrams(), axes) or calls
    packets = _told(run_set.certified, axes, _PACKETS)
    overall = [f"{capital(packets)}."] if packets else []
    said += _in_phases(packets_by_phase(run_set), _PACKETS, axes) or overall
    return [tie(sentence) for sentence in said]


def _each(
    groups: ByName, kind: Callable[[str], _Kind], axes: Sequence[Axis], *, begin: str = _BESIDE
) -> list[str]:
    told = list(groups.items())[:_GROUPS]
    of = [f" of {name}" if len(groups) > 1 else "" for name, _ in told]
    said = [_told(runs, axes, kind(words)) for words, (_, runs) in zip(of, told, strict=True)]
    sentences = [f"{capital(f'{begin} {each}'.strip())}." for each in said if each]
    if len(groups) > _GROUPS:
        sentences.append(f"{counted(len(groups) - _GROUPS, 'more group')} have {kind('').all} too.")
    return sentences


def _in_phases(phases: ByName, kind: _Kind, axes: Sequence[Axis]) -> list[str]:
    told = [(name, _told(runs, axes, kind)) for name, runs in list(phases.items())[:_PHASES]]
    sentences = [f"In the phase “{name}” {each}." for name, each in told if each]
    if len(phases) > _PHASES:
        sentences.append(f"{counted(len(phases) - _PHASES, 'more phase')} have {kind.all} too.")
    return sentences


def _before_the_flows(runs: pd.DataFrame, axes: Sequence[Axis], idle: Measure | None) -> str:
    """Conditions may have other round trips, and their steps too: it is said of when, and not of the path."""
    conditions = by_mean(runs, axes, idle) if idle is not None else []
    if idle is None or not conditions:
        return ""
    least, most = (each.mean * idle.factor for each in (conditions[0], conditions[-1]))
    alike = most <= least * (1 + UNCHANGED_WITHIN)
    span = number((least + most) / 2) if alike else f"{number(least)} to {number(most)}"
    return f"before the flows start they take {span} {idle.unit}"


def _told(runs: pd.DataFrame, axes: Sequence[Axis], kind: _Kind) -> str:
    """Empty where there are none of this kind."""
    delays = by_mean(runs, axes, kind.delay)
    losses = by_mean(runs, axes, kind.loss) if kind.loss is not None else []
    lost = bool(losses) and losses[-1].mean > 0
    if lost and losses[0].mean == 1:
        return kind.none_came
    said = [_delayed(delays, kind, lost=lost)] if delays else []
    if are_alike(delays) and kind.median is not None:
        said.append(_half(by_mean(runs, axes, kind.median)))
    said += [_before_the_flows(runs, axes, kind.idle)] if delays else []
    said += [_lost(losses, kind)] if lost else []
    return "; ".join(filter(None, said))


def _delayed(delays: Sequence[At], kind: _Kind, *, lost: bool) -> str:
    what = kind.that_came if lost else kind.all
    least, most = (replace(each, value=_as_stamped(each, kind.delay)) for each in (delays[0], delays[-1]))
    if len(delays) == 1:
        return f"95 % of the {what} {kind.take} at most {least.value} {least.where}".rstrip()
    if are_alike(delays):
        span = least.value if least.value == most.value else f"{least.value} to {most.value}"
        return f"95 % of the {what} {kind.take} at most {span} everywhere"
    return (
        f"{what} {kind.take} least {least.where}, {least.value} in the 95th percentile, and "
        f"most {most.where}, {most.value}"
    )


def _half(medians: Sequence[At]) -> str:
    """Where a few take equally long everywhere, and the others do not; empty where these do too."""
    if len(medians) < 2 or are_alike(medians):
        return ""
    least, most = medians[0], medians[-1]
    return f"half of them at most {least.value} {least.where}, and {most.value} {most.where}"


def _as_stamped(delay: At, measure: Measure) -> str:
    """Below what a clock tells apart there is no delay."""
    return delay.value if delay.mean >= _STAMP_S / 2 else f"0 {measure.unit}"


def _lost(losses: Sequence[At], kind: _Kind) -> str:
    most = losses[-1]
    if len(losses) == 1:
        return f"{most.value} of all {kind.all} {kind.are_lost}"
    return f"up to {most.value} of all {kind.all} {kind.are_lost}, {most.where}"

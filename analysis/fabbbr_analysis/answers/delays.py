"""How long pings and datagrams beside the flows are on their way, how many never come; what packets wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from fabbbr.counts import counted
from fabbbr.model import Cell
from fabbbr.physics import end_of
from fabbbr_analysis.answers.extremes import At, are_alike, by_mean
from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure
from fabbbr_analysis.metrics import of_datagrams, of_pings
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
_SOON_S = 1.0
"""What begins or ends so soon before or after the flows is beside them."""
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


_Groups = dict[str, pd.DataFrame]
"""Each with the runs, which say of it alone what they say of all. They go either way and over other links:
what one waits says nothing of another."""


def told_of_delays(run_set: RunSet, rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """A sentence on the pings of each group, one on its datagrams where TCP is beside, and one on packets.

    Where steps change the path, one on the pings of each phase: what all of a run say is of its worst alone.
    """
    said = _in_phases(_pinging_in_phases(run_set), axes) or _each(_pinging(run_set), _pings, axes)
    if any(row.cca for row in rows):
        said += _each(_calling(run_set), _datagrams, axes, begin=_when_datagrams_came(run_set))
    packets = _told(run_set.certified, axes, _PACKETS)
    said += [f"{capital(packets)}."] if packets else []
    return [tie(sentence) for sentence in said]


def _each(
    groups: _Groups, kind: Callable[[str], _Kind], axes: Sequence[Axis], *, begin: str = _BESIDE
) -> list[str]:
    told = list(groups.items())[:_GROUPS]
    of = [f" of {name}" if len(groups) > 1 else "" for name, _ in told]
    said = [_told(runs, axes, kind(words)) for words, (_, runs) in zip(of, told, strict=True)]
    sentences = [f"{begin} {each}." for each in said if each]
    if len(groups) > _GROUPS:
        sentences.append(f"{counted(len(groups) - _GROUPS, 'more group')} have {kind('').all} too.")
    return sentences


def _when_datagrams_came(run_set: RunSet) -> str:
    """Their delays are of all that they run, which may be longer than the flows beside them do."""
    return _WITHOUT_TOO if any(map(_outlast, run_set.plan.values())) else _BESIDE


def _outlast(cell: Cell) -> bool:
    """Whether datagrams are sent before the other flows begin, or after they are over."""
    calls = [flow for flow in cell.flows if flow.udp is not None]
    others = [flow for flow in cell.flows if flow.udp is None]
    if not calls or not others:
        return False
    begin_s, end_s = min(flow.start.seconds for flow in others), end_of(others, cell.links).seconds
    first_s, last_s = min(flow.start.seconds for flow in calls), end_of(calls, cell.links).seconds
    return first_s < begin_s - _SOON_S or last_s > end_s + _SOON_S


def _in_phases(phases: _Groups, axes: Sequence[Axis]) -> list[str]:
    kind = replace(_pings(), idle=None)
    told = [(name, _told(runs, axes, kind)) for name, runs in list(phases.items())[:_PHASES]]
    sentences = [f"In the phase “{name}” {each}." for name, each in told if each]
    if len(phases) > _PHASES:
        sentences.append(f"{counted(len(phases) - _PHASES, 'more phase')} have pings too.")
    return sentences


def _pinging_in_phases(run_set: RunSet) -> _Groups:
    """Name of a phase → the runs with its pings; empty without steps, and where there are several groups."""
    if len(_pinging_groups(run_set)) != 1:
        return {}
    each = ["cell_id", "phase", "phase_name", "begins_with", "phase_start_s", "phase_end_s"]
    phases = run_set.groups[each].drop_duplicates(["cell_id", "phase"])
    if not (phases["begins_with"] == "step").any():
        return {}
    runs, pings, flows = run_set.certified, _by_cell(run_set.pings()), _by_cell(run_set.flows)
    found: dict[str, dict[Any, Mapping[str, float | None]]] = {}
    for phase in phases[phases["begins_with"] != "start"].sort_values("phase_start_s").to_dict("records"):
        cell, sent = phase["cell_id"], pings.get(phase["cell_id"])
        if sent is not None:
            start_s, end_s = float(phase["phase_start_s"]), float(phase["phase_end_s"])
            within = sent[(sent["t_s"] >= start_s) & (sent["t_s"] < end_s)]
            found.setdefault(str(phase["phase_name"]), {})[cell] = of_pings(within, flows[cell])
    return {name: _saying(runs, of_cells) for name, of_cells in found.items()}


def _by_cell(table: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    return dict(iter(table.groupby("cell_id", observed=True)))


def _pinging_groups(run_set: RunSet) -> list[str]:
    return list(dict.fromkeys(ping.group for cell in run_set.plan.values() for ping in cell.pings))


def _pinging(run_set: RunSet) -> _Groups:
    runs, names = run_set.certified, _pinging_groups(run_set)
    if len(names) < 2:
        return {"": runs}
    pings, flows = run_set.pings(), _by_cell(run_set.flows)
    return {
        name: _saying(
            runs,
            {
                cell: of_pings(sent, flows[cell])
                for cell, sent in _by_cell(pings[pings["group"] == name]).items()
            },
        )
        for name in names
    }


def _calling(run_set: RunSet) -> _Groups:
    runs = run_set.certified
    columns = [measure.column for measure in (_datagrams().delay, _datagrams().loss) if measure is not None]
    if not any(bool(runs[column].notna().any()) for column in columns if column in runs):
        return {}
    calls = run_set.flows[run_set.flows["udp_rate_bps"].notna()]
    return {
        str(name): _saying(
            runs,
            {cell: of_datagrams(each) for cell, each in of_group.groupby("cell_id", observed=True)},
        )
        for name, of_group in calls.groupby("group", sort=False, observed=True)
    }


def _saying(runs: pd.DataFrame, of_cells: Mapping[Any, Mapping[str, float | None]]) -> pd.DataFrame:
    """The runs with these columns; a cell that has none lacks them."""
    told = pd.DataFrame.from_dict(dict(of_cells), orient="index").astype("float64")
    return runs.assign(**{str(name): runs["cell_id"].map(told[name]) for name in told})


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

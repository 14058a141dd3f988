"""What a reader must know before believing a headline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fabbbr.capacity import OPPORTUNITY_BYTES, TRACE_BIN
from fabbbr.counts import counted
from fabbbr.model import Cell
from fabbbr.physics import acts_after_in_words, deep_buckets, idle_aqms, without_marks
from fabbbr.units import Size
from fabbbr_analysis.phases import WHOLE_RUN, planned_phases
from fabbbr_analysis.summary import are_one
from fabbbr_analysis.wording import listing, number

if TYPE_CHECKING:
    import pandas as pd

    from fabbbr_analysis.runset import RunSet

_NAMED = 3
_SOON_S = 1.0
"""A group that starts so soon after the first, or after something else, starts with it."""


def warnings_of(run_set: RunSet) -> list[str]:
    """Return the warnings, a sentence or two each."""
    return [
        *_marks(run_set),
        *_idle(run_set),
        *_without_marks(run_set),
        *_deep_buckets(run_set),
        *_two_ways_of_a_trace(run_set),
        *_held_up_by_acknowledgements(run_set),
        *_repeated(run_set),
        *_short(run_set),
        *_late(run_set),
    ]


def _marks(run_set: RunSet) -> Iterator[str]:
    with_ecn = run_set.cells.loc[run_set.cells["ecn"].astype("boolean").fillna(value=False), "cell_id"]
    groups = run_set.groups
    groups = groups[groups["cell_id"].isin(with_ecn) & (groups["phase"] == WHOLE_RUN)]
    marks = groups["queue_marks"].dropna()
    if len(marks) and not marks.any():
        yield "ECN is on, and no packet of any run was marked. So this says nothing of what marks do."
    else:
        yield from _deaf_to_marks(groups)


def _deaf_to_marks(groups: pd.DataFrame) -> Iterator[str]:
    """BBRv1 does not answer ECN by design, our BBRv2 and BBRv3 leave it out (docs/fidelity.md)."""
    ours = groups["cca"].isin(["bbr2", "bbr3"]) & (groups["implementation"] == "fabbbr")
    first = (groups["cca"] == "bbr1") & (groups["implementation"] != "google")
    deaf = sorted(groups.loc[ours | first, "cca"].unique())
    if not deaf:
        return
    marked = groups.loc[ours | first].drop_duplicates("cell_id")["queue_marks"].dropna()
    count = f" {number(float(marked.mean()))} packets a run were marked." if len(marked) else ""
    others = sorted(set(groups["cca"].dropna()) - set(deaf))
    beside = f" Marks slowed {listing(others)} alone." if others else ""
    yield (
        f"ECN is on, and {listing(deaf)} as run here {'does' if len(deaf) == 1 else 'do'} not answer marks."
        f"{count}{beside} So this says nothing of an implementation that has ECN."
    )


def _idle(run_set: RunSet) -> Iterator[str]:
    """Of AQMs whose buffer is full before they act."""
    for aqm, conditions in idle_aqms(run_set.plan.values()).items():
        longest = max(conditions.values(), key=lambda idle: idle.full_s)
        drained = f"{number(1e3 * longest.full_s)} ms"
        if len({idle.full_s for idle in conditions.values()}) > 1:
            drained += " at most"
        yield (
            f"{_in(list(conditions), run_set)} {aqm} drops as taildrop does: it acts on packets that have "
            f"waited for {acts_after_in_words(conditions.values())}, and a full buffer drains in {drained}."
        )


def _without_marks(run_set: RunSet) -> Iterator[str]:
    conditions = without_marks(run_set.plan.values())
    if conditions:
        yield f"{_in(conditions, run_set)} nothing marks packets, and so dctcp does what reno does."


def _deep_buckets(run_set: RunSet) -> Iterator[str]:
    """What short transfers owe them is no merit of a congestion control."""
    found = deep_buckets(run_set.plan.values())
    if found:
        bucket, path = (Size(bytes_) for bytes_ in max(found.values()))
        yield (
            f"{_in(list(found), run_set)} the token bucket holds a millisecond of the rate, up to {bucket}, "
            f"and the path no more ({path}): so much passes at once after a pause, faster than the link."
        )


def _two_ways_of_a_trace(run_set: RunSet) -> Iterator[str]:
    """What differs between the two is also how the link delivers."""
    queues = {cell.condition: cell.bottleneck for cell in run_set.plan.values()}
    binned = [condition for condition, queue in queues.items() if queue.binned_trace is not None]
    if binned and any(queue.trace is not None for queue in queues.values()):
        yield (
            f"In {_named(binned)} the trace is a rate per {TRACE_BIN}, for tc holds the queue; elsewhere the "
            "link delivers at its single opportunities. What differs between them may come of that."
        )


def _repeated(run_set: RunSet) -> Iterator[str]:
    certified = run_set.runs[run_set.runs["status"] == "certified"]
    same = [str(name) for name, cells in certified.groupby("condition", sort=False) if are_one(cells)]
    if same:
        yield (
            f"The repetitions of {_named(same)} are the same in every number: nothing in "
            "them is random, so their values have no interval. What ran alone is compared as it is; which of "
            f"several flows gets more hangs on their phases, and {_what_tells(run_set, same)}."
        )


def _in(conditions: Sequence[str], run_set: RunSet) -> str:
    every = len(conditions) == len({cell.condition for cell in run_set.plan.values()}) > 1
    return "In all conditions" if every else f"In {_named(conditions)}"


def _named(conditions: Sequence[str]) -> str:
    left = len(conditions) - _NAMED
    more = f" and {counted(left, 'more condition')}" if left > 0 else ""
    return f"{', '.join(conditions[:_NAMED])}{more}"


def _held_up_by_acknowledgements(run_set: RunSet) -> Iterator[str]:
    """Where they alone go back, and stand there most of the time, they decide what the flows get."""
    alone = {
        cell_id: _passing_bytes(cell) for cell_id, cell in run_set.plan.items() if _goes_back_alone(cell)
    }
    if not alone:
        return
    runs = run_set.runs[(run_set.runs["status"] == "certified") & run_set.runs["cell_id"].isin(alone)]
    passing = runs["cell_id"].map(alone).astype("float64")
    held = runs["queue_reverse_median_bytes"].astype("float64") - passing
    by_condition = held.groupby(runs["condition"], sort=False).median()
    full = [str(condition) for condition, more in by_condition.items() if more > 0]
    if full:
        yield (
            f"{_in(full, run_set)} acknowledgements alone keep the way back busy, so goodput is what they "
            "allow and not what the way there carries."
        )


def _goes_back_alone(cell: Cell) -> bool:
    queues = cell.bottlenecks.values()
    return any(queue.reverse is not None and not queue.both_directions for queue in queues)


def _passing_bytes(cell: Cell) -> int:
    """What may stand there and is not held up: what the next opportunity of a trace takes."""
    back = cell.bottleneck.own_way_back
    return OPPORTUNITY_BYTES if back is not None and back.trace is not None else 0


def _what_tells(run_set: RunSet, conditions: Sequence[str]) -> str:
    """How much hangs on phases: where data goes both ways, acknowledgements cannot be held."""
    cells = [cell for cell in run_set.plan.values() if cell.condition in conditions]
    queues = [queue for cell in cells for queue in cell.bottlenecks.values()]
    if any(way.trace_name is not None for queue in queues for way in queue.distinct):
        return "trace_start: random begins each repetition elsewhere in the trace"
    if any(queue.both_directions for queue in queues):
        return "other starts, as in start: $start with vary: {start: [0 ms, 7 ms, 13 ms]}, tell how much"
    return "ack_aggregation: {least: 1 us, most: 100 us} has repetitions differ"


def _short(run_set: RunSet) -> Iterator[str]:
    groups = run_set.groups
    timed = groups[~groups["sized"].astype(bool)]
    last = timed.groupby("cell_id")["phase"].max()
    over = int((last <= 1).sum())
    if over:
        yield (
            f"{counted(over, 'run')} ended before the start-up did: there is no steady state, and the values "
            "are of the whole run."
        )


def _late(run_set: RunSet) -> Iterator[str]:
    """What follows the start of a group is told only where a phase begins with it."""
    missed: dict[str, float] = {}
    for cell in run_set.plan.values():
        edges = [phase.start_s for phase in planned_phases(cell)]
        starts: dict[str, float] = {}
        for flow in cell.flows:
            if flow.elastic and flow.size is None:
                starts[flow.group] = min(flow.start.seconds, starts.get(flow.group, math.inf))
        first = min(starts.values(), default=0.0)
        missed |= {
            group: start_s
            for group, start_s in starts.items()
            if min(abs(start_s - edge) for edge in (first, *edges)) >= _SOON_S
        }
    for group, start_s in missed.items():
        yield (
            f"{group} starts after {start_s:g} s, within the start-up that is left out, so nothing is said "
            f"of what follows its start; fabbbr report RUN --warm-up {start_s / 2:g}s ends the start-up "
            "before, without running anything again."
        )

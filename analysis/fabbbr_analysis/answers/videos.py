"""Whether videos stood still: where, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabbbr.counts import counted
from fabbbr_analysis.answers.extremes import by_mean
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.figures.measures import BY_COLUMN
from fabbbr_analysis.wording import tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_STALLED = BY_COLUMN["video_stalled_s"]


def told_of_videos(run_set: RunSet, axes: Sequence[Axis]) -> list[str]:
    """A sentence on how long they stood still, and one on those that never began; none without videos."""
    runs = run_set.certified
    if _STALLED.column not in runs:
        return []
    return [tie(f"{said}.") for said in (_stood_still(run_set, axes), _never_began(run_set)) if said]


def _stood_still(run_set: RunSet, axes: Sequence[Axis]) -> str:
    conditions = by_mean(run_set.certified, axes, _STALLED)
    if not conditions:
        return ""
    stalled = [each for each in conditions if each.mean > 0]
    if not stalled:
        return "No video stood still"
    least, most = stalled[0], stalled[-1]
    if len(conditions) == 1:
        return f"Videos stood still for {most.value} a run"
    longest = f"longest {most.where}, {most.value} a run"
    if len(stalled) == 1:
        return f"Videos stood still only {most.where}, for {most.value} a run"
    if len(stalled) < len(conditions):
        return f"Videos stood still in {len(stalled)} of {len(conditions)} conditions, {longest}"
    return f"Videos stood still least {least.where}, {least.value}, and {longest}"


def _never_began(run_set: RunSet) -> str:
    """Of these there is no stall, for nothing was ever played."""
    certified = run_set.certified["cell_id"]
    flows = run_set.flows[run_set.flows["cell_id"].isin(certified)]
    videos = flows[flows["video_chunks"].notna()]
    never = int((videos["video_chunks"] == 0).sum())
    if not never:
        return ""
    return f"{never} of {counted(len(videos), 'video')} never began: no chunk was ever whole"

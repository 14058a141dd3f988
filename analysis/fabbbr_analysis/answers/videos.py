"""Whether videos stood still, where, and for how long; and how soon their chunks come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabbbr.counts import counted
from fabbbr_analysis.answers.extremes import are_alike, by_mean
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.figures.measures import BY_COLUMN
from fabbbr_analysis.wording import listing, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_LISTED = 4
"""Of more conditions the first and the last are told."""
_STALLED, _CHUNK = (BY_COLUMN[column] for column in ("video_stalled_s", "chunk_median_s"))


def told_of_videos(run_set: RunSet, axes: Sequence[Axis]) -> list[str]:
    """How long they stood still, which of them never began, and how soon chunks come; none without videos."""
    runs = run_set.certified
    if _STALLED.column not in runs:
        return []
    said = (_stood_still(run_set, axes), _never_began(run_set), _chunks_come(run_set, axes))
    return [tie(f"{each}.") for each in said if each]


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


def _chunks_come(run_set: RunSet, axes: Sequence[Axis]) -> str:
    """Where soonest and where latest, which is what a player may choose its bitrate by."""
    conditions = by_mean(run_set.certified, axes, _CHUNK)
    if not conditions:
        return ""
    conditions = by_mean(run_set.certified, axes, _CHUNK.suited([conditions[-1].mean]))
    least, most = conditions[0], conditions[-1]
    if len(conditions) == 1:
        return f"Half of the chunks come within {least.value}"
    if are_alike(conditions):
        return f"Half of the chunks come within {least.value} to {most.value} everywhere"
    if 2 < len(conditions) <= _LISTED:
        return (
            f"Half of the chunks come within {listing([f'{each.value} {each.where}' for each in conditions])}"
        )
    soonest = f"soonest {least.where}, half of them within {least.value}"
    return f"Chunks of videos come {soonest}, and latest {most.where}, {most.value}"

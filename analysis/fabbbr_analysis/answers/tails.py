"""Transfers that are the fastest in the median, and surely not in the 95th percentile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabbbr.counts import counted
from fabbbr_analysis.answers.leads import leads_among
from fabbbr_analysis.answers.outcomes import margin, ratio, value, with_or_beside
from fabbbr_analysis.answers.records import AnswerRow, Lead, contests_of
from fabbbr_analysis.answers.rows import TAIL
from fabbbr_analysis.answers.sentences import where
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.wording import tie


def told_of_tails(rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis]) -> list[str]:
    """Say where who is best in the median is farthest behind then, and in how many comparisons that is so.

    Whoever waits for all of the answers to one question waits for the last of them, and not for the median.
    """
    contests = [
        contest
        for contest in contests_of(rows, leads)
        if all(rows[index].sized and rows[index].n_flows > 1 for index in contest)
    ]
    turned = [each for contest in contests if (each := _turned(rows, leads, contest)) is not None]
    if not turned:
        return []
    row, lead = max(turned, key=lambda each: ratio(*each))
    at = where(row, axes)
    begin = f"{at}in" if at else "In"
    link = with_or_beside(row, lead)
    said = (
        f"{begin} the 95th percentile transfers take {value(lead.over, TAIL)} {link} "
        f"{lead.called(lead.over)} and {value(row, TAIL)} {link} {lead.called(row)}, which is best in the "
        f"median: {margin(row, lead)}."
    )
    often = f" That is so in {len(turned)} of {counted(len(contests), 'comparison')}."
    return [tie(said + (often if len(contests) > 1 else ""))]


def _turned(
    rows: Sequence[AnswerRow], leads: Mapping[int, Lead], contest: Sequence[int]
) -> tuple[AnswerRow, Lead] | None:
    """The best in the median with its lead in the 95th percentile, where it is surely behind."""
    first = next((index for index in contest if not leads[index].behind), None)
    own = None if first is None else leads_among(rows, contest, TAIL).get(first)
    return (rows[first], own) if first is not None and own is not None and own.verdict == "behind" else None

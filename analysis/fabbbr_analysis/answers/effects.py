"""What each condition does by itself: from one end of an axis to the other, all others held."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fabbbr_analysis import stats
from fabbbr_analysis.answers.leads import decides
from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.answers.rows import COMPLETION
from fabbbr_analysis.figures.conditions import Axis, place_in_words
from fabbbr_analysis.stats import Difference
from fabbbr_analysis.summary import UNCHANGED_WITHIN, WITHIN
from fabbbr_analysis.wording import counted, distinct, estimate, listing, number, tie

_LISTED = 4
_TOLD_ELSEWHERE = ("loss_ratio", "rtt_s")
"""Of one of these alone a report says how far along it goodput holds up."""


class _Effect:
    """The change of one congestion control's mean along an axis, as factors at each place of the others."""

    def __init__(self, rival: str, pairs: Sequence[tuple[AnswerRow, AnswerRow]], column: str) -> None:
        self.rival = rival
        self.places = [after.values[column].value / before.values[column].value for before, after in pairs]
        self.mean = math.exp(sum(map(math.log, self.places)) / len(self.places))
        self.ends: tuple[float, float] | None = None
        found = [
            stats.log_ratio(list(after.by_run[column].values()), list(before.by_run[column].values()))
            for before, after in pairs
        ]
        known = [each for each in found if each is not None]
        if len(known) == len(found):
            low, high = Difference.mean_of(known).limits()
            self.ends = math.exp(low), math.exp(high)

    @property
    def is_none(self) -> bool:
        """Whether it is within 5 % everywhere, and surely so on average."""
        if self.ends is None:
            return False
        return all(abs(each - 1) <= UNCHANGED_WITHIN for each in (*self.places, *self.ends))

    def told(self, what: str = "") -> str:
        """The factor, of what, and how far it is from place to place."""
        # What is the same in all runs has no interval.
        low, high = self.ends if self.ends is not None and self.ends[0] < self.ends[1] else (None, None)
        factor = f"{estimate(self.mean, low, high)} times{what and f' {what}'}"
        if len(self.places) == 1:
            return factor
        least, most = (number(end(self.places), significant=2) for end in (min, max))
        ends = least if least == most else f"{least} to {most}"
        return f"{factor} ({ends} at {counted(len(self.places), 'place')})"


def told_of_axes(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """Say of each axis what going along it does to each congestion control, where each ran alone."""
    own = [row for row in rows if not row.self_limited]
    told = [row for row in own if row.by_run.get(decides(row))]
    alone = len({(row.place, row.variant) for row in own}) == len(own) == len(told)
    several = len({row.variant for row in own}) > 1 or len(axes) > 1
    # With steps or later flows there are phases, and a change of conditions may do another thing in each.
    if not (told and alone and several) or len({(row.phase, row.sized) for row in rows}) > 1:
        return []
    if len(axes) == 1 and axes[0].condition is not None and axes[0].condition.column in _TOLD_ELSEWHERE:
        return []
    return [tie(said) for place, axis in enumerate(axes) for said in _along(axis, place, told)]


def _along(axis: Axis, place: int, rows: Sequence[AnswerRow]) -> Iterator[str]:
    """A sentence on the ends of an axis; none where it has several names, of which none is an end."""
    if axis.shown is None and len(axis.texts) != 2:
        return
    first, last = axis.texts[0], axis.texts[-1]
    column = decides(rows[0])
    found = []
    for rival in distinct(row.rival for row in rows):
        at = {row.place: row for row in rows if row.rival == rival and row.values[column].value > 0}
        pairs = [
            (at[start], row)
            for where, row in at.items()
            if where[place] == last and (start := (*where[:place], first, *where[place + 1 :])) in at
        ]
        found += [_Effect(rival, pairs, column)] if pairs else []
    if not found:
        return
    begun = f"With {place_in_words([axis], [last])} instead of {first}"
    yield f"{begun}, {listing(list(_told(found, sized=column == COMPLETION)))}."


def _told(effects: Sequence[_Effect], *, sized: bool) -> Iterator[str]:
    changed = sorted(
        (each for each in effects if not each.is_none), key=lambda each: -abs(math.log(each.mean))
    )
    what = "as long" if sized else "the goodput"
    for nth, each in enumerate(changed[:_LISTED]):
        said = f"transfers of {each.rival} take" if sized else f"{each.rival} has"
        yield f"{said} {each.told(what)}" if nth == 0 else f"{each.rival} {each.told()}"
    same = [each.rival for each in effects if each.is_none]
    if same:
        alike = "take as long" if sized else "has as much" if len(same) == 1 else "have as much"
        yield f"{listing(same)} {alike} {WITHIN}"

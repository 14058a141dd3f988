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
from fabbbr_analysis.summary import UNCHANGED_WITHIN
from fabbbr_analysis.wording import counted, distinct, interval, listing, number, tie

_LISTED = 4
_TOLD_ELSEWHERE = ("loss_ratio", "rtt_s")
"""Of one of these alone a report says how far along it goodput holds up."""


class _Effect:
    """The change of one congestion control's mean along an axis, as factors at each place of the others."""

    def __init__(self, rival: str, pairs: Sequence[tuple[AnswerRow, AnswerRow]], column: str) -> None:
        self.rival = rival
        logs = [_log_ratio(*pair, column) for pair in pairs]
        self.places = [math.exp(value) for value, _, _ in logs]
        value = sum(value for value, _, _ in logs) / len(logs)
        self.mean = math.exp(value)
        self.low = self.high = None
        squares = [square for _, each, _ in logs for square in each]
        freedoms = [freedom for _, _, each in logs for freedom in each]
        if all(freedoms):
            error = Difference.of(value, [square / len(logs) ** 2 for square in squares], freedoms)
            self.low, self.high = map(math.exp, error.limits())

    @property
    def is_none(self) -> bool:
        """Whether it is within 5 % everywhere, and surely so on average."""
        ends = [*self.places, *(end for end in (self.low, self.high) if end is not None)]
        return self.low is not None and all(abs(each - 1) <= UNCHANGED_WITHIN for each in ends)

    def __str__(self) -> str:
        """The factor, and how far it is from place to place."""
        exact = self.low is not None and self.low == self.high
        told = number(self.mean) if exact or self.low is None else interval(self.mean, self.low, self.high)
        if len(self.places) == 1:
            return f"{told} times"
        least, most = (number(end(self.places), significant=2) for end in (min, max))
        ends = least if least == most else f"{least} to {most}"
        return f"{told} times ({ends} at {counted(len(self.places), 'place')})"


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
        yield f"{said} {_factor(each, what)}" if nth == 0 else f"{each.rival} {each}"
    same = [each.rival for each in effects if each.is_none]
    if same:
        alike = "take as long" if sized else "has as much" if len(same) == 1 else "have as much"
        yield f"{listing(same)} {alike} within {UNCHANGED_WITHIN * 100:g} %"


def _factor(effect: _Effect, what: str) -> str:
    """``1.07 [1.05, 1.09] times the goodput (0.98 to 1.2 at 4 places)``."""
    return str(effect).replace(" times", f" times {what}", 1)


def _log_ratio(
    before: AnswerRow, after: AnswerRow, column: str
) -> tuple[float, tuple[float, float], tuple[int, int]]:
    """Logarithm of the ratio of two means, the squared error of each side, and the freedom of each."""
    value, squares, freedoms = 0.0, [], []
    for sign, row in ((-1, before), (1, after)):
        runs = stats.sample(list(row.by_run[column].values()))
        mean = float(runs.mean())
        value += sign * math.log(mean)
        varies = runs.size > 1 and not stats.is_constant(runs)
        squares.append(float(runs.var(ddof=1)) / runs.size / mean**2 if varies else 0.0)
        freedoms.append(runs.size - 1)
    return value, (squares[0], squares[1]), (freedoms[0], freedoms[1])

"""What each condition does by itself, others held: from one end of an axis to the other, or name by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabbbr.counts import counted
from fabbbr.model import Cell, CellLink
from fabbbr_analysis import stats
from fabbbr_analysis.answers.leads import contending, decides, decides_apart, leads_among
from fabbbr_analysis.answers.records import AnswerRow, Lead
from fabbbr_analysis.answers.rows import COMPLETION, GOODPUT, OF_ALL, RTT
from fabbbr_analysis.answers.tallies import ranking
from fabbbr_analysis.figures.conditions import Axis, place_in_words, value_alone
from fabbbr_analysis.figures.measures import in_a_sentence
from fabbbr_analysis.stats import Difference
from fabbbr_analysis.summary import UNCHANGED_WITHIN, WITHIN
from fabbbr_analysis.wording import distinct, estimate, listing, number, tie

_LISTED = 4
_MEASURED = {
    GOODPUT: "in goodput",
    OF_ALL: "in goodput of all",
    COMPLETION: "in completion time",
    RTT: "in median RTT",
}
TOLD_ELSEWHERE = ("loss_ratio", "rtt_s")
"""Of one of these alone a report says how far along it goodput holds up."""


class _Effect:
    """The change of one congestion control's mean along an axis, as factors at each place of the others."""

    def __init__(self, name: str, pairs: Sequence[tuple[AnswerRow, AnswerRow]], column: str) -> None:
        self.name = name
        self.places = [after.values[column].value / before.values[column].value for before, after in pairs]
        self.mean = math.exp(sum(map(math.log, self.places)) / len(self.places))
        self.ends: tuple[float, float] | None = None
        self.may_be_none = False
        """Whether it may as well be none on average and at each place, and is not surely so."""
        found = [_log_ratio(after, before, column) for before, after in pairs]
        known = [each for each in found if each is not None]
        if len(known) == len(found):
            independent = not any(after.same_draws for _, after in pairs)
            mean = Difference.mean_of(known, independent=independent)
            low, high = mean.limits()
            self.ends = math.exp(low), math.exp(high)
            self.may_be_none = _all_hold_zero([*known, mean]) and not self.is_none

    @property
    def is_none(self) -> bool:
        """Whether it is within 5 % everywhere, and surely so on average."""
        if self.ends is None:
            return False
        return all(abs(each - 1) <= UNCHANGED_WITHIN for each in (*self.places, *self.ends))

    def told(self, what: str = "") -> str:
        """The factor, of what, and how far it is from place to place."""
        low, high = self.ends or (None, None)
        factor = f"{estimate(self.mean, low, high)} times{what and f' {what}'}"
        if len(self.places) == 1:
            return factor
        least, most = (number(end(self.places), significant=2) for end in (min, max))
        ends = least if least == most else f"{least} to {most}"
        return f"{factor} ({ends} at {counted(len(self.places), 'place')})"


def _log_ratio(after: AnswerRow, before: AnswerRow, column: str) -> Difference | None:
    if drawn := after.drawn_alike(before, column):
        return stats.paired_log_ratio(drawn)
    return stats.log_ratio(*(list(each.by_run[column].values()) for each in (after, before)))


def _all_hold_zero(differences: Sequence[Difference]) -> bool:
    return all(low <= 0 <= high for low, high in (each.limits() for each in differences))


def told_of_axes(rows: Sequence[AnswerRow], axes: Sequence[Axis], cells: Iterable[Cell] = ()) -> list[str]:
    """Say of each axis what it does to each congestion control, where each ran alone.

    Or to each group that has no rival: the only one of transfers, the only one of other flows, and those that
    share no queue. Along an axis that leaves the path as it is, to each of few rivals too, for then it is one
    of them that is varied. Of what ran alone along one axis it is said elsewhere where it has most and least.
    """
    own = contending(rows)
    kinds = [*_without_rivals(own)]
    alone = len(kinds) == 1 and is_one_at_each_place(own)
    if alone and len({row.variant for row in own}) < 2 and len(axes) < 2:
        return []
    if len(axes) == 1 and axes[0].condition is not None and axes[0].condition.column in TOLD_ELSEWHERE:
        return []
    beside_the_path = set() if alone else _beside_the_path(cells)
    said = [
        (_among if _is_names(axis) else _along)(axis, place, kind, alone=alone)
        for place, axis in enumerate(axes)
        for kind in (_one_by_one(own) if axis.key in beside_the_path else kinds)
        if is_one_at_each_place(kind)
    ]
    return [tie(sentence) for sentence in said if sentence]


def _beside_the_path(cells: Iterable[Cell]) -> set[str]:
    """Keys of the axes along which, others held, no cell has another path."""
    held: dict[tuple[str, tuple[str, ...]], dict[str, tuple[CellLink, ...]]] = {}
    for cell in cells:
        for key, text in cell.axes.items():
            others = tuple(value for name, value in cell.axes.items() if name != key)
            held.setdefault((key, others), {})[text] = cell.links
    paths: dict[str, list[bool]] = {}
    for (key, _), by_text in held.items():
        if len(by_text) > 1:
            first, *rest = by_text.values()
            paths.setdefault(key, []).append(all(links == first for links in rest))
    return {key for key, same in paths.items() if all(same)}


def _one_by_one(rows: Sequence[AnswerRow]) -> list[list[AnswerRow]]:
    """The rows of each group; nothing of many."""
    groups = distinct((row.sized, row.position) for row in rows)
    each = [[row for row in rows if (row.sized, row.position) == group] for group in groups]
    return each if len(each) <= _LISTED else []


def _without_rivals(rows: Sequence[AnswerRow]) -> Iterator[list[AnswerRow]]:
    """Transfers and other flows; of each the groups one by one, where no two of them share a queue."""
    for kind in ([row for row in rows if row.sized], [row for row in rows if not row.sized]):
        queues = {(row.condition, row.phase, row.contest) for row in kind}
        each = _one_by_one(kind) if len(queues) == len(kind) else []
        yield from each or ([kind] if kind else [])


def is_one_at_each_place(rows: Sequence[AnswerRow]) -> bool:
    """Whether these are of one group that was measured wherever it ran, in one phase.

    With steps or later flows there are phases, and a change of conditions may do another thing in each.
    """
    kept = [row for row in rows if row.by_run.get(decides(row))]
    once = len({(row.place, row.variant) for row in rows}) == len(rows) == len(kept) > 0
    return once and len({(row.phase, row.position) for row in rows}) == 1


def _is_names(axis: Axis) -> bool:
    """Whether there are several names, of which none is an end."""
    return axis.shown is None and len(axis.texts) != 2


def _names(rows: Sequence[AnswerRow], *, alone: bool) -> dict[str, str]:
    """What is said for each rival: beside others the group, and which congestion control is in question."""
    rivals = distinct(row.rival for row in rows)
    others_vary = len(rivals) > 1 and len({row.cca for row in rows}) == 1
    if alone and not others_vary:
        return {rival: rival for rival in rivals}
    if len(rivals) == 1:
        return {rivals[0]: rows[0].group}
    word = "beside" if others_vary else "with"
    return {rival: f"{rows[0].group} {word} {rival}" for rival in rivals}


def _along(axis: Axis, place: int, rows: Sequence[AnswerRow], *, alone: bool) -> str:
    """What changes from one end of an axis to the other; empty where nothing was measured at both."""
    decided, names = decides_apart(rows), _names(rows, alone=alone)
    parts = [_told(_effects(axis, place, rows, decided, names), _WORDS[decided])]
    if alone and (axis.condition is None or axis.condition.column != "rtt_s"):
        round_trips = _effects(axis, place, rows, RTT, names)
        sure = any(not (each.is_none or each.may_be_none) for each in round_trips)
        parts += [_told(round_trips, _WORDS[RTT])] if sure else []
    said = "; ".join(filter(None, parts))
    first, last = value_alone(axis, axis.texts[0]), place_in_words([axis], [axis.texts[-1]])
    return said and f"With {last} instead of {first}, {said}."


def _effects(
    axis: Axis, place: int, rows: Sequence[AnswerRow], column: str, names: Mapping[str, str]
) -> list[_Effect]:
    """Of each congestion control that has the column at both ends of the axis."""
    first, last = axis.texts[0], axis.texts[-1]
    found = []
    for rival, name in names.items():
        at = {row.place: row for row in rows if row.rival == rival and (row.mean(column) or 0.0) > 0}
        pairs = [
            (at[start], row)
            for where, row in at.items()
            if where[place] == last and (start := (*where[:place], first, *where[place + 1 :])) in at
        ]
        found += [_Effect(name, pairs, column)] if pairs else []
    return found


def _among(axis: Axis, place: int, rows: Sequence[AnswerRow], *, alone: bool) -> str:
    """Which of several names is the best how often, others held; empty where no two can be compared."""
    said: list[str] = []
    whose = "" if alone else f" for {rows[0].group}"
    for column in (decides_apart(rows), RTT) if alone else (decides_apart(rows),):
        contests = _contests(place, rows, column)
        if not contests:
            continue
        named = [(rows[index].place[place], lead) for leads in contests for index, lead in leads.items()]
        names = counted(len({name for name, _ in named}), in_a_sentence(axis.title))
        among = "" if said else f"Of {counted(len(contests), 'comparison')} of {names}{whose}, "
        said.append(f"{among}{_MEASURED[column]} {ranking(named)}")
    return f"{'; '.join(said)}." if said else ""


def _contests(place: int, rows: Sequence[AnswerRow], column: str) -> list[dict[int, Lead]]:
    """The leads in each set of rows that differ in nothing but this axis."""
    contests: dict[tuple[object, ...], list[int]] = {}
    for index, row in enumerate(rows):
        contests.setdefault((row.rival, row.place[:place], row.place[place + 1 :]), []).append(index)
    return [leads for rivals in contests.values() if (leads := leads_among(rows, rivals, column))]


@dataclass(frozen=True)
class _Words:
    """How a change of one column is told: of the first congestion control, and where there is none."""

    first: str
    what: str
    same: str
    """Of several."""
    same_of_one: str
    unclear: str


_WORDS = {
    GOODPUT: _Words("{} has", "the goodput", "have as much", "has as much", "the goodput of {}"),
    OF_ALL: _Words(
        "all flows of {} have",
        "the goodput",
        "have as much",
        "have as much",
        "the goodput of all flows of {}",
    ),
    COMPLETION: _Words(
        "transfers of {} take", "as long", "take as long", "take as long", "completion times of {}"
    ),
    RTT: _Words("round trips of {} take", "as long", "take as long", "take as long", "round trips of {}"),
}


def _told(effects: Sequence[_Effect], words: _Words) -> str:
    """All that is told of one column, as a part of a sentence; empty without effects."""
    changed = sorted(
        (each for each in effects if not (each.is_none or each.may_be_none)),
        key=lambda each: -abs(math.log(each.mean)),
    )
    said = [f"{words.first.format(each.name)} {each.told(words.what)}" for each in changed[:1]]
    said += [f"{each.name} {each.told()}" for each in changed[1:_LISTED]]
    left = len(changed) - _LISTED
    said += [f"{left} more change{'s' if left == 1 else ''} less"] if left > 0 else []
    same = [each.name for each in effects if each.is_none]
    said += [f"{listing(same)} {words.same if len(same) > 1 else words.same_of_one} {WITHIN}"] if same else []
    unclear = [each.name for each in effects if each.may_be_none]
    said += [f"{words.unclear.format(listing(unclear))} may as well be the same"] if unclear else []
    return listing(said)

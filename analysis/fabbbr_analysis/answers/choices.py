"""What a group of flows gets with each congestion control, while those beside it stay as they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabbbr.counts import counted
from fabbbr_analysis import stats
from fabbbr_analysis.answers.leads import decides, leads_among, once
from fabbbr_analysis.answers.outcomes import amount, apart, bare, spelt_bare
from fabbbr_analysis.answers.records import AnswerRow, Lead
from fabbbr_analysis.answers.rows import COMPLETION, GOODPUT, OF_ALL
from fabbbr_analysis.answers.sentences import TOLD_ONE_BY_ONE, where
from fabbbr_analysis.answers.tallies import ALIKE, begun, ranking
from fabbbr_analysis.figures.conditions import Axis
from fabbbr_analysis.stats import Interval
from fabbbr_analysis.wording import distinct, listing, tie

_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class _Contest:
    """One group at one place in one phase: a row for each of its congestion controls, the best first."""

    rows: tuple[AnswerRow, ...]
    named: str
    """The group; empty where its name follows its congestion control."""
    beside: tuple[tuple[AnswerRow, ...], ...]
    """The other groups of each row's cells."""
    leads: tuple[Lead, ...]
    """Of each row: the best over the next, the others over the best."""


def told_of_choices(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """Say of each group whose congestion control varies beside flows of its kind which serves it best."""
    beside = _accompanied(rows)
    contests = list(_contests(beside, rows))
    phased = len({row.phase for row in beside if not row.sized}) > 1
    told: list[str] = []
    for position in distinct(each.rows[0].position for each in contests):
        own = [each for each in contests if each.rows[0].position == position]
        if len(own) > TOLD_ONE_BY_ONE:
            told.append(_tallied(own, phased=phased))
        else:
            told += [_said(each, axes, phased=phased) for each in own]
    return [tie(sentence) for sentence in told]


def _accompanied(rows: Sequence[AnswerRow]) -> list[AnswerRow]:
    """Those beside which others of their kind ran, whether in the same queues or not."""
    cells: dict[tuple[object, ...], list[AnswerRow]] = {}
    for row in rows:
        if not row.self_limited and row.mean(decides(row)) is not None:
            cells.setdefault((row.condition, row.phase, row.sized), []).append(row)
    return [row for together in cells.values() if len(together) > 1 for row in together]


def _contests(beside: Sequence[AnswerRow], every: Sequence[AnswerRow]) -> Iterator[_Contest]:
    """Sets of conditions that differ in nothing but what one group runs."""
    cells: dict[str, list[AnswerRow]] = {}
    for row in every:
        cells.setdefault(row.condition, []).append(row)
    alike: dict[tuple[object, ...], list[AnswerRow]] = {}
    for row in beside:
        others = frozenset((other.position, other.cca) for other in _others_of(row, cells))
        alike.setdefault((row.place, row.phase, row.sized, row.position, others), []).append(row)
    for found in alike.values():
        leads = leads_among(found, range(len(found)), decides(found[0]), beside=True)
        rows = [found[index] for index in leads]
        if len({row.cca for row in rows}) == len(found) > 1 and len(rows) == len(found):
            yield _Contest(
                rows=tuple(rows),
                named=rows[0].group if len({row.group for row in rows}) == 1 else "",
                beside=tuple(_others_of(row, cells) for row in rows),
                leads=tuple(leads.values()),
            )


def _others_of(row: AnswerRow, cells: Mapping[str, Sequence[AnswerRow]]) -> tuple[AnswerRow, ...]:
    return tuple(other for other in cells[row.condition] if other.position != row.position)


def _names(contest: _Contest) -> str:
    """Of the groups beside."""
    names = _called(contest)
    return listing(list(names.values())) if len(names) <= _NAMED else counted(len(names), "other group")


def _called(contest: _Contest) -> dict[int, str]:
    """Position of each group beside → its name, where all these cells call it so."""
    shared = set.intersection(*({other.name for other in others} for others in contest.beside))
    return {
        other.position: other.name
        if other.name in shared
        else f"{other.how_many} {'flows' if other.n_flows > 1 else 'flow'} of {other.cca}"
        for other in contest.beside[0]
    }


def _tallied(contests: Sequence[_Contest], *, phased: bool) -> str:
    named = [(row.cca, lead) for each in contests for row, lead in zip(each.rows, each.leads, strict=True)]
    what = f"what {contests[0].named or 'the varied group'} gets beside the same flows"
    begin = begun([row for each in contests for row in each.rows], phased=phased)
    return f"{begin} {counted(len(contests), 'comparison')} of {what}, {ranking(named)}."


def _said(contest: _Contest, axes: Sequence[Axis], *, phased: bool) -> str:
    best = contest.rows[0]
    place = where(best, axes, phased=phased)
    begin = f"{place}beside {_names(contest)}, " if place else f"Beside {_names(contest)}, "
    return f"{begin}{_amounts(contest)}{_sureness(contest)}.{_cost(contest)}"


def _amounts(contest: _Contest) -> str:
    column = decides(contest.rows[0])
    best, *others = contest.rows
    most, rest = amount(best, column), [(row.cca, bare(row, column)) for row in others]
    takes = column == COMPLETION
    if contest.named:
        begin = f"transfers of {contest.named} take" if takes else f"{contest.named} has"
        return listing([f"{begin} {most} with {best.cca}", *(f"{each} with {cca}" for cca, each in rest)])
    begin, of = (f"transfers of {best.cca} take", "of ") if takes else (f"{best.cca} has", "")
    return listing([f"{begin} {most}", *(f"{of}{cca} {each}" for cca, each in rest)])


def _cost(contest: _Contest) -> str:
    """What is left to the others of its kind, to those in the same queues first."""
    own = contest.rows[0].contest
    places = distinct(other.contest for other in contest.beside[0])
    return "".join(_left(contest, place) for place in sorted(places, key=lambda place: place != own))


def _left(contest: _Contest, place: str) -> str:
    """What is left to the others of its kind in some queues: a flow, or of several groups together."""
    left = [
        [other for other in beside if other.contest == place and _is_rival(other, row)]
        for row, beside in zip(contest.rows, contest.beside, strict=True)
    ]
    if contest.rows[0].sized or not all(left):
        return ""
    several = any(len(others) > 1 for others in left)
    column = OF_ALL if several else GOODPUT
    measure = left[0][0].measures[column]
    amounts = [spelt_bare(_together(others, column), measure) for others in left]
    amounts[0] += f" {measure.unit}{'' if several or left[0][0].n_flows == 1 else ' a flow'}"
    parts = [f"{each} beside {row.cca}" for each, row in zip(amounts, contest.rows, strict=True)]
    return f" {_left_over(contest, left[0])} {listing(parts)}."


def _left_over(contest: _Contest, rivals: Sequence[AnswerRow]) -> str:
    """The others of its kind, by name where there are groups of another kind beside them."""
    called, several = _called(contest), len(rivals) > 1
    if len(rivals) == len(called):
        return "The other groups together have" if several else "The other group has"
    names = [called[other.position] for other in rivals]
    if several:
        return f"{listing(names) if len(names) <= _NAMED else f'{len(names)} of them'} together have"
    return f"{names[0]} {'has' if names[0] == rivals[0].name or rivals[0].n_flows == 1 else 'have'}"


def _is_rival(other: AnswerRow, row: AnswerRow) -> bool:
    same = other.phase == row.phase and not other.sized and not other.self_limited
    return same and bool(other.by_run.get(OF_ALL))


def _together(rows: Sequence[AnswerRow], column: str) -> Interval:
    """The sum of a column over groups, run by run."""
    if len(rows) == 1:
        return rows[0].values[column]
    cells = set.intersection(*(set(row.by_run[column]) for row in rows))
    sums = [sum(row.by_run[column][cell] for row in rows) for cell in sorted(cells)]
    return stats.mean_within(once(sums), within=(0.0, math.inf), generator=np.random.default_rng(1))


def _sureness(contest: _Contest) -> str:
    best, second = (row.cca for row in contest.rows[:2])
    lead = contest.leads[0]
    if lead.difference.low is None:
        return f": whether {best} is ahead of {second} is not clear"
    if lead.verdict == "unclear":
        return f": the {apart(lead)} of {best} and {second} may as well be 0"
    if lead.verdict == "alike":
        return f": {best} and {second} are {ALIKE}"
    return f": {best} is ahead of {second}, {apart(lead)}"

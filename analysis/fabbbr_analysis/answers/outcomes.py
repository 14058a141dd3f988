"""One contest in a sentence: what each rival has, who wins, by how much and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fabbbr.counts import counted
from fabbbr_analysis.answers.records import AnswerRow, Lead
from fabbbr_analysis.answers.rows import COMPLETION, GOODPUT, OF_ALL
from fabbbr_analysis.answers.tallies import ALIKE
from fabbbr_analysis.figures.measures import Measure
from fabbbr_analysis.stats import Interval
from fabbbr_analysis.summary import UNCHANGED_WITHIN, WITHIN
from fabbbr_analysis.wording import estimate, listing, number

_NEARLY = 1.2
_LISTED = 6
"""Of more rivals it is the best few and the last that are named."""


def outcome(rows: Sequence[AnswerRow], leads: Mapping[int, Lead], last: AnswerRow, lead: Lead) -> str:
    """One sentence on the contest in which ``last`` is farthest behind; its ``lead`` is over the best.

    Of three rivals and more the best wins if it is ahead of the next, and no other may be as good. ``leads``
    are those of ``rows``.
    """
    key = lead.among(last)
    rivals = [(rows[index], own) for index, own in leads.items() if own.among(rows[index]) == key]
    others = sorted(((row, own) for row, own in rivals if row is not lead.over), key=_rank)
    return _of_several(lead.over, others) if len(others) > 1 else _of_two(last, lead)


def _rank(rival: tuple[AnswerRow, Lead]) -> float:
    """Smaller where it is better."""
    row, lead = rival
    return row.values[lead.column].value * (1 if lead.lower_wins else -1)


def _of_two(last: AnswerRow, lead: Lead) -> str:
    best, column, beside = lead.over, lead.column, with_or_beside(last, lead)
    names = [lead.called(row) for row in (best, last)]
    each = [f"{name} {amount(row, column)}" for name, row in zip(names, (best, last), strict=True)]
    if column == COMPLETION:
        each = [f"{name} ({amount(row, column)})" for name, row in zip(names, (best, last), strict=True)]
    if _is_open(lead) and column == COMPLETION:
        either = f"whether transfers are faster {beside} {each[0]} or {beside} {each[1]}"
        return f"{either} is not clear: the {apart(lead)} may as well be 0."
    if _is_open(lead):
        return f"nobody wins clearly: {each[0]}, {each[1]}; the {apart(lead)} may as well be 0."
    if lead.verdict == "alike" and column == COMPLETION:
        return f"transfers take as long {beside} {each[0]} as {beside} {each[1]}: {apart(lead)}."
    if lead.verdict == "alike":
        both = f"{amount(best, column)} and {amount(last, column)}"
        return f"{listing(names)} are {ALIKE}: {both}, {apart(lead)}."
    if column == COMPLETION:
        faster = f"transfers are faster {beside} {each[0]} than {beside} {each[1]}"
        return f"{faster}: {margin(last, lead)}."
    return f"{names[0]} {_wins(lead)}: {amount(best, column)}, {each[1]}: {margin(last, lead)}."


def _of_several(best: AnswerRow, others: Sequence[tuple[AnswerRow, Lead]]) -> str:
    """``others`` from the second to the last, with their leads over the best."""
    (second, near), (last, far) = others[0], others[-1]
    names = [near.called(best), near.called(second)]
    takes = near.column == COMPLETION
    nobody = "" if takes else "nobody wins clearly: "
    if near.verdict != "alike" and not _is_open(near) and not _is_near(second, near):
        if may_be := [each for each in others if _is_open(each[1])]:
            told = f"{nobody}{_amounts(names[0], best, others)}"
            return f"{told}: {_more(second, near)}; {_may_be_none(names[0], *may_be[0])}."
        begin = "" if takes else f"{names[0]} {_wins(near)}: "
        told = f"{begin}{_amounts('' if takes else 'it', best, others)}"
        return f"{told}: {_more(second, near)}, and {_more(last, far)}."
    begin = nobody if _is_open(near) else ""
    said = [] if _is_near(second, near) else [_nearest(names, others)]
    if far.verdict != "alike" and not _is_open(far) and not _is_near(last, far):
        said += [f"{'' if takes else f'{names[0]} has '}{_more(last, far)}"]
    told = f"{begin}{_amounts(names[0], best, others)}"
    return f"{told}: {'; '.join(said)}." if said else f"{told}."


def _nearest(names: Sequence[str], others: Sequence[tuple[AnswerRow, Lead]]) -> str:
    """Who is as good as the best, or may be: of ``names`` it is the first, and the second the next."""
    if _is_open(others[0][1]):
        return _may_be_none(names[0], *others[0])
    alike = [lead.called(row) for row, lead in others if lead.verdict == "alike"]
    if len(alike) == len(others):
        return f"all are {WITHIN} of the best"
    if len(alike) == 1:
        return f"{listing(names)} are {ALIKE}"
    return f"{listing(alike)} are {WITHIN} of {names[0]}"


def _may_be_none(best: str, row: AnswerRow, lead: Lead) -> str:
    return f"the {apart(lead)} of {best} and {lead.called(row)} may as well be 0"


def _amounts(subject: str, best: AnswerRow, others: Sequence[tuple[AnswerRow, Lead]]) -> str:
    """What each has, the best first, which is called ``subject``; of many the first ones and the last."""
    last, lead = others[-1]
    column, beside = lead.column, with_or_beside(last, lead)
    each = [(lead.called(best), amount(best, column))]
    each += [(own.called(row), bare(row, column)) for row, own in others]
    if column == COMPLETION:
        told = [f"{took} {beside} {name}" for name, took in each]
        told[0] = f"transfers take {told[0]}"
    else:
        told = [f"{name} {has}" for name, has in each]
        told[0] = f"{subject} has {each[0][1]}"
    between = len(told) - _LISTED
    return listing([*told[: _LISTED - 2], f"{between + 1} more", told[-1]] if between > 0 else told)


def _more(row: AnswerRow, lead: Lead) -> str:
    """How much more than ``row`` the best has, or how much longer transfers take with ``row``."""
    name = lead.called(row)
    if lead.column == COMPLETION:
        return f"{with_or_beside(row, lead)} {name} {margin(row, lead)}"
    if not math.isfinite(ratio(row, lead)):
        return f"more than {name}, {apart(lead)}"
    link = "than" if ratio(row, lead) < _NEARLY else "as"
    return f"{_times(row, lead)} {link} {name}, {apart(lead)}"


def with_or_beside(last: AnswerRow, lead: Lead) -> str:
    """The word before what is varied: of what varies, or of what stays as it is beside it."""
    varies = all(row.cca == row.variant for row in (last, lead.over))
    return "with" if lead.together or varies else "beside"


def _wins(lead: Lead) -> str:
    """``lead`` is of the second, over the best."""
    return "wins" if lead.verdict == "behind" else "is ahead"


def _is_open(lead: Lead) -> bool:
    """Whether its interval holds 0; a single run has none, and says who is ahead in it."""
    return lead.verdict == "unclear" and lead.difference.low is not None


def _is_near(row: AnswerRow, lead: Lead) -> bool:
    """Whether a single run, which has no interval, has two so close that neither is to be called ahead."""
    return lead.difference.low is None and ratio(row, lead) <= 1 + UNCHANGED_WITHIN


# Amounts and differences


def value(row: AnswerRow, column: str) -> str:
    """Write what a row has with its unit, and its interval where it has one."""
    return spelt(row.values[column], row.measures[column])


def spelt(found: Interval, measure: Measure) -> str:
    """Write a mean with its unit, and its interval where it has one."""
    return f"{spelt_bare(found, measure)} {measure.unit}".strip()


def bare(row: AnswerRow, column: str) -> str:
    """Write what a row has without the unit, which something before it has."""
    return spelt_bare(row.values[column], row.measures[column])


def spelt_bare(found: Interval, measure: Measure) -> str:
    """Write a mean and its interval without the unit, which something before it has."""
    low, high = (None if end is None else end * measure.factor for end in (found.low, found.high))
    return estimate(found.value * measure.factor, low, high, finest=measure.finest)


def amount(row: AnswerRow, column: str) -> str:
    """What a row has of the column that decides."""
    of = {OF_ALL: " together", GOODPUT: " a flow"}.get(column, "") if row.n_flows > 1 else ""
    return value(row, column) + of


def margin(last: AnswerRow, lead: Lead, *, among: int = 1) -> str:
    """By how much the better is better, and how sure that is; see ``apart``."""
    # Of nothing there are no multiples.
    factor = f"{_times(last, lead)}, " if math.isfinite(ratio(last, lead)) else ""
    return factor + apart(lead, among=among)


def _times(last: AnswerRow, lead: Lead) -> str:
    """Say by which factor, or by how many percent where it is near 1."""
    factor, word = ratio(last, lead), "long" if lead.lower_wins else "much"
    if factor < _NEARLY:
        return f"{number((factor - 1) * 100, significant=2)} % {'longer' if lead.lower_wins else 'more'}"
    return f"{number(factor, significant=2)} times as {word}"


def apart(lead: Lead, *, among: int = 1) -> str:
    """The difference, and how sure it is; ``among`` so many of which it was picked."""
    allows = f"; the interval allows for {among} pairs" if among > 1 and lead.difference.n > 1 else ""
    return f"difference {_size(lead)} ({_sureness(lead)}{allows})"


def _size(lead: Lead) -> str:
    """The difference without its sign: who is ahead is said."""
    found, measure = lead.difference, lead.over.measures[lead.column]
    if lead.exact:
        found = replace(found, low=None, high=None)
    if found.value >= 0:
        return spelt(found, measure)
    turned = Interval(
        value=-found.value,
        low=None if found.high is None else -found.high,
        high=None if found.low is None else -found.low,
        n=found.n,
        method=found.method,
    )
    return spelt(turned, measure)


def _sureness(lead: Lead) -> str:
    if lead.together and lead.difference.n < 2 and lead.over.repetitions > 1:
        return "the same in all runs, in which nothing is random: it may be chance"
    if lead.difference.n < 2:
        return "one run, so no interval"
    if lead.exact:
        return "the same in all runs"
    return f"{'paired, ' if lead.paired else ''}{counted(lead.difference.n, 'run')}"


def ratio(row: AnswerRow, lead: Lead) -> float:
    """How many times better the other is."""
    own, other = row.values[lead.column].value, lead.over.values[lead.column].value
    low, high = sorted((own, other))
    return high / low if low > 0 else float("inf")

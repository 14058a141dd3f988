"""Many comparisons in one sentence: who is ahead how often, or who is among the best how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fabbbr_analysis.answers.records import AnswerRow, Lead, contests_of
from fabbbr_analysis.phases import WHOLE_RUN
from fabbbr_analysis.summary import WITHIN
from fabbbr_analysis.wording import capital, distinct, listing

ALIKE = f"{WITHIN} of each other"


def tally(lasts: Sequence[tuple[AnswerRow, Lead]], *, phased: bool, subject: str = "") -> str:
    """Who is ahead how often; in which phase, where there are others.

    ``lasts`` has of each contest the row that is farthest behind, with its lead; ``subject`` says what is
    compared, where that is not plain.
    """
    # Where what runs beside one another is of one kind, it is the groups that are compared.
    one_kind = all(row.cca == lead.over.cca for row, lead in lasts)
    several = one_kind and len({row.cca for row, _ in lasts}) > 1
    leading = [lead for _, lead in lasts if lead.verdict == "behind"]
    ahead: dict[str, Counter[str]] = {}
    for lead in leading:
        ahead.setdefault(_winner(lead, one_kind=one_kind), Counter())[lead.over.cca] += 1
    parts = [
        f"{name} is ahead in {kinds.total()}{_of_kinds(kinds) if several else ''}"
        for name, kinds in sorted(ahead.items(), key=lambda named: -named[1].total())
    ]
    alike = sum(lead.verdict == "alike" for _, lead in lasts)
    parts += [f"in {alike} they are {ALIKE}"] if alike else []
    unclear = len(lasts) - len(leading) - alike
    parts += [f"in {unclear} the difference is not clear"] if unclear else []
    begin = begun([row for row, _ in lasts], phased=phased)
    return f"{begin} {len(lasts)} comparisons{subject and f' of {subject}'}, {listing(parts)}."


def _of_kinds(kinds: Counter[str]) -> str:
    """As in `` (bbr1 in 4, bbr3 in 2)``."""
    if len(kinds) == 1:
        return f" ({next(iter(kinds))})"
    return f" ({', '.join(f'{cca} in {count}' for cca, count in kinds.most_common())})"


def standings(
    rows: Sequence[AnswerRow], leads: Mapping[int, Lead], *, phased: bool, subject: str = ""
) -> str | None:
    """Who is among the best how often; None where no contest has more than two rivals.

    With three rivals or more it says little that somebody is ahead of the last. ``leads`` are those of rows
    that all ran together, or of rows of which none did.
    """
    sizes = [len(contest) for contest in contests_of(rows, leads)]
    most = max(sizes, default=0)
    if most <= 2:
        return None
    begin = begun([rows[index] for index in leads], phased=phased)
    together = any(lead.together for lead in leads.values())
    names = _groups([rows[index] for index in leads]) if together else [rows[index].rival for index in leads]
    up_to = "up to " if min(sizes) < most else ""
    said = ranking([*zip(names, leads.values(), strict=True)])
    rivals = "groups" if together else "rivals"
    whose = subject and f" in {subject}"
    return f"{begin} {len(sizes)} comparisons of {up_to}{most} {rivals}{whose}, {said}."


def _groups(rows: Sequence[AnswerRow]) -> list[str]:
    """The group of each row, with its congestion control where that is the same in all of them."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        kinds.setdefault(row.group, set()).add(row.cca)
    return [row.name if len(kinds[row.group]) == 1 else row.group for row in rows]


def ranking(named: Sequence[tuple[str, Lead]]) -> str:
    """How often each name is the best or nearly so; ``named`` has the leads of all contests."""
    sure = Counter(name for name, lead in named if not lead.behind or lead.verdict == "alike")
    if sure.total() == len(named):
        return f"all are {WITHIN} of the best"
    perhaps = Counter(name for name, lead in named if lead.behind and lead.verdict == "unclear")
    names = sorted({name for name, _ in named}, key=lambda name: (-sure[name], -perhaps[name], name))
    first, *others = [f"in {_how_often(sure[name], perhaps[name])}" for name in names]
    parts = [f"{names[0]} is best or {WITHIN} of the best {first}"]
    parts += [f"{name} {often}" for name, often in zip(names[1:], others, strict=True)]
    return listing(parts)


def _how_often(best: int, perhaps: int) -> str:
    more = f" (perhaps in {perhaps}{' more' if best else ''})" if perhaps else ""
    return f"{best or 'none'}{more}"


def _winner(lead: Lead, *, one_kind: bool) -> str:
    if not lead.together:
        return lead.over.rival
    return lead.over.group if one_kind else lead.over.name


def begun(rows: Sequence[AnswerRow], *, phased: bool) -> str:
    """How a sentence on many comparisons begins: in which phases, where there are several."""
    return f"{_phases_of(rows)}, of" if phased else "Of"


def during(row: AnswerRow) -> str:
    """Say in which phase it is."""
    return "over the whole run" if row.number == WHOLE_RUN else f"in the phase “{row.phase}”"


def _phases_of(rows: Sequence[AnswerRow]) -> str:
    phases, first = distinct(row.phase for row in rows), during(rows[0])
    if len(phases) == 1:
        return capital(first)
    if len({row.number for row in rows}) == 1:
        return f"In the phase “{phases[0]}” and its like elsewhere"
    return f"In {len(phases)} phases"

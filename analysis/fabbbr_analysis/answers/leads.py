"""Who is ahead of whom: groups of the same cells run by run, else congestion controls at the same place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from fabbbr_analysis import stats
from fabbbr_analysis.answers.records import AnswerRow, Lead
from fabbbr_analysis.answers.rows import COMPLETION, GOODPUT, OF_ALL, RTT, TAIL
from fabbbr_analysis.wording import distinct

_T = TypeVar("_T")
_Others: TypeAlias = frozenset[tuple[int, str]]
"""Position and congestion control of the groups that ran elsewhere in the same cells."""
_LESS_IS_BETTER = frozenset({COMPLETION, TAIL, RTT})


def leads_of(rows: Sequence[AnswerRow]) -> dict[int, Lead]:
    """Place in ``rows`` → its lead; a row that has no rival has none.

    Groups of one kind (with a duration, or with a size) that compete in the same cells are rivals. A group
    that is the only one of its kind there is compared with those at the same place that have another
    congestion control, unless it ran beside groups in other queues that stay as they are: that is a choice
    (:mod:`fabbbr_analysis.answers.choices`). What limits itself has no rivals.
    """
    found: dict[int, Lead] = {}
    for rivals in _rivals(rows):
        found |= leads_among(rows, rivals, decides(rows[rivals[0]]))
    return found


def leads_among(
    rows: Sequence[AnswerRow], rivals: Iterable[int], column: str, *, beside: bool = False
) -> dict[int, Lead]:
    """Place in ``rows`` → its lead in ``column``, the best first: that over the next, others over the best.

    ``beside``: each ran beside other flows in cells of its own.
    """
    ranked = sorted(
        (index for index in rivals if rows[index].mean(column) is not None),
        key=lambda index: rows[index].values[column].value,
        reverse=column not in _LESS_IS_BETTER,
    )
    if len(ranked) < 2:
        return {}
    best, second, *_ = ranked
    over = dict.fromkeys(ranked, best) | {best: second}
    return {
        index: lead_over(rows[index], rows[other], column, beside=beside) for index, other in over.items()
    }


def decides(row: AnswerRow) -> str:
    """The column that says who wins: goodput a flow, or of flows with a size the median completion time."""
    return COMPLETION if row.sized else GOODPUT


def decides_apart(rows: Sequence[AnswerRow]) -> str:
    """The column that tells rows apart that did not run together.

    Of more flows each has less: where their numbers differ, it is what all of a group have.
    """
    column = decides(rows[0])
    several = len({row.n_flows for row in rows}) > 1 and all(OF_ALL in row.values for row in rows)
    return OF_ALL if column == GOODPUT and several else column


def contending(rows: Sequence[AnswerRow]) -> list[AnswerRow]:
    """Those of groups that do not limit themselves everywhere: along a pace one does up to its fair share."""
    groups = {row.position for row in rows if not row.self_limited}
    return [row for row in rows if row.position in groups]


def _rivals(rows: Sequence[AnswerRow]) -> Iterator[list[int]]:
    cells: dict[tuple[object, ...], list[int]] = {}
    for index, row in enumerate(rows):
        if not row.self_limited:
            cells.setdefault((row.condition, row.phase, row.sized), []).append(index)
    alone: dict[tuple[object, ...], list[tuple[int, _Others]]] = {}
    for together in cells.values():
        for contest in distinct(rows[index].contest for index in together):
            group = [index for index in together if rows[index].contest == contest]
            if len(group) > 1:
                yield group
                continue
            row = rows[group[0]]
            beside = frozenset(
                (rows[index].position, rows[index].cca) for index in together if index != group[0]
            )
            alone.setdefault((row.place, row.phase, row.sized, contest), []).append((group[0], beside))
    ran = _ran(rows)
    for found in alone.values():
        # They are the same by another name where the group whose congestion control varies has no flow.
        differ = len({frozenset(ran[rows[index].condition]) for index, _ in found}) > 1
        if differ and _compares(rows, found):
            yield [index for index, _ in found]


def _ran(rows: Sequence[AnswerRow]) -> dict[str, set[tuple[str, str]]]:
    """Condition → its groups, with their congestion controls."""
    found: dict[str, set[tuple[str, str]]] = {}
    for row in rows:
        found.setdefault(row.condition, set()).add((row.group, row.cca))
    return found


def _compares(rows: Sequence[AnswerRow], found: Sequence[tuple[int, _Others]]) -> bool:
    """Whether rows without a rival in their cells are told apart by what they run themselves."""
    own, beside = {rows[index].cca for index, _ in found}, {others for _, others in found}
    return not any(beside) or (len(own) > 1 and len(beside) > 1)


def once(runs: Sequence[_T]) -> Sequence[_T]:
    """Where nothing is random, which of two flows gets more hangs on their phases: that is one sample.

    Packets of one flow may arrive just before the queue is full in every round trip, and of its equal just
    after (Floyd and Jacobson 1992). However often it is repeated, it may be chance.
    """
    return runs[:1] if len(set(runs)) == 1 else runs


def lead_over(
    row: AnswerRow,
    other: AnswerRow,
    column: str,
    *,
    beside: bool = False,
    confidence: float = stats.CONFIDENCE,
) -> Lead:
    """How far ``row`` is ahead of ``other`` in ``column``, or behind it; ``beside`` as in ``leads_among``."""
    together = row.condition == other.condition
    pairs = row.paired(other, column)
    if pairs:
        runs = once(pairs) if together or beside else pairs
        difference = stats.mean_interval([own - its for own, its in runs], confidence=confidence)
    else:
        own, its = (list(each.by_run[column].values()) for each in (row, other))
        samples = (once(own), once(its)) if beside else (own, its)
        difference = stats.difference_of_means(*samples, confidence=confidence)
    return Lead(
        over=other,
        column=column,
        difference=difference,
        together=together,
        paired=bool(pairs),
        lower_wins=column in _LESS_IS_BETTER,
    )

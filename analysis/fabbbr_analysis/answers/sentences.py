"""The headline: who wins, by how much, how sure, in sentences that are worth no more than their intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fabbbr.counts import counted
from fabbbr_analysis.answers.outcomes import amount, outcome, ratio, value
from fabbbr_analysis.answers.records import AnswerRow, Lead, contests_of
from fabbbr_analysis.answers.rows import COMPLETION, GOODPUT, TAIL
from fabbbr_analysis.answers.tallies import during, standings, tally
from fabbbr_analysis.figures.conditions import Axis, place_in_words
from fabbbr_analysis.wording import capital, distinct, listing, tie

STARVES = 0.2
"""A group starves whose share is below this part of what its number of flows makes fair."""
TOLD_ONE_BY_ONE = 3
_LISTED = 4
_MUCH_LATER_S = 1.0


def headline(rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis]) -> list[str]:
    """Say what groups beside one another got, what transfers took, what steps did, and who is best where."""
    phased = has_phases(rows)
    told = [
        *_contests(rows, leads, axes, phased=phased),
        *_left_alone(rows, leads, axes),
        *_transfers(rows, leads, axes),
        *_plateaus(rows, axes),
        *_sweep(rows, leads, axes, phased=phased),
    ]
    return [tie(_begun(sentence)) for sentence in told]


def told_of_whole_runs(
    rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis], *, steps: int
) -> list[str]:
    """Say who is best where over all that steps did, and how long they cost; ``rows`` are of whole runs."""
    told = [*_contests(rows, leads, axes, phased=True), *_sweep(rows, leads, axes, phased=True)]
    if steps > TOLD_ONE_BY_ONE:
        told += _on_average(rows, axes, steps)
    return [tie(sentence) for sentence in told]


def _on_average(rows: Sequence[AnswerRow], axes: Sequence[Axis], steps: int) -> Iterator[str]:
    """How soon the link is full again after a step, at the place where rivals differ most."""
    known = [row for row in rows if "recovery_s" in row.values and not row.self_limited]
    places = [[row for row in known if row.place == place] for place in distinct(row.place for row in known)]
    if not places:
        return
    most = max(places, key=lambda there: _spread([row.values["recovery_s"].value for row in there]))
    each = sorted(_of_cells(most).items(), key=lambda named: _filled_s(named[1]))[:_LISTED]
    took = listing([f"{name} {value(row, 'recovery_s')}".strip() for name, row in each])
    at = where(most[0], axes)
    begin = f"{at}on average" if at else "On average"
    yield f"{begin} of {steps} steps, the link is filled again after: {took}."


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _begun(sentence: str) -> str:
    """With a capital letter, unless it begins with a name."""
    own = ("nobody", "transfers", "whether transfers", "in the group")
    return capital(sentence) if sentence.startswith(own) else sentence


def where(row: AnswerRow, axes: Sequence[Axis], *, phased: bool = False, variant: bool = False) -> str:
    """Say at which place, with which congestion control and in which phase; nothing where there is one."""
    told = [f"at {place_in_words(axes, row.place)}"] if axes else []
    told += [f"with {row.variant}"] if variant and row.variant else []
    told += [during(row)] if phased else []
    text = ", ".join(told)
    return f"{capital(text)}, " if text else ""


# Groups beside one another


def _contests(
    rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis], *, phased: bool
) -> Iterator[str]:
    together = {index: lead for index, lead in leads.items() if lead.together}
    lasts = _lasts(rows, together)
    if len(lasts) > TOLD_ONE_BY_ONE:
        yield standings(rows, together, phased=phased) or tally(lasts, phased=phased)
        lasts = [max(lasts, key=lambda each: ratio(*each))]
    for last, lead in lasts:
        yield f"{where(last, axes, phased=phased, variant=True)}{outcome(rows, together, last, lead)}"
        yield from _starving(last)


def _left_alone(rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis]) -> Iterator[str]:
    """What a group has in conditions without the rivals that it has in others."""
    rivals = {rows[index].group for index, lead in leads.items() if lead.together}
    groups = Counter(row.condition for row in rows)
    alone = [row for row in rows if groups[row.condition] == 1 and row.group in rivals and not row.sized]
    if all(GOODPUT in row.values for row in alone):
        said = (f"{where(row, axes)}{row.name} alone has {amount(row, GOODPUT)}." for row in alone)
        # A condition may have another name where whose congestion control varies has no flow.
        yield from distinct(said)[:TOLD_ONE_BY_ONE]


def has_phases(rows: Sequence[AnswerRow]) -> bool:
    """Whether a sentence has to say of which phase it speaks."""
    return len({row.phase for row in rows if not row.sized}) > 1


def _lasts(rows: Sequence[AnswerRow], leads: Mapping[int, Lead]) -> list[tuple[AnswerRow, Lead]]:
    """Of each contest the row that is farthest behind, with its lead, which is one over the best."""
    told = [
        [(rows[index], lead) for index in contest if (lead := leads[index]).behind or _is_equal(lead)]
        for contest in contests_of(rows, leads)
    ]
    return [max(rivals, key=lambda each: ratio(*each)) for rivals in told if rivals]


def _is_equal(lead: Lead) -> bool:
    return lead.verdict == "alike" and lead.difference.value == 0


def _starving(row: AnswerRow) -> Iterator[str]:
    share = row.values.get("share")
    if share is None or row.fair_share is None or row.sized or share.value >= STARVES * row.fair_share:
        return
    fair = f"{row.fair_share * 100:.3g} % of the flows"
    yield f"{row.name} starves: {value(row, 'share')} of the goodput, with {fair}."


def _subject(rows: Sequence[AnswerRow], leads: Mapping[int, Lead], words: str) -> str:
    """Of which group a tally speaks; empty where there is no other, or where it bears the rivals' names."""
    own = distinct(rows[index].group for index in leads)
    named = len(own) == 1 and len({row.group for row in rows}) > 1
    return words.format(own[0]) if named else ""


# Transfers


def _transfers(rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis]) -> Iterator[str]:
    """Where no contest within a cell has said it."""
    told_of = {(rows[index].condition, rows[index].phase) for index, lead in leads.items() if lead.together}
    told = [row for row in rows if row.sized and COMPLETION in row.values]
    for row in told if len(told) <= TOLD_ONE_BY_ONE else ():
        middle, p95 = (value(row, name) for name in (COMPLETION, TAIL))
        slow = "slowdown_median"
        ideal = f", {value(row, slow)} times the ideal" if slow in row.values else ""
        spread = f"{middle} in the median{ideal}, and {p95} in the 95th percentile"
        took = spread if row.n_flows > 1 else f"{middle}{ideal}"
        transfers = "transfers" if row.n_flows > 1 else "transfer"
        said = f"{row.how_many} {transfers} of {row.name} took {took}."
        yield f"{where(row, axes, variant=row.variant != row.name)}{said}"
    alone = {
        index: lead
        for index, lead in leads.items()
        if rows[index].sized and (rows[index].condition, rows[index].phase) not in told_of
    }
    lasts, subject = _lasts(rows, alone), _subject(rows, alone, "how long transfers of {} take")
    if len(lasts) > 1:
        ranked = standings(rows, alone, phased=False, subject=subject)
        yield ranked or tally(lasts, phased=False, subject=subject)
    if lasts:
        last, lead = max(lasts, key=lambda each: ratio(*each))
        yield f"{where(last, axes)}{outcome(rows, alone, last, lead)}"


# Steps


def _plateaus(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> Iterator[str]:
    """What each congestion control makes of each step, at the place where they differ most."""
    stepped = _with_a_link([row for row in rows if row.begins_with == "step"])
    # What limits itself is told of where nothing else runs.
    stepped = [row for row in stepped if not row.self_limited] or stepped
    groups = Counter((row.condition, row.phase) for row in stepped)
    numbers = _numbers(stepped)
    for nth in numbers[:TOLD_ONE_BY_ONE]:
        here = [row for row in stepped if row.number == nth]
        places = [
            [row for row in here if row.place == place] for place in distinct(row.place for row in here)
        ]
        most = max(places, key=_apart)
        told = [_plateau(row, alone=groups[row.condition, row.phase] == 1) for row in most[:_LISTED]]
        left = len(here) - len(told)
        less = ", where goodput and queues differ less" if len(places) > 1 and len(told) == len(most) else ""
        more = f" The table has {left} more{less}." if left else ""
        yield f"{where(most[0], axes, phased=True)}{'; '.join(told)}.{more}"
        yield from _latest(places, most, axes)
    if len(numbers) > TOLD_ONE_BY_ONE:
        yield f"The table has {counted(len(numbers) - TOLD_ONE_BY_ONE, 'more step')}."


def _latest(
    places: Sequence[Sequence[AnswerRow]], told: Sequence[AnswerRow], axes: Sequence[Axis]
) -> Iterator[str]:
    """Where the link is filled again latest, if much later than at the place that was ``told``."""
    last = max(places, key=_longest_s)
    if math.isinf(_longest_s(told)) or _longest_s(last) < _longest_s(told) + _MUCH_LATER_S:
        return
    in_order = sorted(_of_cells(last).items(), key=lambda named: _filled_s(named[1]), reverse=True)
    each = [
        f"{name} {'not at all' if math.isinf(_filled_s(row)) else _after(row, 'recovery_s')}".strip()
        for name, row in in_order[:_LISTED]
    ]
    yield f"{where(last[0], axes, phased=True)}the link is filled again latest: {listing(each)}."


def _of_cells(rows: Sequence[AnswerRow]) -> dict[str, AnswerRow]:
    """Name → one row of each condition at a place: all groups of a cell fill one link, after one time.

    The varied congestion control is its name, else that of a group that is there by itself, else nothing.
    """
    groups = Counter(row.condition for row in rows)
    return {row.variant or (row.name if groups[row.condition] == 1 else ""): row for row in rows}


def _longest_s(rows: Sequence[AnswerRow]) -> float:
    return max(map(_filled_s, rows))


def _filled_s(row: AnswerRow) -> float:
    """How long after a step all fill the link again [s]; infinity where they do not."""
    return row.values["recovery_s"].value if "recovery_s" in row.values else math.inf


def _with_a_link(stepped: Sequence[AnswerRow]) -> list[AnswerRow]:
    """Without the phases in which somewhere nobody got anything: of an outage there is but that it was.

    In a short one what was under way still arrives; and one that is shorter still is no phase of its own, but
    begins one.
    """
    some: dict[tuple[str, tuple[str, ...]], bool] = {}
    for row in stepped:
        at = (_what_is_set(row), row.place)
        some[at] = some.get(at, False) or row.mean("goodput_bps") != 0
    outages = {what for (what, _), through in some.items() if not through}
    return [row for row in stepped if _what_is_set(row) not in outages]


def _what_is_set(row: AnswerRow) -> str:
    """What a phase's name says after its time."""
    return row.phase.partition(": ")[2] or row.phase


def steps_in(rows: Sequence[AnswerRow]) -> int:
    """How many begin a phase."""
    return len(_numbers([row for row in rows if row.begins_with == "step"]))


def _numbers(stepped: Sequence[AnswerRow]) -> list[int]:
    """The same step may come at other instants in other conditions."""
    return distinct(row.number for row in stepped)


def _apart(rows: Sequence[AnswerRow]) -> float:
    """How far the rows of one place are apart: in goodput as a ratio, in queueing delay in round trips."""
    rates = [row.mean("goodput_bps") or 0.0 for row in rows]
    waits = [row.mean("queue_delay_median_s") or 0.0 for row in rows]
    path = min((row.mean("rtt_median_s") or 0.0) - wait for row, wait in zip(rows, waits, strict=True))
    faster = max(rates) / min(rates) - 1 if min(rates) > 0 else math.inf
    return max(faster, (max(waits) - min(waits)) / path if path > 0 else 0.0)


def _plateau(row: AnswerRow, *, alone: bool) -> str:
    parts = [
        f"{value(row, column)} {words}"
        for column, words in (("goodput_bps", "of goodput"), ("queue_delay_median_s", "of queueing"))
        if column in row.values
    ]
    filled = "recovery_s" in row.values
    parts += [f"the link filled again {_after(row, 'recovery_s')}" if filled else "the link not filled again"]
    settled = "queue_settled_s" in row.values
    parts += [f"the queue settled {_after(row, 'queue_settled_s')}"] if settled else []
    beside = f" beside {row.variant}" if row.variant and row.variant != row.cca else ""
    return f"{row.rival if alone else row.name + beside} has {listing(parts)}"


def _after(row: AnswerRow, column: str) -> str:
    return "at once" if row.values[column].value == 0 else f"after {value(row, column)}"


# One group at a time


def _sweep(
    rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis], *, phased: bool
) -> Iterator[str]:
    """Who is best where, of congestion controls that did not run together."""
    alone = {
        index: lead
        for index, lead in leads.items()
        if not lead.together and not rows[index].sized and rows[index].begins_with != "step"
    }
    lasts, subject = _lasts(rows, alone), _subject(rows, alone, "what {} gets")
    if len(lasts) > 1:
        ranked = standings(rows, alone, phased=phased, subject=subject)
        yield ranked or tally(lasts, phased=phased, subject=subject)
    # Of a group that is alone the report says first how far apart they are at most.
    if len(lasts) == 1 or (lasts and subject):
        last, lead = max(lasts, key=lambda each: ratio(*each))
        shared = last.group == lead.over.group != last.rival
        group = f"in the group {last.group}, " if shared else ""
        yield f"{where(last, axes, phased=phased)}{group}{outcome(rows, alone, last, lead)}"

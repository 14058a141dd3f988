"""Where flows that have no rival do best: how far apart the places are, how much is enough, what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import comb

from fabbbr_analysis import stats
from fabbbr_analysis.answers.enough import Stretch
from fabbbr_analysis.answers.leads import contending, decides, decides_apart, lead_over
from fabbbr_analysis.answers.outcomes import amount, apart, margin, value
from fabbbr_analysis.answers.records import AnswerRow, Lead
from fabbbr_analysis.answers.rows import COMPLETION, OF_CAPACITY
from fabbbr_analysis.answers.tallies import ALIKE
from fabbbr_analysis.figures.conditions import Axis, place_in_words
from fabbbr_analysis.summary import WITHIN
from fabbbr_analysis.wording import listing, tie

_QUEUE = "queue_delay_median_s"
_WORTH_SAYING = 2.0
_WORTH_SAYING_S = 1e-3


def told_of_places(rows: Sequence[AnswerRow], leads: Mapping[int, Lead], axes: Sequence[Axis]) -> list[str]:
    """Compare the places with each other, where one group of flows ran alone at each and nothing else did."""
    own = [row for row in contending(rows) if row.mean(decides(row)) is not None]
    alone = len({row.place for row in own}) == len(own) > 1
    if leads or not alone or len({row.rival for row in own}) > 1:
        return []
    return [tie(said) for said in (*_extremes(own, axes), *_enough(own, axes), *_cost(own, axes))]


def _ranked(rows: Sequence[AnswerRow], column: str) -> list[AnswerRow]:
    """The best first."""
    return sorted(rows, key=lambda row: row.values[column].value, reverse=column != COMPLETION)


def _at(row: AnswerRow, axes: Sequence[Axis]) -> str:
    return f"at {place_in_words(axes, row.place)}"


def _extremes(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> Iterator[str]:
    """By chance alone the best of several places is some way from the worst: the interval allows for that."""
    column = _compared_in(rows, axes)
    best, *_, worst = _ranked(rows, column)
    pairs = comb(len(rows), 2)
    lead = lead_over(worst, best, column, confidence=1 - (1 - stats.CONFIDENCE) / pairs)
    what, most, least = (
        (f"Transfers of {best.name}", "are fastest", "slowest") if best.sized
        else (best.name, "fills most of the link" if column == OF_CAPACITY else "has most", "least")
    )  # fmt: skip
    top, bottom = (f"{_at(row, axes)}, {amount(row, column)}" for row in (best, worst))
    if lead.verdict == "unclear" and lead.difference.low is not None:
        end = f"but the {apart(lead, among=pairs)} may as well be 0."
    elif lead.verdict == "alike":
        end = f"{ALIKE}, {apart(lead, among=pairs)}."
    else:
        # Of percents no percents.
        far = apart if column == OF_CAPACITY else partial(margin, worst)
        end = f"{far(lead, among=pairs)}."
    yield f"{what} {most} {top}, and {least} {bottom}: {end}"


def _compared_in(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> str:
    """Of two rates the faster one carries more: what they are compared in is how much of each is used."""
    rate = any(axis.condition is not None and axis.condition.column == "rate_bps" for axis in axes)
    known = rate and all(OF_CAPACITY in row.values and not row.sized for row in rows)
    return OF_CAPACITY if known else decides_apart(rows)


def _enough(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> Iterator[str]:
    """From which value of the one numeric axis on it is nearly the best, or up to which."""
    if len(axes) != 1 or axes[0].shown is None:
        return
    column = decides_apart(rows)
    in_order = sorted(rows, key=lambda row: axes[0].texts.index(row.place[0]))
    enough = Stretch.where_enough([row.values[column].value for row in in_order], column)
    nearly = f"the mean is {WITHIN} of the best"
    if enough.is_last and not enough.is_first:
        yield f"From {place_in_words(axes, in_order[enough.first].place)} on {nearly}."
    if enough.is_first and not enough.is_last:
        yield f"Up to {place_in_words(axes, in_order[enough.last].place)} {nearly}."


def _cost(rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> Iterator[str]:
    waits = sorted(
        (row for row in rows if row.mean(_QUEUE) is not None), key=lambda row: row.values[_QUEUE].value
    )
    if len(waits) < 2:
        return
    least, most = waits[0], waits[-1]
    low, high = (row.values[_QUEUE].value for row in (least, most))
    if high < _WORTH_SAYING * low or high - low < _WORTH_SAYING_S:
        return
    each = [f"for {value(row, _QUEUE)} {_at(row, axes)}" for row in (least, most)]
    yield f"Packets queue {listing(each)}."

"""How evenly flows of one congestion control share a queue, by Jain's index: which of them do, or where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fabbbr_analysis.answers.records import AnswerRow
from fabbbr_analysis.answers.sentences import where
from fabbbr_analysis.figures.conditions import Axis, place_in_words
from fabbbr_analysis.summary import summarise
from fabbbr_analysis.wording import estimate, listing, tie

_COLUMN = "jain_flows"
_WORTH_SAYING = 0.05
_LISTED = 5


@dataclass(frozen=True, kw_only=True)
class _Share:
    """What the index is in one condition, with one of its rows, which has its place and what varies."""

    row: AnswerRow
    mean: float
    low: float
    high: float
    value: str


def told_of_evenness(runs: pd.DataFrame, rows: Sequence[AnswerRow], axes: Sequence[Axis]) -> list[str]:
    """Say where what is varied differs most in it; without a varied congestion control, where it is highest.

    Only of cells whose flows of TCP are all alike: beside others it is said of each what it gets.
    """
    own = [row for row in rows if row.cca]
    first = {row.condition: row for row in own}
    cells = ([row for row in own if row.condition == condition] for condition in first)
    if _COLUMN not in runs or len(first) < 2 or not all(map(_are_alike, cells)):
        return []
    shares = [*_shares(runs, first)]
    varied = len({share.row.variant for share in shares}) > 1
    said = _between_variants(shares, axes) if varied else _between_places(shares, axes)
    return [tie(sentence) for sentence in said]


def _are_alike(rows: Sequence[AnswerRow]) -> bool:
    """Several flows of one congestion control that are there all the time, in one queue."""
    apart = {(row.cca, row.contest, row.phase) for row in rows}
    steady = not any(row.sized or row.self_limited for row in rows)
    return len(apart) == 1 and steady and sum(row.n_flows for row in rows) > 1


def _shares(runs: pd.DataFrame, first: Mapping[str, AnswerRow]) -> Iterator[_Share]:
    """Of the conditions that have it, the most even one first."""
    means = summarise(runs[runs["condition"].isin(first)], [_COLUMN]).dropna(subset=["mean"])
    for found in means.sort_values("mean", ascending=False, kind="stable").to_dict("records"):
        mean = float(found["mean"])
        low, high = (None if pd.isna(found[end]) else float(found[end]) for end in ("low", "high"))
        yield _Share(
            row=first[found["condition"]],
            mean=mean,
            low=mean if low is None else low,
            high=mean if high is None else high,
            value=estimate(mean, low, high),
        )


def _differ(shares: Sequence[_Share]) -> bool:
    """Whether the most even one surely is more even than the least even one, and by what is worth saying."""
    most, least = shares[0], shares[-1]
    return most.low > least.high and most.mean - least.mean >= _WORTH_SAYING


def _between_variants(shares: Sequence[_Share], axes: Sequence[Axis]) -> Iterator[str]:
    places: dict[tuple[str, ...], list[_Share]] = {}
    for share in shares:
        places.setdefault(share.row.place, []).append(share)
    apart = [here for here in places.values() if _differ(here)]
    if not apart:
        return
    widest = max(apart, key=lambda here: here[0].mean - here[-1].mean)
    told = widest if len(widest) <= _LISTED else [widest[0], widest[-1]]
    each = listing([f"{share.value} with {share.row.rival}" for share in told])
    most = " differs most: it" if len(places) > 1 else ""
    yield f"{where(widest[0].row, axes)}Jain's index over flows, of the whole run,{most} is {each}."


def _between_places(shares: Sequence[_Share], axes: Sequence[Axis]) -> Iterator[str]:
    if axes and _differ(shares):
        most, least = (
            f"at {place_in_words(axes, share.row.place)}, {share.value}" for share in (shares[0], shares[-1])
        )
        yield f"Jain's index over flows, of the whole run, is highest {most}, and lowest {least}."

"""Run sets → a datasheet: the values of each panel with intervals, and where it falls behind."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fabbbr.counts import counted
from fabbbr_analysis import stats
from fabbbr_analysis.datasheet.asked import PANELS, Asked, Better
from fabbbr_analysis.figures.conditions import held_to, varied
from fabbbr_analysis.phases import WHOLE_RUN
from fabbbr_analysis.stats import Array, Interval
from fabbbr_analysis.wording import interval_of, listing

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_WORST = 5
"""Cells that are named."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One congestion control at one place of a panel."""

    cca: str
    place: str
    """As written in the experiment; empty where nothing is varied."""
    runs: tuple[float, ...]
    mean: Interval


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What one panel shows: values in the unit of the column."""

    asked: Asked
    places: tuple[str, ...]
    """From left to right."""
    axis: str
    """Title of what is varied."""
    cells: tuple[Mark, ...]
    uncertified: int
    """Cells that are left out."""

    def at(self, cca: str, place: str) -> Mark | None:
        """The cell of a congestion control at a place; None where no run has the quantity."""
        return next((cell for cell in self.cells if (cell.cca, cell.place) == (cca, place)), None)

    def in_words(self, cell: Mark) -> str:
        """A mean with its interval and unit."""
        low, high = (
            None if end is None else end * self.asked.factor for end in (cell.mean.low, cell.mean.high)
        )
        return interval_of(cell.mean.value * self.asked.factor, low, high, self.asked.unit)


@dataclass(frozen=True, kw_only=True)
class Contest:
    """A place where both have a value: the congestion control against the best of its rivals."""

    panel: Answered
    own: Mark
    rival: Mark
    verdict: str
    """``ahead``, ``behind``, or ``level`` where the interval of the difference holds 0."""
    times: float
    """How many times as bad as the rival's the own value is; below 1: better."""

    @property
    def where(self) -> str:
        """The panel and the place."""
        return f"{self.panel.asked.title}, {self.own.place}" if self.own.place else self.panel.asked.title


@dataclass(frozen=True, kw_only=True)
class Datasheet:
    """A whole datasheet."""

    cca: str
    rivals: tuple[str, ...]
    panels: tuple[Answered, ...]
    contests: tuple[Contest, ...]
    missing: tuple[str, ...]
    """Titles of panels whose experiment was not run."""

    @property
    def ccas(self) -> tuple[str, ...]:
        """Itself, then its rivals."""
        return (self.cca, *self.rivals)

    @property
    def worst(self) -> tuple[Contest, ...]:
        """Where it is behind, the clearest first."""
        behind = (contest for contest in self.contests if contest.verdict == "behind")
        return tuple(sorted(behind, key=lambda contest: -contest.times)[:_WORST])

    @property
    def headline(self) -> str:
        """How it does against the best of its rivals, in one sentence."""
        if not self.contests:
            return f"{self.cca} has no rival to be compared with."
        tally = {word: sum(c.verdict == word for c in self.contests) for word in ("ahead", "level", "behind")}
        against = f"the better of {listing(list(self.rivals))}" if len(self.rivals) > 1 else self.rivals[0]
        return (
            f"{self.cca} is ahead of {against} in {tally['ahead']} of {counted(len(self.contests), 'cell')}, "
            f"behind in {tally['behind']}, and in {tally['level']} the runs do not tell."
        )


def sheet(cca: str, rivals: Sequence[str], run_sets: Mapping[str, RunSet]) -> Datasheet:
    """Answer all that can be answered by ``run_sets``, which are named as the experiments are.

    Only certified runs count. Raises AnalysisError when a run set has no table ``groups``.
    """
    names = (cca, *(name for name in rivals if name != cca))
    there = [asked for asked in PANELS if asked.experiment in run_sets]
    panels = tuple(_panel(asked, names, run_sets[asked.experiment]) for asked in there)
    return Datasheet(
        cca=cca,
        rivals=names[1:],
        panels=panels,
        contests=tuple(contest for panel in panels for contest in _contests(panel, names)),
        missing=tuple(asked.title for asked in PANELS if asked not in there),
    )


def _panel(asked: Asked, ccas: Sequence[str], run_set: RunSet) -> Answered:
    runs = held_to(run_set.runs, asked.held)
    axis = next((axis for axis in varied(run_set.runs) if axis.key == asked.axis), None)
    places = axis.texts if axis is not None else ("",)
    certified = runs[runs["status"] == "certified"]
    values = _values(asked, certified, run_set)
    return Answered(
        asked=asked,
        places=places,
        axis=axis.title if axis is not None else "",
        cells=tuple(_cells(asked, ccas, places, values)),
        uncertified=len(runs) - len(certified),
    )


def _values(asked: Asked, certified: pd.DataFrame, run_set: RunSet) -> pd.DataFrame:
    """Columns ``cca``, ``place`` and ``value``, a row for each run."""
    place = certified[f"axis_{asked.axis}"].astype(str) if asked.axis else ""
    cells = certified.assign(cca=certified["axis_cca"].astype(str), place=place)
    if not asked.group:
        return cells.assign(value=cells[asked.column].astype("float64"))[["cca", "place", "value"]]
    rows = run_set.groups
    rows = rows[rows["cell_id"].isin(cells["cell_id"]) & (rows["group"] == asked.group)]
    of_cells = (_of_phase(own, asked) for _, own in rows.groupby("cell_id", sort=False))
    chosen = pd.concat([rows.head(0), *of_cells])
    merged = cells[["cell_id", "cca", "place"]].merge(chosen[["cell_id", asked.column]], on="cell_id")
    return merged.assign(value=merged[asked.column].astype("float64"))[["cca", "place", "value"]]


def _of_phase(rows: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """The one row of a cell's group that is looked at."""
    if asked.phase == "whole":
        return rows[rows["phase"] == WHOLE_RUN]
    later = rows[(rows["phase"] != WHOLE_RUN) & (rows["n_flows"] > 0)].sort_values("phase")
    if asked.phase == "last":
        return later.tail(1)
    steps = later[later["begins_with"] == "step"]
    return steps.head(1) if asked.phase == "first step" else steps.tail(1)


def _cells(asked: Asked, ccas: Sequence[str], places: Sequence[str], values: pd.DataFrame) -> Iterator[Mark]:
    within = (0.0, math.inf if asked.most is None else asked.most)
    for cca in ccas:
        for place in places:
            rows = values[(values["cca"] == cca) & (values["place"] == place)]["value"]
            if rows.empty or rows.isna().any():
                continue  # a mean over the others would be of those that did well
            said = f"{asked.title}\0{cca}\0{place}"
            generator = np.random.default_rng([1, zlib.crc32(said.encode())])
            runs = np.asarray(rows, dtype=np.float64)
            yield Mark(
                cca=cca,
                place=place,
                runs=tuple(runs.tolist()),
                mean=stats.mean_within(runs, within=within, generator=generator),
            )


def _contests(panel: Answered, ccas: Sequence[str]) -> Iterator[Contest]:
    own_name, *rivals = ccas
    for place in panel.places:
        own = panel.at(own_name, place)
        others = [cell for name in rivals if (cell := panel.at(name, place)) is not None]
        if own is None or not others:
            continue
        rival = min(others, key=lambda cell: _badness(cell.mean.value, panel.asked.better))
        bad, theirs = (_badness(cell.mean.value, panel.asked.better) for cell in (own, rival))
        yield Contest(
            panel=panel,
            own=own,
            rival=rival,
            verdict=_verdict(own, rival, panel.asked.better),
            times=_times(bad, theirs, panel.asked.better),
        )


def _badness(value: float, better: Better) -> float:
    """Less is better, whatever the quantity."""
    if better == "more":
        return -value
    return value if better == "less" else abs(value - float(better))


def _times(own: float, theirs: float, better: Better) -> float:
    """How many times as bad; of what is better the more, how many times as much the other has."""
    above, below = (theirs, own) if better == "more" else (own, theirs)
    if below == 0:
        return 1.0 if above == 0 else math.inf
    return above / below


def _verdict(own: Mark, rival: Mark, better: Better) -> str:
    """Ahead or behind where the interval of the difference leaves 0 out."""
    badness = [_all_badness(cell.runs, better) for cell in (own, rival)]
    difference = stats.difference_of_means(*badness)
    low, high = difference.low, difference.high
    if low is None or high is None or low <= 0 <= high:
        return "level"
    return "behind" if low > 0 else "ahead"


def _all_badness(runs: Sequence[float], better: Better) -> Array:
    return np.array([_badness(value, better) for value in runs])

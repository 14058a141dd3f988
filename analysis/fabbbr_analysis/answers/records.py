"""What was asked of a run and what came of it, as plain records in base units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fabbbr_analysis.figures.measures import Measure
from fabbbr_analysis.stats import Interval
from fabbbr_analysis.summary import UNCHANGED_WITHIN


@dataclass(frozen=True, kw_only=True)
class Lead:
    """How far a row is ahead of another, or behind it."""

    over: AnswerRow
    """Beside which it ran, or at the same place with another congestion control."""
    column: str
    """What decides."""
    difference: Interval
    """This one less the other."""
    together: bool
    """Whether both are groups of the same cells."""
    paired: bool
    """Whether the difference is that of each repetition."""
    lower_wins: bool
    """True of times."""

    def among(self, row: AnswerRow) -> tuple[object, ...]:
        """What all rows that ``row`` is compared with share, and no others."""
        return row.condition if self.together else row.place, row.phase, row.sized, row.contest

    def called(self, row: AnswerRow) -> str:
        """What tells ``row`` from those that it is compared with."""
        return row.name if self.together else row.rival

    @property
    def behind(self) -> bool:
        """By the means alone, however sure that is."""
        return (self.difference.value > 0) is self.lower_wins and self.difference.value != 0

    @property
    def exact(self) -> bool:
        """Whether it is the same in all runs, of which there are two or more."""
        return self.difference.low is not None and self.difference.low == self.difference.high

    @property
    def verdict(self) -> Literal["ahead", "behind", "alike", "unclear"]:
        """Alike where the whole interval of the difference is within 5 % of the other's mean.

        Unclear where the interval holds 0 and more than that, or where there is none.
        """
        low, high = self.difference.low, self.difference.high
        if low is None or high is None:
            return "unclear"
        if max(abs(low), abs(high)) <= UNCHANGED_WITHIN * abs(self.over.values[self.column].value):
            return "alike"
        if low <= 0 <= high:
            return "unclear"
        return "ahead" if (low > 0) is not self.lower_wins else "behind"


@dataclass(frozen=True, kw_only=True)
class AnswerRow:
    """One group of flows in one phase of one condition: means over certified runs."""

    condition: str
    place: tuple[str, ...]
    """The text of each axis but the congestion control's."""
    variant: str
    """The varied congestion control, or which is which where several are varied; empty where none is."""
    phase: str
    number: int
    """Of the phase in the order of time; 0 for the whole run."""
    begins_with: str
    """What begins the phase: ``start``, ``warm-up``, ``step`` or ``flows``."""
    position: int
    """Of the group in its cells, whatever it is called there."""
    group: str
    cca: str
    """Empty for UDP."""
    contest: str
    """Queues in which it competes; rivals have the same."""
    n_flows: int
    """In the run that has most of them: of flows that come at random each run has its own number."""
    least_flows: int
    """In the run that has fewest."""
    sized: bool
    self_limited: bool
    """UDP, a video, or paced to less than its fair share: it has what was asked for, and wins nothing."""
    values: Mapping[str, Interval]
    """Column of table ``groups`` → mean with its interval; absent where no run has it."""
    measures: Mapping[str, Measure]
    """Column → how it is told, here and in all rows of the answer."""
    fair_share: float | None
    """Of the goodput, by number of flows; None with one group."""
    by_run: Mapping[str, Mapping[int, float]]
    """Column → repetition → value, for what is to be compared run by run."""
    same_draws: bool
    """Whether flows came at random: the same ones in equal repetitions of all conditions."""
    repetitions: int
    """Certified runs."""
    excluded: int
    """Cells of the condition that are not certified."""

    @property
    def rival(self) -> str:
        """What tells it from its rivals at the same place: the varied congestion control, else the group."""
        return self.variant or self.name

    @property
    def name(self) -> str:
        """The group, with its congestion control where that is not its name."""
        return self.group if self.cca in self.group else f"{self.group} ({self.cca})"

    @property
    def how_many(self) -> str:
        """Flows in a run: ``4``, or ``91 to 104`` where runs differ in it."""
        most = str(self.n_flows)
        return most if self.least_flows == self.n_flows else f"{self.least_flows} to {most}"

    def matched(self, other: AnswerRow, column: str) -> list[tuple[float, float]]:
        """What both have of a column in each repetition that both have."""
        own, its = self.by_run[column], other.by_run[column]
        return [(own[number], its[number]) for number in own if number in its]

    def drawn_alike(self, other: AnswerRow, column: str) -> list[tuple[float, float]]:
        """The same, of conditions in which the same flows came at random.

        Nothing of others, and of those with fewer than two repetitions in common: they count as independent.
        """
        pairs = self.matched(other, column) if self.same_draws and other.same_draws else []
        return pairs if len(pairs) > 1 else []

    def paired(self, other: AnswerRow, column: str) -> list[tuple[float, float]]:
        """What both have of a column, run by run: in the same cells, or in those where the same was drawn."""
        together = self.condition == other.condition
        return self.matched(other, column) if together else self.drawn_alike(other, column)

    def mean(self, column: str) -> float | None:
        """The mean of a column; None where no run has it."""
        found = self.values.get(column)
        return None if found is None else found.value


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was asked of one run set and what came of it."""

    headline: tuple[str, ...]
    """Sentences: who wins, by how much, how sure. None where a single condition leaves nothing to compare."""
    warnings: tuple[str, ...]
    """What a reader must know before believing the headline."""
    axes: tuple[str, ...]
    """Titles of the axes in ``place``."""
    measures: tuple[Measure, ...]
    """Columns that some row has, in the order in which they are shown."""
    rows: tuple[AnswerRow, ...]
    leads: Mapping[int, Lead]
    """Place in ``rows`` → the lead of that row: the best over the next, each other over the best."""


def contests_of(rows: Sequence[AnswerRow], leads: Mapping[int, Lead]) -> list[list[int]]:
    """Places in ``rows`` of those that are compared with each other, contest by contest."""
    found: dict[tuple[object, ...], list[int]] = {}
    for index, lead in leads.items():
        found.setdefault(lead.among(rows[index]), []).append(index)
    return list(found.values())

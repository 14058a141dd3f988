"""What a claim is made of, and what judging it gives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest
from typing import Literal, TypeAlias

from fabbbr_analysis.claims.expression import Expression, quantities_in
from fabbbr_analysis.claims.means import Means
from fabbbr_analysis.claims.sample import Sample
from fabbbr_analysis.claims.ways import Way, in_words
from fabbbr_analysis.references import load

VerdictText: TypeAlias = Literal["reproduced", "compatible", "not reproduced", "inconclusive", "not run"]


@dataclass(frozen=True, kw_only=True)
class Band:
    """The values that a claim allows.

    An open side ends at the natural bound of the quantity (``floor`` or ``ceiling``: a share is between 0 and
    1); the bound gives the band a width, and nothing else: a value beyond it is still allowed.
    """

    low: float | None = None
    high: float | None = None
    floor: float = 0.0
    ceiling: float = 1.0
    strict: bool = False
    """The edges themselves are outside."""
    slack: float = 0.0
    """How far an interval may reach over the edge while the value is inside."""

    def __str__(self) -> str:
        less, more = ("<", ">") if self.strict else ("≤", "≥")
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        edge = f"{more} {self.low:g}" if self.low is not None else f"{less} {self.high:g}"
        if not self.slack:
            return edge
        reach = self.low - self.slack if self.low is not None else (self.high or 0) + self.slack
        return f"{edge} (interval {edge[0]} {reach:g})"

    @property
    def width(self) -> float:
        """In the unit of the quantity."""
        return (self.ceiling if self.high is None else self.high) - (
            self.floor if self.low is None else self.low
        )

    def holds(self, value: float, *, slack: float = 0.0) -> bool:
        """Whether a single value is allowed."""
        low = -math.inf if self.low is None else self.low - slack
        high = math.inf if self.high is None else self.high + slack
        return low < value < high if self.strict else low <= value <= high


@dataclass(frozen=True)
class Part:
    """One number of a claim: a formula over quantities, and the band."""

    quantity: str
    """What the number is, in words; ratios unless it says otherwise."""
    formula: Expression
    band: Band
    optional: bool = field(default=False, kw_only=True)
    """Left out, with a remark, when its conditions were not run."""

    def value(self, sample: Sample) -> float:
        """Apply the formula to one sample, which stands for every quantity in it."""
        return float(self.formula.of(Means(samples=dict.fromkeys(quantities_in(self.formula), sample))))


@dataclass(frozen=True)
class Arithmetic:
    """One number of a claim that needs no run."""

    quantity: str
    value: float
    band: Band


def if_run(part: Part) -> Part:
    """Make a part optional."""
    return replace(part, optional=True)


_Part: TypeAlias = Part | Arithmetic


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of a paper, or a check of our gate, as code.

    Its words come from ``references/``, claims.csv and gate.csv.
    """

    id: str
    parts: tuple[_Part, ...]

    @property
    def experiment(self) -> str:
        """Id of the experiment it is about."""
        return self._text("experiment")

    @property
    def strength(self) -> str:
        """``core``, ``secondary`` or ``arith``."""
        return self._text("strength")

    @property
    def predicate(self) -> str:
        """The sentence."""
        return self._text("predicate")

    @property
    def published(self) -> str:
        """What the paper printed or drew."""
        return self._text("published_value")

    @property
    def row(self) -> int:
        """Its place in the register, in which the claims of a paper stand together."""
        return list(_register()).index(self.id)

    def _text(self, column: str) -> str:
        return str(_register()[self.id][column])


def claims(parts: Mapping[str, _Part | tuple[_Part, ...]]) -> tuple[Claim, ...]:
    """Make claims of id → part or parts."""
    return tuple(
        Claim(id=name, parts=each if isinstance(each, tuple) else (each,)) for name, each in parts.items()
    )


@cache
def _register() -> Mapping[str, Mapping[str, object]]:
    rows = [row for name in ("claims", "gate") for row in load(name).fillna("").to_dict("records")]
    return {str(row["id"]): {str(name): row[name] for name in row} for row in rows}


@dataclass(frozen=True, kw_only=True)
class PartVerdict:
    """The verdict on one part of a claim."""

    quantity: str
    verdict: VerdictText
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    """Runs of the condition that has the fewest; None for arithmetic."""
    band: Band
    reason: str
    conditions: tuple[str, ...] = ()
    """Of the plan, whose runs were read."""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a claim. Its numbers are those of the part that decides, the worst one."""

    id: str
    experiment: str
    verdict: VerdictText
    quantity: str
    value: float | None
    low: float | None
    high: float | None
    band: str
    band_low: float | None
    band_high: float | None
    published: str
    n: int | None
    strength: str
    predicate: str
    reason: str
    rules_version: int
    """Version of the rules by which it was judged."""
    undecided: tuple[str, ...] = ()
    """Conditions of the plan whose repetitions may still decide it; empty when it is decided."""
    losses: Way | None = None
    """What was lost at once in the runs: packets, or super-packets; None where no run was looked at."""
    details: tuple[PartVerdict, ...] = ()
    """All parts, when there are several."""

    @property
    def way(self) -> str:
        """How packets were lost, in words, where a reader must know."""
        return in_words(self.experiment, self.losses)


def side_by_side(verdicts: Iterable[Verdict]) -> list[tuple[Verdict, ...]]:
    """One row per claim and run: where packets were lost both ways, packet by packet and as super-packets."""
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_claim.setdefault(verdict.id, []).append(verdict)
    return [
        tuple(verdict for verdict in row if verdict is not None)
        for own in by_claim.values()
        for row in zip_longest(
            (verdict for verdict in own if verdict.losses != "super-packets"),
            (verdict for verdict in own if verdict.losses == "super-packets"),
        )
    ]

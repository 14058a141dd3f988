"""In which order many experiments run where time may not suffice for all: most claims per minute first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An experiment that could run."""

    name: str
    claims: int
    """How many are judged on it."""
    computing_s: float
    """What its missing cells should take, one after the other."""
    again: bool = False
    """Whether it judges in another way what another experiment judges too."""


def in_order_of_worth(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Most claims per second of computing first, what is done before these; what judges them again last."""
    return tuple(sorted(candidates, key=lambda each: (each.again, -_worth(each), each.name)))


def _worth(candidate: Candidate) -> float:
    return candidate.claims / candidate.computing_s if candidate.computing_s > 0 else float("inf")


@dataclass(kw_only=True)
class Pace:
    """How long this machine takes for what the estimate calls a second, learned from its own cells."""

    estimated_s: float = 0.0
    took_s: float = 0.0

    def learn(self, estimated_s: float, took_s: float) -> None:
        """Add cells that are done."""
        self.estimated_s += estimated_s
        self.took_s += took_s

    def of(self, estimated_s: float) -> float:
        """What it will take; as estimated, while nothing is known."""
        return estimated_s * (self.took_s / self.estimated_s if self.estimated_s else 1.0)


def that_fit(candidates: Sequence[Candidate], seconds: float, pace: Pace, jobs: int) -> tuple[Candidate, ...]:
    """Those that ``seconds`` of wall time suffice for with ``jobs`` cells at a time, in the order given.

    One that is too long does not keep out a shorter one behind it.
    """
    taken: list[Candidate] = []
    left = seconds
    for each in candidates:
        wall_s = pace.of(each.computing_s) / jobs
        if wall_s <= left:
            taken.append(each)
            left -= wall_s
    return tuple(taken)

"""A run that grows until its claims are decided, at looks that were fixed before it began."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fabbbr.errors import UsageError
from fabbbr.execute import Summary
from fabbbr.laboratory import Request, open_runs, planned
from fabbbr.plan.looks import looks
from fabbbr.store import RunFolder

if TYPE_CHECKING:
    from fabbbr_analysis.claims import Verdict


@dataclass(frozen=True, kw_only=True)
class Look:
    """What became of a run at one look."""

    number: int
    """From 1."""
    of: int
    """How many looks there can be."""
    folder: RunFolder
    summary: Summary
    verdicts: tuple[Verdict, ...]
    """Of the claims that this experiment is judged on, and that its runs can judge."""

    @property
    def repetitions(self) -> int:
        """Of the conditions that still had a claim to decide; others have fewer."""
        return self.folder.manifest.looks[self.number - 1]

    @property
    def undecided(self) -> tuple[Verdict, ...]:
        """Those that more repetitions may decide."""
        return tuple(verdict for verdict in self.verdicts if verdict.undecided)

    @property
    def conditions(self) -> frozenset[str]:
        """Conditions that more repetitions are needed of."""
        return frozenset(name for verdict in self.undecided for name in verdict.undecided)


def until_decided(
    request: Request, most: int | None, *, run: Callable[[Request], tuple[RunFolder, Summary]]
) -> Iterator[Look]:
    """Run the first repetitions, look, add repetitions where a claim is undecided, and so on.

    ``run`` carries out a request. ``most`` repetitions are the limit (default: eight times the first). A run
    that was interrupted goes on where it was, and does not look again where it has gone beyond. Raises
    UsageError for an experiment that has no claims.
    """
    plan = planned(request)
    if not plan.experiment.claims:
        message = f"{plan.source_name} names no claims, so nothing can be decided; give it --repeat"
        raise UsageError(message)
    at = looks(plan.experiment.repeat, most)
    wanted: frozenset[str] = frozenset()
    for number, repetitions in enumerate(at, start=1):
        more = replace(request, repeat=repetitions, looks=at, deeper=wanted)
        folder, summary = run(more)
        begun = _begun_beyond(folder, repetitions)
        if begun and repetitions != at[-1]:
            wanted |= begun
            continue
        look = Look(number=number, of=len(at), folder=folder, summary=summary, verdicts=_verdicts(folder))
        yield look
        if not look.undecided:
            return
        wanted = look.conditions


def _begun_beyond(folder: RunFolder, repetitions: int) -> frozenset[str]:
    return frozenset(cell.condition for cell in folder.manifest.cells if cell.repetition > repetitions)


def _verdicts(folder: RunFolder) -> tuple[Verdict, ...]:
    """On the claims of the experiment, without those that its runs cannot judge."""
    from fabbbr_analysis.claims import judge

    found = judge(open_runs([folder.path]))
    return tuple(each for each in found if each.id in folder.manifest.claims and each.verdict != "not run")

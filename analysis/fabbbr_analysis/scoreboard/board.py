"""What the scoreboard says, as plain records; the templates only set it."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from fabbbr.counts import counted
from fabbbr_analysis.claims import side_by_side
from fabbbr_analysis.references import load
from fabbbr_analysis.report.page import VERDICTS, ClaimRow, claim_row
from fabbbr_analysis.report.provenance import Fact, facts, rerun_command
from fabbbr_analysis.report.slots import Slot
from fabbbr_analysis.wording import distinct, listing

if TYPE_CHECKING:
    from fabbbr_analysis.claims import Verdict
    from fabbbr_analysis.runset import RunSet

DISAGREE = ("not reproduced", "inconclusive", "compatible")
"""Verdicts that a reader wants to see first, in this order."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A claim of a paper and where it stands; one line of the board."""

    row: ClaimRow
    finding: str
    """Why it comes out as it does, in a sentence; empty where it agrees, and where nobody has looked."""

    @property
    def verdict(self) -> Verdict:
        """The verdict that is counted: packet by packet, where it was judged both ways."""
        return self.row.verdict

    @property
    def disagrees(self) -> str | None:
        """The clearest verdict of its ways that does not agree; None where all agree or none was run."""
        given = {judged.verdict.verdict for judged in self.row.ways}
        return next((verdict for verdict in DISAGREE if verdict in given), None)

    @property
    def remarks(self) -> str:
        """What was scaled, left out or not tested; for a claim that was not run, what runs it."""
        said, *remarks = self.verdict.reason.split("; ")
        return "; ".join([said, *remarks] if self.verdict.verdict == "not run" else remarks)


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper and its claims."""

    slug: str
    name: str
    title: str
    standings: tuple[Standing, ...]
    figure: Slot | None
    """Of one of its experiments; None when none was run."""

    @property
    def counts(self) -> dict[str, int]:
        """Verdict → number of its claims."""
        return _counts(self.standings)


@dataclass(frozen=True, kw_only=True)
class ScoredRun:
    """An experiment of the board and what it took."""

    experiment: str
    title: str
    cells: int
    certified: int
    flows_s: float
    """On the clock of the experiment."""
    wall_s: float
    """One cell after the other."""
    digest: str | None
    command: str
    """What runs it again."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """The whole page."""

    papers: tuple[Paper, ...]
    runs: tuple[ScoredRun, ...]
    facts: tuple[Fact, ...]
    """Machine, image, versions, seeds."""
    problems: tuple[str, ...]

    @property
    def standings(self) -> tuple[Standing, ...]:
        """All lines, paper by paper."""
        return tuple(standing for paper in self.papers for standing in paper.standings)

    @property
    def counts(self) -> dict[str, int]:
        """Verdict → number of claims."""
        return _counts(self.standings)

    @property
    def disagreements(self) -> tuple[Standing, ...]:
        """What does not agree or is not decided, in either way of losing packets; the clearest first."""
        return tuple(each for verdict in DISAGREE for each in self.standings if each.disagrees == verdict)

    @property
    def headline(self) -> str:
        """The whole board in a sentence."""
        said = [f"{count} {verdict}" for verdict, count in self.counts.items() if count]
        return f"Of {counted(len(self.standings), 'published claim')}: {listing(said)}."

    @property
    def certified(self) -> tuple[int, int]:
        """Cells certified, and cells run."""
        return sum(run.certified for run in self.runs), sum(run.cells for run in self.runs)

    @property
    def wall_s(self) -> float:
        """All cells one after the other."""
        return sum(run.wall_s for run in self.runs)

    @property
    def digest(self) -> str | None:
        """Of the digests of all runs; None when one has none."""
        each = [run.digest for run in self.runs]
        if not each or None in each:
            return None
        return hashlib.sha256("\n".join(sorted(map(str, each))).encode()).hexdigest()


def board(
    run_sets: Sequence[RunSet],
    verdicts: Iterable[Verdict],
    *,
    figures: Mapping[str, Slot],
    machine: Mapping[str, str],
) -> Board:
    """Assemble the board.

    ``verdicts`` are those of ``claims.judge`` on ``run_sets``. ``figures``: prefix of a paper → its figure.
    ``machine``: name → value of what is known of the machine, and not said in manifests.
    """
    published = set(load("claims")["id"])
    judged = side_by_side(verdict for verdict in verdicts if verdict.id in published)
    return Board(
        papers=tuple(
            Paper(
                slug=paper["prefix"],
                name=paper["name"],
                title=paper["title"],
                standings=tuple(
                    _standing(row) for row in judged if prefix_of(row[0].experiment) == paper["prefix"]
                ),
                figure=figures.get(paper["prefix"]),
            )
            for paper in _own("papers")
        ),
        runs=tuple(_run(run_set) for run_set in run_sets),
        facts=(*(Fact(name=name, value=value) for name, value in machine.items()), *_common_facts(run_sets)),
        problems=tuple(problem for run_set in run_sets for problem in run_set.problems),
    )


def prefix_of(experiment: str) -> str:
    """Name the paper of an experiment, as ``papers.csv`` does; empty when it has none.

    >>> prefix_of("knit6_e1"), prefix_of("fund2023"), prefix_of("mine")
    ('knit6', 'fund', '')
    """
    known = (paper["prefix"] for paper in _own("papers") if experiment.startswith(paper["prefix"]))
    return max(known, key=len, default="")


def papers_of(experiments: Iterable[str]) -> dict[str, list[str]]:
    """Paper → those of ``experiments`` that are its own, in the order of the papers; the rest is left out."""
    found: dict[str, list[str]] = {paper["prefix"]: [] for paper in _own("papers")}
    for name in experiments:
        if prefix_of(name):
            found[prefix_of(name)].append(name)
    return {prefix: names for prefix, names in found.items() if names}


def _standing(verdicts: Sequence[Verdict]) -> Standing:
    row = claim_row(verdicts)
    found = Standing(row=row, finding=_findings().get(row.verdict.id, ""))
    return found if found.disagrees is not None else replace(found, finding="")


def _run(run_set: RunSet) -> ScoredRun:
    status = run_set.runs["status"]
    took = [(manifest.virtual_s or 0.0, manifest.wall_s) for manifest in run_set.cell_manifests()]
    return ScoredRun(
        experiment=run_set.experiment,
        title=_title(run_set),
        cells=len(status),
        certified=int((status == "certified").sum()),
        flows_s=sum(clock_s for clock_s, _ in took),
        wall_s=sum(wall_s for _, wall_s in took),
        digest=run_set.found.digest if run_set.found is not None else None,
        command=rerun_command(run_set.manifest, run_set.origins()),
    )


def _title(run_set: RunSet) -> str:
    title = str(run_set.manifest.experiment.get("title") or run_set.experiment)
    return f"{title} (super-packets)" if any(cell.offloads for cell in run_set.plan.values()) else title


_OF_A_RUN = ("Profile", "Started")
"""Facts that belong to a run and not to the board."""


def _common_facts(run_sets: Sequence[RunSet]) -> tuple[Fact, ...]:
    """What produced the runs, each fact once with all the values it has."""
    found: dict[str, list[str]] = {}
    for run_set in run_sets:
        for fact in facts(run_set.manifest, run_set.origins()):
            found.setdefault(fact.name, []).extend(fact.value.split("; "))
    return tuple(
        Fact(name=name, value="; ".join(distinct(values)))
        for name, values in found.items()
        if name not in _OF_A_RUN
    )


def _counts(standings: Iterable[Standing]) -> dict[str, int]:
    tally = Counter(str(standing.verdict.verdict) for standing in standings)
    return {name: tally[name] for name in VERDICTS}


@cache
def _findings() -> dict[str, str]:
    return {row["claim"]: row["finding"] for row in _own("findings")}


@cache
def _own(name: str) -> tuple[dict[str, str], ...]:
    with (resources.files(__package__) / f"{name}.csv").open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))

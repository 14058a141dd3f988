"""What the page says, as plain records: everything is decided here, the templates only set it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

from fabbbr.counts import counted
from fabbbr.manifest import Provenance, RunManifest
from fabbbr_analysis.answers import Answer, answer
from fabbbr_analysis.claims import side_by_side
from fabbbr_analysis.figures.style import Palette
from fabbbr_analysis.report import bands, diagram, provenance
from fabbbr_analysis.report.added import Added, what_is_added
from fabbbr_analysis.report.arrangement import Figures, arranged, ordered
from fabbbr_analysis.report.certificates import Certificates, collect
from fabbbr_analysis.report.fidelity import Gate, gate
from fabbbr_analysis.report.findings import findings, goodput_of
from fabbbr_analysis.report.provenance import Fact
from fabbbr_analysis.report.tables import ResultTable, asked_table, result_table
from fabbbr_analysis.wording import distinct, interval, listing

if TYPE_CHECKING:
    from fabbbr_analysis.claims import Verdict
    from fabbbr_analysis.runset import RunSet

VERDICTS = ("reproduced", "compatible", "inconclusive", "not reproduced", "not run")
"""In the order of the scoreboard's bar."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What runs say about a claim."""

    verdict: Verdict
    value: str
    drawing: Markup | None
    """The interval against the band; None when there is no value or no band."""


@dataclass(frozen=True, kw_only=True)
class ClaimRow:
    """One claim of a paper."""

    ways: tuple[Judged, ...]
    """Packet by packet, as super-packets, or both."""

    @property
    def verdict(self) -> Verdict:
        """The first: what is claimed is the same in all."""
        return self.ways[0].verdict

    @property
    def band(self) -> str:
        """Of the part that decides; of each way where they are not the same."""
        return "; ".join(distinct(judged.verdict.band for judged in self.ways))


@dataclass(frozen=True, kw_only=True)
class ExperimentSection:
    """The section of one run set."""

    slug: str
    """For links within the page."""
    id: str
    title: str
    source: str
    created: str
    gist: str
    """What was run, in one line."""
    findings: tuple[str, ...]
    conditions: tuple[Fact, ...]
    path: Markup
    figures: Figures
    answer: Answer
    asked: ResultTable
    """What was asked and what came of it: a row per condition, phase and group."""
    warnings: tuple[str, ...]
    """What a reader must know before believing the findings."""
    table: ResultTable
    added: Added | None
    """What the place adds to the emulation, where the same cells were run in the guest too."""
    certificates: Certificates
    problems: tuple[str, ...]
    """What ``fabbbr verify`` finds wrong with the run folder."""
    provenance: tuple[Fact, ...]
    digest: str | None
    """Of the whole run folder."""
    clock: str
    rerun: tuple[str, ...]
    """The commands that make all of this again."""
    downloads: tuple[Download, ...]


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file beside the report, by a path relative to it."""

    href: str
    what: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """The whole report."""

    title: str
    experiments: tuple[ExperimentSection, ...]
    claims: tuple[ClaimRow, ...]
    """Those that these runs are about."""
    other_claims: tuple[ClaimRow, ...]
    """Those of experiments that are not here, and those that are arithmetic."""
    counts: dict[str, int]
    """Verdict → number of claims."""
    gate: Gate
    """How close our BBRv2 and BBRv3 are to what the drafts promise."""

    @property
    def scoreboard(self) -> str:
        """The scoreboard in one line."""
        if not self.claims:
            return "No published claim was judged."
        said = [f"{self.counts[verdict]} {verdict}" for verdict in VERDICTS if self.counts[verdict]]
        rules = distinct(str(row.verdict.rules_version) for row in self.claims)
        return (
            f"Of {counted(len(self.claims), 'published claim')}: {listing(said)}. {self._second_ways}"
            f"Judged by version {listing(rules)} of the rules."
        )

    @property
    def _second_ways(self) -> str:
        """The verdicts with super-packets on claims that were judged packet by packet too."""
        tally = Counter(str(judged.verdict.verdict) for row in self.claims for judged in row.ways[1:])
        said = [f"{tally[verdict]} {verdict}" for verdict in VERDICTS if tally[verdict]]
        return f"Counted packet by packet; with super-packets: {listing(said)}. " if said else ""

    @property
    def conditions(self) -> int:
        """Conditions of all experiments."""
        return sum(len(experiment.table.rows) for experiment in self.experiments)

    @property
    def certified(self) -> int:
        """Cells that passed their certificate."""
        return sum(experiment.certificates.certified for experiment in self.experiments)

    @property
    def planned(self) -> int:
        """Cells of the plans."""
        return sum(experiment.certificates.planned for experiment in self.experiments)

    @property
    def checks(self) -> tuple[int, int]:
        """Checks passed and made."""
        every = [check for each in self.experiments for check in each.certificates.summaries]
        return sum(check.passed for check in every), sum(check.total for check in every)

    @property
    def problems(self) -> tuple[str, ...]:
        """What ``fabbbr verify`` finds wrong with the run folders."""
        return tuple(problem for each in self.experiments for problem in each.problems)

    @property
    def real_time(self) -> tuple[str, ...]:
        """Titles of the experiments that ran on a real clock."""
        return tuple(each.title for each in self.experiments if "real" in each.clock)


def page(
    run_sets: Sequence[RunSet],
    verdicts: Sequence[Verdict],
    summaries: Sequence[pd.DataFrame],
    palette: Palette,
    folder: Path,
) -> Page:
    """Assemble the report of ``run_sets`` for ``folder``; one summary per run set, in the same order."""
    slugs = [f"e{place}-{run_set.experiment}" for place, run_set in enumerate(run_sets, start=1)]
    figures = arranged(
        [ordered(run_set, palette, slug) for run_set, slug in zip(run_sets, slugs, strict=True)]
    )
    experiments = tuple(
        _experiment(slug, run_set, summary, shown, folder)
        for slug, run_set, summary, shown in zip(slugs, run_sets, summaries, figures, strict=True)
    )
    asked = {name for run_set in run_sets for name in run_set.manifest.claims}
    rows = [claim_row(row) for row in side_by_side(verdicts)]
    own = [row for row in rows if any(_is_about(one.verdict, asked, experiments) for one in row.ways)]
    # What has a verdict comes first; the order of the papers is kept within.
    own.sort(key=lambda row: all(one.verdict.verdict == "not run" for one in row.ways))
    tally = Counter(str(row.verdict.verdict) for row in own)
    return Page(
        title=_title(experiments),
        experiments=experiments,
        claims=tuple(own),
        other_claims=tuple(row for row in rows if row not in own),
        counts={name: tally[name] for name in VERDICTS},
        gate=gate(verdicts),
    )


def _is_about(verdict: Verdict, asked: set[str], experiments: Sequence[ExperimentSection]) -> bool:
    """Whether a claim is judged on these runs; ``n`` is None where it needs none."""
    judged = verdict.verdict != "not run" and verdict.n is not None
    own = verdict.experiment in {experiment.id for experiment in experiments}
    return judged or own or verdict.id in asked


def _title(experiments: Sequence[ExperimentSection]) -> str:
    titles = distinct(experiment.title for experiment in experiments)
    return listing(titles) if len(titles) <= 2 else f"{titles[0]} and {len(titles) - 1} more experiments"


def _experiment(
    slug: str, run_set: RunSet, summary: pd.DataFrame, figures: Figures, folder: Path
) -> ExperimentSection:
    manifest: RunManifest = run_set.manifest
    origins = run_set.origins()
    answered = answer(run_set)
    return ExperimentSection(
        slug=slug,
        id=run_set.experiment,
        title=str(manifest.experiment.get("title") or run_set.experiment),
        source=str(manifest.experiment.get("source") or ""),
        created=manifest.created,
        gist=provenance.gist(manifest),
        findings=tuple(said_of(manifest, run_set.runs, summary, answered)),
        conditions=provenance.conditions(manifest, run_set.other_warm_up),
        path=diagram.drawing(manifest.cells),
        figures=figures,
        answer=answered,
        asked=asked_table(answered),
        warnings=answered.warnings,
        table=result_table(run_set.runs, summary),
        added=what_is_added(run_set, f"{slug}-added"),
        certificates=collect(
            run_set.cell_manifests(),
            [cell.id for cell in manifest.cells],
            run_set.found.damaged if run_set.found is not None else {},
        ),
        problems=(*run_set.problems, *(run_set.beside.problems if run_set.beside is not None else ())),
        provenance=(*provenance.facts(manifest, origins), *provenance.digest(run_set)),
        digest=run_set.found.digest if run_set.found is not None else None,
        clock=_clock(origins),
        rerun=tuple(_commands(run_set, origins)),
        downloads=_downloads(run_set, folder),
    )


def _commands(run_set: RunSet, origins: Sequence[Provenance]) -> Iterator[str]:
    yield provenance.rerun_command(run_set.manifest, origins)
    if run_set.other_warm_up is not None:
        yield provenance.report_command(run_set.other_warm_up)


def said_of(
    manifest: RunManifest, runs: pd.DataFrame, summary: pd.DataFrame, answered: Answer
) -> Iterator[str]:
    """What came out; two sections of one experiment may differ in what was lost at once.

    Cells with one group of flows each are compared as wholes, which says nothing of groups in one cell.
    """
    way = "With super-packets: " if all(cell.offloads for cell in manifest.cells) else ""
    return (f"{way}{said}" for said in _said(manifest, runs, summary, answered))


def _said(
    manifest: RunManifest, runs: pd.DataFrame, summary: pd.DataFrame, answered: Answer
) -> tuple[str, ...]:
    several = len({row.place for row in answered.rows}) > 1
    whole = findings(runs, summary) if (are_wholes(manifest) and several) or not answered.headline else []
    return (*whole, *answered.headline) or (goodput_of(runs, summary),)


def are_wholes(manifest: RunManifest) -> bool:
    """Whether every cell is one group of flows under one condition: a metric of the cell is then theirs."""
    return all(
        len({flow.group for flow in cell.flows}) == 1
        and all(flow.size is None for flow in cell.flows)
        and not cell.steps
        for cell in manifest.cells
    )


def _clock(origins: Sequence[Provenance]) -> str:
    clocks = distinct(sorted(origin.testbed.clock for origin in origins))
    return listing(clocks) if clocks else "none"


def _downloads(run_set: RunSet, folder: Path) -> tuple[Download, ...]:
    words = {"run.json": "the plan", "experiment.yaml": "the experiment file"}
    return tuple(
        Download(
            href=Path(os.path.relpath(run_set.path / name, folder)).as_posix(),
            what=words.get(name, f"table {Path(name).stem}"),
        )
        for name in run_set.files
    )


def claim_row(verdicts: Sequence[Verdict]) -> ClaimRow:
    """Return the verdicts on a claim, each way, as a row of a table."""
    return ClaimRow(ways=tuple(_judged(verdict) for verdict in verdicts))


def _judged(verdict: Verdict) -> Judged:
    text = interval(verdict.value, verdict.low, verdict.high)
    return Judged(verdict=verdict, value=text, drawing=_drawing(verdict, text))


def _drawing(verdict: Verdict, text: str) -> Markup | None:
    if verdict.value is None or (verdict.band_low is None and verdict.band_high is None):
        return None
    band, measured = (verdict.band_low, verdict.band_high), (verdict.low, verdict.high)
    return bands.drawing(band, verdict.value, measured, label=f"{text} against the band {verdict.band}")

"""What the emulator was asked, what it measured of itself, and which cells that rules out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fabbbr.foreign import inline
from fabbbr.manifest import CellManifest, Check
from fabbbr_analysis.report.diagram import spread


@dataclass(frozen=True, kw_only=True)
class CheckSummary:
    """One check over all cells."""

    name: str
    passed: int
    total: int
    asked: str
    measured: str


@dataclass(frozen=True, kw_only=True)
class FailedCheck:
    """One check that one cell did not pass."""

    cell_id: str
    check: Check


@dataclass(frozen=True, kw_only=True)
class Excluded:
    """A cell that is not averaged: shown when it has no certificate, left out when it is damaged."""

    cell_id: str
    status: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """The certificates of an experiment, failures first."""

    failed: tuple[FailedCheck, ...]
    excluded: tuple[Excluded, ...]
    summaries: tuple[CheckSummary, ...]
    certified: int
    planned: int
    missing: tuple[str, ...]
    """Ids of planned cells that were not run."""


def collect(
    manifests: Iterable[CellManifest], planned: Sequence[str], damaged: Mapping[str, Sequence[str]]
) -> Certificates:
    """Sum up the certificates of the cells that ran, against the ids that were planned.

    ``manifests`` are gone through once, and none is kept. ``damaged`` are names in ``cells/`` with what is
    wrong there: they were left out of everything.
    """
    tallies: dict[str, _Tally] = {}
    failed: list[FailedCheck] = []
    excluded = [
        Excluded(cell_id=inline(name), status="damaged", reason="; ".join(problems))
        for name, problems in damaged.items()
    ]
    there, certified = set(damaged), 0
    for manifest in manifests:
        cell_id = manifest.cell.id
        there.add(cell_id)
        certified += manifest.status == "certified"
        if manifest.status != "certified":
            reason = manifest.reason or "no reason was recorded"
            excluded.append(Excluded(cell_id=cell_id, status=manifest.status, reason=reason))
        for check in manifest.certificate.checks:
            tallies.setdefault(check.name, _Tally()).add(check)
        failed += [
            FailedCheck(cell_id=cell_id, check=check)
            for check in manifest.certificate.checks
            if not check.passed
        ]
    summaries = (tally.summary(name) for name, tally in tallies.items())
    return Certificates(
        failed=tuple(failed),
        excluded=tuple(excluded),
        # Worst first, then by name: what needs a look stands on top.
        summaries=tuple(sorted(summaries, key=lambda s: (s.passed - s.total, s.name))),
        certified=certified,
        planned=len(planned),
        missing=tuple(cell_id for cell_id in planned if cell_id not in there),
    )


@dataclass(kw_only=True)
class _Tally:
    """One check, as far as its cells were seen."""

    passed: int = 0
    total: int = 0
    asked: set[str] = field(default_factory=set)
    measured: set[str] = field(default_factory=set)

    def add(self, check: Check) -> None:
        self.passed += check.passed
        self.total += 1
        self.asked.add(check.asked)
        self.measured.add(check.measured)

    def summary(self, name: str) -> CheckSummary:
        return CheckSummary(
            name=name,
            passed=self.passed,
            total=self.total,
            asked=spread(sorted(self.asked, key=_by_number)),
            measured=spread(sorted(self.measured, key=_by_number)),
        )


def _by_number(text: str) -> tuple[float, str]:
    match = re.search(r"-?\d+(?:\.\d+)?", text)
    return (float(match[0]) if match else 0.0, text)

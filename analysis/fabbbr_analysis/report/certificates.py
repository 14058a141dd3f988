"""What the emulator was asked, what it measured of itself, and which cells that rules out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabbbr.foreign import inline
from fabbbr.model import CellManifest, Check
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
    manifests: Sequence[CellManifest], planned: Sequence[str], damaged: Mapping[str, Sequence[str]]
) -> Certificates:
    """Sum up the certificates of the cells that ran, against the ids that were planned.

    ``damaged`` are names in ``cells/`` with what is wrong there: they were left out of everything.
    """
    by_name: dict[str, list[Check]] = {}
    for manifest in manifests:
        for check in manifest.certificate.checks:
            by_name.setdefault(check.name, []).append(check)
    summaries = [_summary(name, checks) for name, checks in by_name.items()]
    there = {manifest.cell.id for manifest in manifests} | damaged.keys()
    broken = (
        Excluded(cell_id=inline(name), status="damaged", reason="; ".join(problems))
        for name, problems in damaged.items()
    )
    return Certificates(
        failed=tuple(
            FailedCheck(cell_id=manifest.cell.id, check=check)
            for manifest in manifests
            for check in manifest.certificate.checks
            if not check.passed
        ),
        excluded=(
            *broken,
            *(
                Excluded(
                    cell_id=manifest.cell.id,
                    status=manifest.status,
                    reason=manifest.reason or "no reason was recorded",
                )
                for manifest in manifests
                if manifest.status != "certified"
            ),
        ),
        # Worst first, then by name: what needs a look stands on top.
        summaries=tuple(sorted(summaries, key=lambda s: (s.passed - s.total, s.name))),
        certified=sum(manifest.status == "certified" for manifest in manifests),
        planned=len(planned),
        missing=tuple(cell_id for cell_id in planned if cell_id not in there),
    )


def _summary(name: str, checks: list[Check]) -> CheckSummary:
    return CheckSummary(
        name=name,
        passed=sum(check.passed for check in checks),
        total=len(checks),
        asked=spread(sorted({check.asked for check in checks}, key=_by_number)),
        measured=spread(sorted({check.measured for check in checks}, key=_by_number)),
    )


def _by_number(text: str) -> tuple[float, str]:
    match = re.search(r"-?\d+(?:\.\d+)?", text)
    return (float(match[0]) if match else 0.0, text)

"""What a run folder says of itself: what was asked, what came of each cell, and what produced it.

Frozen, validated, and JSON on disk, as all records of :mod:`fabbbr.model`. Nothing here computes.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from fabbbr.model import Cell
from fabbbr.record import Record
from fabbbr.testbed import ClockKind, Testbed

FORMAT_VERSION = 3
"""Of run folders; raised when an older reader could misunderstand a newer folder. From 2 on run.json and the
manifests carry a digest of themselves; from 3 on the place is a record of its own, and a bottleneck too."""

CellStatus = Literal["certified", "uncertified"]


class Check(Record):
    """One line of a certificate: asked against measured."""

    name: str
    passed: bool
    asked: str
    measured: str
    detail: str = ""


class Certificate(Record):
    """What the emulator really did. A cell whose certificate fails is shown but never averaged."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)


class CongestionControl(Record):
    """What stood behind the name of a congestion control, as the running kernel says."""

    cca: str
    kernel_name: str
    implementation: str
    """``fabbbr``, ``google``, ``mainline`` and the kernel's release, or ``module`` and its name."""
    profile: str | None = None
    """Of a user's own module: its parameters, as read back."""
    source: str | None = None
    """First 16 hex digits of the sha256 of the sources of the module, or of the BPF programs."""
    form: Literal["module", "bpf", "native"] | None = None
    """In which our own was loaded, or a user's; of others nothing is known. ``native`` is a BPF program that
    was compiled as a kernel module and did not run as BPF."""


class Provenance(Record):
    """What produced a cell: enough to produce it again."""

    fabbbr_version: str
    testbed: Testbed
    congestion_controls: tuple[CongestionControl, ...] = ()
    options: dict[str, Any] = Field(default_factory=dict)
    """What else decides the bytes: guest memory, seccomp or ptrace, hashes of agent and shim."""


class CellManifest(Record):
    """``cells/<id>/manifest.json``: written last, so a folder that has one is whole."""

    format_version: int = FORMAT_VERSION
    cell: Cell
    status: CellStatus
    reason: str | None = None
    """Why it failed or was not certified; None when certified."""
    certificate: Certificate
    provenance: Provenance
    virtual_s: float | None
    """Seconds on the clock of the experiment (equal to wall seconds on a real clock)."""
    wall_s: float
    files: dict[str, str]
    """Relative path → sha256 of every raw file."""


class RunManifest(Record):
    """``run.json``: what was asked of this run folder."""

    format_version: int = FORMAT_VERSION
    experiment: dict[str, Any]
    """The experiment as resolved: defaults filled in, overrides applied."""
    source_name: str
    """Bundled name or file name of the experiment."""
    profile: Literal["default", "quick", "full"]
    seed: int
    backend: str
    clock: ClockKind = "virtual"
    overrides: tuple[str, ...] = ()
    """What ``--set`` changed, as given."""
    ccas: tuple[str, ...] = ()
    """What ``--cca`` added, as given."""
    claims: tuple[str, ...]
    looks: tuple[int, ...] = ()
    """Repetitions after which claims are judged and the run may end, fixed before it began; see
    :mod:`fabbbr.plan.looks`. Empty: as many repetitions as the experiment says."""
    cells: tuple[Cell, ...]
    """The plan, in the order of execution."""
    created: str
    """ISO 8601, UTC, wall clock."""
    fabbbr_version: str
    experiment_sha256: tuple[str, ...] = ()
    """Of ``experiment.yaml``, the version given first in front. A run that grew may have several, and a crash
    may leave an earlier one in place. Empty in format 1."""

"""The loop: cell by cell, on as many places at once as asked, each kept only when it is whole.

A cell that is in the run folder is never run again; an interrupted one leaves nothing there. A cell whose
tools broke is put aside under ``failed/`` with its reason and tried again by the next run.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fabbbr.backends.base import Backend, CancelledError, Report, Task
from fabbbr.certify.certificate import certify
from fabbbr.certify.controls import identified
from fabbbr.certify.evidence import Evidence
from fabbbr.errors import (
    BackendError,
    EnvironmentUnfitError,
    FabbbrError,
    PlaceLostError,
    StoreError,
    refusal,
)
from fabbbr.files import write_atomically
from fabbbr.job.build import prepare
from fabbbr.job.expected import Prepared
from fabbbr.manifest import CellManifest, CellStatus, Certificate, Provenance
from fabbbr.model import Cell
from fabbbr.physics import losses_of, stationary_loss
from fabbbr.plan.estimate import estimate
from fabbbr.store import RunFolder, hashes_of_raw_files
from fabbbr.units import NANOSECONDS_PER_SECOND
from fabbbr.version import __version__

_LEAST_WALL_S = 180.0
_WALL_FACTOR = 20.0
_WALL_S_PER_SLOT = 1e-4
"""To write a packet that was captured: 30 us on a machine that was six times as busy as it has cores."""

EventKind = Literal["started", "progress", "certified", "uncertified", "failed", "untried"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """Told to the caller while the run goes on; ``clock_s`` is the time on the experiment's clock."""

    kind: EventKind
    cell: Cell
    clock_s: float = 0.0
    wall_s: float = 0.0
    reason: str | None = None


@dataclass(kw_only=True)
class Summary:
    """What became of the cells that were asked for."""

    certified: list[str] = field(default_factory=list)
    uncertified: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    """Found whole in the run folder."""
    untried: list[str] = field(default_factory=list)
    """Not begun, because the place was lost before."""

    def add(self, later: Summary) -> None:
        """What became of the same run when it went on: what the first call made is not found again."""
        self.certified += later.certified
        self.uncertified |= later.uncertified
        self.failed = later.failed
        self.untried = later.untried
        known = {*self.certified, *self.uncertified, *self.skipped}
        self.skipped += [cell for cell in later.skipped if cell not in known]


def execute(
    folder: RunFolder,
    cells: Sequence[Cell],
    backend: Backend,
    *,
    jobs: int,
    listen: Callable[[Event], None],
) -> Summary:
    """Run the cells that ``folder`` lacks; return when all are done.

    Raises StoreError when the folder cannot be written (the cells that are in it stay), and KeyboardInterrupt
    after having stopped everything.
    """
    shutil.rmtree(folder.partial, ignore_errors=True)
    summary = Summary(skipped=[cell.id for cell in cells if folder.has(cell.id)])
    missing = [cell for cell in cells if not folder.has(cell.id)]
    if not missing:
        return summary
    run = _Run(folder, backend, sum(map(_lossy, folder.manifest.cells)), listen)
    try:
        run.all(missing, jobs, summary)
    finally:
        shutil.rmtree(folder.partial, ignore_errors=True)
    return summary


def _lossy(cell: Cell) -> int:
    """So many times chance decides how much of a link's data is lost."""
    return sum(0 < stationary_loss(loss) < 1 for _, loss in losses_of(cell))


class _Run:
    """One call of :func:`execute`."""

    def __init__(
        self,
        folder: RunFolder,
        backend: Backend,
        lossy_links: int,
        listen: Callable[[Event], None],
    ) -> None:
        self._folder = folder
        self._backend = backend
        self._lossy_links = lossy_links
        self._listen = listen
        self._cancelled = threading.Event()
        self._lost = threading.Event()

    def all(self, cells: Sequence[Cell], jobs: int, summary: Summary) -> None:
        with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="cell") as pool:
            try:
                running = self._begun(pool, cells)
                while running:
                    done, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._note(future.result(), summary)
            except BaseException:
                self._cancelled.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _begun(self, pool: ThreadPoolExecutor, cells: Sequence[Cell]) -> set[Future[Event]]:
        try:
            return {pool.submit(self._one, cell) for cell in cells}
        except RuntimeError as error:
            message = f"{error}: raise ulimit -u, or lower --jobs"
            raise EnvironmentUnfitError(message) from None

    def _note(self, event: Event, summary: Summary) -> None:
        if event.kind == "certified":
            summary.certified.append(event.cell.id)
        elif event.kind == "uncertified":
            summary.uncertified[event.cell.id] = event.reason or ""
        elif event.kind == "untried":
            summary.untried.append(event.cell.id)
        else:
            summary.failed[event.cell.id] = event.reason or ""

    def _one(self, cell: Cell) -> Event:
        if self._lost.is_set():
            return Event(kind="untried", cell=cell)
        event = self._carry_out(cell)
        self._listen(event)
        return event

    def _carry_out(self, cell: Cell) -> Event:
        if self._cancelled.is_set():
            raise CancelledError
        self._listen(Event(kind="started", cell=cell))
        started = time.monotonic()
        work = self._folder.begin(cell.id)
        prepared = prepare(cell, self._backend.with_kernel(cell.kernel))
        try:
            report = self._backend.execute(self._task(prepared, work))
            manifest = self._manifest(prepared, Evidence.read(work / "raw"), report)
        except BackendError as error:
            if isinstance(error, PlaceLostError):
                self._lost.set()
            return self._put_aside(cell, str(error))
        except (OSError, MemoryError) as error:
            raise _stopped(cell, error) from error
        status, reason = manifest.status, manifest.reason
        self._folder.commit(cell.id, manifest)
        shutil.rmtree(self._aside(cell), ignore_errors=True)
        return Event(
            kind=status,
            cell=cell,
            clock_s=report.clock_s,
            wall_s=time.monotonic() - started,
            reason=reason,
        )

    def _task(self, prepared: Prepared, work: Path) -> Task:
        cell = prepared.cell
        return Task(
            job=prepared.job,
            kernel=cell.kernel,
            work=work,
            seed=cell.seed,
            wall_limit_s=wall_limit_s(prepared),
            cancelled=self._cancelled,
            progress=lambda clock_s: self._listen(Event(kind="progress", cell=cell, clock_s=clock_s)),
        )

    def _manifest(self, prepared: Prepared, evidence: Evidence, report: Report) -> CellManifest:
        cell = prepared.cell
        certificate = certify(prepared, evidence, lossy_links=self._lossy_links)
        status, reason = _status(certificate)
        return CellManifest(
            cell=cell,
            status=status,
            reason=reason,
            certificate=certificate,
            provenance=Provenance(
                fabbbr_version=__version__,
                testbed=prepared.testbed,
                congestion_controls=identified(prepared, evidence.readback),
                options={**report.options, "interfaces": prepared.roles},
            ),
            virtual_s=report.clock_s,
            wall_s=round(report.wall_s, 3),
            files=hashes_of_raw_files(self._folder.partial / cell.id),
        )

    def _aside(self, cell: Cell) -> Path:
        return self._folder.path / "failed" / cell.id

    def _put_aside(self, cell: Cell, reason: str) -> Event:
        """Keep what a broken cell left, to look for the cause; the next run tries the cell again."""
        aside = self._aside(cell)
        shutil.rmtree(aside, ignore_errors=True)
        try:
            aside.parent.mkdir(exist_ok=True)
            (self._folder.partial / cell.id).rename(aside)
        except OSError as error:
            raise _stopped(cell, error) from error
        write_atomically(aside / "reason.txt", reason + "\n")
        return Event(kind="failed", cell=cell, reason=reason)


def _stopped(cell: Cell, error: OSError | MemoryError) -> FabbbrError:
    """What the system refused a cell, it would refuse the next one too."""
    known = refusal(error, f"cell {cell.id}")
    return known or StoreError(f"cell {cell.id}: {error}; choose another --out")


def _status(certificate: Certificate) -> tuple[CellStatus, str | None]:
    wrong = [check for check in certificate.checks if not check.passed]
    if not wrong:
        return "certified", None
    return "uncertified", "; ".join(f"{c.name}: {c.measured} (asked: {c.asked})" for c in wrong)


def wall_limit_s(prepared: Prepared) -> float:
    """Wall seconds after which a cell counts as hung: twenty times the estimate, 180 s at least.

    What was captured is written afterwards. On a real clock its own time comes on top: until the last of its
    flows is ended, whatever became of it.
    """
    computing_s = max(_LEAST_WALL_S, _WALL_FACTOR * estimate([prepared.cell], prepared.testbed).computing_s)
    computing_s += _WALL_S_PER_SLOT * sum(tap.slots for task in prepared.job.captures for tap in task.taps)
    flows_s = prepared.job.end_ns / NANOSECONDS_PER_SECOND
    return computing_s + (flows_s if prepared.testbed.clock == "real" else 0.0)

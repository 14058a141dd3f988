"""What the command line and a notebook share: plan an experiment, run it into its folder, open the result."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fabbbr.backends.base import Backend, OwnControl, require_jobs
from fabbbr.backends.registry import BACKENDS, DEFAULT, clock_of, described, open_backend
from fabbbr.errors import EnvironmentUnfitError, PlanError, StoreError, UsageError
from fabbbr.execute import Event, Summary, execute
from fabbbr.files import LARGEST_RECORD_BYTES, read_own
from fabbbr.foreign import listed
from fabbbr.inspection import require_whole_cells
from fabbbr.job.captures import misfit as cannot_capture
from fabbbr.job.geography import misfit
from fabbbr.manifest import RunManifest
from fabbbr.model import Cell, Module
from fabbbr.plan.opening import Planned, open_plan
from fabbbr.plan.selector import select
from fabbbr.record import differences
from fabbbr.spec.experiment import Profile
from fabbbr.spec.read import describe
from fabbbr.store import BESIDE, EXPERIMENT, RunFolder, holds, only_writer
from fabbbr.testbed import ClockKind, Testbed
from fabbbr.trust import Trust
from fabbbr.version import __version__

if TYPE_CHECKING:
    from fabbbr_analysis.run import Run

DEFAULT_SEED = 1
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to run, as the user asked for it."""

    experiment: str
    backend: str = DEFAULT
    clock: ClockKind | None = None
    """None: the backend's own."""
    profile: Profile = "default"
    seed: int = DEFAULT_SEED
    repeat: int | None = None
    overrides: tuple[str, ...] = ()
    only: str | None = None
    out: Path | None = None
    jobs: int | None = None
    trust: Trust = field(default_factory=Trust)
    """Whether a slice file of the user's own may run."""
    slice: str | None = None
    """A slice that stands, on whose machines the cells run; ``backend`` is then its testbed."""
    looks: tuple[int, ...] = ()
    """Repetitions after which claims are judged, and the run may end; see ``fabbbr.deciding``."""
    deeper: frozenset[str] | None = None
    """Conditions that get more repetitions than the first look has; None: all of them."""
    ccas: Mapping[str, Path] = field(default_factory=dict)
    """Name → module of a congestion control that the experiment gets beside its own."""
    tell: Callable[[str], None] = lambda _: None
    """Hears what is done before the first cell and takes long."""
    emulate_rtt: bool = False
    """Whether netem adds what the round trips of the slice lack; in a guest there are none to begin with."""


def planned(request: Request) -> Planned:
    """The plan of the whole experiment; ``only`` does not shorten it."""
    require_seed(request.seed)
    require_jobs(request.jobs)
    plan = open_plan(
        request.experiment,
        seed=request.seed,
        profile=request.profile,
        overrides=request.overrides,
        repeat=request.repeat,
        trust=request.trust,
        ccas=request.ccas,
    )
    return plan if request.deeper is None else _only_deeper(plan, request.looks[0], request.deeper)


def _only_deeper(plan: Planned, first: int, conditions: frozenset[str]) -> Planned:
    cells = (cell for cell in plan.cells if cell.repetition <= first or cell.condition in conditions)
    return replace(plan, cells=tuple(cells))


def selected(request: Request, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells that this call is about."""
    return tuple(cells) if request.only is None else select(cells, request.only)


def place(request: Request) -> Testbed:
    """What its cells would run on, for a plan that is printed; the place need not be fit yet."""
    return described(request.backend, request.clock)


def missing_cells(folder: Path, plan: Planned) -> list[Cell]:
    """What of a plan is not in its run folder, which may not be there yet."""
    return [cell for cell in plan.cells if not holds(folder, cell.id)]


def run_folder_path(request: Request, experiment_id: str) -> Path:
    """Where the run goes when ``--out`` does not say: one folder per experiment and profile."""
    if request.out is not None:
        try:
            str(request.out).encode()
        except UnicodeEncodeError:
            message = f"--out {os.fsencode(request.out)!r} is not UTF-8, which tables need; choose another"
            raise UsageError(message) from None
        return request.out
    suffix = "" if request.profile == "default" else f"-{request.profile}"
    where = "" if _clock(request) == "virtual" else f"-{request.backend}-real"
    if request.slice is not None:
        where = f"-{request.slice}"
    return Path("runs") / f"{experiment_id}{suffix}{where}"


def carry_out(
    request: Request,
    *,
    announce: Callable[[RunFolder, Sequence[Cell], int, Testbed], None],
    listen: Callable[[Event], None],
) -> tuple[RunFolder, Summary]:
    """Run what is missing. ``announce`` first gets folder, cells, the number of jobs and the place."""
    _require_rights_to_own_files()
    # A mistake in the file is named before what the machine lacks: a guest kernel takes minutes to build.
    plan = planned(request)
    cells = selected(request, plan.cells)
    with _opened(request, cells) as backend:
        cells = _to_be_had(cells, backend)
        jobs = _at_once(request.jobs, backend, cells)
        out = run_folder_path(request, plan.experiment.id)
        if plan.modules:
            _take_in(request, plan, [cell for cell in cells if not _is_there(out, cell)], backend)
        with only_writer(out):
            folder = open_or_create(request, plan)
            _require_same_kernels(folder, cells, backend)
            for sha256, sources in plan.modules.items():
                folder.keep_module(sha256, sources.contents)
            announce(folder, cells, jobs, backend.testbed)
            return folder, execute(folder, cells, backend, jobs=jobs, listen=listen)


def _is_there(out: Path, cell: Cell) -> bool:
    """Whether the cell need not run again; of a folder that is closed to us nothing is there."""
    try:
        return holds(out, cell.id)
    except PermissionError:
        return False


def _take_in(request: Request, plan: Planned, cells: Sequence[Cell], backend: Backend) -> None:
    """Have the user's own congestion controls of these cells built and tried.

    Building runs their Makefile, and they run in the kernel of the place: raises UntrustedError for what an
    experiment file names and nobody said yes to. What the command line names was agreed to by naming it.
    """
    uses: dict[tuple[str, str | None], dict[str, Module]] = {}
    senders: dict[str, dict[str, None]] = {}
    for cell in cells:
        for sender, module in ((one.sender, one.module) for one in cell.flows if one.module is not None):
            uses.setdefault((module.sha256, cell.kernel), {})[module.model_dump_json()] = module
            senders.setdefault(module.sha256, {})[sender] = None
    named = {place.absolute() for place in request.ccas.values()}
    controls = []
    for (sha256, kernel), ways in uses.items():
        sources = plan.modules[sha256]
        if sources.place.absolute() not in named:
            request.trust.require(sources.place, sources.canonical, kind="module")
        controls.append(
            OwnControl(
                sources=sources, uses=tuple(ways.values()), kernel=kernel, senders=tuple(senders[sha256])
            )
        )
    if controls:
        backend.take_in(controls, request.tell)


def carry_out_in_guest(
    folder: RunFolder,
    *,
    jobs: int | None = None,
    announce: Callable[[RunFolder, Sequence[Cell], int, Testbed], None],
    listen: Callable[[Event], None],
) -> tuple[RunFolder, Summary]:
    """Run the finished cells of a run from elsewhere in the guest too, into a run folder within its own.

    What is there already stays. Raises UsageError for a run of the guest's own or one without a finished
    cell, StoreError when what is there is damaged or of other cells.
    """
    _require_rights_to_own_files()
    manifest = folder.manifest
    if manifest.backend == DEFAULT:
        message = f"{folder.path} was run in the guest; name a run from elsewhere"
        raise UsageError(message)
    cells = tuple(cell for cell in manifest.cells if folder.has(cell.id))
    if not cells:
        message = f"{folder.path} has no finished cell to run in the guest; finish it first"
        raise UsageError(message)
    with closing(open_backend(DEFAULT, None)) as backend:
        at_once = _at_once(jobs, backend, cells)
        with only_writer(folder.path / BESIDE):
            beside = _open_or_create_beside(folder, cells, backend.testbed.clock)
            announce(beside, cells, at_once, backend.testbed)
            return beside, execute(beside, cells, backend, jobs=at_once, listen=listen)


def _open_or_create_beside(folder: RunFolder, cells: Sequence[Cell], clock: ClockKind) -> RunFolder:
    """The run in the guest with these cells in its plan, and those that it had."""
    there = folder.beside()
    if there is not None:
        require_whole_cells(there)
    planned_before = {} if there is None else there.planned
    manifest = folder.manifest.model_copy(
        update={
            "backend": DEFAULT,
            "clock": clock,
            "created": _now() if there is None else there.manifest.created,
            "fabbbr_version": __version__,
            "experiment_sha256": () if there is None else there.manifest.experiment_sha256,
        }
    )
    other = [cell.id for cell in cells if planned_before.get(cell.id, cell) != cell]
    if other:
        message = (
            f"{folder.path / BESIDE} holds another cell {other[0]} than {folder.path}; remove it, and the "
            "same command makes it anew"
        )
        raise StoreError(message)
    text = read_own(folder.path / EXPERIMENT, limit=LARGEST_RECORD_BYTES).decode()
    whole = planned_before | {cell.id: cell for cell in cells}
    return RunFolder.create(
        folder.path / BESIDE, manifest.model_copy(update={"cells": tuple(whole.values())}), text
    )


def _clock(request: Request) -> ClockKind:
    """Of a testbed that only slices know it is real."""
    return clock_of(request.backend, request.clock) if request.backend in BACKENDS else "real"


def _opened(request: Request, cells: Sequence[Cell]) -> AbstractContextManager[Backend]:
    """The place, for as long as the block lasts."""
    if request.slice is None:
        return closing(open_backend(request.backend, request.clock))
    from fabbbr.slice.place import standing_place

    return standing_place(request.slice, cells, emulates_rtt=request.emulate_rtt, tell=request.tell)


def _to_be_had(cells: Sequence[Cell], backend: Backend) -> tuple[Cell, ...]:
    """Those whose round trips the network has, or netem can add; PlanError when none is.

    Raises EnvironmentUnfitError for the kernels that the place does not have.
    """
    places = _places(cells, backend)
    against = {
        cell.id: misfit(cell, places[cell.kernel]) or cannot_capture(cell, places[cell.kernel])
        for cell in cells
    }
    fit = tuple(cell for cell in cells if against[cell.id] is None)
    if cells and not fit:
        message = f"none of {len(cells)} cells fits: {against[cells[0].id]}"
        raise PlanError(message)
    return fit


def _places(cells: Sequence[Cell], backend: Backend) -> dict[str | None, Testbed]:
    """Kernel → the place that cells find which name it."""
    found = {kernel: _place(backend, kernel) for kernel in dict.fromkeys(cell.kernel for cell in cells)}
    lacking = [place for place in found.values() if isinstance(place, EnvironmentUnfitError)]
    if lacking:
        raise EnvironmentUnfitError("\n".join(map(str, lacking)))
    return {kernel: place for kernel, place in found.items() if isinstance(place, Testbed)}


def _place(backend: Backend, kernel: str | None) -> Testbed | EnvironmentUnfitError:
    try:
        return backend.with_kernel(kernel)
    except EnvironmentUnfitError as error:
        return error


def _require_rights_to_own_files() -> None:
    mask = os.umask(0o077)
    os.umask(mask)
    if mask & 0o700 and os.geteuid() != 0:
        message = f"umask {mask:03o} keeps you from the files that you make yourself: set umask 022"
        raise EnvironmentUnfitError(message)


def require_seed(seed: int) -> None:
    """Raise UsageError for a seed that is negative or that tables cannot hold."""
    if not 0 <= seed <= LARGEST_SEED:
        message = f"--seed {seed}: give a whole number from 0 to {LARGEST_SEED}"
        raise UsageError(message)


def _at_once(jobs: int | None, backend: Backend, cells: Sequence[Cell]) -> int:
    require_jobs(jobs)
    return backend.cells_at_once(jobs, cells)


def open_or_create(request: Request, plan: Planned) -> RunFolder:
    """The run folder of this plan: new, or one that the plan continues.

    A run may grow (more repetitions, more values); what is there already must have been made with the same
    seed, backend and conditions, or StoreError says what differs; so it does when a
    cell that is there is damaged.
    """
    path = run_folder_path(request, plan.experiment.id)
    cells = {cell.id: cell for cell in plan.cells}
    created = _now()
    given: tuple[str, ...] = ()
    looks = request.looks
    if (path / "run.json").exists():
        folder = RunFolder.open(path)
        _require_same(folder.manifest, request, plan)
        require_whole_cells(folder)
        cells = folder.planned | cells
        created, given = folder.manifest.created, folder.manifest.experiment_sha256
        looks = looks or folder.manifest.looks
    manifest = RunManifest(
        experiment=describe(plan.experiment),
        source_name=plan.source_name,
        profile=request.profile,
        seed=request.seed,
        backend=request.backend,
        clock=_clock(request),
        overrides=request.overrides,
        ccas=tuple(f"{name}={place}" for name, place in request.ccas.items()),
        claims=tuple(plan.experiment.claims),
        looks=looks,
        cells=tuple(cells.values()),
        created=created,
        fabbbr_version=__version__,
        experiment_sha256=given,
    )
    return RunFolder.create(path, manifest, plan.text)


def _now() -> str:
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")


def _require_same(existing: RunManifest, request: Request, plan: Planned) -> None:
    place = run_folder_path(request, plan.experiment.id)
    old_cells = {cell.id: cell for cell in existing.cells}
    different = [
        f"{what} {old} there, {new} asked"
        for what, old, new in (
            ("experiment", existing.experiment.get("id"), plan.experiment.id),
            ("seed", existing.seed, request.seed),
            ("backend", existing.backend, request.backend),
            ("clock", existing.clock, _clock(request)),
        )
        if old != new
    ]
    other = [cell for cell in plan.cells if cell.id in old_cells and old_cells[cell.id] != cell]
    if other and not different:
        said = listed(list(differences(old_cells[other[0].id], other[0])), most=4, separator="; ")
        more = f" (and {len(other) - 1} more cells)" if len(other) > 1 else ""
        different = [f"cell {other[0].id}: {said}{more}"]
    if request.looks and existing.looks not in ((), request.looks):
        said = ", ".join(map(str, existing.looks))
        message = (
            f"{place} was begun to look at its claims after {said} repetitions, and looking more often would "
            f"make verdicts less sure than they say: go on with --most {existing.looks[-1]} and the first "
            f"repetitions {existing.looks[0]}, or choose another --out"
        )
        raise StoreError(message)
    changed = next(filter(None, (_changed_module(old_cells.get(cell.id), cell) for cell in plan.cells)), None)
    if changed is not None:
        message = (
            f"{place} holds cells of {changed}: a changed source is another condition; choose another --out, "
            "and fabbbr compare sets the two side by side"
        )
        raise StoreError(message)
    if different:
        message = (
            f"{place} holds another run: {'; '.join(different)}. "
            "Choose another --out, or remove the folder to start over"
        )
        raise StoreError(message)


def _require_same_kernels(folder: RunFolder, cells: Sequence[Cell], backend: Backend) -> None:
    """Raise StoreError when a kernel was built anew since it ran cells that are there."""
    of_each = {cell.kernel: cell for cell in cells if cell.kernel is not None and folder.has(cell.id)}
    for kernel, cell in of_each.items():
        before = _kernels(folder.cell(cell.id).manifest.provenance.testbed)
        if before != _kernels(backend.with_kernel(kernel)):
            message = (
                f"{folder.path} holds cells of another kernel {kernel} (sha256 {listed(_short(before))}): a "
                "kernel that was built anew is another condition; choose another --out, and fabbbr compare "
                "sets the two side by side"
            )
            raise StoreError(message)


def _kernels(place: Testbed) -> list[str | None]:
    return [machine.kernel.sha256 for machine in place.machines.values()]


def _short(digests: Sequence[str | None]) -> list[str]:
    return [(digest or "unknown")[:16] for digest in digests]


def _changed_module(before: Cell | None, now: Cell) -> str | None:
    """Which module of a cell was of other sources before; None when none was."""
    for old, new in zip(before.flows if before is not None else (), now.flows, strict=False):
        if old.module is not None and new.module is not None and old.module.sha256 != new.module.sha256:
            return f"{new.cca} of other sources ({old.module.sha256[:16]}, now {new.module.sha256[:16]})"
    return None


def open_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Open run folders for analysis, making their tables where they are missing."""
    from fabbbr_analysis.run import Run

    return [Run.open(Path(path)) for path in paths]

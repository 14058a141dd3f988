"""Plan an experiment, run it, open what came of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr.backends.registry import DEFAULT
from fabbbr.commands.display import raise_for, watched_by
from fabbbr.commands.plan import command_lines, cost_in_words, row_of
from fabbbr.errors import CellsFailedError, UsageError
from fabbbr.execute import Summary
from fabbbr.interactive.asked import Only, Overrides, name_of, overrides_of, profile_of, selector_of
from fabbbr.interactive.progress import for_whoever_watches
from fabbbr.job.build import prepare
from fabbbr.laboratory import DEFAULT_SEED, Request, carry_out, open_runs, place, planned, selected
from fabbbr.model import Cell
from fabbbr.plan.estimate import Estimate, estimate
from fabbbr.slice.opening import backend_of
from fabbbr.store import RunFolder
from fabbbr.testbed import ClockKind, Testbed
from fabbbr.trust import Trust
from fabbbr_analysis.drawn import Drawn

if TYPE_CHECKING:
    from fabbbr_analysis.run import Run


class CellsLeftOutWarning(UserWarning):
    """Some cells failed or were not certified: they are in no average."""


def run(  # noqa: PLR0913 - the notebook's face of the command line: one keyword per option
    experiment: str | Path,
    *,
    set: Overrides | None = None,  # noqa: A002 - as --set
    only: Only | None = None,
    repeat: int | None = None,
    quick: bool = False,
    full: bool = False,
    seed: int = DEFAULT_SEED,
    jobs: int | None = None,
    out: str | Path | None = None,
    backend: str = DEFAULT,
    clock: ClockKind | None = None,
    slice: str | None = None,  # noqa: A002 - as fabbbr slice
    overrides: Sequence[str] = (),
    ccas: Mapping[str, str | Path] | None = None,
    trust: bool = False,
    progress: bool = True,
) -> Run:
    """Run an experiment, or the cells of it that are missing, and return its results.

    Parameters
    ----------
    experiment
        A bundled name (``fb.experiments()``) or the path of a file of your own.
    set
        What to change in the file, as ``--set``: ``{"path.rate": "20 Mbit/s", "loss": ["1 %", "5 %"]}``.
    only
        Which cells this call runs, as ``--only``: ``{"cca": ["cubic", "bbr3"]}``, or a glob over cell ids.
    repeat
        Repetitions of each condition (default: the file's).
    quick, full
        The profile of the file to take.
    seed, jobs, out, backend, clock
        As on the command line: see ``fabbbr run --help``.
    slice
        A slice that stands (``fb.list_slices()``), on whose machines the cells run instead of in ``backend``.
    overrides
        As ``set``, in the words of the command line: ``["path.rate=20 Mbit/s"]``.
    ccas
        Congestion controls of your own, as ``--cca``: ``{"mine": "./tcp_mine"}``.
    trust
        Let a slice file that is not bundled run, which is Python, or a module: an experiment file that you
        did not write may name one. Without it UntrustedError is raised, unless you said yes to it at a
        terminal before.
    progress
        Show how far it is, in a notebook or at a terminal.

    Warns
    -----
    CellsLeftOutWarning
        Some cells failed or were not certified; the others are there.

    Raises
    ------
    FabbbrError
        With the thing, the place and the remedy: a mistake in the file (SpecError), an experiment that does
        not fit (PlanError), a machine that lacks something (EnvironmentUnfitError), or no cell that came out
        whole (CellsFailedError).

    Examples
    --------
    >>> import fabbbr as fb
    >>> run = fb.run("one_flow.yaml", set={"path.rate": "10 Mbit/s"}, only={"cca": "bbr3"}, repeat=1)
    >>> run.state
    '1 of 2 cells certified, 1 not run'
    >>> bool(8e6 < run.runs.goodput_bps[0] < 10e6)
    True
    """
    request = Request(
        experiment=name_of(experiment),
        backend=backend if slice is None else backend_of(slice),
        slice=slice,
        clock=clock,
        profile=profile_of(quick=quick, full=full),
        seed=seed,
        repeat=repeat,
        overrides=(*overrides_of(set), *overrides),
        ccas={name: Path(place) for name, place in (ccas or {}).items()},
        only=selector_of(only),
        out=Path(out) if out is not None else None,
        jobs=jobs,
        trust=Trust(anything=trust),
    )
    folder, summary = _carried_out(request, progress=progress)
    _tell_of_those_left_out(folder, summary)
    return open(folder.path)


def _carried_out(request: Request, *, progress: bool) -> tuple[RunFolder, Summary]:
    shown = for_whoever_watches() if progress else None
    if shown is None:
        return carry_out(request, announce=lambda *_: None, listen=lambda _: None)
    return watched_by(shown, partial(carry_out, request))


def _tell_of_those_left_out(folder: RunFolder, summary: Summary) -> None:
    """Warn of them, as a notebook goes on with the others; raise CellsFailedError where there is no other."""
    try:
        raise_for(summary, folder)
    except CellsFailedError as error:
        if not any(folder.has(cell.id) for cell in folder.manifest.cells):
            raise
        warnings.warn(str(error), CellsLeftOutWarning, stacklevel=3)


def open(path: str | Path) -> Run:  # noqa: A001 - fb.open
    """Open a run folder, making its tables where they are missing.

    Raises StoreError where there is no run folder; a DamagedRunWarning names cells that are damaged.

    >>> import fabbbr as fb
    >>> run = fb.open("runs/rivals")
    >>> run.certified["condition"].unique().tolist()
    ['buffer=1BDP', 'buffer=4BDP']
    """
    return open_runs([path])[0]


def plan(  # noqa: PLR0913 - as run
    experiment: str | Path,
    *,
    set: Overrides | None = None,  # noqa: A002 - as --set
    only: Only | None = None,
    repeat: int | None = None,
    quick: bool = False,
    full: bool = False,
    seed: int = DEFAULT_SEED,
    backend: str = DEFAULT,
    clock: ClockKind | None = None,
    trust: bool = False,
) -> Plan:
    """Return the cells of an experiment and what they will cost, without running anything.

    The parameters are those of :func:`run`, and so are the errors.

    >>> import fabbbr as fb
    >>> plan = fb.plan("cardwell_f10", quick=True, repeat=2, only={"loss": "1 %"})
    >>> [cell.id for cell in plan.cells if cell.repetition == 1]
    ['cca=cubic,loss=1%,r1', 'cca=bbr1,loss=1%,r1']
    """
    request = Request(
        experiment=name_of(experiment),
        backend=backend,
        clock=clock,
        profile=profile_of(quick=quick, full=full),
        seed=seed,
        repeat=repeat,
        overrides=overrides_of(set),
        only=selector_of(only),
        trust=Trust(anything=trust),
    )
    whole = planned(request)
    return Plan(title=whole.experiment.title, cells=selected(request, whole.cells), testbed=place(request))


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Drawn):
    """The cells of an experiment, in the order in which they run; draws itself as a table."""

    title: str
    cells: tuple[Cell, ...]
    testbed: Testbed
    """What they would run on."""

    @property
    def cost(self) -> Estimate:
        """Virtual and wall seconds, bytes and packets, roughly."""
        return estimate(self.cells, self.testbed)

    @property
    def table(self) -> pd.DataFrame:
        """One row per cell: bottleneck, RTT, buffer, loss, flows and duration, as text."""
        return pd.DataFrame([row_of(cell) for cell in self.cells])

    def drawn(self) -> tuple[Sequence[str], pd.DataFrame]:
        """Title and cost above the cells."""
        return [self.title, cost_in_words(self.cost, self.testbed)], self.table

    def commands(self, cell_id: str) -> list[str]:
        """Return every command of a cell in order, each with the node that it runs on.

        Raises UsageError where there is no such cell.

        >>> import fabbbr as fb
        >>> lines = fb.plan("cardwell_f10").commands("cca=bbr1,loss=1%,r1")
        >>> any(line.startswith("h1$ iperf3 ") for line in lines)
        True
        """
        for cell in self.cells:
            if cell.id == cell_id:
                return command_lines(prepare(cell, self.testbed).job)
        message = f"the plan has no cell {cell_id!r}; it has {', '.join(cell.id for cell in self.cells[:12])}"
        raise UsageError(message)

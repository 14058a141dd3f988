"""What a run shows while it goes on, and says at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from fabbbr.commands.beside import TablesBeside
from fabbbr.commands.terminal import Terminal
from fabbbr.counts import counted
from fabbbr.errors import CellsFailedError
from fabbbr.execute import Event, Summary
from fabbbr.model import Cell
from fabbbr.physics import end_of
from fabbbr.plan.estimate import estimate
from fabbbr.store import RunFolder
from fabbbr.testbed import Testbed

if TYPE_CHECKING:
    from typing_extensions import Self

_REDRAWS_PER_S = 4


def as_json(folder: RunFolder, summary: Summary, report: str | None) -> dict[str, object]:
    """What a program wants to know of a run that is over."""
    return {
        "run": str(folder.path),
        "report": report,
        "certified": sorted(summary.certified),
        "uncertified": summary.uncertified,
        "failed": summary.failed,
        "skipped": sorted(summary.skipped),
        "untried": sorted(summary.untried),
    }


def print_outcome(console: Terminal, summary: Summary) -> None:
    """Say what became of the cells."""
    pieces: list[str | tuple[str, str]] = [f"cells: {len(summary.certified)} certified"]
    for count, word, style in (
        (len(summary.uncertified), "not certified", "yellow"),
        (len(summary.failed), "failed", "red"),
        (len(summary.untried), "not tried", "yellow"),
        (len(summary.skipped), "there already", ""),
    ):
        if count:
            pieces += [f", {count} ", (word, style)]
    console.say(*pieces)


def raise_for(summary: Summary, folder: RunFolder) -> None:
    """Raise CellsFailedError, which names the first, when a cell failed or is not certified."""
    if summary.failed:
        cell, reason = next(iter(summary.failed.items()))
        untried = f"; {len(summary.untried)} were not tried" if summary.untried else ""
        message = (
            f"{_first(len(summary.failed), 'failed')}: {cell}: {reason}{untried}; "
            f"what was left is in {folder.path / 'failed'}, and the same command tries again"
        )
        raise CellsFailedError(message)
    if summary.uncertified:
        cell, reason = next(iter(summary.uncertified.items()))
        told = _first(len(summary.uncertified), "not certified and left out of averages")
        message = f"{told}: {cell}: {reason}"
        raise CellsFailedError(message)


def _first(count: int, what: str) -> str:
    """How many cells, before the name of the first."""
    return f"{counted(count, 'cell')} {what}{', the first' if count > 1 else ''}"


def raise_for_page(summary: Summary) -> None:
    """Raise CellsFailedError, which names the first, when a page over several runs lacks cells."""
    unusable = summary.failed | summary.uncertified
    if unusable:
        cell, reason = next(iter(unusable.items()))
        message = f"{_first(len(unusable), 'failed or not certified')}: {cell}: {reason}"
        raise CellsFailedError(message)


Announcement: TypeAlias = Callable[[RunFolder, Sequence[Cell], Testbed], None]


class Shown(Protocol):
    """What shows how far a run is, for as long as it is entered."""

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...

    def announce(self, folder: RunFolder, cells: Sequence[Cell], jobs: int, testbed: Testbed) -> None:
        """Say what will run, before it does."""

    def listen(self, event: Event) -> None:
        """Take note of an event, from whichever thread."""

    def waiting(self) -> AbstractContextManager[object]:
        """Is entered while the end of the run waits for its last tables."""


def watched(
    console: Terminal,
    carry_out: Callable[..., tuple[RunFolder, Summary]],
    *,
    with_tables: bool = True,
    announced: Announcement = lambda *_: None,
) -> tuple[RunFolder, Summary]:
    """Run with a display on ``console``, as :func:`watched_by`."""
    return watched_by(Display(console), carry_out, with_tables=with_tables, announced=announced)


def watched_by(
    shown: Shown,
    carry_out: Callable[..., tuple[RunFolder, Summary]],
    *,
    with_tables: bool = True,
    announced: Announcement = lambda *_: None,
) -> tuple[RunFolder, Summary]:
    """Run with a display; the tables of finished cells are made at the same time.

    ``carry_out`` takes ``announce`` and ``listen``, as :func:`fabbbr.laboratory.carry_out` does;
    ``announced`` is called when it is known what will run.
    """
    # One of the two at a time draws on the terminal: the display ends first.
    with TablesBeside(shown.waiting) as beside, shown:

        def announce(folder: RunFolder, cells: Sequence[Cell], jobs: int, testbed: Testbed) -> None:
            shown.announce(folder, cells, jobs, testbed)
            announced(folder, cells, testbed)
            if with_tables:
                beside.start(folder, sum(not folder.has(cell.id) for cell in cells), testbed)

        def listen(event: Event) -> None:
            shown.listen(event)
            beside.listen(event)

        return carry_out(announce=announce, listen=listen)


class Pace:
    """How many cells are done, and how long the others should take at the pace so far."""

    def __init__(self, costs_s: Mapping[str, float]) -> None:
        """``costs_s``: cell → seconds that it was expected to take."""
        self._costs_s = costs_s
        self._whole_s = self._left_s = sum(costs_s.values())
        self._began = time.monotonic()
        self.total = len(costs_s)
        self.done = 0

    def finished(self, cell_id: str) -> None:
        """Count a cell."""
        self.done += 1
        self._left_s -= self._costs_s.get(cell_id, 0.0)

    @property
    def left_s(self) -> float:
        """Until all are done: as expected before the first is, then by what the others took."""
        if not self.done:
            return self._whole_s
        return self._left_s * (time.monotonic() - self._began) / max(self._whole_s - self._left_s, 1e-9)


class Display:
    """A line for the whole run and one per job; plain lines where there is no terminal."""

    def __init__(self, console: Terminal) -> None:
        self._console = console
        self._live = console.is_terminal
        self._lock = threading.Lock()
        self._started: dict[str, float] = {}
        self._pace = Pace({})
        self._bars: dict[str, TaskID] = {}
        self._ended: list[TaskID] = []
        """Bars of cells that are over: each is seen until another takes its place."""
        self._whole: TaskID | None = None
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            refresh_per_second=_REDRAWS_PER_S,
            transient=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._whole is not None:  # rich prints an empty line for what never began
            self._progress.stop()

    def waiting(self) -> AbstractContextManager[object]:
        return self._console.status("making the tables of the last cells")

    def announce(self, folder: RunFolder, cells: Sequence[Cell], jobs: int, testbed: Testbed) -> None:
        missing = [cell for cell in cells if not folder.has(cell.id)]
        costs = {cell.id: estimate([cell], testbed).wall_s for cell in missing}
        self._console.say(
            f"{folder.manifest.experiment.get('title', folder.manifest.source_name)}: "
            f"{len(missing)} of {len(cells)} cells to run, {jobs} at a time, about "
            f"{minutes(sum(costs.values()) / jobs)}"
        )
        self._pace = Pace(costs)
        if self._live and missing:
            self._progress.start()
            self._whole = self._progress.add_task("cells", total=len(missing), speed="", left="")

    def listen(self, event: Event) -> None:
        with self._lock:
            if event.kind == "started":
                self._start(event)
            elif event.kind == "progress":
                self._advance(event)
            else:
                self._finish(event)

    def _start(self, event: Event) -> None:
        self._started[event.cell.id] = time.monotonic()
        if not self._live:
            return
        total = end_of(event.cell.flows, event.cell.links).seconds
        if self._ended:
            self._progress.remove_task(self._ended.pop(0))
        self._bars[event.cell.id] = self._progress.add_task(
            event.cell.id, total=round(total), speed="booting", left=""
        )

    def _advance(self, event: Event) -> None:
        if event.cell.id in self._bars:
            spent = max(time.monotonic() - self._started[event.cell.id], 1e-3)
            self._progress.update(
                self._bars[event.cell.id],
                completed=round(event.clock_s),
                speed=f"{event.clock_s / spent:.1f}× the clock",
            )

    def _finish(self, event: Event) -> None:
        self._pace.finished(event.cell.id)
        if event.cell.id in self._bars:
            self._ended.append(self._bars.pop(event.cell.id))
        if self._whole is not None:
            left = f"{minutes(self._pace.left_s)} left"
            self._progress.update(self._whole, completed=self._pace.done, left=left)
        if event.kind != "certified":
            style = "red" if event.kind == "failed" else "yellow"
            self._console.say((event.kind, style), f" {event.cell.id}: {event.reason}")
        elif not self._live:
            done = f"[{self._pace.done}/{self._pace.total}]"
            self._console.say(f"{done} {event.cell.id}: {event.clock_s:.0f} s in {event.wall_s:.1f} s")


def minutes(seconds: float) -> str:
    """As people say it: ``40 s``, ``12 min``, ``1.6 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""``fabbbr run``: the plan, live progress, the report."""

from __future__ import annotations

import argparse
import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from fabbbr.backends.base import usable_cpus
from fabbbr.backends.guest.image.found import found_image, images_folder
from fabbbr.backends.guest.kernel.build import cannot_build, expected_minutes
from fabbbr.backends.registry import DEFAULT, clock_of
from fabbbr.commands.beside import TablesBeside
from fabbbr.commands.guest import build
from fabbbr.commands.plan import print_plan
from fabbbr.commands.question import attended, build_now, trust_of
from fabbbr.commands.results import opened
from fabbbr.commands.terminal import Terminal
from fabbbr.deciding import Look, until_decided
from fabbbr.errors import CellsFailedError, UsageError
from fabbbr.execute import Event, Summary
from fabbbr.laboratory import Request, carry_out, place, planned, selected
from fabbbr.model import Cell
from fabbbr.physics import end_of
from fabbbr.plan.estimate import estimate
from fabbbr.slice.opening import backend_of, lease_end_of, lease_warning
from fabbbr.store import RunFolder
from fabbbr.testbed import Testbed

if TYPE_CHECKING:
    from typing_extensions import Self

_REDRAWS_PER_S = 4


def main(arguments: argparse.Namespace) -> int:
    """Run, report, and say where."""
    request = request_of(arguments)
    if arguments.most is not None and not arguments.until_decided:
        message = "--most is the limit of --until-decided: give both, or --repeat"
        raise UsageError(message)
    if arguments.dry_run:
        cells = selected(request, planned(request).cells)
        return print_plan(cells, place(request), commands=True, as_json=arguments.json)
    if attended(arguments):
        _offer_image(request)
    console = Terminal(stderr=arguments.json)
    run = partial(_run, console, arguments)
    folder, summary = _decide(console, arguments, request, run) if arguments.until_decided else run(request)
    _print_outcome(console, summary)
    with contextlib.ExitStack() as opening:
        report = _report(console, folder, opening) if not arguments.no_report else None
        if arguments.json:
            print(json.dumps(_as_json(folder, summary, str(report) if report else None)))
    _raise_for(summary, folder)
    return 0


def _run(console: Terminal, arguments: argparse.Namespace, request: Request) -> tuple[RunFolder, Summary]:
    """Run what is missing, with progress."""
    making_tables = partial(console.status, "making the tables of the last cells")
    # One of the two at a time draws on the terminal: the display ends first.
    with TablesBeside(making_tables) as beside, _Display(console) as display:

        def announce(folder: RunFolder, cells: Sequence[Cell], jobs: int, testbed: Testbed) -> None:
            display.announce(folder, cells, jobs, testbed)
            _say_of_slice(console, request, folder, cells, testbed)
            if not arguments.no_report:
                beside.start(folder, sum(not folder.has(cell.id) for cell in cells), testbed)

        def listen(event: Event) -> None:
            display.listen(event)
            beside.listen(event)

        return carry_out(request, announce=announce, listen=listen)


def _decide(
    console: Terminal,
    arguments: argparse.Namespace,
    request: Request,
    run: Callable[[Request], tuple[RunFolder, Summary]],
) -> tuple[RunFolder, Summary]:
    """Run until the claims are decided, saying at every look how they stand."""
    summary = Summary()
    for look in until_decided(request, arguments.most, run=run):
        summary.add(look.summary)
        _say_look(console, look)
    return look.folder, summary


def _say_look(console: Terminal, look: Look) -> None:
    decided = len(look.verdicts) - len(look.undecided)
    console.say(
        (f"after {look.repetitions} repetitions", "bold"),
        f": {decided} of {len(look.verdicts)} claims decided",
    )
    for verdict in look.undecided:
        console.say(f"  {verdict.id}: ", (verdict.verdict, "yellow"), f", {verdict.reason}")
    if look.undecided and look.number == look.of:
        console.say("the limit of repetitions is reached; --most with another --out goes further")


def _say_of_slice(
    console: Terminal, request: Request, folder: RunFolder, cells: Sequence[Cell], testbed: Testbed
) -> None:
    """What of the experiment is left out there, and that the slice ends before the run does."""
    if request.slice is None:
        return
    left_out = len(selected(request, folder.manifest.cells)) - len(cells)
    if left_out:
        there = ", ".join(f"{link} {rtt_s * 1e3:.3g} ms" for link, rtt_s in testbed.network_rtt_s.items())
        console.say(
            f"{left_out} cells ask for round trips that the slice does not have ({there}) and are left out; "
            "--emulate rtt has netem add what is missing"
        )
    missing = [cell for cell in cells if not folder.has(cell.id)]
    ends = lease_end_of(request.slice)
    now = datetime.now(tz=timezone.utc)
    warning = lease_warning(request.slice, ends, now, estimate(missing, testbed).wall_s)
    if warning:
        console.say((warning, "yellow"))


def _offer_image(request: Request) -> None:
    """Build the guest image first, where it is missing, can be built, and is agreed to."""
    wanted = (
        request.slice is None
        and request.backend == DEFAULT
        and clock_of(request.backend, request.clock) == "virtual"
    )
    if not wanted or found_image() is not None or cannot_build() is not None:
        return
    planned(request)  # a mistake in the file is named before minutes of building
    cpus = len(usable_cpus())
    if build_now(expected_minutes(cpus), cpus, images_folder()):
        build(Terminal(), jobs=None)


def _report(console: Terminal, folder: RunFolder, opening: contextlib.ExitStack) -> Path | None:
    """Where it is; None where no cell is whole, and there is nothing to report on.

    ``opening`` says at its end what is damaged.
    """
    if not any(folder.has(cell.id) for cell in folder.manifest.cells):
        return None
    from fabbbr_analysis.report import write_report

    run_sets = opening.enter_context(opened([folder.path]))
    with console.status("making tables and report"):
        report = write_report(run_sets, folder.path)
    console.say("report: ", (str(report), "bold"))
    return report


def request_of(arguments: argparse.Namespace) -> Request:
    """The command line as a request: of ``fabbbr run``, or of ``fabbbr slice run``."""
    on = getattr(arguments, "name", None)
    return Request(
        experiment=arguments.experiment,
        backend=arguments.backend if on is None else backend_of(on),
        slice=on,
        emulate_rtt=getattr(arguments, "emulate", None) == "rtt",
        clock=arguments.clock,
        profile=arguments.profile,
        seed=arguments.seed,
        repeat=arguments.repeat,
        overrides=tuple(arguments.overrides),
        only=arguments.only,
        out=getattr(arguments, "out", None),
        jobs=getattr(arguments, "jobs", None),
        trust=trust_of(arguments),
    )


def _as_json(folder: RunFolder, summary: Summary, report: str | None) -> dict[str, object]:
    return {
        "run": str(folder.path),
        "report": report,
        "certified": sorted(summary.certified),
        "uncertified": summary.uncertified,
        "failed": summary.failed,
        "skipped": sorted(summary.skipped),
    }


def _print_outcome(console: Terminal, summary: Summary) -> None:
    pieces: list[str | tuple[str, str]] = [f"cells: {len(summary.certified)} certified"]
    for count, word, style in (
        (len(summary.uncertified), "not certified", "yellow"),
        (len(summary.failed), "failed", "red"),
        (len(summary.skipped), "there already", ""),
    ):
        if count:
            pieces += [f", {count} ", (word, style)]
    console.say(*pieces)


def _raise_for(summary: Summary, folder: RunFolder) -> None:
    if summary.failed:
        cell, reason = next(iter(summary.failed.items()))
        message = (
            f"{len(summary.failed)} cells failed, the first: {cell}: {reason}; "
            f"what they left is in {folder.path / 'failed'}, and the same command tries them again"
        )
        raise CellsFailedError(message)
    if summary.uncertified:
        cell, reason = next(iter(summary.uncertified.items()))
        message = (
            f"{len(summary.uncertified)} cells are not certified and left out of averages, the "
            f"first: {cell}: {reason}"
        )
        raise CellsFailedError(message)


class _Display:
    """A line for the whole run and one per job; plain lines where there is no terminal."""

    def __init__(self, console: Terminal) -> None:
        self._console = console
        self._live = console.is_terminal
        self._lock = threading.Lock()
        self._started: dict[str, float] = {}
        self._done = 0
        self._total = 0
        self._bars: dict[int, TaskID] = {}
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

    def announce(self, folder: RunFolder, cells: Sequence[Cell], jobs: int, testbed: Testbed) -> None:
        missing = [cell for cell in cells if not folder.has(cell.id)]
        self._total = len(missing)
        costs = {cell.id: estimate([cell], testbed).wall_s for cell in missing}
        self._console.say(
            f"{folder.manifest.experiment.get('title', folder.manifest.source_name)}: "
            f"{len(missing)} of {len(cells)} cells to run, {jobs} at a time, about "
            f"{_minutes(sum(costs.values()) / jobs)}"
        )
        self._costs, self._jobs = costs, jobs
        self._left = sum(costs.values())
        self._began = time.monotonic()
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
        if event.slot in self._bars:
            self._progress.remove_task(self._bars[event.slot])
        self._bars[event.slot] = self._progress.add_task(
            event.cell.id, total=round(total), speed="booting", left=""
        )

    def _advance(self, event: Event) -> None:
        if event.slot in self._bars:
            spent = max(time.monotonic() - self._started[event.cell.id], 1e-3)
            self._progress.update(
                self._bars[event.slot],
                completed=round(event.clock_s),
                speed=f"{event.clock_s / spent:.1f}× the clock",
            )

    def _finish(self, event: Event) -> None:
        self._done += 1
        self._left -= self._costs.get(event.cell.id, 0.0)
        if self._whole is not None:
            spent = time.monotonic() - self._began
            all_cost = sum(self._costs.values())
            pace = spent / max(all_cost - self._left, 1e-9)
            self._progress.update(
                self._whole, completed=self._done, left=f"{_minutes(self._left * pace)} left"
            )
        if event.kind != "certified":
            style = "red" if event.kind == "failed" else "yellow"
            self._console.say((event.kind, style), f" {event.cell.id}: {event.reason}")
        elif not self._live:
            done = f"[{self._done}/{self._total}]"
            self._console.say(f"{done} {event.cell.id}: {event.clock_s:.0f} s in {event.wall_s:.1f} s")


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

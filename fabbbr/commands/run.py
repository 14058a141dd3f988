"""``fabbbr run``: the plan, live progress, the report."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial

from fabbbr.backends.base import usable_cpus
from fabbbr.backends.guest.image.found import found_image, images_folder
from fabbbr.backends.guest.kernel.build import cannot_build, expected_minutes
from fabbbr.backends.registry import DEFAULT, clock_of
from fabbbr.commands.beside import TablesBeside
from fabbbr.commands.display import Display, as_json, print_outcome, raise_for
from fabbbr.commands.guest import build
from fabbbr.commands.plan import print_plan
from fabbbr.commands.question import attended, build_now, trust_of
from fabbbr.commands.repeat import against_a_guest, run_in_guest_too
from fabbbr.commands.results import report_on
from fabbbr.commands.terminal import Terminal
from fabbbr.execute import Event, Summary
from fabbbr.laboratory import Request, carry_out, place, planned, selected
from fabbbr.model import Cell
from fabbbr.plan.estimate import estimate
from fabbbr.slice.opening import backend_of, lease_end_of, lease_warning
from fabbbr.store import RunFolder
from fabbbr.testbed import Testbed


def main(arguments: argparse.Namespace) -> int:
    """Run, report, and say where."""
    request = request_of(arguments)
    if arguments.dry_run:
        cells = selected(request, planned(request).cells)
        return print_plan(cells, place(request), commands=True, as_json=arguments.json)
    if attended(arguments):
        _offer_image(request)
    console = Terminal(stderr=arguments.json)
    making_tables = partial(console.status, "making the tables of the last cells")
    # One of the two at a time draws on the terminal: the display ends first.
    with TablesBeside(making_tables) as beside, Display(console) as display:

        def announce(folder: RunFolder, cells: Sequence[Cell], jobs: int, testbed: Testbed) -> None:
            display.announce(folder, cells, jobs, testbed)
            _say_of_slice(console, request, folder, cells, testbed)
            if not arguments.no_report:
                beside.start(folder, sum(not folder.has(cell.id) for cell in cells), testbed)

        def listen(event: Event) -> None:
            display.listen(event)
            beside.listen(event)

        folder, summary = carry_out(request, announce=announce, listen=listen)
    print_outcome(console, summary)
    guest = _in_guest_too(console, request, folder, summary) if _compares(arguments) else None
    with contextlib.ExitStack() as opening:
        report = report_on(console, folder, opening) if not arguments.no_report else None
        if arguments.json:
            told = as_json(folder, summary, str(report) if report else None)
            told |= {} if guest is None else {"guest": as_json(*guest, None)}
            print(json.dumps(told))
    raise_for(summary, folder)
    if guest is not None:
        raise_for(guest[1], guest[0])
    return 0


def _compares(arguments: argparse.Namespace) -> bool:
    """Whether the cells are to be run in the guest too: those of a slice, unless told otherwise."""
    return bool(getattr(arguments, "compares", False))


def _in_guest_too(
    console: Terminal, request: Request, folder: RunFolder, summary: Summary
) -> tuple[RunFolder, Summary] | None:
    """The finished cells once more, where nothing is but the path; None where they are not run."""
    if request.backend == DEFAULT or summary.failed:
        return None
    against = against_a_guest()
    if against is not None:
        console.say(
            (against, "yellow"),
            f"; so the report does not say what the testbed adds. Later: fabbbr guest repeat {folder.path}",
        )
        return None
    console.say(
        "now the same cells in the guest, which shows what the testbed adds; --no-guest leaves that out"
    )
    return run_in_guest_too(console, folder)


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

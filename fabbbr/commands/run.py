"""``fabbbr run``: the plan, live progress, the report."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import partial

from fabbbr.backends.guest.image.found import found_image, images_folder
from fabbbr.backends.guest.kernel.build import cannot_build, compilers_at_once, expected_minutes
from fabbbr.backends.guest.kernel.own import lacking
from fabbbr.backends.registry import DEFAULT, clock_of
from fabbbr.commands.display import as_json, print_outcome, raise_for, watched
from fabbbr.commands.guest import build
from fabbbr.commands.kernel import build as build_kernel
from fabbbr.commands.plan import print_plan
from fabbbr.commands.question import attended, build_kernels_now, build_now, trust_of
from fabbbr.commands.repeat import against_a_guest, run_in_guest_too
from fabbbr.commands.results import report_on
from fabbbr.commands.terminal import Terminal
from fabbbr.counts import counted
from fabbbr.deciding import Look, until_decided
from fabbbr.errors import UsageError
from fabbbr.execute import Summary
from fabbbr.laboratory import Request, carry_out, place, planned, selected
from fabbbr.model import Cell
from fabbbr.plan.alike import alike_in_words
from fabbbr.plan.doubts import doubts_in_words
from fabbbr.plan.estimate import estimate
from fabbbr.slice.opening import backend_of, lease_end_of, lease_warning
from fabbbr.store import RunFolder
from fabbbr.testbed import Testbed


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
        offer_image(request)
        _offer_kernels(request)
    console = Terminal(stderr=arguments.json)
    run = partial(run_with_progress, console, with_tables=not arguments.no_report)
    folder, summary = _decide(console, arguments, request, run) if arguments.until_decided else run(request)
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


def run_with_progress(
    console: Terminal, request: Request, *, with_tables: bool = True
) -> tuple[RunFolder, Summary]:
    """Run what is missing; its tables are made at the same time."""
    say = partial(_say_before, console, request)
    return watched(console, partial(carry_out, request), with_tables=with_tables, announced=say)


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
        (f"after {counted(look.repetitions, 'repetition')}", "bold"),
        f": {decided} of {len(look.verdicts)} claims decided",
    )
    for verdict in look.undecided:
        console.say(f"  {verdict.id}: ", (verdict.verdict, "yellow"), f", {verdict.reason}")
    if look.undecided and look.number == look.of:
        console.say("the limit of repetitions is reached; --most with another --out goes further")


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


def _say_before(
    console: Terminal, request: Request, folder: RunFolder, cells: Sequence[Cell], testbed: Testbed
) -> None:
    """What is run under several names, what is in doubt, and what is left out on its slice."""
    for said in (alike_in_words(cells), *doubts_in_words(cells)):
        if said:
            console.say(said)
    _say_of_slice(console, request, folder, cells, testbed)


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
            f"left out: {counted(left_out, 'cell')} with round trips that the slice does not have ({there}); "
            "--emulate rtt has netem add what is missing"
        )
    missing = [cell for cell in cells if not folder.has(cell.id)]
    ends = lease_end_of(request.slice)
    now = datetime.now(tz=timezone.utc)
    warning = lease_warning(request.slice, ends, now, estimate(missing, testbed).wall_s)
    if warning:
        console.say((warning, "yellow"))


def offer_image(request: Request) -> None:
    """Build the guest image first, where it is missing, can be built, and is agreed to."""
    if not _boots_image(request) or found_image() is not None or cannot_build() is not None:
        return
    planned(request)  # a mistake in the file is named before minutes of building
    cpus = compilers_at_once()
    if build_now(expected_minutes(cpus), cpus, images_folder()):
        build(Terminal(), jobs=None)


def _offer_kernels(request: Request) -> None:
    """Build the kernels that cells name, too, where they are the distribution's."""
    image = found_image() if _boots_image(request) else None
    if image is None or cannot_build() is not None:
        return
    cells = selected(request, planned(request).cells)
    names = sorted({cell.kernel for cell in cells if cell.kernel is not None})
    wanted = [given for name in names if (given := lacking(name, image.kernel)) is not None]
    cpus = compilers_at_once()
    if wanted and build_kernels_now([given.called for given in wanted], expected_minutes(cpus), cpus):
        for given in wanted:
            build_kernel(Terminal(), given)


def _boots_image(request: Request) -> bool:
    return (
        request.slice is None
        and request.backend == DEFAULT
        and clock_of(request.backend, request.clock) == "virtual"
    )


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
        ccas=dict(arguments.ccas),
        tell=Terminal(stderr=True).say,
        only=arguments.only,
        out=getattr(arguments, "out", None),
        jobs=getattr(arguments, "jobs", None),
        trust=trust_of(arguments),
    )

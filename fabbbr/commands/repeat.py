"""``fabbbr guest repeat``: the cells of a run from elsewhere in the guest too, within its folder.

A guest has the path that was asked for and nothing else: what differs is what the other place adds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from functools import partial
from pathlib import Path

from fabbbr.backends.guest.image.found import found_image
from fabbbr.commands.display import as_json, print_outcome, raise_for, watched
from fabbbr.commands.results import report_on
from fabbbr.commands.terminal import Terminal
from fabbbr.execute import Summary
from fabbbr.laboratory import carry_out_in_guest
from fabbbr.store import RunFolder

_CPUS = Path("/proc/cpuinfo")


def main(arguments: argparse.Namespace) -> int:
    """Run what is missing, and report on the whole."""
    console = Terminal(stderr=arguments.json)
    folder = RunFolder.open(arguments.run)
    beside, summary = run_in_guest_too(console, folder, jobs=arguments.jobs)
    with contextlib.ExitStack() as opening:
        report = report_on(console, folder, opening) if not arguments.no_report else None
        if arguments.json:
            print(json.dumps(as_json(beside, summary, str(report) if report else None)))
    raise_for(summary, beside)
    return 0


def against_a_guest() -> str | None:
    """Why there can be no guest here; None when there can."""
    # Where we run in a guest ourselves, its clock would be that of the inner one too.
    if "User Mode Linux" in _CPUS.read_text(encoding="utf-8", errors="replace"):
        return "this is a guest already, and there is none within a guest"
    if found_image() is None:
        return "there is no guest image (fabbbr guest build, or pip install fabbbr-guest)"
    return None


def run_in_guest_too(
    console: Terminal, folder: RunFolder, *, jobs: int | None = None
) -> tuple[RunFolder, Summary]:
    """Run the finished cells of ``folder`` in the guest, as far as that was not done, with a display."""
    beside, summary = watched(console, partial(carry_out_in_guest, folder, jobs=jobs))
    print_outcome(console, summary)
    return beside, summary

"""Whether a change of the code changed what runs, or what came of it.

    python -m benchmarks.sameness jobs
    python -m benchmarks.sameness runs BEFORE AFTER

``jobs`` prints one digest over the jobs of all conditions of all bundled experiments in all profiles, as a
guest with iperf3 3.12 gets them: print it with the code before and after. ``runs`` compares two run folders,
made by either code: the raw files of each cell, and every column of every table.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from fabbbr import bundled
from fabbbr.job.build import prepare
from fabbbr.model import Cell
from fabbbr.plan.opening import open_plan
from fabbbr.spec.experiment import Profile
from fabbbr.store import RunFolder
from fabbbr.testbed import VIRTUAL_TIME, Kernel, Machine, Testbed
from fabbbr_analysis.runset import RunSet

_PLACE = Testbed(
    backend="guest",
    clock="virtual",
    tolerances=VIRTUAL_TIME,
    machines={
        "here": Machine(
            kernel=Kernel(release="0", timer_hz=1000), tools={"iperf3": "iperf 3.12 (cJSON 1.7.15)"}
        )
    },
)
_TABLES = ("cells", "flows", "intervals", "runs", "sockets", "queues")


def _conditions() -> Iterator[Cell]:
    for name in sorted(bundled.names("experiments")):
        for profile in get_args(Profile):
            plan = open_plan(name, seed=1, profile=profile)
            yield from (cell for cell in plan.cells if cell.repetition == 1)


def jobs() -> int:
    """Print how many conditions there are, and the digest of their jobs."""
    digest, count = hashlib.sha256(), 0
    for cell in _conditions():
        digest.update(prepare(cell, _PLACE).job.model_dump_json().encode())
        count += 1
    print(f"{count} conditions, jobs {digest.hexdigest()}")
    return 0


def runs(before: Path, after: Path) -> int:
    """Print what two runs have in common; 1 when something differs."""
    first, second = (
        {cell.id: (cell.manifest.files, cell.manifest.status) for cell in RunFolder.open(path).cells()}
        for path in (before, after)
    )
    same = [cell_id for cell_id in first if first[cell_id] == second.get(cell_id)]
    print(f"{len(same)} of {len(first.keys() | second.keys())} cells with the same raw files and status")
    different = [name for name in _TABLES if not _same_table(RunSet.open(before), RunSet.open(after), name)]
    print(f"tables that differ: {', '.join(different) or 'none'}")
    return 0 if len(same) == len(first.keys() | second.keys()) and not different else 1


def _same_table(before: RunSet, after: RunSet, name: str) -> bool:
    first, second = (getattr(each, name) for each in (before, after))
    if callable(first):
        first, second = first(), second()
    return bool(first.equals(second))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_subparsers(dest="what", required=True)
    what.add_parser("jobs")
    two = what.add_parser("runs")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    arguments = parser.parse_args()
    return jobs() if arguments.what == "jobs" else runs(arguments.before, arguments.after)


if __name__ == "__main__":
    sys.exit(main())

"""Makes the parts of cells as they finish: the run folder as argument, ids on standard input.

A process of its own, which gives way to every other, so that what measures never waits for what analyses.
What it cannot make is left to whoever opens the run, and is named there.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from fabbbr.errors import FabbbrError
from fabbbr.store import RunFolder
from fabbbr_analysis.tables.build import make_part

_GIVES_WAY = 19


def follow(run: Path, finished: Iterable[str]) -> None:
    """Make the part of each cell that ``finished`` names, a line each, until there are no more."""
    folder = RunFolder.open(run)
    for line in finished:
        with contextlib.suppress(FabbbrError):
            make_part(folder, line.rstrip("\n"))


def main() -> None:
    """Be the process."""
    os.nice(_GIVES_WAY)
    follow(Path(sys.argv[1]), sys.stdin)

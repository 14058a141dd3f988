"""What cells in a guest were expected to take, and what they took.

Usage: python -m benchmarks.estimates RUN…

One row per run folder: its cells, their wall seconds one after the other, and the estimate over these. The
constants of ``fabbbr.testbed.ONE_CORE`` were chosen over the folders of a scoreboard.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fabbbr.backends.registry import DEFAULT, described
from fabbbr.plan.estimate import estimate
from fabbbr.store import RunFolder


def measured(folder: Path) -> tuple[int, float, float]:
    """Number of cells, what they took, and what they should have taken [s]."""
    cells = [stored.manifest for stored in RunFolder.open(folder).cells()]
    expected = estimate((cell.cell for cell in cells), described(DEFAULT, None))
    return len(cells), sum(cell.wall_s for cell in cells), expected.computing_s


def main() -> None:
    """A row each, and all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    found = {folder.name: measured(folder) for folder in parser.parse_args().runs}
    for name, (count, took_s, expected_s) in found.items():
        print(f"{name:32} {count:5} cells {took_s:8.1f} s  estimated {expected_s / took_s:5.2f} of it")
    took_s, expected_s = (sum(each[part] for each in found.values()) for part in (1, 2))
    print(f"all {took_s:.0f} s, estimated {expected_s / took_s:.2f} of it")


if __name__ == "__main__":
    main()

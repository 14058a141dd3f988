"""What a cell costs fabbbr claims and report, in CPU seconds and in memory. Prints a Markdown table.

Usage: python benchmarks/cells.py [fewer cells, default 200] [more cells, default 1000]

Made-up run folders of both sizes (tests/many_cells.py: a minute of one flow, sampled every 0.3 s), each
command a process of its own: claims while tables are made of all cells, claims when they are there, report.
What a further cell costs is the difference between the two sizes over that of their numbers: start-up is not
in it. A cell costs the same however many there are where the sizes give the same as others do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).parent.parent
sys.path[:0] = [str(HOME), str(HOME / "analysis"), str(HOME / "tests")]

import many_cells  # type: ignore[import-not-found]  # of the tests

_COMMAND = "import sys; from fabbbr.cli import main; sys.exit(main())"
STEPS = {
    "claims, tables made": ("claims", "{run}"),
    "claims, tables there": ("claims", "{run}"),
    "report": ("report", "{run}", "--to", "{run}/out"),
}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of one process."""

    cpu_s: float
    peak_mb: float


def cost_of(*argv: str) -> Cost:
    """Run fabbbr; raise CalledProcessError when it fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(HOME), str(HOME / "analysis")))}
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *argv], stdout=subprocess.DEVNULL, env=environment
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return Cost(cpu_s=usage.ru_utime + usage.ru_stime, peak_mb=usage.ru_maxrss / 1024)


def main() -> int:
    sizes = [int(text) for text in sys.argv[1:3]] or [200, 1000]
    fewer, more = sizes
    with tempfile.TemporaryDirectory(prefix="fabbbr-cells-") as place:
        runs = {size: many_cells.make(Path(place) / str(size), size).path for size in sizes}
        print(
            f"| | {' | '.join(f'{size} cells: CPU s | peak MB' for size in sizes)} "
            "| CPU ms per further cell | peak kB per further cell |"
        )
        print(f"|---|{'---:|' * 6}")
        for name, argv in STEPS.items():
            costs = {size: cost_of(*(part.format(run=run) for part in argv)) for size, run in runs.items()}
            cpu_ms = 1e3 * (costs[more].cpu_s - costs[fewer].cpu_s) / (more - fewer)
            peak_kb = 1e3 * (costs[more].peak_mb - costs[fewer].peak_mb) / (more - fewer)
            said = " | ".join(f"{costs[size].cpu_s:.1f} | {costs[size].peak_mb:.0f}" for size in sizes)
            print(f"| {name} | {said} | {cpu_ms:.1f} | {peak_kb:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

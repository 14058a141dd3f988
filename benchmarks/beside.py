"""What a run costs that is started beside others: how long it takes, over how long it takes alone.

    python -m benchmarks.beside [--repeat 3] [--markdown]

Each run has one cell at a time. On a machine with a CPU for each it should take as long as alone: beside
another run that is started with it, and beside a process that is pinned to one CPU, each CPU in turn.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from subprocess import DEVNULL

from benchmarks.table import Table

_TEXT = """\
id: beside
title: One flow
slice: two_site
repeat: 5
path: {rate: 200 Mbit/s, rtt: 40 ms, buffer: 1 BDP}
flows: [{cca: bbr1, duration: 60 s}]
"""
_RUN = (sys.executable, "-m", "fabbbr.cli", "run", "--jobs", "1", "--no-report", "--json")
_SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


def seconds(runs: int, place: Path) -> list[float]:
    """How long each of so many runs took that are started at once."""
    file = place / "beside.yaml"
    file.write_text(_TEXT, encoding="utf-8")
    began = time.monotonic()
    folders = [tempfile.mkdtemp(dir=place) for _ in range(runs)]
    words = [(*_RUN, str(file), "--out", f"{folder}/run") for folder in folders]
    processes = [subprocess.Popen(one, stdout=DEVNULL, stderr=DEVNULL) for one in words]
    took: dict[int, float] = {}
    while len(took) < runs:
        for number, process in enumerate(processes):
            if number not in took and process.poll() is not None:
                if process.returncode != 0:
                    sys.exit(f"a run ended with {process.returncode}")
                took[number] = time.monotonic() - began
        time.sleep(0.02)
    return list(took.values())


@contextmanager
def spinning(cpu: int) -> Iterator[None]:
    """A process has this CPU, or half of it, and cannot go elsewhere."""
    with subprocess.Popen((sys.executable, "-c", _SPIN, str(cpu))) as process:
        try:
            yield
        finally:
            process.kill()


def measured(repeat: int) -> Table:
    """One row per company."""
    alone: list[float] = []
    together: list[float] = []
    pinned: list[float] = []
    with tempfile.TemporaryDirectory(prefix="fabbbr-benchmark-") as place:
        for _ in range(repeat):
            alone += seconds(1, Path(place))
            together += seconds(2, Path(place))
            for cpu in sorted(os.sched_getaffinity(0)):
                with spinning(cpu):
                    pinned += seconds(1, Path(place))
    table = Table(title="A run beside others", head=("beside it", "wall s", "of alone"))
    rows = {"nothing": alone, "another run": together, "a process pinned to one CPU": pinned}
    for name, all_s in rows.items():
        took = f"{median(all_s):.2f} ({min(all_s):.2f}–{max(all_s):.2f})"
        table.add(name, took, f"{median(all_s) / median(alone):.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    asked = parser.parse_args()
    table = measured(asked.repeat)
    print(table.markdown() if asked.markdown else table.plain())


if __name__ == "__main__":
    main()

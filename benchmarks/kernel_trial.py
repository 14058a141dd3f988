"""What a kernel of one's own takes: certified cells, and whether the same seed gives the same bytes under it.

Usage: python -m benchmarks.kernel_trial KERNEL…

KERNEL is a name of ``fabbbr kernel list``. Under each run the experiments of ``kernel_cells``; that of the
congestion controls once more, and once with another seed. One line for each kernel.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from fabbbr.store import RunFolder

CELLS = Path(__file__).with_name("kernel_cells")


def ran(file: Path, kernel: str, out: Path, seed: int = 1) -> RunFolder:
    """The experiment under this kernel."""
    options = ("--set", f"kernel={kernel}", "--seed", str(seed), "--out", str(out), "--no-report")
    argv = (sys.executable, "-m", "fabbbr.cli", "run", str(file), *options)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return RunFolder.open(out)


def digests(folder: RunFolder) -> dict[str, dict[str, str]]:
    """Cell → raw file → digest."""
    return {cell.id: dict(cell.manifest.files) for cell in folder.cells()}


def tried(kernel: str, work: Path) -> str:
    """What came of it, as a line."""
    runs = {file.stem: ran(file, kernel, work / file.stem) for file in sorted(CELLS.glob("*.yaml"))}
    statuses = [cell.manifest.status for folder in runs.values() for cell in folder.cells()]
    first = digests(runs["ccas"])
    again = digests(ran(CELLS / "ccas.yaml", kernel, work / "again"))
    other = digests(ran(CELLS / "ccas.yaml", kernel, work / "other", seed=2))
    same = "the same bytes" if again == first else "OTHER BYTES"
    differs = "others" if all(other[cell] != first[cell] for cell in first) else "THE SAME"
    return (
        f"{kernel}: {statuses.count('certified')} of {len(statuses)} cells certified; one seed gives {same} "
        f"twice, another seed {differs}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel", nargs="+")
    for kernel in parser.parse_args().kernel:
        with tempfile.TemporaryDirectory(prefix="fabbbr-kernel-trial-") as work:
            print(tried(kernel, Path(work)), flush=True)


if __name__ == "__main__":
    main()

"""What guests take of the machine's memory, beside what is set aside for one before it starts.

    python -m benchmarks.guest_memory [--markdown]

By what is set aside a run decides how many guests run at once where memory is scarce. All memory of a guest
is one nameless file, which is looked at ten times a second; what its processes have besides is little.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import Self

from benchmarks.table import Table
from fabbbr.backends.guest.size import taken_bytes
from fabbbr.laboratory import Request, carry_out, planned

_LOOK_S = 0.1
_BLOCK_BYTES = 512  # of st_blocks, stat(2)
_KERNEL = "linux"
_CELLS = {
    "one flow": ("rate: 100 Mbit/s, rtt: 50 ms", "cca: cubic, duration: 10 s"),
    "a long path": ("rate: 1 Gbit/s, rtt: 100 ms", "cca: bbr1, duration: 10 s"),
    "a deep queue": ("rate: 200 Mbit/s, rtt: 200 ms, buffer: 64 BDP", "cca: reno, count: 2, duration: 40 s"),
    "40 flows": ("rate: 100 Mbit/s, rtt: 50 ms", "cca: bbr1, count: 40, duration: 10 s"),
    "100 flows for a minute": ("rate: 100 Mbit/s, rtt: 20 ms", "cca: cubic, count: 100, duration: 60 s"),
    "3000 flows at random": (
        "rate: 100 Mbit/s, rtt: 40 ms",
        "arrivals: {rate: 150 /s, size: 30 kB}, cca: cubic, duration: 20 s",
    ),
    "captures": ("rate: 200 Mbit/s, rtt: 20 ms", "cca: cubic, duration: 10 s", "capture: [trunk]"),
}
_TEXT = "id: memory\ntitle: Memory\nslice: two_site\nrepeat: 1\npath: {{{}}}\nflows: [{{{}}}]\n{}"


class Watch:
    """Looks at this process's guests from when it is entered until it is left."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            guests = _guests(Path("/proc/self"))
            self.peak_bytes = max(self.peak_bytes, max(map(_memory_bytes, guests), default=0))


def _guests(process: Path) -> Iterator[Path]:
    """The processes of guests below a process."""
    with contextlib.suppress(OSError):
        for listed in process.glob("task/*/children"):
            for pid in listed.read_text(encoding="ascii").split():
                child = Path("/proc", pid)
                if (child / "exe").readlink().name == _KERNEL:
                    yield child
                yield from _guests(child)


def _memory_bytes(process: Path) -> int:
    """Of the nameless file that it has open: what of it was written."""
    with contextlib.suppress(OSError):  # it ended
        opened = [file.stat() for file in (process / "fd").iterdir()]
        return max((one.st_blocks * _BLOCK_BYTES for one in opened if one.st_nlink == 0), default=0)
    return 0


def taken(text: str, place: Path) -> tuple[int, float]:
    """By the guest of the one cell of an experiment, and what is set aside for it."""
    file = place / "memory.yaml"
    file.write_text(text, encoding="utf-8")
    request = Request(experiment=str(file), out=place / "run", jobs=1)
    (cell,) = planned(request).cells
    with Watch() as watch:
        _, summary = carry_out(request, announce=lambda *_: None, listen=lambda _: None)
    if summary.failed:
        sys.exit(f"a cell failed: {summary.failed}")
    return watch.peak_bytes, taken_bytes(cell)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    table = Table(title="Memory of a guest", head=("cell", "takes MB", "set aside MB"))
    for name, (path, flows, *more) in _CELLS.items():
        with tempfile.TemporaryDirectory(prefix="fabbbr-memory-") as place:
            peak, aside = taken(_TEXT.format(path, flows, "".join(more)), Path(place))
        table.add(name, f"{peak / 1e6:.0f}", f"{aside / 1e6:.0f}")
    print(table.markdown() if arguments.markdown else table.plain())
    return 0


if __name__ == "__main__":
    sys.exit(main())

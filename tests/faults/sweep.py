"""Lets every system call and large allocation of ``fabbbr run`` fail in turn: docs/failures.md must hold.

A run of two cells is repeated in forked processes: first to count its calls of each kind, then once for each
of them with that call failing. The runner is the real one, with its keeper, folders and processes; only the
guest's kernel is a script that leaves the raw files of a recorded cell. What must hold after each fault: no
traceback and no death by a signal, a documented exit status, one message that says what to do, only whole
cells, nothing left running or lying about; and the same command then completes with the same raw files.

    cd tests && python -m faults.sweep [--at-most N] [--kind KIND]
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import hashlib
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = "FABBBR_FAULTS"
LIMIT_S = 30.0
FAULTS = {
    "open": errno.EMFILE, "read": errno.EIO, "write": errno.ENOSPC, "fsync": errno.EIO, "rename": errno.EIO,
    "mkdir": errno.ENOSPC, "unlink": errno.EIO, "symlink": errno.ENOSPC, "chmod": errno.EPERM,
    "pipe": errno.EMFILE,
    "fork": errno.EAGAIN, "thread": errno.EAGAIN, "lock": errno.ENOLCK, "opendir": errno.EMFILE,
    "copy": errno.ENOSPC,
    "mmap": errno.ENOMEM, "malloc": errno.ENOMEM,
}  # fmt: skip
"""Kind of call, in the order of faults.c, and how it fails."""
KINDS = tuple(FAULTS)
_SAYS_WHAT_TO_DO = re.compile(
    r"^fabbbr: .*(; |, or |: )(\w+ )*(free|choose|raise|set|run|see|name|correct|build|install|tries|end)\b",
    re.MULTILINE,
)
_READ_FIRST = re.compile(r"faults/experiment\.yaml|slices")
STATUSES = {0, 3, 5, 6, 7, 10}
"""Of a run from which something was withheld: an experiment or slice that cannot be read, a machine that
lacks something, a tool that broke, a folder that cannot be written."""


KNOWN = {
    "aborted in Rust": re.compile(r"memory allocation of \d+ bytes failed"),
    "hung in CPython": re.compile("Exception ignored in thread started by.*MemoryError", re.DOTALL),
}
"""Where memory ends inside libraries: pydantic-core aborts, and Thread.start waits for ever for a thread that
could not begin. What it was in the middle of must be whole all the same, and the same command complete it."""


class Tally(ctypes.Structure):
    """As in faults.c."""

    _fields_ = (
        ("calls", ctypes.c_long * len(KINDS)),
        ("fired", ctypes.c_long),
        ("where", ctypes.c_char * 256),
    )


@dataclass
class Point:
    """What came of one fault."""

    kind: str
    call: int
    where: str
    status: int | None
    said: str
    wrong: list[str] = field(default_factory=list)

    @property
    def known(self) -> str | None:
        """The end that a library made of it, before we could say anything."""
        return next((what for what, words in KNOWN.items() if words.search(self.said)), None)


class Sweep:
    """A folder to sweep in, and how to run there."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.words = words
        self._memory = mmap.mmap(-1, ctypes.sizeof(Tally))
        self._tally = Tally.from_buffer(self._memory)
        self._library = ctypes.CDLL(os.environ[LIBRARY])
        _prepare(folder)
        status, said = self._run(None, 0)
        assert status == 0, said
        self.counts = dict(zip(KINDS, self._tally.calls, strict=True))
        self.whole = _raw_digest(self.out)
        assert self.whole

    @property
    def out(self) -> Path:
        return self.folder / "run"

    @property
    def temp(self) -> Path:
        return self.folder / "temp"

    def point(self, kind: str, call: int) -> Point | None:
        """Let one call fail; None when the run ended before it came to that call."""
        shutil.rmtree(self.out, ignore_errors=True)
        status, said = self._run(kind, call)
        if not self._tally.fired:
            return None
        where = self._tally.where.decode(errors="replace").replace(str(self.folder), "")
        point = Point(kind, call, where, status, said)
        point.wrong += self._broken_promises(point)
        again, complaint = self._run(None, 0)
        if again != 0 or _raw_digest(self.out) != self.whole:
            point.wrong.append(f"the same command did not complete it ({again}): {complaint.strip()[-300:]}")
        return point

    def _broken_promises(self, point: Point) -> Iterator[str]:
        if point.known is None:
            yield from self._badly_ended(point)
        yield from _half_written(self.out)
        left = [path.name for path in self.temp.iterdir()]
        if left and not _swept_later(point):
            yield f"left in the folder for temporary files: {left}"
        if _running(self.folder):
            yield "something still runs"

    def _badly_ended(self, point: Point) -> Iterator[str]:
        if point.status is None:
            yield "it hung"
        elif point.status not in STATUSES or (point.status == 3 and not _READ_FIRST.search(point.where)):
            yield f"exit status {point.status}"
        if "Traceback" in point.said or "Exception ignored" in point.said:
            yield "a traceback"
        if point.status and point.where != "stderr" and not _SAYS_WHAT_TO_DO.search(point.said):
            yield "no message that says what to do"

    def _run(self, kind: str | None, call: int) -> tuple[int | None, str]:
        """Exit status (None: it hung) and what it said, in a process of its own."""
        ctypes.memset(ctypes.addressof(self._tally), 0, ctypes.sizeof(Tally))
        said = self.folder / "said"
        pid = os.fork()
        if pid == 0:
            self._in_child(said, kind, call)
        return _status(pid), said.read_text(encoding="utf-8", errors="replace")

    def _in_child(self, said: Path, kind: str | None, call: int) -> None:
        status = 70
        try:
            os.setsid()
            output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            from fabbbr.cli import main

            number = -1 if kind is None else KINDS.index(kind)
            error = 0 if kind is None else FAULTS[kind]
            self._library.faults_arm(ctypes.byref(self._tally), number, ctypes.c_long(call), error)
            status = main([
                "run", str(HERE / "experiment.yaml"), "--out", str(self.out), "--jobs", "1", *self.words
            ])  # fmt: skip
            self._library.faults_arm(None, -1, 0, 0)
        except BaseException:  # noqa: BLE001 - it would be a traceback on the user's terminal
            self._library.faults_arm(None, -1, 0, 0)
            import traceback

            traceback.print_exc()
            status = 1
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(status)


def _prepare(folder: Path) -> None:
    """A cache with an image whose kernel is the stand-in, and an environment to find it."""
    from fabbbr.backends.guest.image.found import image_recipe, image_sha256

    image = folder / "cache/fabbbr/images/stand-in"
    for made in (image, folder / "temp"):
        made.mkdir(parents=True)
    shutil.copy(HERE / "kernel.sh", image / "linux")
    (image / "root.cpio").write_bytes(b"")
    kernel_sha256, root_sha256 = (
        hashlib.sha256((image / name).read_bytes()).hexdigest() for name in ("linux", "root.cpio")
    )
    kernel = {
        "folder": "", "release": "0", "package": "none", "package_version": "0", "recipe": "none",
        "config_sha256": "0", "kernel_sha256": kernel_sha256, "seccomp": True, "clock_address": None,
        "build_s": 0.0,
    }  # fmt: skip
    described = {
        "sha256": image_sha256(kernel_sha256, root_sha256), "recipe": image_recipe(), "kernel": kernel,
        "root_sha256": root_sha256, "tools": {"iperf3": "iperf 3.22"}, "packages": {}, "sources": [],
        "compiler": "none",
    }  # fmt: skip
    (image / "image.json").write_text(json.dumps(described), encoding="utf-8")
    os.environ |= {
        "PATH": "/usr/bin:/bin", "TMPDIR": str(folder / "temp"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "GOLDEN": str(HERE.parent / "golden" / "cell"),
    }  # fmt: skip
    tempfile.tempdir = str(folder / "temp")
    subprocess._USE_VFORK = False  # type: ignore[attr-defined]


def _status(pid: int) -> int | None:
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _raw_digest(out: Path) -> str:
    """Of all raw files of all cells, with their names; empty when there is none."""
    digest, count = hashlib.sha256(), 0
    for path in sorted((out / "cells").glob("*/raw/*")):
        digest.update(f"{path.relative_to(out)}\0".encode() + path.read_bytes())
        count += 1
    return digest.hexdigest() if count else ""


def _half_written(out: Path) -> Iterator[str]:
    """What is in the run folder and is not whole."""
    from fabbbr.errors import FabbbrError
    from fabbbr.store import RunFolder

    if not (out / "run.json").exists():
        return
    try:
        for stored in RunFolder.open(out).cells():
            yield from stored.damage()
    except FabbbrError as error:
        yield str(error)
    finished = {path.parent.name for path in out.glob("cells/*/manifest.json")}
    half = {path.name for path in out.glob("cells/*")} - finished
    if half:
        yield f"half a cell: {sorted(half)}"


def _swept_later(point: Point) -> bool:
    """A folder that could not be removed, or whose runner a library ended, is swept by the next run."""
    return point.known is not None or point.kind in ("unlink", "opendir", "open", "malloc")


def _running(folder: Path) -> list[int]:
    """Processes whose words name ``folder``, but for this one; a moment is given to those that are ending."""
    for _ in range(200):
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and int(entry.name) != os.getpid():
                    # Its words name the folder, or its environment does, where temporary files go there.
                    told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                    if str(folder).encode() in told:
                        found.append(int(entry.name))
        if not found:
            return []
        time.sleep(0.01)
    return found


def points(sweep: Sweep, kind: str, at_most: int | None, tell: Callable[[Point], None]) -> list[Point]:
    """All faults of this kind, or ``at_most`` of them, evenly spread over its calls."""
    found = []
    calls = range(1, sweep.counts[kind] + 1)
    step = 1 if at_most is None else max(len(calls) / at_most, 1)
    for number in range(int(len(calls) / step)):
        point = sweep.point(kind, calls[int(number * step)])
        if point is not None:
            found.append(point)
            tell(point)
    return found


HEADER = "| kind | calls | failed in turn | exit statuses | broken promises |\n|---|---|---|---|---|"


def row(kind: str, calls: int, found: Sequence[Point]) -> str:
    """Of the table: how many calls of this kind there are, how many were let fail, and what came of it."""
    statuses = Counter(point.known or str(point.status) for point in found)
    told = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    broken = sum(bool(point.wrong) for point in found)
    return f"| {kind} ({errno.errorcode[FAULTS[kind]]}) | {calls} | {len(found)} | {told} | {broken} |"


def compiled(folder: Path) -> Path:
    """The library that makes calls fail."""
    library = folder / "faults.so"
    argv = ("gcc", "-O2", "-shared", "-fPIC", "-Wall", "-o", str(library), str(HERE / "faults.c"), "-ldl")
    subprocess.run(argv, check=True)
    return library


def main() -> int:
    """Sweep, print the table, and each broken promise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--at-most", type=int, metavar="N", help="only so many calls of each kind")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind; may be given again")
    parser.add_argument("--verbose", action="store_true", help="a line for every fault")
    parser.add_argument("--report", action="store_true", help="make the report too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        if LIBRARY not in os.environ:
            library = compiled(Path(folder))
            environment = os.environ | {
                LIBRARY: str(library), "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1",
            }  # fmt: skip
            words = (sys.executable, "-m", "faults.sweep", *sys.argv[1:])
            return subprocess.run(words, env=environment, check=False).returncode
        os.environ.pop("LD_PRELOAD")
        _import_all(report=options.report)
        sweep = Sweep(Path(folder) / "place", *([] if options.report else ["--no-report"]))
        print(HEADER, flush=True)
        broken = False
        for kind in options.kind or KINDS:
            found = points(sweep, kind, options.at_most, _tell)
            broken = broken or any(point.wrong for point in found)
            print(row(kind, sweep.counts[kind], found), flush=True)
    return 1 if broken else 0


def _import_all(*, report: bool) -> None:
    """What a run imports as it goes: the calls of the interpreter's own start are not ours."""
    import scipy.stats  # noqa: F401

    import fabbbr.backends.guest
    import fabbbr.commands.run  # noqa: F401

    if report:
        import fabbbr_analysis.report  # noqa: F401


def _tell(point: Point) -> None:
    if "--verbose" in sys.argv:
        print(point.kind, point.call, point.where, point.status, repr(point.said.strip()[-160:]), flush=True)
    for wrong in point.wrong:
        print(
            f"{point.kind} {point.call} ({point.where}): {wrong}\n    {point.said.strip()[-700:]!r}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())

"""What an ACK costs in the forms of our BBR, beside the kernel's own bbr: nanoseconds of CPU time.

    python benchmarks/bbr_overhead.py                the whole table, about a minute and a half
    python benchmarks/bbr_overhead.py --markdown

The BPF column is the kernel's own account (``kernel.bpf_stats_enabled``: time in the program over its
runs) of a flow through veth pairs and a TBF of 1 Gbit/s. The kernel's bbr is called from a BPF program
that does nothing else, so that it is measured in the same way; what measuring and calling cost alone
is the row "nothing". The column of the guest kernel is a sampled profile (``perf``) of a flow of
1 Gbit/s: CPU time in the algorithm's functions, over the receiver's ACKs. The column of user space is
the least time of several passes over one trace, without any kernel. Needs root, clang, gcc and
bpftool; makes and removes everything it needs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.guest_profile import nanoseconds_per_ack
from benchmarks.host_path import run_host
from benchmarks.load import Load
from benchmarks.table import Table
from fabbbr.errors import EnvironmentUnfitError, FabbbrError
from fabbbr.units import Duration, Rate

HOME = Path(__file__).parent.parent
FILES = HOME / "playbooks" / "roles" / "bbr" / "files"
SOURCES = Path(__file__).with_name("overhead")
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
OWN_MOUNTS = "FABBBR_OVERHEAD_HAS_OWN_MOUNTS"
WINDOW_PACKETS = 1000
"""Of the trace in user space: 1.2 ms at 10 Gbit/s."""
LOAD = Load(rate=Rate.parse("1 Gbit/s"), rtt=Duration.parse("20 ms"), seconds=3)
FLOWS = 3


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A congestion control, and how each place knows it."""

    title: str
    kernel_name: str
    program: str
    """The BPF program that is its cong_control."""
    profile: str | None = None
    number: int | None = None
    """Its ``enum fab_profile_id``; None: it is not ours."""
    guest: str | None = None
    """Its name in an experiment; None: it has none."""


SUBJECTS = (
    Subject(
        title="bbr2, v2alpha",
        kernel_name="fab_bbr2",
        program="fab_cong_control",
        profile="v2alpha",
        number=0,
        guest="bbr2",
    ),
    Subject(
        title="bbr2, draft01", kernel_name="fab_bbr2", program="fab_cong_control", profile="draft01", number=1
    ),
    Subject(title="bbr3", kernel_name="fab_bbr3", program="fab_cong_control", number=2, guest="bbr3"),
    Subject(title="the kernel's own bbr", kernel_name="yardstick_stock", program="stock_main", guest="bbr1"),
    Subject(title="nothing", kernel_name="yardstick_none", program="nothing_main"),
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A column: where an algorithm runs, and how its cost is found there. None: it does not run there."""

    title: str
    nanoseconds_per_ack: Callable[[Subject, Path], float | None]


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", action="store_true", help="a table for a document")
    asked = parser.parse_args(argv)
    try:
        _check_machine()
        _take_own_mounts()
        table = measure()
    except FabbbrError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    print(table.markdown() if asked.markdown else table.plain())
    return 0


def measure() -> Table:
    """Every subject in every place."""
    table = Table(title="CPU time of an ACK in ns", head=("", *(place.title for place in PLACES)))
    with tempfile.TemporaryDirectory() as folder:
        _compile(Path(folder))
        for subject in SUBJECTS:
            figures = (place.nanoseconds_per_ack(subject, Path(folder)) for place in PLACES)
            table.add(subject.title, *("–" if figure is None else f"{figure:.0f}" for figure in figures))
    return table


def in_bpf(subject: Subject, folder: Path) -> float | None:
    """Mean over the ACKs of a flow; the least of several flows, as what else the machine does only adds."""
    return min(_mean_over_flow(subject, folder) for _ in range(FLOWS))


def _mean_over_flow(subject: Subject, folder: Path) -> float:
    with _registered(subject, folder), _statistics():
        run_host(replace(LOAD, cca=subject.kernel_name))
        programs = json.loads(_do("bpftool", "--json", "prog", "show"))
    program = next(entry for entry in programs if entry.get("name") == subject.program)
    return float(program["run_time_ns"]) / float(program["run_cnt"])


def in_user_space(subject: Subject, folder: Path) -> float | None:
    """Least of several passes."""
    if subject.number is None:
        return None
    return float(_do(str(folder / "core_loop"), str(subject.number), str(WINDOW_PACKETS)))


def in_guest(subject: Subject, _: Path) -> float | None:
    """Mean over the ACKs of a flow in the guest, where ours is the module built in."""
    return nanoseconds_per_ack(subject.guest) if subject.guest else None


PLACES = (
    Place(title="in the guest kernel", nanoseconds_per_ack=in_guest),
    Place(title="as BPF", nanoseconds_per_ack=in_bpf),
    Place(title="in user space", nanoseconds_per_ack=in_user_space),
)


def _compile(folder: Path) -> None:
    includes = (
        "-I",
        str(FILES),
        "-I",
        str(FILES / "bpf"),
        "-idirafter",
        f"/usr/include/{os.uname().machine}-linux-gnu",
    )
    machine = {"x86_64": "x86", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    _do("make", "--silent", "-C", str(FILES / "bpf"), f"OUT={folder}")
    _do(
        _clang(), "-target", "bpf", "-mcpu=v3", "-g", "-O2", f"-D__TARGET_ARCH_{machine}", *includes,
        "-c", str(SOURCES / "yardsticks.bpf.c"), "-o", str(folder / "yardsticks.o"),
    )  # fmt: skip
    _do("gcc", "-O2", "-w", *includes, str(SOURCES / "core_loop.c"), "-o", str(folder / "core_loop"))


@contextlib.contextmanager
def _registered(subject: Subject, folder: Path) -> Iterator[None]:
    if subject.number is not None:
        script = str(FILES / "bpf" / "fab-bbr-bpf")
        _do(script, "load", subject.profile or "v2alpha", FAB_BBR_OBJECTS=str(folder))
        try:
            yield
        finally:
            _do(script, "unload")
        return
    try:
        _do("bpftool", "struct_ops", "register", str(folder / "yardsticks.o"))
        yield
    finally:
        for name in ("yardstick_stock", "yardstick_none"):
            subprocess.run(
                ("bpftool", "struct_ops", "unregister", "name", name), capture_output=True, check=False
            )


@contextlib.contextmanager
def _statistics() -> Iterator[None]:
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        yield
    finally:
        STATISTICS.write_text(before)


def _check_machine() -> None:
    if os.geteuid() != 0:
        message = "loading BPF programs needs root: use sudo"
        raise EnvironmentUnfitError(message)
    missing = [
        tool for tool in ("bpftool", "gcc", "make", "iperf3", "perf", "unshare") if not shutil.which(tool)
    ]
    if missing:
        message = f"not installed: {', '.join(missing)}"
        raise EnvironmentUnfitError(message)
    _clang()


def _clang() -> str:
    for name in ("clang", *(f"clang-{version}" for version in range(14, 21))):
        if shutil.which(name):
            return name
    message = "no clang, which compiles BPF programs: apt-get install clang libbpf-dev"
    raise EnvironmentUnfitError(message)


def _take_own_mounts() -> None:
    """Start again where what is mounted or pinned goes with this process."""
    if OWN_MOUNTS not in os.environ:
        os.environ[OWN_MOUNTS] = "yes"
        os.execvp("unshare", ("unshare", "--mount", sys.executable, *sys.argv))  # noqa: S606


def _do(*argv: str, **environment: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=os.environ | environment)
    if done.returncode != 0:
        message = f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}"
        raise EnvironmentUnfitError(message)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

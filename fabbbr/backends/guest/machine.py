"""Boots one guest, watches it, and takes it down: nothing of it outlives :func:`boot`."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fabbbr.backends.base import CancelledError, heartbeat_s
from fabbbr.backends.guest.memory import memory_folder
from fabbbr.backends.guest.runtime import runtime_folder
from fabbbr.backends.keeper import Keeper, die_with_runner, kill_group
from fabbbr.backends.tools import NODE_PYTHON
from fabbbr.errors import EnvironmentUnfitError, GuestError

_HERE = Path(__file__).parent
_AGENT = _HERE.parent.parent / "agent"
_EPOCH_NS = 1_700_000_000_000_000_000
_POLL_S = 0.02
_LEAST_OPEN_FILES, _OPEN_FILES = 256, 65_536
_INIT = _HERE / "init.sh"
_FILE_SYSTEMS = """\
proc /proc proc defaults 0 0
sys /sys sysfs defaults 0 0
dev /dev devtmpfs defaults 0 0
run /run tmpfs mode=755 0 0
tmp /tmp tmpfs mode=1777 0 0
var /var tmpfs mode=755 0 0
root /root tmpfs mode=755 0 0
agent /run/fabbbr/agent hostfs {runtime}/agent,X-mount.mkdir 0 0
work /run/fabbbr/work hostfs {runtime}/work,X-mount.mkdir 0 0
shm /dev/shm tmpfs X-mount.mkdir 0 0
pts /dev/pts devpts ptmxmode=666,X-mount.mkdir 0 0
"""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What to boot."""

    kernel: Path
    seccomp: bool
    seed: int
    memory_bytes: int
    cpu: int
    clock_limit_s: float
    """Seconds on the guest's clock after which the guest ends itself."""
    virtual: bool = True
    init: Path = _INIT
    extra_mounts: dict[str, Path] = field(default_factory=dict)
    """Name → host folder, mounted at /run/fabbbr/<name>."""
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Watch:
    """When to give up on a guest, and whom to tell how far it is."""

    wall_limit_s: float
    stall_limit_s: float
    """Wall seconds without a new heartbeat."""
    progress: Callable[[float], None]
    cancelled: threading.Event


def boot(machine: Machine, work: Path, watch: Watch, keeper: Keeper) -> float:
    """Run the guest to its power-off; return wall seconds.

    ``work`` is mounted read-write at /run/fabbbr/work; the guest's console goes to ``work/raw/console.log``.

    Raises
    ------
    GuestError
        The guest died, hung, or did not leave its exit status.
    CancelledError
        ``watch.cancelled`` was set.
    """
    started = time.monotonic()
    with runtime_folder() as runtime:
        try:
            _lay_out(runtime, machine, work)
        except OSError as error:
            message = (
                f"temporary files cannot be laid out in {runtime}: {error.strerror}; "
                f"set TMPDIR to where they can"
            )
            raise EnvironmentUnfitError(message) from error
        process = _started(_argv(machine, runtime), work)
        try:
            keeper.add(process.pid, str(runtime))
            _watch(process, work, watch)
        finally:
            kill_group(process.pid)
            process.wait()
            keeper.remove(process.pid)
    _require_orderly_end(work, process.returncode)
    return time.monotonic() - started


def _started(argv: tuple[str, ...], work: Path) -> subprocess.Popen[bytes]:
    """The guest; it dies with this thread, which waits for it."""
    runner, files = os.getpid(), _open_files()

    def between_fork_and_exec() -> None:
        die_with_runner(runner)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, files)

    environment = os.environ | {"TMPDIR": str(memory_folder())}
    with (work / "raw" / "console.log").open("wb") as console:
        return subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=between_fork_and_exec,  # noqa: PLW1509  (it makes four system calls)
        )


def _open_files() -> tuple[int, int]:
    """How many files the guest may open: those of all its processes are open here too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else hard
    if most < _LEAST_OPEN_FILES:
        message = (
            f"this shell allows {most} open files, and a guest needs {_LEAST_OPEN_FILES}: raise ulimit -n"
        )
        raise EnvironmentUnfitError(message)
    return max(soft, min(most, _OPEN_FILES)), hard


def _lay_out(runtime: Path, machine: Machine, work: Path) -> None:
    (runtime / "work").symlink_to(work.resolve())
    # Without byte code: whether Python finds some moves the clock by a fraction of a
    # microsecond, and with it every draw.
    (runtime / "agent").mkdir()
    for file in sorted(_AGENT.glob("*.py")):
        shutil.copy2(file, runtime / "agent")
    lines = _FILE_SYSTEMS.format(runtime=runtime)
    for name, folder in machine.extra_mounts.items():
        (runtime / name).symlink_to(folder.resolve())
        lines += f"{name} /run/fabbbr/{name} hostfs {runtime}/{name},X-mount.mkdir 0 0\n"
    (runtime / "fstab").write_text(lines, encoding="utf-8")
    shutil.copy(machine.init, runtime / "init")
    (runtime / "init").chmod(0o755)


def _argv(machine: Machine, runtime: Path) -> tuple[str, ...]:
    clock = (
        ("time-travel=inf-cpu", f"time-travel-start={_EPOCH_NS}", f"um-seed={machine.seed}")
        if machine.virtual
        else (f"um-seed={machine.seed}",)
    )
    return (
        # Pinned to one CPU a guest is several times faster: its processes hand
        # over to one another all the time.
        "taskset", "-c", str(machine.cpu), str(machine.kernel),
        *(("seccomp=on",) if machine.seccomp else ()),
        f"mem={machine.memory_bytes >> 20}M",
        *clock,
        "rootfstype=hostfs", "root=/dev/root", "ro", f"init={runtime}/init",
        f"uml_dir={runtime}", "umid=guest", "con0=null,fd:1", "con=null", "quiet", "loglevel=4",
        "devtmpfs.mount=0",
        f"FABBBR_RUNTIME={runtime}", f"FABBBR_LIMIT={int(machine.clock_limit_s)}",
        f"FABBBR_PYTHON={NODE_PYTHON}",
        *(f"{key}={value}" for key, value in machine.environment.items()),
    )  # fmt: skip


def _watch(process: subprocess.Popen[bytes], work: Path, watch: Watch) -> None:
    started = last_change = time.monotonic()
    last: float | None = None
    while process.poll() is None:
        if watch.cancelled.wait(_POLL_S):
            raise CancelledError
        now = time.monotonic()
        beat = heartbeat_s(work)
        if beat is not None and beat != last:
            last, last_change = beat, now
            watch.progress(beat)
        if now - started > watch.wall_limit_s:
            message = (
                f"the guest was ended after {watch.wall_limit_s:.0f} s of wall time at "
                f"{_seconds(last)} of its own clock; its conditions may be too heavy for this machine (see "
                "raw/console.log)"
            )
            raise GuestError(message)
        if now - last_change > watch.stall_limit_s:
            message = (
                f"the guest's clock has stood at {_seconds(last)} for "
                f"{watch.stall_limit_s:.0f} s of wall time: a process inside it spins (see raw/console.log)"
            )
            raise GuestError(message)


def _seconds(beat: float | None) -> str:
    return f"{beat:.3f} s" if beat is not None else "boot"


def _require_orderly_end(work: Path, returncode: int) -> None:
    try:
        status = (work / "exit").read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        status = ""
    if status == "":
        tail = _read_tail(work / "raw" / "console.log")
        how = f"signal {-returncode}" if returncode < 0 else f"status {returncode}"
        message = f"the guest died ({how}) before it finished; its console ends with: {tail}"
        raise GuestError(message)
    if status == "124":
        message = "the guest's clock ran past its limit: something inside waits for what never comes"
        raise GuestError(message)
    for name in ("exit", "heartbeat"):
        (work / name).unlink(missing_ok=True)


def _read_tail(path: Path, lines: int = 5) -> str:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "(no console)"
    return " | ".join(line for line in text.splitlines()[-lines:] if line.strip()) or "(nothing)"


def cpu_for_slot(slot: int) -> int:
    """The CPU that parallel place ``slot`` is pinned to."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[slot % len(cpus)]

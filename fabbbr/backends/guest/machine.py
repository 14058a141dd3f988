"""Boots one guest, watches it, and takes it down: nothing of it outlives :func:`boot`."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fabbbr.backends.base import CancelledError, heartbeat_s
from fabbbr.backends.guest.clock import read_clock
from fabbbr.backends.guest.cpus import Cpus, Pinned, Use
from fabbbr.backends.guest.denied import Denied
from fabbbr.backends.guest.memory import memory_folder
from fabbbr.backends.guest.runtime import runtime_folder
from fabbbr.backends.keeper import Keeper, die_with_runner, kill_group
from fabbbr.backends.tools import NODE_PYTHON
from fabbbr.errors import EnvironmentUnfitError, GuestError
from fabbbr.foreign import shown

_HERE = Path(__file__).parent
_AGENT = _HERE.parent.parent / "agent"
_EPOCH_NS = 1_700_000_000_000_000_000
_POLL_S = 0.02
_LOOK_AT_CPU_S = 0.5
"""Between two looks at how long the guest had to wait for its CPU, which costs a millisecond."""
_WORTH_A_WORD_S = 30.0
_LEAST_OPEN_FILES, _OPEN_FILES = 256, 65_536
_INIT = _HERE / "init.sh"
_ROOT = "root"
_OF_HOST = "host.log"
"""What the kernel says of its host, like where its memory is: no part of what was measured."""
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
    connection_slots: int | None = None
    """Of the kernel's table of connections; None: by its memory."""
    clock_limit_s: float
    """Seconds on the guest's clock after which the guest ends itself."""
    virtual: bool = True
    epoch_ns: int = _EPOCH_NS
    """Where its virtual clock starts."""
    ipv6: bool = False
    """With it the kernel sends packets that no job asked for: neighbours are looked for, routers, groups."""
    root: Path | None = None
    """The archive that becomes the guest's root, with an init of its own; without one the
    guest's root is the host's file system, read-only, and ``init`` its first process."""
    init: Path = _INIT
    extra_mounts: dict[str, Path] = field(default_factory=dict)
    """Name → host folder, mounted at /run/fabbbr/<name>."""
    environment: dict[str, str] = field(default_factory=dict)
    clock_address: int | None = None
    """Where the kernel keeps its virtual clock."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """When to give up on a guest, and whom to tell how far it is.

    Limits are wall seconds without those for which other processes had the guest's CPU.
    """

    wall_limit_s: float
    stall_limit_s: float
    """Without a new heartbeat."""
    spin_limit_s: float | None = None
    """For which the virtual clock may stand once there is a heartbeat; where it can be read."""
    progress: Callable[[float], None]
    cancelled: threading.Event
    where: Callable[[int], str] = lambda _: ""
    """What can be said of where the guest of this process id hangs."""


def boot(machine: Machine, work: Path, watch: Watch, keeper: Keeper, cpus: Cpus) -> float:
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
    with runtime_folder() as runtime, cpus.pinned() as pinned:
        try:
            _lay_out(runtime, machine, work)
        except OSError as error:
            message = (
                f"temporary files cannot be laid out in {runtime}: {error.strerror}; "
                f"set TMPDIR to where they can"
            )
            raise EnvironmentUnfitError(message) from error
        process = _started(_argv(machine, runtime), pinned.cpu, runtime, work)
        try:
            keeper.add(process.pid, str(runtime))
            _watch(process, pinned, machine.clock_address, work, watch)
        finally:
            kill_group(process.pid)
            process.wait()
            keeper.remove(process.pid)
    _require_orderly_end(work, process.returncode)
    return time.monotonic() - started


def _started(argv: tuple[str, ...], cpu: int, runtime: Path, work: Path) -> subprocess.Popen[bytes]:
    """The guest; it dies with this thread, which waits for it."""
    runner, files = os.getpid(), _open_files()

    def between_fork_and_exec() -> None:
        die_with_runner(runner)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        os.sched_setaffinity(0, {cpu})

    environment = os.environ | {"TMPDIR": str(memory_folder())}
    with (work / "raw" / "console.log").open("wb") as console, (work / _OF_HOST).open("wb") as of_host:
        return subprocess.Popen(
            argv,
            cwd=runtime,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=of_host,
            start_new_session=True,
            preexec_fn=between_fork_and_exec,  # noqa: PLW1509  (it makes five system calls)
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
    for name, folder in machine.extra_mounts.items():
        (runtime / name).symlink_to(folder.resolve())
    if machine.root is not None:
        (runtime / _ROOT).symlink_to(machine.root.resolve())
        return
    lines = _FILE_SYSTEMS.format(runtime=runtime)
    for name in machine.extra_mounts:
        lines += f"{name} /run/fabbbr/{name} hostfs {runtime}/{name},X-mount.mkdir 0 0\n"
    (runtime / "fstab").write_text(lines, encoding="utf-8")
    shutil.copy(machine.init, runtime / "init")
    (runtime / "init").chmod(0o755)


def _argv(machine: Machine, runtime: Path) -> tuple[str, ...]:
    clock = (
        ("time-travel=inf-cpu", f"time-travel-start={machine.epoch_ns}", f"um-seed={machine.seed}")
        if machine.virtual
        else (f"um-seed={machine.seed}",)
    )
    return (
        str(machine.kernel),
        *(("seccomp=on",) if machine.seccomp else ()),
        f"mem={machine.memory_bytes >> 20}M",
        *((f"thash_entries={machine.connection_slots}",) if machine.connection_slots else ()),
        *clock,
        *_root_words(machine, runtime),
        "uml_dir=./", "umid=guest", "con0=null,fd:1", "con=null",
        # Where a process has its stack and libraries is no part of an experiment.
        "norandmaps", "devtmpfs.mount=0", f"FABBBR_LIMIT={int(machine.clock_limit_s)}",
        *(() if machine.ipv6 else ("ipv6.disable=1",)),
        *(f"{key}={value}" for key, value in machine.environment.items()),
    )  # fmt: skip


def _root_words(machine: Machine, runtime: Path) -> tuple[str, ...]:
    """With a root of its own the same words on every machine: paths start where the kernel does."""
    if machine.root is not None:
        mounts = ",".join(("agent", "work", *machine.extra_mounts))
        return (f"initrd={_ROOT}", f"FABBBR_MOUNTS={mounts}", "quiet", "loglevel=1")
    return (
        "rootfstype=hostfs", "root=/dev/root", "ro", f"init={runtime}/init",
        f"FABBBR_RUNTIME={runtime}", f"FABBBR_PYTHON={NODE_PYTHON}", "quiet", "loglevel=4",
    )  # fmt: skip


def _watch(
    process: subprocess.Popen[bytes], pinned: Pinned, clock_address: int | None, work: Path, watch: Watch
) -> None:
    own_time = _OwnTime(process.pid, pinned)
    beats, ticks = _LastChange(), _LastChange()
    while process.poll() is None:
        if watch.cancelled.wait(_POLL_S):
            raise CancelledError
        now, beat = own_time.seconds(), heartbeat_s(work)
        if beats.note(beat, now) and beat is not None:
            watch.progress(beat)
        # Boot and set-up may compute for long at one instant: what spins is looked for after them.
        clock_ns = None
        if clock_address is not None and beat is not None:
            clock_ns = read_clock(process.pid, clock_address)
        ticks.note(clock_ns, now)
        clock_stands_s = 0.0 if clock_ns is None else ticks.stands_s(now)
        why = _hopeless(watch, now, clock_stands_s, beats.stands_s(now))
        if why is not None:
            place = f"at {_seconds(beats.value)} of its own clock"
            aside = f"{own_time.aside()}{watch.where(process.pid)}"
            message = f"the guest was ended {place}: {why}{aside} (see raw/console.log)"
            raise GuestError(message)


def _hopeless(watch: Watch, spent_s: float, clock_stands_s: float, silent_s: float) -> str | None:
    """Why to give up after so many wall seconds; None while there is hope."""
    if spent_s > watch.wall_limit_s:
        return f"{spent_s:.0f} s of wall time are over; its conditions may be too heavy for this machine"
    if watch.spin_limit_s is not None and clock_stands_s > watch.spin_limit_s:
        return f"its clock has stood for {clock_stands_s:.0f} s of wall time, so a process inside it spins"
    if silent_s > watch.stall_limit_s:
        return (
            f"its agent has said nothing for {silent_s:.0f} s of wall time, so the agent hangs or a process "
            "inside the guest spins"
        )
    return None


class _OwnTime:
    """Wall seconds since the guest was started, without those for which others had its CPU."""

    def __init__(self, pid: int, pinned: Pinned) -> None:
        self._pid = pid
        self._pinned = pinned
        self._denied = Denied(pid)
        self._started = time.monotonic()
        self._looked_s = self._denied_s = 0.0

    def seconds(self) -> float:
        wall_s = time.monotonic() - self._started
        if wall_s - self._looked_s >= _LOOK_AT_CPU_S:
            self._denied_s, self._looked_s = self._denied.seconds(), wall_s
            use = Use(wall_s=wall_s, ran_s=self._denied.ran_s, waited_s=self._denied_s)
            self._pinned.reconsider(self._pid, use)
        return max(wall_s - self._denied_s, self._denied.ran_s)

    def aside(self) -> str:
        """What is not counted, where it is worth a word."""
        if self._denied_s < _WORTH_A_WORD_S:
            return ""
        return f"; {self._denied_s:.0f} s for which others had its CPU are not counted"


class _LastChange:
    """Since when a number that is looked at again and again has been what it is."""

    def __init__(self) -> None:
        self.value: float | None = None
        self._since = 0.0

    def note(self, value: float | None, now: float) -> bool:
        """Whether it is another than before; None is no news."""
        changed = value is not None and value != self.value
        if changed:
            self.value, self._since = value, now
        return changed

    def stands_s(self, now: float) -> float:
        return now - self._since


def _seconds(beat: float | None) -> str:
    return f"{beat:.3f} s" if beat is not None else "boot"


def _require_orderly_end(work: Path, returncode: int) -> None:
    try:
        status = (work / "exit").read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        status = ""
    if status == "":
        raise GuestError(_last_words(work, returncode))
    if status == "124":
        message = "the guest's clock ran past its limit: something inside waits for what never comes"
        raise GuestError(message)
    for name in ("exit", "heartbeat", _OF_HOST):
        (work / name).unlink(missing_ok=True)


def _last_words(work: Path, returncode: int) -> str:
    """How a guest died, in a sentence; at length it stands in its console."""
    console, of_host = _lines(work / "raw" / "console.log"), _lines(work / _OF_HOST)
    said = next((line for line in (*console, *of_host) if _TELLING.search(line)), None)
    for pattern, cause in _CAUSES:
        if any(pattern.search(line) for line in (*console, *of_host)):
            return f"the guest died: {cause} (see raw/console.log)"
    if returncode == -signal.SIGKILL and said is None:
        return (
            "the guest was killed from outside (signal 9): mostly by a system that is out of memory; "
            "lower --jobs, or look into the system's log"
        )
    how = f"signal {-returncode}" if returncode < 0 else f"status {returncode}"
    last = said or next(reversed(console or of_host), "nothing")
    return f"the guest died ({how}) before it finished, and said {shown(last.strip())} (see raw/console.log)"


_TELLING = re.compile(r"Kernel panic|[Oo]ut of memory|oom-kill|No space left|[Ee]rror|[Ff]ailed|Cannot|BUG:")
_CAUSES = (
    (
        re.compile(r"[Oo]ut of memory|oom-kill|System is deadlocked on memory|page allocation failure"),
        "its memory was too small for what was asked of it; use fewer flows, or a smaller rate or RTT",
    ),
    (
        re.compile(r"No space left on device|[Bb]us error"),
        "this machine has no room for its memory; lower --jobs, or make room in /dev/shm",
    ),
)
"""What a console may say → what that means to people."""


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]

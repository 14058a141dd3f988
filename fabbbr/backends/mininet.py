"""Mininet on this machine, in real time: the agent of the guest, run by root on a kernel with netem."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabbbr.backends.agent import ALONE, agent_hash, read_outcome
from fabbbr.backends.base import (
    JOB,
    CancelledError,
    OwnControl,
    Report,
    Task,
    heartbeat_s,
    refuse_kernel,
)
from fabbbr.backends.channel import CommandChannel
from fabbbr.backends.keeper import Keeper, die_with_runner, kill_group
from fabbbr.backends.own_controls import OwnControls
from fabbbr.backends.tools import NODE_PYTHON, WAY_INTO_NAME_SPACES, search_path, tool_versions, tools_found
from fabbbr.errors import BackendError, EnvironmentUnfitError, UsageError
from fabbbr.model import Cell
from fabbbr.testbed import REAL_TIME, Kernel, Machine, Testbed

_PACKAGE = Path(__file__).parent.parent
_PROBED_QDISCS = ("netem", "tbf", "prio", "clsact")
_POLL_S = 0.1
_KERNEL = "this host's kernel"
_CLOCK_MONOTONIC_COARSE = 6
"""clock_gettime(2): its resolution is a tick of the kernel's timer."""


@dataclass(frozen=True, kw_only=True)
class Lack:
    """Something this machine needs for host Mininet, and the remedy."""

    what: str
    remedy: str


def lacks() -> list[Lack]:
    """Why Mininet cannot run here; empty when it can. Leaves nothing behind."""
    if os.geteuid() != 0:
        return [Lack(what="root", remedy="run as root (sudo), or use --backend guest, which needs none")]
    found = []
    namespace = f"fabbbr-probe-{os.getpid()}"
    if _run("ip", "netns", "add", namespace) != 0:
        return [Lack(what="network name spaces", remedy="run where the kernel allows 'ip netns add'")]
    try:
        if _run("ip", "netns", "exec", namespace, "true") != 0:
            return [Lack(what="a way into a network name space", remedy=WAY_INTO_NAME_SPACES)]
        for qdisc in _PROBED_QDISCS:
            if _run("ip", "netns", "exec", namespace, "tc", "qdisc", "add", "dev", "lo", *_shape(qdisc)) != 0:
                found.append(
                    Lack(
                        what=f"the {qdisc} queueing discipline in kernel {platform.release()}",
                        remedy=f"modprobe sch_{qdisc}, boot a kernel that has it, or use --backend guest",
                    )
                )
            _run("ip", "netns", "exec", namespace, "tc", "qdisc", "del", "dev", "lo", _shape(qdisc)[0])
    finally:
        _run("ip", "netns", "del", namespace)
    return found


def _shape(qdisc: str) -> tuple[str, ...]:
    return {
        "tbf": ("root", "tbf", "rate", "1mbit", "burst", "10000", "limit", "10000"),
        "clsact": ("clsact",),
        "prio": ("root", "prio"),
        "netem": ("root", "netem", "delay", "1ms"),
    }[qdisc]


def _run(*argv: str) -> int:
    environment = os.environ | {"PATH": search_path()}
    try:
        return subprocess.run(
            argv, capture_output=True, check=False, timeout=20, env=environment, stdin=subprocess.DEVNULL
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return 127


def describe() -> Testbed:
    """This machine, whether it is fit or not."""
    config = Path(f"/boot/config-{platform.release()}")
    kernel = Kernel(
        release=platform.release(),
        timer_hz=round(1 / time.clock_getres(_CLOCK_MONOTONIC_COARSE)),
        config_sha256=hashlib.sha256(config.read_bytes()).hexdigest() if config.exists() else None,
    )
    return Testbed(
        backend="mininet",
        clock="real",
        tolerances=REAL_TIME,
        machines={"host": Machine(kernel=kernel, tools=tools_found())},
    )


class MininetBackend:
    """Runs the agent as a child process."""

    def __init__(self) -> None:
        missing = lacks()
        if missing:
            reasons = "; ".join(f"{lack.what} is missing ({lack.remedy})" for lack in missing)
            message = f"Mininet cannot run on this machine: {reasons}"
            raise EnvironmentUnfitError(message)
        tool_versions()
        self.testbed = describe()
        self._one_at_a_time = threading.Lock()
        self._keeper = Keeper()
        self._own = OwnControls()

    def with_kernel(self, kernel: str | None, /) -> Testbed:
        """As it is."""
        return self.testbed if kernel is None else refuse_kernel(kernel, _KERNEL)

    def cells_at_once(self, asked: int | None, _cells: Sequence[Cell], /) -> int:
        """One: two would share the CPU in real time."""
        if asked is not None and asked > 1:
            message = (
                f"--jobs {asked}: Mininet on this host runs one cell at a time, for two would share its "
                f"CPU in real time; leave --jobs out"
            )
            raise UsageError(message)
        return 1

    def take_in(self, controls: Sequence[OwnControl], tell: Callable[[str], None], /) -> None:
        """Modules and BPF programs, in the kernel of this host."""
        for control in controls:
            self._own.add(control, CommandChannel((), "/"), _KERNEL, tell)

    def execute(self, task: Task) -> Report:
        """Run the job on this machine."""
        (task.work / JOB).write_text(task.job.model_dump_json(), encoding="utf-8")
        with self._one_at_a_time:
            started = time.monotonic()
            try:
                self._run_agent(task)
            finally:
                if task.job.modules:
                    self._own.after_cell()
        return Report(
            wall_s=time.monotonic() - started,
            clock_s=read_outcome(task.work),
            options={"agent_sha256": agent_hash()} | self._own.options(task.job.modules),
        )

    def close(self) -> None:
        """End the keeper and with it whatever still runs; then nothing uses what the kernel was given."""
        self._keeper.close()
        self._own.close()

    def _run_agent(self, task: Task) -> None:
        environment = os.environ | {"PATH": search_path(), "PYTHONDONTWRITEBYTECODE": "1"}
        # It would take the agent's docstrings away, and with them what its options are.
        environment.pop("PYTHONOPTIMIZE", None)
        # The agent has another current folder.
        work = task.work.resolve()
        runner = os.getpid()
        with (work / "raw" / "console.log").open("wb") as console:
            process = subprocess.Popen(
                (*ALONE, NODE_PYTHON, "-m", "agent.lab", str(work / JOB), str(work)),
                cwd=_PACKAGE,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: die_with_runner(runner),  # noqa: PLW1509  (it makes two system calls)
            )
            try:
                self._keeper.add(process.pid, str(work))
                _watch(process, task)
            finally:
                # Name spaces are held by processes of this group: they go with it.
                kill_group(process.pid)
                process.wait()
                self._keeper.remove(process.pid)


def _watch(process: subprocess.Popen[bytes], task: Task) -> None:
    started = time.monotonic()
    while process.poll() is None:
        if task.cancelled.wait(_POLL_S):
            raise CancelledError
        if time.monotonic() - started > task.wall_limit_s:
            message = f"the cell was ended after {task.wall_limit_s:.0f} s; see raw/console.log"
            raise BackendError(message)
        beat = heartbeat_s(task.work)
        if beat is not None:
            task.progress(beat)

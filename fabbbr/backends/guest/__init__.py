"""The default backend: a Linux kernel as an ordinary process, in virtual time, one guest per cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabbbr import testbed
from fabbbr.backends.agent import agent_hash, read_outcome
from fabbbr.backends.base import JOB, Report, Task, usable_cpus
from fabbbr.backends.guest import wakeups
from fabbbr.backends.guest.kernel.build import GuestKernel, cached_kernel, require_unaltered
from fabbbr.backends.guest.kernel.prebuilt import PrebuiltKernel, prebuilt_kernel
from fabbbr.backends.guest.machine import Machine, Watch, boot, cpu_for_slot
from fabbbr.backends.guest.runtime import sweep
from fabbbr.backends.keeper import Keeper
from fabbbr.backends.tools import tool_versions, tools_found
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.job.records import Job
from fabbbr.testbed import REAL_TIME, VIRTUAL_TIME, ClockKind, Kernel, Testbed

_TIMER_HZ = 1000
_MODULES = "modules"
_MEMORY_BYTES = 2 << 30
_MEMORY_SHARE = 6
"""Guest memory per byte of socket window: a byte in flight stands in several buffers at once."""
_STALL_LIMIT_S = 120.0
_SET_UP_S = 120


def memory_bytes(job: Job) -> int:
    """What the guest gets; reports count in 64 MiB steps, for the kernel sizes its limits by its memory."""
    return max(_MEMORY_BYTES, _MEMORY_SHARE * job.window_bytes >> 20 << 20) + (job.reports_bytes >> 26 << 26)


class GuestBackend:
    """Boots guests from the cached kernel."""

    def __init__(self, clock: ClockKind = "virtual") -> None:
        self._virtual = clock == "virtual"
        self._kernel = _kernel(clock)
        self._tools = tool_versions()
        self.testbed = _testbed(clock, self._kernel)
        sweep()
        self._keeper = Keeper()
        self._agent_sha256 = agent_hash()

    def cells_at_once(self, asked: int | None) -> int:
        """One per CPU, unless asked otherwise: each guest is pinned to its own."""
        return asked or len(usable_cpus())

    def execute(self, task: Task) -> Report:
        """Run the job in a guest of its own."""
        job = task.job
        if self._virtual:
            job = job.model_copy(update={"environment": wakeups.environment(job, self._tools["iperf3"])})
        (task.work / JOB).write_text(job.model_dump_json(), encoding="utf-8")
        machine = self._machine(task, job)
        wall_s = boot(
            machine,
            task.work,
            Watch(
                wall_limit_s=task.wall_limit_s,
                stall_limit_s=_STALL_LIMIT_S,
                progress=task.progress,
                cancelled=task.cancelled,
            ),
            self._keeper,
        )
        clock_s = read_outcome(task.work)
        return Report(wall_s=wall_s, clock_s=clock_s, options=self._options(machine, job))

    def close(self) -> None:
        """End the keeper and with it whatever still runs."""
        self._keeper.close()

    def _machine(self, task: Task, job: Job) -> Machine:
        return Machine(
            kernel=self._kernel.binary,
            seccomp=self._kernel.seccomp,
            seed=task.seed,
            memory_bytes=memory_bytes(job),
            cpu=cpu_for_slot(task.slot),
            clock_limit_s=job.end_ns * 1e-9 + _SET_UP_S,
            virtual=self._virtual,
            environment={"FABBBR_MODULES": f"/run/fabbbr/{_MODULES}"}
            if isinstance(self._kernel, PrebuiltKernel)
            else {},
            extra_mounts=self._mounts(job),
        )

    def _mounts(self, job: Job) -> dict[str, Path]:
        """What the guest needs of the host beside its root; the library takes a compiler: only where used."""
        mounts = {"preload": wakeups.library_folder()} if job.environment else {}
        if isinstance(self._kernel, PrebuiltKernel):
            # The guest's own file systems hide some of the host's folders, and the
            # modules could be in one of them.
            mounts[_MODULES] = self._kernel.modules
        return mounts

    def _options(self, machine: Machine, job: Job) -> dict[str, Any]:
        return {
            "memory_bytes": machine.memory_bytes,
            "system_calls": "seccomp" if machine.seccomp else "ptrace",
            "agent_sha256": self._agent_sha256,
            "iperf3_wakeups": dict(job.environment, **wakeups.hashes()) if job.environment else None,
        }


def describe(clock: ClockKind) -> Testbed:
    """The guest that cells would get here; before its kernel is built, one of unknown release."""
    try:
        kernel = _found(clock)
    except EnvironmentUnfitError:
        kernel = None
    return _testbed(clock, kernel)


def _testbed(clock: ClockKind, kernel: GuestKernel | PrebuiltKernel | None) -> Testbed:
    known = (
        Kernel(release="not built yet", timer_hz=_TIMER_HZ)
        if kernel is None
        else Kernel(
            release=kernel.release,
            timer_hz=kernel.timer_hz if isinstance(kernel, PrebuiltKernel) else _TIMER_HZ,
            config_sha256=kernel.config_sha256,
            sha256=kernel.kernel_sha256,
        )
    )
    return Testbed(
        backend="guest",
        clock=clock,
        tolerances=VIRTUAL_TIME if clock == "virtual" else REAL_TIME,
        machines={"guest": testbed.Machine(kernel=known, tools=tools_found())},
    )


def _found(clock: ClockKind) -> GuestKernel | PrebuiltKernel | None:
    """Our own kernel; on a real clock the distribution's will do."""
    return cached_kernel() or (None if clock == "virtual" else prebuilt_kernel())


def _kernel(clock: ClockKind) -> GuestKernel | PrebuiltKernel:
    kernel = _found(clock)
    if kernel is None:
        message = (
            "the guest kernel is not built yet; build it once with: fabbbr kernel "
            "build; or run in real time: apt-get install user-mode-linux kmod, then --clock real"
        )
        raise EnvironmentUnfitError(message)
    if isinstance(kernel, GuestKernel):
        require_unaltered(kernel)
    return kernel

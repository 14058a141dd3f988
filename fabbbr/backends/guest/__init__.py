"""The default backend: a Linux kernel as an ordinary process, in virtual time, one guest per cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fabbbr import testbed
from fabbbr.backends.agent import agent_hash, read_outcome
from fabbbr.backends.base import JOB, OwnControl, Report, Task
from fabbbr.backends.guest import wakeups
from fabbbr.backends.guest.cpus import Cpus
from fabbbr.backends.guest.image.found import GuestImage, foreign_wheel, found_image, require_unaltered
from fabbbr.backends.guest.kernel.build import GuestKernel, foreign_processor
from fabbbr.backends.guest.kernel.own import kernel_named
from fabbbr.backends.guest.kernel.prebuilt import PrebuiltKernel, prebuilt_kernel
from fabbbr.backends.guest.machine import Machine, Watch, boot
from fabbbr.backends.guest.memory import guests_at_once
from fabbbr.backends.guest.module.shelf import Shelf
from fabbbr.backends.guest.runtime import sweep
from fabbbr.backends.guest.size import connection_slots, memory_bytes, taken_bytes
from fabbbr.backends.keeper import Keeper
from fabbbr.backends.tools import tool_versions, tools_found
from fabbbr.errors import EnvironmentUnfitError, GuestError, ModuleUnfitError
from fabbbr.job.records import Job
from fabbbr.kernels import OF_IMAGE
from fabbbr.model import Cell
from fabbbr.testbed import REAL_TIME, VIRTUAL_TIME, ClockKind, Kernel, Testbed

_NAME = "guest"
_TIMER_HZ = 1000
_MODULES = "modules"
_STALL_LIMIT_S = 120.0
_SPIN_LIMIT_S = 9.0
_START_S = 0.05
"""To start the programs of a flow, on a slow and busy core: where many start at once, the clock stands."""
_SET_UP_S = 120


@dataclass(frozen=True, kw_only=True)
class _Guest:
    """What cells of one kernel boot."""

    source: GuestImage | PrebuiltKernel
    testbed: Testbed
    shelf: Shelf = field(default_factory=Shelf)


class GuestBackend:
    """Boots guests from an image; in real time also the distribution's kernel on the host's own files."""

    def __init__(self, clock: ClockKind = "virtual") -> None:
        self._clock: ClockKind = clock
        self._source = _source(clock)
        self.testbed = _testbed(clock, self._source)
        self._guests: dict[str | None, _Guest] = {None: _Guest(source=self._source, testbed=self.testbed)}
        sweep()
        self._keeper = Keeper()
        self._cpus = Cpus()
        self._agent_sha256 = agent_hash()

    def with_kernel(self, kernel: str | None, /) -> Testbed:
        """A guest of the same image that boots this kernel."""
        return self._guest(kernel).testbed

    def cells_at_once(self, asked: int | None, cells: Sequence[Cell], /) -> int:
        """One per CPU that we may use at once, if memory has room for the largest; or as many as asked."""
        return asked or guests_at_once(max(map(taken_bytes, cells), default=1))

    def take_in(self, controls: Sequence[OwnControl], tell: Callable[[str], None], /) -> None:
        """Build them for the image's kernel, and let each carry a flow."""
        if not isinstance(self._source, GuestImage):
            message = (
                "a module of yours is built for the guest's own kernel, and this is the distribution's; "
                "build it once: fabbbr guest build"
            )
            raise ModuleUnfitError(message)
        for control in controls:
            guest = self._guest(control.kernel)
            assert isinstance(guest.source, GuestImage)
            guest.shelf.add(control, guest.source.kernel, tell)
            execute = partial(self._execute, guest)
            guest.shelf.require_fit(control, execute, guest.testbed, tell)

    def execute(self, task: Task) -> Report:
        """Run the job in a guest of its own."""
        return self._execute(self._guest(task.kernel), task)

    def close(self) -> None:
        """End the keeper and with it whatever still runs."""
        self._keeper.close()
        for guest in self._guests.values():
            guest.shelf.close()

    def _guest(self, kernel: str | None) -> _Guest:
        if kernel not in self._guests:
            self._guests[kernel] = self._made(kernel or OF_IMAGE)
        return self._guests[kernel]

    def _made(self, kernel: str) -> _Guest:
        if not isinstance(self._source, GuestImage):
            message = (
                f"kernel {kernel}: the distribution's prebuilt guest boots its own kernel alone; build the "
                "image once: fabbbr guest build"
            )
            raise EnvironmentUnfitError(message)
        image = self._source.with_kernel(kernel_named(kernel, self._source.kernel))
        require_unaltered(image)
        return _Guest(source=image, testbed=_testbed(self._clock, image))

    def _execute(self, guest: _Guest, task: Task) -> Report:
        job = task.job.model_copy(update={"environment": wakeups.environment(guest.testbed.clock)})
        (task.work / JOB).write_text(job.model_dump_json(), encoding="utf-8")
        machine = self._machine(guest, task, job)
        watch = Watch(
            wall_limit_s=task.wall_limit_s,
            stall_limit_s=_STALL_LIMIT_S,
            spin_limit_s=_SPIN_LIMIT_S + _START_S * (len(job.flows) + len(job.batches)),
            progress=task.progress,
            cancelled=task.cancelled,
            where=partial(guest.shelf.where, task.work, job.modules),
        )
        try:
            wall_s = boot(machine, task.work, watch, self._keeper, self._cpus)
        except GuestError as error:
            message = f"{error}{guest.shelf.broke(task.work, job.modules)}"
            raise GuestError(message) from error
        clock_s = read_outcome(task.work)
        return Report(wall_s=wall_s, clock_s=clock_s, options=self._options(guest, machine, job))

    def _machine(self, guest: _Guest, task: Task, job: Job) -> Machine:
        virtual = self._clock == "virtual"
        if isinstance(guest.source, GuestImage):
            kernel: GuestKernel | PrebuiltKernel = guest.source.kernel
            root: Path | None = guest.source.root
            own = {_MODULES: guest.shelf.folder} if job.modules else {}
        else:
            # The guest's own file systems hide some of the host's folders: the modules could be in one.
            kernel, root, own = guest.source, None, {_MODULES: guest.source.modules}
        return Machine(
            kernel=kernel.binary,
            seccomp=kernel.seccomp,
            root=root,
            seed=task.seed,
            memory_bytes=memory_bytes(job),
            connection_slots=connection_slots(job),
            clock_limit_s=((job.flows_at_ns or 0) + job.end_ns) * 1e-9 + _SET_UP_S,
            virtual=virtual,
            environment={"FABBBR_MODULES": f"/run/fabbbr/{_MODULES}"} if root is None else {},
            extra_mounts=own,
            clock_address=kernel.clock_address if virtual else None,
        )

    def _options(self, guest: _Guest, machine: Machine, job: Job) -> dict[str, Any]:
        return {
            "memory_bytes": machine.memory_bytes,
            "system_calls": "seccomp" if machine.seccomp else "ptrace",
            "agent_sha256": self._agent_sha256,
            "iperf3_wakeups": job.environment or None,
            **({"modules": guest.shelf.described(job.modules)} if job.modules else {}),
        }


def describe(clock: ClockKind) -> Testbed:
    """The guest that cells would get here; before its image is built, one of unknown release."""
    try:
        source = _found(clock)
    except EnvironmentUnfitError:
        source = None
    return _testbed(clock, source)


def _testbed(clock: ClockKind, source: GuestImage | PrebuiltKernel | None) -> Testbed:
    return Testbed(
        backend="guest",
        clock=clock,
        tolerances=VIRTUAL_TIME if clock == "virtual" else REAL_TIME,
        machines={_NAME: _machine_record(source)},
    )


def _machine_record(source: GuestImage | PrebuiltKernel | None) -> testbed.Machine:
    if source is None:
        return testbed.Machine(kernel=Kernel(release="not built yet", timer_hz=_TIMER_HZ))
    kernel = source.kernel if isinstance(source, GuestImage) else source
    return testbed.Machine(
        kernel=Kernel(
            release=kernel.release,
            timer_hz=kernel.timer_hz if isinstance(kernel, PrebuiltKernel) else _TIMER_HZ,
            config_sha256=kernel.config_sha256,
            sha256=kernel.kernel_sha256,
            source=_source_of(kernel),
        ),
        tools=source.tools if isinstance(source, GuestImage) else tools_found(),
        image_sha256=source.sha256 if isinstance(source, GuestImage) else None,
    )


def _source_of(kernel: GuestKernel | PrebuiltKernel) -> str | None:
    if isinstance(kernel, PrebuiltKernel):
        return None
    return ", ".join((f"{kernel.package} {kernel.package_version}", *kernel.patches))


def _found(clock: ClockKind) -> GuestImage | PrebuiltKernel | None:
    """Our own image; on a real clock the distribution's kernel will do."""
    return found_image() or (None if clock == "virtual" else prebuilt_kernel())


def _source(clock: ClockKind) -> GuestImage | PrebuiltKernel:
    found = _found(clock)
    if found is None:
        raise EnvironmentUnfitError(_missing())
    if isinstance(found, GuestImage):
        require_unaltered(found)
    else:
        tool_versions()
    return found


def _missing() -> str:
    """What there is not, and the ways to get it."""
    foreign = foreign_processor()
    if foreign is not None:
        return foreign
    otherwise = (
        "build it once with: fabbbr guest build (some minutes); "
        "or run in real time: apt-get install user-mode-linux kmod, then --clock real"
    )
    if foreign_wheel() is None:
        return f"the guest image is not built yet; install it: pip install fabbbr-guest; or {otherwise}"
    return (
        "the installed fabbbr-guest is of another version than fabbbr; "
        f"install both anew: pip install --upgrade fabbbr fabbbr-guest; or {otherwise}"
    )

"""Carries out one job on several machines: starts the parts, holds the barrier, merges what they leave.

The agents do the work and wait for one another through us (:mod:`fabbbr.agent.meeting`). When we stop on
purpose, or a part fails, all parts are told to stop, and give back what they took. When we are killed they
stop by themselves, or when the next run surveys their machines.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from fabbbr.backends.agent import agent_hash
from fabbbr.backends.base import CancelledError, Report, Task
from fabbbr.backends.channel import Channel, ChannelError
from fabbbr.backends.machine import Machine
from fabbbr.backends.merging import merge, write_console
from fabbbr.errors import BackendError, PlaceLostError
from fabbbr.job.parts import split
from fabbbr.job.records import placed
from fabbbr.testbed import ClockOffset, MachineClock, Testbed

CLOCKS = "clocks.json"
_STAGES = (
    *("configure", "pings", "burst", "drain", "burst_back", "drain_back", "train", "drain_train"),
    *("flows", "over", "collect"),
)
"""As the agents come to them."""
_COMMON = ("burst", "burst_back", "train", "flows")
"""Those that begin on all machines at one instant."""
_OF_A_BURST = {
    "burst": ("burst", "drain"),
    "burst_back": ("burst_back", "drain_back"),
    "train": ("train", "drain_train"),
}
_LEAD_S = 2.0
"""A common instant lies so far ahead, and more: all must have been told by then."""
_TELLINGS = 4.0
"""The more, in times that telling all of something else has just taken: machines and ways may be slow."""
_POLL_S = 0.2
_POLL_SHARE, _LONGEST_POLL_S = 0.1, 2.0
"""Of the time waited so far: whoever asks often, while flows run for minutes, disturbs what is measured."""
_BEAT_S = 20.0
_WOKEN_S = 5.0
"""How long an agent that is started only to say that it was killed may take."""
_PATIENCE_S = 300.0
"""How long the parts go on without a word from their coordinator: a connection that is lost may come back."""
_ABORT_S = 30.0


def carry_out(task: Task, testbed: Testbed, channels: Mapping[str, Channel]) -> Report:
    """Leave the raw files of the job in ``task.work``; the clocks are in its options and in ``clocks.json``.

    ``testbed`` says on which machine each node is, ``channels`` how a machine is reached. Raise BackendError,
    which names the machine, when a part failed, and CancelledError when interrupted.
    """
    placement = placed(task.job.nodes, task.job.cables, testbed)
    parts = split(task.job, placement)
    unknown = sorted(set(parts) - set(channels))
    if unknown:
        message = f"no way to machine {', '.join(unknown)} is known"
        raise BackendError(message)
    name = _name(task, placement)
    machines = [Machine(machine, channels[machine], part, name) for machine, part in parts.items()]
    coordinator = _Coordinator(task, machines)
    started = time.monotonic()
    try:
        clocks = coordinator.hold()
        clock_s = coordinator.fetched()
    except BaseException as error:
        coordinator.abort(str(error) or "interrupted")
        if isinstance(error, ChannelError):
            raise PlaceLostError(str(error)) from error
        raise
    finally:
        for machine in machines:
            machine.hang_up()
    for machine in machines:
        machine.forget()
    told = {machine: clock.model_dump() for machine, clock in clocks.items()}
    (task.work / "raw" / CLOCKS).write_text(json.dumps(told), encoding="utf-8")
    return Report(
        wall_s=time.monotonic() - started,
        clock_s=clock_s,
        options={"agent_sha256": agent_hash(), "clocks": told},
    )


def _name(task: Task, placement: Mapping[str, str]) -> str:
    """As the folders of its parts are called; repetitions differ by their seed."""
    what = [task.job.model_dump_json(), sorted(placement.items()), task.seed]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


class _Coordinator:
    def __init__(self, task: Task, machines: list[Machine]) -> None:
        self._task = task
        self._machines = machines
        self._started = self._beat = time.monotonic()
        self._telling_s = 0.0

    def hold(self) -> dict[str, MachineClock]:
        """See all parts through; return how their clocks differ from ours."""
        for machine in self._machines:
            machine.start(_PATIENCE_S)
        job = self._task.job
        without = [stage for name in _OF_A_BURST if getattr(job, name) is None for stage in _OF_A_BURST[name]]
        stages = [stage for stage in _STAGES if stage not in without]
        for stage, following in zip(stages, (*stages[1:], None), strict=True):
            self._stage(stage, following)
        self._await("outcome.json", self._machines)
        self._compare_clocks("after")
        return {machine.name: _clock_of(machine) for machine in self._machines}

    def fetched(self) -> float:
        """Merge the raw files; return the seconds that the longest part took."""
        fetched = self._task.work / "parts"
        folders = {machine.name: fetched / machine.name for machine in self._machines}
        clock_s = 0.0
        for machine in self._machines:
            folders[machine.name].mkdir(parents=True)
            clock_s = max(clock_s, machine.fetch(folders[machine.name]))
        merge(self._task.job, {m.name: m.part for m in self._machines}, folders, self._task.work / "raw")
        shutil.rmtree(fetched)
        return clock_s

    def abort(self, reason: str) -> None:
        """Tell all parts to stop, wait until they have, and keep what they printed."""
        folders: dict[str, Path] = {}
        for machine in self._machines:
            # Whoever stops does not wait for a connection that is lost: the agents stop by themselves.
            machine.lost_s = 0.0
            with contextlib.suppress(BackendError):
                if machine.started:
                    machine.tell("abort", " ".join(reason.split()))
                else:
                    machine.forget()
        until = time.monotonic() + _ABORT_S
        for machine in (each for each in self._machines if each.started):
            with contextlib.suppress(BackendError):
                if not _ends(machine, until):
                    # One that was killed could not say so.
                    machine.wake(_PATIENCE_S)
                    _ends(machine, time.monotonic() + _WOKEN_S)
                folder = self._task.work / "parts" / machine.name
                folder.mkdir(parents=True, exist_ok=True)
                machine.fetch_log(folder)
                folders[machine.name] = folder
                if machine.ended():
                    machine.forget()
        write_console(folders, self._task.work / "raw")
        shutil.rmtree(self._task.work / "parts", ignore_errors=True)

    def _stage(self, stage: str, following: str | None) -> None:
        self._await(f"ready.{stage}", self._machines)
        instants = self._instants(stage)
        for machine in self._machines:
            machine.tell(f"go.{stage}", f"{instants[machine.name]:.9f}")
            if stage == "pings":
                # One machine after the other, as one alone would: two pings at once would hold each other up.
                self._await(f"ready.{following}", [machine])

    def _instants(self, stage: str) -> dict[str, float]:
        """When each machine begins, on its own clock."""
        if stage not in _COMMON:
            return {machine.name: 0.0 for machine in self._machines}
        offsets = self._compare_clocks(stage)
        instant = time.monotonic() + _LEAD_S + _TELLINGS * self._telling_s
        return {name: instant + offset.offset_s for name, offset in offsets.items()}

    def _compare_clocks(self, when: str) -> dict[str, ClockOffset]:
        offsets = {machine.name: machine.clock() for machine in self._machines}
        began = time.monotonic()
        for machine in self._machines:
            machine.tell(f"clock.{when}", offsets[machine.name].model_dump_json())
        self._telling_s = time.monotonic() - began
        return offsets

    def _await(self, file: str, of: Collection[Machine]) -> None:
        """Return when all ``of`` these have made the file; whichever machine fails meanwhile is an error."""
        began = time.monotonic()
        while True:
            there = [machine for machine in self._machines if machine.told(file)]
            if all(machine in there for machine in of):
                return
            waited_s = time.monotonic() - began
            self._pause(min(max(_POLL_S, _POLL_SHARE * waited_s), _LONGEST_POLL_S))

    def _pause(self, seconds: float) -> None:
        if self._task.cancelled.wait(seconds):
            raise CancelledError
        now = time.monotonic()
        away_s = max(machine.away_s() for machine in self._machines)
        if now - self._started - away_s > self._task.wall_limit_s:
            message = f"the cell was ended after {self._task.wall_limit_s:.0f} s; see raw/console.log"
            raise BackendError(message)
        if now - self._beat > _BEAT_S:
            self._beat = now
            for machine in self._machines:
                with contextlib.suppress(BackendError):
                    machine.beat(f"{now:.3f}")
        far = [machine.clock_s for machine in self._machines if machine.clock_s is not None]
        if far:
            self._task.progress(max(far))


def _ends(machine: Machine, until: float) -> bool:
    """Wait for the end of its agent; whether it came in time."""
    while not machine.ended():
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_S)
    return True


def _clock_of(machine: Machine) -> MachineClock:
    """What was measured."""
    names = {f"clock.{when}": when for when in (*_COMMON, "after")}
    told = machine.told(*names, "go.flows")
    return MachineClock(
        measured={
            when: ClockOffset.model_validate_json(told[name]) for name, when in names.items() if name in told
        },
        flows_s=float(told["go.flows"]),
    )

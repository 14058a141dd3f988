"""A testbed of records alone: it remembers what was reserved, takes time, and fails where a test says so."""

import subprocess
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from offers import offer

from fabbbr.backends.provider import ProviderError
from fabbbr.reserve.records import LiveMachine, LiveSlice

BEFORE, AFTER = "before", "after"


@dataclass
class Clock:
    """Waiting costs nothing."""

    seconds: float = 0.0

    def now(self):
        return datetime(2026, 11, 22, tzinfo=timezone.utc) + timedelta(seconds=self.seconds)

    def monotonic(self):
        return self.seconds

    def sleep(self, seconds):
        self.seconds += seconds


@dataclass
class World:
    """What outlives a command: the slices that there are, and what goes wrong next."""

    clock: Clock = field(default_factory=Clock)
    offer: object = field(default_factory=offer)
    slices: dict = field(default_factory=dict)
    """Name → (reservation, when it was asked for)."""
    submitted: int = 0
    boot_s: float = 60.0
    failing: dict = field(default_factory=dict)
    """(verb, before or after its effect) → errors to raise, one each time."""
    broken: dict = field(default_factory=dict)
    """Name → why it failed."""
    closing: dict = field(default_factory=dict)
    """Name → when it will be gone."""
    lease_end: dict = field(default_factory=dict)
    half: set = field(default_factory=set)
    """Names of slices that were left half made: they come up when they are asked for once more."""

    def may_fail(self, verb, when):
        errors = self.failing.get((verb, when), [])
        if errors:
            raise errors.pop(0)


class Channel:
    def __init__(self, world, machine):
        self._world, self._machine, self.folder = world, machine, "/nowhere"

    def run(self, argv, *, stdin=b"", timeout_s=60.0):
        self._world.may_fail("run", BEFORE)
        said = "\n".join(("0", *self._machine.interfaces.values()))
        return subprocess.CompletedProcess(tuple(argv), 0, said.encode(), b"")


class Provider:
    """As :class:`fabbbr.backends.provider.Provider` has it."""

    def __init__(self, world):
        self._world = world

    def offer(self):
        self._world.may_fail("offer", BEFORE)
        return self._world.offer

    def find(self, name):
        self._world.may_fail("find", BEFORE)
        return self._live(name) if name in self._world.slices else None

    def submit(self, reservation):
        self._world.may_fail("submit", BEFORE)
        self._world.half.discard(reservation.name)
        if reservation.name not in self._world.slices:
            self._world.submitted += 1
            self._world.slices[reservation.name] = (reservation, self._world.clock.seconds)
            self._world.lease_end[reservation.name] = self._world.clock.now() + timedelta(
                seconds=reservation.lease_s
            )
        self._world.may_fail("submit", AFTER)
        return self._live(reservation.name)

    def refresh(self, live):
        self._world.may_fail("refresh", BEFORE)
        gone = live.model_copy(update={"state": "gone", "machines": ()})
        return self._live(live.name) if live.name in self._world.slices else gone

    def renew(self, live, until):
        self._world.may_fail("renew", BEFORE)
        most = self._world.clock.now() + timedelta(days=15)
        self._world.lease_end[live.name] = min(until, most)
        return self._world.lease_end[live.name]

    def delete(self, live):
        self._world.may_fail("delete", BEFORE)
        if live.name in self._world.slices and self._live(live.name).state == "configuring":
            message = "Cannot delete a slice that is being configured"
            raise ProviderError(message)
        self._world.closing.setdefault(live.name, self._world.clock.seconds + 20)
        self._world.may_fail("delete", AFTER)

    def channel(self, machine):
        return Channel(self._world, machine)

    def ansible(self, machine):
        return {"ansible_host": machine.address}

    def shell(self, machine):
        return ("true",)

    def close(self):
        """Nothing is held."""

    def _live(self, name):
        world = self._world
        reservation, asked = world.slices[name]
        live = LiveSlice(name=name, id=f"id-{name}", state="configuring", lease_end=world.lease_end[name])
        if name in world.closing:
            if world.clock.seconds >= world.closing[name]:
                del world.slices[name], world.closing[name]
                return live.model_copy(update={"state": "gone"})
            return live.model_copy(update={"state": "closing"})
        if name in world.broken:
            return live.model_copy(update={"state": "failed", "said": world.broken[name]})
        if name in world.half or world.clock.seconds - asked < world.boot_s:
            return live
        machines = tuple(
            LiveMachine(
                name=machine.name,
                site=machine.site,
                address="192.0.2.1",
                user="ubuntu",
                interfaces={
                    cable.link: f"02:00:00:00:{number:02x}:{cable.b_machine == machine.name:02x}"
                    for number, cable in enumerate(reservation.cables)
                    if machine.name in (cable.a_machine, cable.b_machine)
                },
            )
            for machine in reservation.machines
        )
        return live.model_copy(update={"state": "ok", "machines": machines})

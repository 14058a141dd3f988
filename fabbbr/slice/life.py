"""A slice comes to be: asked for, awaited, reached, prepared, measured.

Each phase may be said again, and what was done is remembered when it is done: whatever interrupts, the same
command goes on with the first phase that was not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fabbbr.backends.channel import Channel
from fabbbr.backends.provider import Provider, ProviderError
from fabbbr.errors import BackendError, EnvironmentUnfitError, FabbbrError, UsageError
from fabbbr.foreign import listed
from fabbbr.record import differences
from fabbbr.reserve import refusals
from fabbbr.reserve.inventory import inventory
from fabbbr.reserve.records import LiveSlice, Reservation
from fabbbr.slice import measure, prepare, reach, state
from fabbbr.slice.asking import Decision
from fabbbr.slice.clock import Clock
from fabbbr.slice.differences import unlike
from fabbbr.slice.state import Phase, SliceState, Wish
from fabbbr.topology import Topology

COME_UP_S = 1800.0
"""A testbed takes minutes for machines, and now and then half an hour."""
_POLL_S = 5.0
_UNHEARD_S = 180.0
"""A testbed that cannot be asked for so long is an error; what it does goes on meanwhile."""
_DIFFERENCES_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Way:
    """How it is done."""

    clock: Clock
    tell: Callable[[Phase, str], None]
    """What is being done for a phase, for whoever waits."""
    prepare: Callable[[dict[str, Any], Callable[[str], None]], None] | None = prepare.prepare
    """None: machines are left as they are."""
    measure: Callable[..., tuple[state.MeasuredPair, ...]] = measure.measure
    agree: Callable[[Reservation], bool] = lambda _: True
    """Whether it shall be asked for: the last moment before something is reserved."""
    come_up_s: float = COME_UP_S
    answer_s: float = reach.PER_MACHINE_S
    """For each machine."""


def create(name: str, wish: Wish, decide: Decision, provider: Provider, way: Way) -> SliceState:
    """Make the slice, or go on making it; return what is remembered of it.

    ``decide`` decides what the wish leaves open, unless the same wish was decided before.

    Raises
    ------
    UsageError
        There is a slice of that name that was asked for otherwise.
    PlanError
        The testbed would refuse it.
    BackendError
        A phase failed, and why; what was reached is remembered.
    """
    with state.only_worker(name):
        return _Making(name, wish, decide, provider, way).made()


class _Making:
    def __init__(self, name: str, wish: Wish, decide: Decision, provider: Provider, way: Way) -> None:
        self._wish = wish
        self._decide = decide
        self._name = name
        self._provider = provider
        self._way = way

    def made(self) -> SliceState:
        known = self._known()
        live = self._provider.find(self._name)
        if live is not None:
            _require_usable(live)
        now = self._begun(known, live)
        if live is None or not now.reached("submitted"):
            # Once more, where nobody heard of it: a testbed makes whole what is there half made.
            live = self._submitted(now, new=known is None)
        now = self._remember(now, "submitted", live)
        live = self._up(live)
        now = self._remember(now, "up", live)
        return self._worked(now, live, self._decide.topology(now.reservation))

    def _known(self) -> SliceState | None:
        known = state.load(self._name)
        if known is not None and known.wish != self._wish:
            wanted = self._decide.asked().reservation
            found = [*differences(known.reservation, wanted)]
            if known.wish.backend != self._wish.backend:
                found.insert(0, f"backend: {known.wish.backend} there, {self._wish.backend} asked")
            _require_none(self._name, found)
            known = known.model_copy(update={"wish": self._wish})
        return known

    def _begun(self, known: SliceState | None, live: LiveSlice | None) -> SliceState:
        """What is done already."""
        if known is not None and live is not None:
            return known
        if known is not None and known.phase == "asked":
            # It may have been submitted, with nobody hearing of it: it stays as it was decided.
            reservation = known.reservation
        else:
            asked = self._decide.asked()
            reservation = asked.reservation
            if known is not None:
                self._way.tell("asked", f"slice {self._name} is gone, as after its lease; it is made anew")
            if asked.said:
                self._way.tell("asked", asked.said)
        now = SliceState(wish=self._wish, reservation=reservation)
        if live is None:
            self._way.tell("asked", "looking for what would be refused")
            refusals.require_none(reservation, self._provider.offer())
            if not self._way.agree(reservation):
                message = f"slice {self._name} is not created, as you said; --yes does not ask"
                raise UsageError(message)
        else:
            self._way.tell("asked", f"slice {self._name} is there already; going on with it")
            _require_none(self._name, [*unlike(reservation, live)])
        return state.save(now)

    def _submitted(self, now: SliceState, *, new: bool) -> LiveSlice:
        self._way.tell("submitted", f"asking for {_described(now.reservation)}")
        try:
            return self._provider.submit(now.reservation)
        except EnvironmentUnfitError:
            if new:
                self._forget_unless_there()
            raise

    def _forget_unless_there(self) -> None:
        """What this machine could not even ask for is no slice; in doubt it is remembered."""
        with contextlib.suppress(FabbbrError):
            if self._provider.find(self._name) is None:
                state.forget(self._name)

    def _up(self, live: LiveSlice) -> LiveSlice:
        """Wait until all of its machines are there."""
        clock = self._way.clock
        started = heard = clock.monotonic()
        while live.state != "ok":
            _require_usable(live)
            self._way.tell("up", live.said or f"the testbed says: {live.state}")
            if clock.monotonic() - started > self._way.come_up_s:
                minutes = self._way.come_up_s / 60
                message = (
                    f"slice {self._name} is not up after {minutes:g} minutes ({live.said}); the same command "
                    f"goes on waiting, 'fabbbr slice teardown {self._name}' gives it back"
                )
                raise ProviderError(message)
            clock.sleep(_POLL_S)
            try:
                live = self._provider.refresh(live)
                heard = clock.monotonic()
            except BackendError as error:
                if clock.monotonic() - heard > _UNHEARD_S:
                    raise
                self._way.tell("up", f"the testbed cannot be asked just now: {error}")
        return live

    def _worked(self, now: SliceState, live: LiveSlice, topology: Topology) -> SliceState:
        """What is done on the machines."""
        channels = {machine.name: self._provider.channel(machine) for machine in live.machines}
        if not now.reached("reached"):
            self._reached(now.reservation, live, channels)
            now = self._remember(now, "reached", live)
        if not now.reached("prepared") or (self._way.prepare is not None and not now.prepared):
            now = self._prepared(now, live, topology)
        if not now.reached("measured"):
            pairs = self._way.measure(
                now.reservation, live, topology, channels, lambda said: self._way.tell("measured", said)
            )
            now = self._remember(now.model_copy(update={"pairs": pairs}), "measured", live)
        return now

    def _reached(self, reservation: Reservation, live: LiveSlice, channels: Mapping[str, Channel]) -> None:
        missing = {one.name for one in reservation.machines} - set(channels)
        if live.machines and missing:
            message = f"the testbed says that all is well, and has no machine {listed(sorted(missing))}"
            raise ProviderError(message)
        reach.reach(
            live,
            channels,
            self._way.clock,
            lambda said: self._way.tell("reached", said),
            deadline_s=self._way.answer_s,
        )

    def _prepared(self, now: SliceState, live: LiveSlice, topology: Topology) -> SliceState:
        done = self._way.prepare is not None and bool(live.machines)
        if self._way.prepare is not None and live.machines:
            ways = {machine.name: self._provider.ansible(machine) for machine in live.machines}
            hosts = inventory(now.reservation, live, topology, ways)
            self._way.prepare(hosts, lambda said: self._way.tell("prepared", said))
        # What was measured before, if anything, was measured on other settings.
        now = now.model_copy(update={"prepared": done, "phase": "reached"})
        return self._remember(now, "prepared", live)

    def _remember(self, now: SliceState, phase: Phase, live: LiveSlice) -> SliceState:
        update = {"id": live.id, "lease_end": live.lease_end}
        if not now.reached(phase):
            update["phase"] = phase
        return state.save(now.model_copy(update=update))


def _require_usable(live: LiveSlice) -> None:
    if live.state in ("ok", "configuring"):
        return
    remedy = {
        "failed": f"give it back with 'fabbbr slice teardown {live.name}', and create it again",
        "closing": "it is being given back: wait a minute, and create it again",
        "gone": "create it again",
    }[live.state]
    message = f"slice {live.name}: {live.said or f'the testbed says that it is {live.state}'}; {remedy}"
    raise ProviderError(message)


def _require_none(name: str, found: list[str]) -> None:
    if found:
        said = listed(found, most=_DIFFERENCES_SHOWN, separator="; ")
        message = (
            f"there is a slice {name} that was asked for otherwise: {said}; take another name, ask for the "
            f"same, or 'fabbbr slice teardown {name}' first"
        )
        raise UsageError(message)


def _described(reservation: Reservation) -> str:
    sites = listed(dict.fromkeys(machine.site for machine in reservation.machines))
    return f"{len(reservation.machines)} machines at {sites}, {len(reservation.cables)} networks"

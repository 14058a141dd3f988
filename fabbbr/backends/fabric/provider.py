"""FABRIC as a provider: what to do about its answers, and about those that do not come."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from fabbbr.backends.channel import Channel
from fabbbr.backends.fabric import offer as offers
from fabbbr.backends.fabric.answers import GraphSeen, LostError, RefusedError, SliceSeen
from fabbbr.backends.fabric.cabling import require_names
from fabbbr.backends.fabric.credentials import require_bastion_key, require_keys, slice_keys
from fabbbr.backends.fabric.fablib import FablibWire, utc_now
from fabbbr.backends.fabric.reach import Reach
from fabbbr.backends.fabric.refusals import brief, explained
from fabbbr.backends.fabric.seen import STABLE, coarse, live_slice
from fabbbr.backends.fabric.wire import Wire
from fabbbr.backends.provider import ProviderError
from fabbbr.backends.ssh.channel import SshChannel
from fabbbr.files import state_folder
from fabbbr.foreign import listed, shown
from fabbbr.record import Record
from fabbbr.reserve.records import LiveMachine, LiveSlice, Offer, Reservation
from fabbbr.suggest import did_you_mean

_JOBS = "/var/lib/fabbbr"
"""Where machines keep the parts of jobs."""
_ID = re.compile(r"[0-9A-Za-z-]+")
_TRIES = 3
_AGAIN = "run it again: what was begun is found by its name"


class Patience(Record):
    """How long to wait for FABRIC, in seconds."""

    appear_s: float = 20.0
    """For a slice to show up after an order whose answer was lost."""
    stable_s: float = 1200.0
    """For a slice that is changing, before it is deleted or renewed. Machines boot in minutes."""
    settle_s: float = 60.0
    """For a new lease to be in force."""
    look_s: float = 5.0
    """Between two looks; less between the first ones."""


class FabricProvider:
    """FABRIC for the user whom fablib's configuration names.

    Besides ProviderError, every verb may raise EnvironmentUnfitError: without fablib, a usable token or a
    usable key, or when the configuration lacks something; the message says what to do.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        wire: Wire | None = None,
        now: Callable[[], datetime] = utc_now,
        pause: Callable[[float], None] = time.sleep,
        patience: Patience | None = None,
    ) -> None:
        self._folder = folder or state_folder() / "fabric"
        self._wire = wire or FablibWire(self._folder, now=now, pause=pause)
        self._now = now
        self._pause = pause
        self._patience = patience or Patience()
        self._users: Mapping[str, str] | None = None
        self._channels: dict[str, SshChannel] = {}

    def offer(self) -> Offer:
        """Sites and permissions, as they are now."""
        with _said("FABRIC's offer"):
            settings = self._wire.settings()
            summary, token = self._wire.summary(), self._wire.token()
            return offers.offer(summary, token, settings.project_id, slice_keys(settings))

    def find(self, name: str) -> LiveSlice | None:
        """The user's slice of exactly that name that is not gone; one that is not closing first."""
        with _said(f"slice {name}"):
            found = sorted(self._wire.named(name), key=lambda each: coarse(each.state) == "closing")
            return self._look(found[0].id) if found else None

    def submit(self, reservation: Reservation) -> LiveSlice:
        """Ask for it and return at once; a slice of that name that is there already is returned as it is."""
        require_names(reservation)
        if there := self._standing(reservation.name):
            return there
        with _said(f"slice {reservation.name}"):
            key = self._require_fit(reservation)
            return self._created(reservation, self._wire.composed(reservation), key)

    def refresh(self, live: LiveSlice) -> LiveSlice:
        """How it is now; ``gone`` when the testbed does not know it any more."""
        _require_id(live)
        with _said(f"slice {live.name}"):
            return self._look(live.id) or LiveSlice(
                name=live.name, id=live.id, state="gone", said="FABRIC does not know it"
            )

    def renew(self, live: LiveSlice, until: datetime) -> datetime:
        """Move the end of its lease; return what it is now, which FABRIC keeps within 15 days.

        Raises ProviderError also when ``until`` is before the present end.
        """
        _require_id(live)
        asked = until.replace(microsecond=0)
        with _said(f"slice {live.name}"):
            before = self._wire.slice(live.id).lease_end
            self._insisting(
                live, lambda: self._wire.renew(live.id, asked), lambda seen: seen.lease_end == asked
            )
            end = self._settled(live, before if before != asked else None)
        if end is None:
            message = f"slice {live.name}: FABRIC does not say when its lease ends; {_AGAIN}"
            raise ProviderError(message)
        return end

    def delete(self, live: LiveSlice) -> None:
        """Give everything back; no error when it is gone already. While it is changing, wait."""
        _require_id(live)
        with _said(f"slice {live.name}"):
            try:
                self._insisting(
                    live,
                    lambda: self._wire.delete(live.id),
                    lambda seen: coarse(seen.state) in ("closing", "gone"),
                )
            except RefusedError as refusal:
                if not _unknown(refusal):
                    raise
            reach = Reach(self._folder / "ssh", self._wire.settings())
        for machine in live.machines:
            with contextlib.suppress(OSError):
                reach.forget(machine)

    def channel(self, machine: LiveMachine) -> Channel:
        """The way to a machine, as root."""
        config, name = self._reach().config(machine)
        if name not in self._channels:
            self._channels[name] = SshChannel(config, name, folder=_JOBS)
        return self._channels[name]

    def ansible(self, machine: LiveMachine) -> Mapping[str, str]:
        """The variables with which Ansible reaches it."""
        return self._reach().ansible(machine)

    def shell(self, machine: LiveMachine) -> tuple[str, ...]:
        """The command that opens a shell there for its user."""
        return self._reach().shell(machine)

    def close(self) -> None:
        """End connections."""
        while self._channels:
            self._channels.popitem()[1].close()
        self._wire.close()

    def _reach(self) -> Reach:
        with _said("FABRIC's settings"):
            return Reach(self._folder / "ssh", self._wire.settings())

    def _look(self, slice_id: str) -> LiveSlice | None:
        """A slice as it is now, asked anew; None when FABRIC does not know it."""
        try:
            seen, graph = self._wire.full(slice_id)
            slivers = self._wire.slivers(slice_id) if coarse(seen.state) == "failed" else ()
        except RefusedError as refusal:
            if _unknown(refusal):
                return None
            raise
        if self._users is None:
            self._users = self._wire.users()
        return live_slice(seen, graph, slivers, self._users)

    def _require_fit(self, reservation: Reservation) -> str:
        """The public key for its machines, after all that can be known to be refused."""
        users = self._wire.users()
        for machine in reservation.machines:
            if machine.image not in users:
                hint = did_you_mean(machine.image, users)
                message = (
                    f"machine {machine.name}: FABRIC has no image {shown(machine.image)}{hint} "
                    f"(images: {listed(sorted(users), most=40)})"
                )
                raise ProviderError(message)
        settings = self._wire.settings()
        self._wire.make_keys()
        key = require_keys(settings)
        with contextlib.suppress(LostError, RefusedError):  # slices can be had while the portal is down
            require_bastion_key(settings, self._wire.account(), self._now())
        return key

    def _standing(self, name: str) -> LiveSlice | None:
        """The slice that holds a name; one that is closing does so no more."""
        there = self.find(name)
        return there if there and there.state not in ("closing", "gone") else None

    def _created(self, reservation: Reservation, graphml: str, key: str) -> LiveSlice:
        """Ask, and when no answer comes look for the slice before asking again."""
        lost: LostError | None = None
        for _ in range(_TRIES):
            until = self._now() + timedelta(seconds=reservation.lease_s)
            try:
                made = self._wire.create(reservation.name, graphml, key=key, until=until)
            except LostError as error:
                lost = error
                there = self._appeared(reservation.name)
            except RefusedError as refusal:
                there = self._standing(reservation.name) if "already exists" in refusal.said else None
                if there is None:
                    raise
            else:
                return self._begun(made, reservation.name)
            if there:
                return there
        message = (
            f"slice {reservation.name}: asked {_TRIES} times without an answer ({brief(str(lost))}); {_AGAIN}"
        )
        raise ProviderError(message)

    def _begun(self, slice_id: str, name: str) -> LiveSlice:
        """A slice that was just ordered; that it is there is known whatever the next question brings."""
        with contextlib.suppress(LostError, RefusedError):
            if there := self._look(slice_id):
                return there
        return live_slice(SliceSeen(id=slice_id, name=name, state="Nascent"), GraphSeen())

    def _appeared(self, name: str) -> LiveSlice | None:
        """Look for a slice that may have been made, for a while."""
        for _ in self._looks(self._patience.appear_s):
            if there := self._standing(name):
                return there
        return None

    def _insisting(
        self, live: LiveSlice, order: Callable[[], None], done: Callable[[SliceSeen], bool]
    ) -> None:
        """Give an order until FABRIC takes it: while the slice is changing, or the answer is lost, wait.

        Raises RefusedError for any other reason, and whatever came last when the time is over.
        """
        problem: LostError | RefusedError | None = None
        for _ in self._looks(self._patience.stable_s):
            try:
                order()
            except (LostError, RefusedError) as error:
                problem = error
            else:
                return
            seen = self._wire.slice(live.id)
            if done(seen):
                return
            if isinstance(problem, RefusedError) and not _passing(problem, seen):
                raise problem
        assert problem is not None
        raise problem

    def _settled(self, live: LiveSlice, before: datetime | None) -> datetime | None:
        """The end of a lease once it has moved and the slice is stable, or what it is after a while."""
        end = before
        for _ in self._looks(self._patience.settle_s):
            seen = self._wire.slice(live.id)
            end = seen.lease_end
            if seen.state in STABLE and end != before:
                break
        return end

    def _looks(self, limit_s: float) -> Iterator[None]:
        """One turn at once, and one after each pause until the time is over."""
        end = self._now() + timedelta(seconds=limit_s)
        pause_s = self._patience.look_s / 16
        yield
        while self._now() < end:
            self._pause(pause_s)
            pause_s = min(2 * pause_s, self._patience.look_s)
            yield


@contextmanager
def _said(what: str) -> Iterator[None]:
    """Say in the user's words what FABRIC refused, or that it did not answer."""
    try:
        yield
    except RefusedError as refusal:
        message = f"{what}: FABRIC says: {explained(refusal.said)}"
        raise ProviderError(message) from refusal
    except LostError as lost:
        message = f"{what}: FABRIC does not answer ({brief(str(lost))}); see to the network, then {_AGAIN}"
        raise ProviderError(message) from lost


def _require_id(live: LiveSlice) -> None:
    """Raise ProviderError without what FABRIC calls the slice: it would take the order for all of them."""
    if not _ID.fullmatch(live.id):
        message = f"slice {live.name}: {shown(live.id)} is no id of FABRIC's; find it by its name first"
        raise ProviderError(message)


def _passing(refusal: RefusedError, seen: SliceSeen) -> bool:
    """Whether an order is refused only because the slice is changing just now."""
    return "not yet stable" in refusal.said or coarse(seen.state) == "configuring"


def _unknown(refusal: RefusedError) -> bool:
    """Whether FABRIC says that there is no such slice, or none any more."""
    return refusal.status == 404 or "already closed" in refusal.said

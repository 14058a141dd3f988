"""A slice of the guest backend is a name and a topology: a guest is made for each cell."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from fabbbr.backends.channel import Channel
from fabbbr.backends.guest.image.found import found_image
from fabbbr.backends.provider import ProviderError
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.files import STATE_REMEDY, state_folder, write_atomically
from fabbbr.reserve.records import LiveMachine, LiveSlice, Offer, Reservation


class GuestProvider:
    """Names that are kept in the user's state folder."""

    def offer(self) -> Offer:
        """Any site: what is far away is emulated."""
        return Offer(sites={}, any_site=True)

    def find(self, name: str) -> LiveSlice | None:
        """The slice of that name."""
        return _live(name) if _file(name).exists() else None

    def submit(self, reservation: Reservation) -> LiveSlice:
        """Note the name; raise EnvironmentUnfitError where there is no guest to run it in."""
        if found_image() is None:
            message = "there is no guest image yet; build it once with: fabbbr guest build (some minutes)"
            raise EnvironmentUnfitError(message)
        file = _file(reservation.name)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(file, "", mode=0o600, remedy=STATE_REMEDY)
        return _live(reservation.name)

    def refresh(self, live: LiveSlice) -> LiveSlice:
        """How it is now."""
        return self.find(live.name) or live.model_copy(update={"state": "gone"})

    def renew(self, live: LiveSlice, until: datetime) -> datetime:
        """Nothing to move."""
        message = (
            f"slice {live.name} has no lease to move to {until:%Y-%m-%d %H:%M}: it ends when it is torn down"
        )
        raise ProviderError(message)

    def delete(self, live: LiveSlice) -> None:
        """Forget the name."""
        _file(live.name).unlink(missing_ok=True)

    def channel(self, machine: LiveMachine) -> Channel:
        """There are no machines."""
        raise ProviderError(_none(machine))

    def ansible(self, machine: LiveMachine) -> Mapping[str, str]:
        """There are no machines."""
        raise ProviderError(_none(machine))

    def shell(self, machine: LiveMachine) -> tuple[str, ...]:
        """There are no machines."""
        raise ProviderError(_none(machine))

    def close(self) -> None:
        """Nothing is held."""


def _file(name: str) -> Path:
    return state_folder() / "guest-slices" / name


def _live(name: str) -> LiveSlice:
    return LiveSlice(name=name, id=name, state="ok", said="a guest is made for each cell")


def _none(machine: LiveMachine) -> str:
    return f"there is no machine {machine.name}: a slice of guests has machines only while a cell runs"

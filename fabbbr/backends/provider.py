"""What a testbed of several machines offers: it reserves them, says how they are, and gives them back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from fabbbr.backends.channel import Channel
from fabbbr.errors import BackendError
from fabbbr.reserve.records import LiveMachine, LiveSlice, Offer, Reservation


class ProviderError(BackendError):
    """The testbed refused, could not be reached, or answered what makes no sense."""


class Provider(Protocol):
    """One testbed and one user of it. Every verb may be said again after it failed."""

    def offer(self) -> Offer:
        """Sites and permissions, as they are now."""

    def find(self, name: str) -> LiveSlice | None:
        """The user's slice of exactly that name that is not gone; None when there is none."""

    def submit(self, reservation: Reservation) -> LiveSlice:
        """Ask for it and return at once; a slice of that name that is there already is returned as it is.

        Raises ProviderError, with the testbed's own reason; EnvironmentUnfitError where this machine lacks
        what it takes to ask.
        """

    def refresh(self, live: LiveSlice) -> LiveSlice:
        """How it is now; ``gone`` when the testbed does not know it any more."""

    def renew(self, live: LiveSlice, until: datetime) -> datetime:
        """Move the end of its lease; return what it is now, which may be earlier than asked."""

    def delete(self, live: LiveSlice) -> None:
        """Give everything back; no error when it is gone already."""

    def channel(self, machine: LiveMachine) -> Channel:
        """The way to a machine, as root."""

    def ansible(self, machine: LiveMachine) -> Mapping[str, object]:
        """The variables with which Ansible reaches it, and what of the roles does not fit such a machine."""

    def shell(self, machine: LiveMachine) -> tuple[str, ...]:
        """The command that opens a shell there for its user."""

    def close(self) -> None:
        """End connections."""

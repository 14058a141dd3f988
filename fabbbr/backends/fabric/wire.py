"""The questions and orders that FABRIC answers, as the provider says them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from fabbbr.backends.fabric.answers import GraphSeen, Settings, SliceSeen, SliverSeen
from fabbbr.reserve.records import Reservation


class Wire(Protocol):
    """FABRIC's answers, one call each. RefusedError: it says no. LostError: nothing of its own comes."""

    def settings(self) -> Settings:
        """How fablib is configured; EnvironmentUnfitError when that is not enough."""

    def summary(self) -> Mapping[str, Any]:
        """All sites and their resources."""

    def token(self) -> Mapping[str, Any]:
        """What the credential manager says of the user's token."""

    def account(self) -> Mapping[str, Any]:
        """The portal's record of the user."""

    def users(self) -> Mapping[str, str]:
        """Image → the user to log in as."""

    def make_keys(self) -> None:
        """Have FABRIC make the keys of a user who has none yet, as fablib does at its first use."""

    def named(self, name: str) -> tuple[SliceSeen, ...]:
        """The user's slices of exactly that name that are not dead."""

    def slice(self, slice_id: str) -> SliceSeen:
        """A slice, without its graph."""

    def full(self, slice_id: str) -> tuple[SliceSeen, GraphSeen]:
        """A slice with its graph."""

    def slivers(self, slice_id: str) -> tuple[SliverSeen, ...]:
        """The parts of a slice."""

    def composed(self, reservation: Reservation) -> str:
        """The graph of what is wished."""

    def create(self, name: str, graphml: str, *, key: str, until: datetime) -> str:
        """Ask for a slice; its id."""

    def renew(self, slice_id: str, until: datetime) -> None:
        """Ask for another end of its lease."""

    def delete(self, slice_id: str) -> None:
        """Ask for its end."""

    def close(self) -> None:
        """Give back what the library holds."""

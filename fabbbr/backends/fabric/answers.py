"""What FABRIC answers, as records that need none of its libraries, and the two ways in which it does not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from fabbbr.record import Record

_TIME = "%Y-%m-%d %H:%M:%S %z"


class RefusedError(Exception):
    """It answered, and said no."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{status}: {said}")
        self.status = status
        """Of HTTP. The orchestrator uses 500 for most refusals."""
        self.said = said


class LostError(Exception):
    """No answer of its own came: whether it did what was asked is not known."""


class Settings(Record):
    """fablib's configuration, as far as it matters here. Hosts are bare names, files absolute paths."""

    project_id: str
    bastion_host: str
    bastion_user: str
    bastion_key: str
    slice_key: str
    """The private one; slices get the public one."""
    slice_public_key: str
    token_file: str


class SliceSeen(Record):
    """A slice as the orchestrator lists it."""

    id: str
    name: str
    state: str
    """FABRIC's word: StableOK, Configuring, Dead…"""
    lease_end: datetime | None = None


class NodeSeen(Record):
    """A virtual machine in a slice's graph."""

    name: str
    site: str
    image: str
    state: str | None = None
    """Of its reservation: Active, Ticketed, Closed…"""
    error: str = ""
    address: str | None = None
    worker: str | None = None


class NetworkSeen(Record):
    """A network service in a slice's graph."""

    name: str
    state: str | None = None
    error: str = ""
    gateway: str | None = None
    """Address and prefix length of the router, in a routed network."""


class PortSeen(Record):
    """An interface of a virtual machine on a network."""

    network: str
    node: str
    mac: str | None = None
    vlan: int | None = None
    """The tag that its frames must carry."""


class GraphSeen(Record):
    """What stands in a slice, and what became of each part."""

    nodes: tuple[NodeSeen, ...] = ()
    networks: tuple[NetworkSeen, ...] = ()
    ports: tuple[PortSeen, ...] = ()


class SliverSeen(Record):
    """What the orchestrator notes about a part of a slice."""

    name: str
    state: str
    notice: str = ""


def instant(text: str | None) -> datetime | None:
    """A time as FABRIC writes it; None where there is none or it cannot be read."""
    try:
        return datetime.strptime(text or "", _TIME)  # noqa: DTZ007 - the format has %z
    except ValueError:
        return None


def written(time: datetime) -> str:
    """A time as FABRIC reads it, to the second.

    >>> written(datetime(2026, 3, 1, 12, 0, 0, 999999, tzinfo=timezone.utc))
    '2026-03-01 12:00:00 +0000'
    """
    return time.astimezone(timezone.utc).strftime(_TIME)


def slice_seen(answer: Mapping[str, Any]) -> SliceSeen:
    """A slice from the orchestrator's JSON."""
    return SliceSeen(
        id=str(answer["slice_id"]),
        name=str(answer.get("name") or ""),
        state=str(answer.get("state") or "unknown"),
        lease_end=instant(answer.get("lease_end_time")),
    )


def sliver_seen(answer: Mapping[str, Any]) -> SliverSeen:
    """A sliver from the orchestrator's JSON."""
    return SliverSeen(
        name=str(answer.get("name") or answer.get("sliver_id") or "a part of it"),
        state=str(answer.get("state") or "unknown"),
        notice=str(answer.get("notice") or ""),
    )

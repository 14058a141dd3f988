"""What is asked of a testbed, what it offers, and what is there: frozen records, JSON on disk."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from fabbbr.record import Record
from fabbbr.spec.experiment import SliceChoice

NicKind = Literal["NIC_Basic", "NIC_ConnectX_5", "NIC_ConnectX_6", "NIC_ConnectX_7_100", "NIC_ConnectX_7_400"]
"""fablib's names. NIC_Basic is a share of a card, the others are whole cards with two ports."""
NetworkKind = Literal["L2Bridge", "L2STS", "L2PTP", "FABNetv4"]
SliceState = Literal["configuring", "ok", "failed", "closing", "gone"]


class Size(Record):
    """Of a machine."""

    cores: Annotated[int, Field(ge=1)]
    ram_gb: Annotated[int, Field(ge=1)]
    disk_gb: Annotated[int, Field(ge=1)]


class MachineWish(Record):
    """A virtual machine to reserve."""

    name: str
    site: str
    nodes: tuple[str, ...]
    """The hosts or switches of the topology that stand on it."""
    size: Size
    image: str
    """fablib's name, as in ``default_ubuntu_24``."""
    worker: str | None = None
    """The physical host at the site; None: wherever there is room."""


class CableWish(Record):
    """A network between two machines that carries one link of the topology."""

    link: str
    a: str
    b: str
    """Nodes of the topology, as in its link."""
    a_machine: str
    b_machine: str
    kind: NetworkKind
    nic: NicKind


class Reservation(Record):
    """A whole slice as it is asked for."""

    name: str
    definition: SliceChoice
    machines: tuple[MachineWish, ...]
    cables: tuple[CableWish, ...]
    """Links between nodes of one machine need none."""
    lease_s: float

    @property
    def placement(self) -> dict[str, str]:
        """Node of the topology → its machine."""
        return {node: machine.name for machine in self.machines for node in machine.nodes}


class Room(Record):
    """Of one kind of thing at a site: what there is in all, and what is free."""

    capacity: int
    available: int


class Site(Record):
    """A site as the testbed says now."""

    name: str
    state: Literal["active", "partly in maintenance", "in maintenance"]
    workers: tuple[str, ...] = ()
    """Names of its physical hosts that are in service."""
    location: tuple[float, float] | None = None
    """Latitude and longitude in degrees."""
    cores: Room
    ram_gb: Room
    disk_gb: Room
    nics: dict[NicKind, Room] = Field(default_factory=dict)


class Project(Record):
    """What the user's project may do."""

    id: str
    name: str
    tags: tuple[str, ...]
    """Permissions, as in ``Slice.Multisite``."""


class Key(Record):
    """A key for SSH, as its public half says."""

    place: str
    """The file that it came from."""
    kind: str
    """As in ``ssh-rsa``, ``ecdsa-sha2-nistp256``, ``ssh-ed25519``."""
    bits: int


class Offer(Record):
    """What a testbed has for this user now."""

    sites: dict[str, Site]
    any_site: bool = False
    """Names of sites are only labels here: every name does, and there is room for all."""
    project: Project | None = None
    """None where no permissions are asked for."""
    keys: tuple[Key, ...] = ()
    """With which machines would be made, where the testbed is particular about them."""


class LiveMachine(Record):
    """A machine that is there."""

    name: str
    site: str
    address: str
    """On the management network."""
    user: str
    interfaces: dict[str, str]
    """Link of the topology → MAC address of the interface that carries it here."""
    vlans: dict[str, int] = Field(default_factory=dict)
    """Link → the VLAN tag that its frames must carry, where the network asks for one (L2PTP)."""
    gateways: dict[str, str] = Field(default_factory=dict)
    """Link → address and prefix length of the network's router, where it routes (FABNetv4)."""
    worker: str | None = None


class LiveSlice(Record):
    """A slice as the testbed says now."""

    name: str
    id: str
    state: SliceState
    said: str = ""
    """The testbed's own words for the state, and the reasons of what failed."""
    lease_end: datetime | None = None
    """None where nothing ends by itself."""
    machines: tuple[LiveMachine, ...] = ()
    """Only those that are up."""

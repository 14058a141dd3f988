"""What the control plane grants and the ground makes: machines, networks, and which port is plugged where."""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv6Interface
from typing import Literal, Protocol

from fabbbr.record import Record

NetworkKind = Literal["L2Bridge", "L2STS", "L2PTP", "FABNetv4", "FABNetv6", "FABNetv4Ext", "FABNetv6Ext"]
SshMode = Literal["open", "late", "never", "rejects_key"]


class Port(Record):
    """One interface of a network card; ``id`` is that of its FIM element, ``mac`` what fablib looks for."""

    id: str
    name: str
    mac: str


class Card(Record):
    """A component with ports; a dedicated card carries VLAN tags."""

    id: str
    name: str
    bdf: str
    numa: str
    dedicated: bool
    ports: tuple[Port, ...]


class Machine(Record):
    """A node as granted. ``management`` is None when it got no management address."""

    id: str
    name: str
    site: str
    host: str
    instance: str
    image: str
    user: str
    keys: tuple[str, ...]
    management: IPv4Interface | IPv6Interface | None
    cards: tuple[Card, ...]
    ssh: SshMode = "open"
    ssh_after_s: float = 0.0

    @property
    def ports(self) -> tuple[Port, ...]:
        """All ports of all cards."""
        return tuple(port for card in self.cards for port in card.ports)


class Network(Record):
    """A network service as granted; ``gateway`` (with its prefix) only where FABRIC routes."""

    id: str
    name: str
    kind: NetworkKind
    sites: tuple[str, ...]
    rate_bps: int | None
    gateway: IPv4Interface | IPv6Interface | None


class Plug(Record):
    """A port in a network; with a VLAN, only what carries this tag at the port belongs to it."""

    port: str
    network: str
    site: str
    vlan: int | None = None


class Ground(Protocol):
    """Where granted things come to exist. Every method raises BackendError when the machine refuses."""

    def add_network(self, network: Network) -> None: ...

    def remove_network(self, network: str) -> None: ...

    def add_machine(self, machine: Machine) -> None:
        """Start a node with all its ports, plugged in nowhere."""

    def remove_machine(self, machine: str) -> None: ...

    def restart_machine(self, machine: str) -> None:
        """Its files stay; processes and every data-plane address are gone."""

    def stop_machine(self, machine: str) -> None:
        """It dies; its cables stay where they are."""

    def add_port(self, machine: str, port: Port) -> None: ...

    def remove_port(self, port: str) -> None: ...

    def plug(self, plug: Plug) -> None: ...

    def unplug(self, plug: Plug) -> None: ...

    def authorize(self, machine: str, *, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        """Change whom a running node lets in."""

    def admit(self, keys: tuple[str, ...]) -> None:
        """These public keys, and no others, may pass the bastion."""

    def bastion(self, *, reachable: bool) -> None: ...

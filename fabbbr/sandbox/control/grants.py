"""Drawing what FABRIC would assign: hosts' PCI addresses, MACs, management addresses, subnets, VLANs."""

from __future__ import annotations

import itertools
import random
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import get_args

from fabbbr.sandbox.control.asked import AskedComponent, AskedNetwork, AskedNode
from fabbbr.sandbox.control.sites import SITES
from fabbbr.sandbox.faults import Faults, Kind
from fabbbr.sandbox.granted import Card, Machine, Network, NetworkKind, Port, SshMode

_FIRST_MANAGEMENT = 16
_VLANS = (2000, 2999)
_FIRST_SUBNET_SITE = 128
"""FABNetv4 is 10.128.0.0/10: the second number is that of the site."""


_SSH_FAULTS: dict[Kind, SshMode] = {
    "ssh-never": "never",
    "ssh-late": "late",
    "ssh-rejects-key": "rejects_key",
}
_KINDS: dict[str, NetworkKind] = {kind: kind for kind in get_args(NetworkKind)}


class Grants:
    """Draws from one seed. Not safe from several threads at once: its caller takes turns."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self._random = random.Random(seed)  # noqa: S311 - nothing here is secret
        self._faults = faults
        self._management = itertools.count(_FIRST_MANAGEMENT)
        self._subnets = {name: itertools.count(1) for name in SITES}

    def machine(self, node: AskedNode, host: str, keys: tuple[str, ...], user: str) -> Machine:
        """A node as it will be."""
        mode, after_s = self._ssh(node)
        return Machine(
            id=node.id,
            name=node.name,
            site=node.site,
            host=host,
            instance=f"instance-{self._random.randrange(1 << 32):08x}",
            image=node.image,
            user=user,
            keys=keys,
            management=self._address(node),
            cards=tuple(self.card(component) for component in node.components if component.ports),
            ssh=mode,
            ssh_after_s=after_s,
        )

    def _ssh(self, node: AskedNode) -> tuple[SshMode, float]:
        for kind, mode in _SSH_FAULTS.items():
            fault = self._faults.for_node(kind, node=node.name, site=node.site)
            if fault is not None:
                return mode, fault.seconds
        return "open", 0.0

    def card(self, component: AskedComponent) -> Card:
        """A component with ports."""
        bus, slot = self._random.randrange(16, 224), self._random.randrange(32)
        return Card(
            id=component.id,
            name=component.name,
            bdf=f"0000:{bus:02x}:{slot:02x}.0",
            numa=str(self._random.randrange(8)),
            dedicated=component.kind.startswith("SmartNIC"),
            ports=tuple(Port(id=port.id, name=port.name, mac=self._mac()) for port in component.ports),
        )

    def network(self, network: AskedNetwork, sites: tuple[str, ...]) -> Network:
        """A network as it will be; ValueError for a service that the double does not have."""
        kind = _KINDS.get(network.kind)
        if kind is None:
            message = f"the sandbox has no network service of type {network.kind}"
            raise ValueError(message)
        routed = network.kind.startswith("FABNet")
        return Network(
            id=network.id,
            name=network.name,
            kind=kind,
            sites=sites,
            rate_bps=None if network.rate_gbps is None else network.rate_gbps * 10**9,
            gateway=self._gateway(sites[0], network.kind) if routed and sites else None,
        )

    def vlan(self) -> int:
        """A tag inside a site's switch; nobody but the graph sees it."""
        return self._random.randint(*_VLANS)

    def _mac(self) -> str:
        return ":".join(f"{byte:02X}" for byte in (0x02, *self._random.randbytes(5)))

    def _address(self, node: AskedNode) -> IPv4Interface | IPv6Interface | None:
        if self._faults.for_node("no-management-ip", node=node.name, site=node.site) is not None:
            return None
        number = next(self._management)
        if SITES[node.site].ipv4_management:
            return ip_interface(f"198.19.{number // 250}.{number % 250 + 4}/16")
        return ip_interface(f"2001:db8:fab::{number:x}/48")

    def _gateway(self, site: str, kind: str) -> IPv4Interface | IPv6Interface:
        number, index = next(self._subnets[site]), list(SITES).index(site)
        if "v6" in kind:
            return ip_interface(f"2602:fcfb:{index:x}:{number:x}::1/64")
        if kind == "FABNetv4Ext":
            return ip_interface(f"23.134.{232 + index // 16}.{index % 16 * 16 + 1}/28")
        return ip_interface(f"10.{_FIRST_SUBNET_SITE + index}.{number}.1/24")

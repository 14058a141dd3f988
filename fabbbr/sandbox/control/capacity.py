"""What the hosts of all sites have and who holds it; which host a node gets, or why it gets none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fabbbr.sandbox.control.asked import AskedNode
from fabbbr.sandbox.control.sites import (
    COMPONENTS,
    EXTRAS,
    HOST_CORES,
    HOST_DISK_GB,
    HOST_RAM_GB,
    MAINTAINED_HOST,
    SITES,
    Site,
)


class InsufficientError(Exception):
    """No host can serve a node; the text is what FABRIC puts into the sliver's notice."""


@dataclass
class Host:
    """A worker and what is taken of it; ``capacity`` and ``taken`` by the names of the resource summary."""

    name: str
    site: str
    state: str
    capacity: Mapping[str, int]
    taken: dict[str, int] = field(default_factory=dict)

    def lacks(self, wanted: Mapping[str, int]) -> list[str]:
        """What there is not enough of."""
        return [
            kind for kind, n in wanted.items() if self.capacity.get(kind, 0) - self.taken.get(kind, 0) < n
        ]

    def change(self, wanted: Mapping[str, int], sign: int) -> None:
        """Take it, or give it back."""
        for kind, number in wanted.items():
            self.taken[kind] = self.taken.get(kind, 0) + sign * number


class Inventory:
    """All hosts. Not safe from several threads at once: its caller takes turns."""

    def __init__(self, sites: Mapping[str, Site] = SITES) -> None:
        self._sites = sites
        self._hosts = {name: host for site in sites.values() for name, host in _hosts(site)}
        self._held: dict[str, tuple[Host, Mapping[str, int]]] = {}

    def allocate(self, node: AskedNode) -> str:
        """Take what ``node`` asks for; the name of its host. InsufficientError when no host can."""
        site = self._sites.get(node.site)
        if site is None:
            message = f"Insufficient resources : Site {node.site} does not exist"
            raise InsufficientError(message)
        if site.state == "Maint":
            message = f"Insufficient resources : Site {node.site} is in maintenance"
            raise InsufficientError(message)
        wanted = demand(node)
        host = self._host_for(node, wanted)
        host.change(wanted, 1)
        self._held[node.id] = (host, wanted)
        return host.name

    def extend(self, node: AskedNode) -> None:
        """The node asks for other components now; InsufficientError when its host has not got them."""
        host, before = self._held[node.id]
        host.change(before, -1)
        wanted = demand(node)
        missing = host.lacks(wanted)
        host.change(before if missing else wanted, 1)
        if missing:
            raise InsufficientError(_missing(missing[0], host.name))
        self._held[node.id] = (host, wanted)

    def release(self, node_id: str) -> None:
        """Give back what a node held, if anything."""
        held = self._held.pop(node_id, None)
        if held is not None:
            held[0].change(held[1], -1)

    def summary(self) -> dict[str, list[dict[str, object]]]:
        """The two lists of GET /resources/summary that the double has something to say about."""
        return {
            "sites": [self._site_record(site) for site in self._sites.values()],
            "hosts": [_host_record(host) for host in self._hosts.values()],
        }

    def _host_for(self, node: AskedNode, wanted: Mapping[str, int]) -> Host:
        candidates = [
            host
            for host in self._hosts.values()
            if host.site == node.site and host.state == "Active" and node.host in {None, host.name}
        ]
        if not candidates:
            message = (
                f"Insufficient resources : No candidates nodes found to serve {node.name}: host {node.host}"
            )
            raise InsufficientError(message)
        for host in candidates:
            missing = host.lacks(wanted)
            if not missing:
                return host
        raise InsufficientError(_missing(candidates[-1].lacks(wanted)[0], candidates[-1].name))

    def _site_record(self, site: Site) -> dict[str, object]:
        hosts = [host for host in self._hosts.values() if host.site == site.name]
        kinds = sorted({kind for host in hosts for kind in host.capacity})
        capacity = {kind: sum(host.capacity.get(kind, 0) for host in hosts) for kind in kinds}
        taken = {kind: sum(host.taken.get(kind, 0) for host in hosts) for kind in kinds}
        return {
            "name": site.name,
            "state": site.state,
            "address": site.place,
            "location": list(site.position),
            "ptp_capable": True,
            "ipv4_management": site.ipv4_management,
            "hosts": [host.name for host in hosts],
            **_amounts(capacity, taken),
        }


def demand(node: AskedNode) -> dict[str, int]:
    """What a node takes of its host, by the names of the resource summary."""
    wanted = {"cores": node.cores, "ram": node.ram_gb, "disk": node.disk_gb}
    for component in node.components:
        wanted[component.kind] = wanted.get(component.kind, 0) + 1
    return wanted


def _missing(kind: str, host: str) -> str:
    if kind in _PLAIN:
        return f"Insufficient resources : ['{kind}'] on {host}"
    return f"Insufficient resources : Component of type: {kind} not available in graph node: {host}"


_PLAIN = ("cores", "ram", "disk")


def _hosts(site: Site) -> Iterator[tuple[str, Host]]:
    capacity = {"cores": HOST_CORES, "ram": HOST_RAM_GB, "disk": HOST_DISK_GB, **COMPONENTS}
    for number, name in enumerate(site.host_names(), start=1):
        down = site.state == "Maint" or (site.state == "PartMaint" and number == MAINTAINED_HOST)
        has = capacity | (EXTRAS.get(site.name, {}) if number == site.hosts else {})
        yield name, Host(name=name, site=site.name, state="Maint" if down else "Active", capacity=has)


def _host_record(host: Host) -> dict[str, object]:
    return {
        "name": host.name,
        "site": host.site,
        "state": host.state,
        **_amounts(host.capacity, host.taken),
    }


def _amounts(capacity: Mapping[str, int], taken: Mapping[str, int]) -> dict[str, object]:
    def amount(kind: str) -> dict[str, int]:
        total, used = capacity[kind], taken.get(kind, 0)
        return {"capacity": total, "allocated": used, "available": total - used}

    plain = {f"{kind}_{word}": value for kind in _PLAIN for word, value in amount(kind).items()}
    return {**plain, "components": {kind: amount(kind) for kind in capacity if kind not in _PLAIN}}

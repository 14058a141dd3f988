"""From a topology with sites to the machines and networks that carry it.

A host is a machine. Switches of one site that are linked share one, so that only cables between machines are
networks of the testbed; what stays inside a machine costs nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from fabbbr.errors import SpecError, UsageError
from fabbbr.foreign import listed
from fabbbr.model import Host, Switch
from fabbbr.record import Record
from fabbbr.reserve.records import CableWish, MachineWish, NetworkKind, NicKind, Reservation, Size
from fabbbr.spec.experiment import SliceChoice
from fabbbr.suggest import did_you_mean
from fabbbr.topology import Link, Topology

Wide = Literal["L2STS", "L2PTP", "FABNetv4"]
"""Kinds of network between two sites. A job can have the first alone; the others are refused, and why."""

SIZES = {
    "default": Size(cores=2, ram_gb=8, disk_gb=10),
    "knit6": Size(cores=16, ram_gb=32, disk_gb=10),
}
"""``default`` needs no permission on FABRIC (2 cores, 10 GB, 10 GB). Neither the KNIT6 talk nor its paper
says how large their machines were: ``knit6`` is what FABRIC's own notebook for iperf3 at full rate takes."""

_SHORTEST_NAME = 2
"""fablib refuses a name of one letter."""


class Options(Record):
    """What a topology does not say about the machines that it is to stand on."""

    nic: NicKind = "NIC_Basic"
    wide: Wide = "L2STS"
    size: Size = SIZES["default"]
    image: str = "default_ubuntu_24"
    lease_s: Annotated[float, Field(gt=0)] = 24 * 3600.0
    elsewhere: str | None = None
    """The site of hosts and switches that the definition gives none."""
    placement: dict[str, str] = Field(default_factory=dict)
    """Host or switch → its machine, where machines are there already. Empty: as this module has it."""


def reserve(name: str, definition: SliceChoice, topology: Topology, options: Options) -> Reservation:
    """What is asked of a testbed for this topology, which ``definition`` gave.

    Raises UsageError for a node without a site, and one without a machine where those are given.
    """
    sites = _sites(topology, options)
    placement = _given(topology, options.placement) if options.placement else _shared(topology, sites)
    nodes: dict[str, list[str]] = {}
    for node, machine in placement.items():
        nodes.setdefault(machine, []).append(node)
    return Reservation(
        name=name,
        definition=definition,
        machines=tuple(
            MachineWish(
                name=machine,
                site=_one_site(machine, on_it, sites),
                nodes=tuple(on_it),
                size=options.size,
                image=options.image,
            )
            for machine, on_it in nodes.items()
        ),
        cables=tuple(_cables(topology, placement, sites, options)),
        lease_s=options.lease_s,
    )


def size_of(text: str) -> Size:
    """``default``, ``knit6``, or cores × GB of memory × GB of disk as in ``4x16x100``; else UsageError."""
    if text in SIZES:
        return SIZES[text]
    numbers = text.split("x")
    if len(numbers) == 3 and all(one.isdecimal() and len(one) < 6 and int(one) > 0 for one in numbers):
        cores, ram_gb, disk_gb = map(int, numbers)
        return Size(cores=cores, ram_gb=ram_gb, disk_gb=disk_gb)
    message = (
        f"--size {text}{did_you_mean(text, SIZES)}: give {' or '.join(SIZES)}, or cores, GB of memory and "
        "GB of disk as in 4x16x100"
    )
    raise UsageError(message)


def _sites(topology: Topology, options: Options) -> dict[str, str]:
    nodes: tuple[Host | Switch, ...] = (*topology.hosts, *topology.switches)
    sites = {node.name: node.site or options.elsewhere for node in nodes}
    without = [node for node, site in sites.items() if not site]
    if without:
        message = f"no site is known for {listed(without)}; name sites with --sites"
        raise UsageError(message)
    return {node: site for node, site in sites.items() if site}


def _given(topology: Topology, placement: Mapping[str, str]) -> dict[str, str]:
    nodes = [*topology.host_names, *(switch.name for switch in topology.switches)]
    without = [node for node in nodes if node not in placement]
    unknown = [node for node in placement if node not in nodes]
    if without or unknown:
        hint = did_you_mean(unknown[0], without) if unknown else ""
        faults = [f"no machine carries {listed(without)}"] if without else []
        faults += [f"the slice has no {listed(unknown)}{hint}"] if unknown else []
        message = f"{' and '.join(faults)}; correct 'nodes' in the inventory"
        raise UsageError(message)
    return {node: placement[node] for node in nodes}


def _shared(topology: Topology, sites: Mapping[str, str]) -> dict[str, str]:
    """Every host on a machine of its own, switches with their neighbours of the same site."""
    hosts = {host.name: _machine_of_host(host.name) for host in topology.hosts}
    groups = list(_groups(topology, sites))
    alone = "sw" if len(groups) == 1 and "sw" not in hosts.values() else None
    switches = {node: alone or f"sw-{group[0]}" for group in groups for node in group}
    return hosts | switches


def _machine_of_host(host: str) -> str:
    return host if len(host) >= _SHORTEST_NAME else f"host-{host}"


def _groups(topology: Topology, sites: Mapping[str, str]) -> Iterator[list[str]]:
    """Switches that links within one site connect, each group in the order of the slice."""
    left = [switch.name for switch in topology.switches]
    while left:
        group, waiting = {left[0]}, [left[0]]
        while waiting:
            node = waiting.pop()
            for link in topology.links:
                other = link.beyond(node) if node in (link.a, link.b) else None
                if other in left and other not in group and sites[other] == sites[node]:
                    group.add(other)
                    waiting.append(other)
        yield [node for node in left if node in group]
        left = [node for node in left if node not in group]


def _one_site(machine: str, nodes: list[str], sites: Mapping[str, str]) -> str:
    found = list(dict.fromkeys(sites[node] for node in nodes))
    if len(found) > 1:
        message = f"machine {machine} would stand at {listed(found)}: its nodes {listed(nodes)} have one site"
        raise SpecError(message)
    return found[0]


def _cables(
    topology: Topology, placement: Mapping[str, str], sites: Mapping[str, str], options: Options
) -> Iterator[CableWish]:
    for link in topology.links:
        if placement[link.a] != placement[link.b]:
            yield CableWish(
                link=link.name,
                a=link.a,
                b=link.b,
                a_machine=placement[link.a],
                b_machine=placement[link.b],
                kind=_kind(link, sites, options),
                nic=options.nic,
            )


def _kind(link: Link, sites: Mapping[str, str], options: Options) -> NetworkKind:
    return "L2Bridge" if sites[link.a] == sites[link.b] else options.wide

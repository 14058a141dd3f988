"""Hosts, switches and the links between them: what a slice definition returns.

A topology is a tree, because then a path needs no routing and a bottleneck cannot be bypassed. Links are named
in the direction of the data, ``a`` to ``b``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from pydantic import model_validator
from typing_extensions import Self

from fabbbr.errors import SpecError
from fabbbr.model import Host, Record, Switch
from fabbbr.suggest import did_you_mean

_NAME = re.compile(r"[a-z][a-z0-9]{0,7}")


class Link(Record):
    """A cable from ``a`` to ``b``. The queue of a bottleneck is held by its end ``a``, a switch."""

    name: str
    a: str
    b: str
    bottleneck: bool = False


class Pair(Record):
    """Two hosts between which flows go by default."""

    sender: str
    receiver: str


class Topology(Record):
    """A checked tree of hosts and switches. Raises SpecError when it is none."""

    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    pairs: tuple[Pair, ...]
    """Flows that name no hosts take these in turn."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for check in (_bad_names, _bad_links, _bad_pairs, _no_tree):  # each relies on those before
            faults = list(check(self))
            if faults:
                message = f"topology: {'; '.join(faults)}"
                raise SpecError(message)
        return self

    @property
    def bottlenecks(self) -> tuple[Link, ...]:
        """The links that get the rate, buffer and AQM of the path; at least one."""
        return tuple(link for link in self.links if link.bottleneck)

    @property
    def trunk(self) -> str:
        """The name of the first bottleneck, which steps change by default."""
        return self.bottlenecks[0].name

    def path(self, sender: str, receiver: str) -> tuple[Link, ...]:
        """The links from one host to another, in that order; SpecError when a host is unknown."""
        for name in (sender, receiver):
            if name not in {host.name for host in self.hosts}:
                known = [host.name for host in self.hosts]
                message = f"no host {name!r}{did_you_mean(name, known)} (hosts: {', '.join(known)})"
                raise SpecError(message)
        came_by = _spanning_tree(self, sender)
        links: list[Link] = []
        node = receiver
        while node != sender:
            link = came_by[node]
            links.append(link)
            node = link.a if link.b == node else link.b
        return tuple(reversed(links))

    def backwards(self, sender: str, receiver: str) -> frozenset[str]:
        """Names of the links that data from ``sender`` to ``receiver`` crosses from ``b`` to ``a``."""
        node, names = sender, set()
        for link in self.path(sender, receiver):
            if link.a != node:
                names.add(link.name)
            node = link.b if link.a == node else link.a
        return frozenset(names)


def _bad_names(topology: Topology) -> Iterator[str]:
    names = [*_nodes(topology), *(link.name for link in topology.links)]
    for name, times in Counter(names).items():
        if _NAME.fullmatch(name) is None:
            yield (
                f"the name {name!r} does not do; use a lower case letter, then letters and digits, at most 8 "
                "(interface names are built from it)"
            )
        if times > 1:
            yield f"{name!r} names {times} things; hosts, switches and links need different names"


def _bad_links(topology: Topology) -> Iterator[str]:
    switches = {switch.name for switch in topology.switches}
    nodes = _nodes(topology)
    for link in topology.links:
        for end in {link.a, link.b}.difference(nodes):
            yield f"link {link.name} ends at {end!r}, which is neither host nor switch; add it"
        if link.bottleneck and link.a not in switches:
            yield f"bottleneck {link.name} starts at {link.a}, but a switch must hold its queue; put one there"
    if not topology.bottlenecks:
        yield "no link is a bottleneck; set bottleneck=True on one"


def _bad_pairs(topology: Topology) -> Iterator[str]:
    hosts = {host.name for host in topology.hosts}
    for pair in topology.pairs:
        for end in {pair.sender, pair.receiver} - hosts:
            yield f"pair {pair.sender} to {pair.receiver}: {end!r} is no host; add it"
        if pair.sender == pair.receiver:
            yield f"{pair.sender} is paired with itself; name two hosts"
    if not topology.pairs:
        yield "no pair of hosts; add Pair(sender=…, receiver=…)"


def _no_tree(topology: Topology) -> Iterator[str]:
    nodes = _nodes(topology)
    reached = {nodes[0], *_spanning_tree(topology, nodes[0])}
    for node in nodes:
        if node not in reached:
            yield f"{node} is not connected to {nodes[0]}; add a link"
    if len(reached) == len(nodes) and len(topology.links) > len(nodes) - 1:
        yield f"{len(topology.links)} links between {len(nodes)} nodes make a loop; a tree has {len(nodes) - 1}"
    ends = Counter(end for link in topology.links for end in (link.a, link.b))
    for host in topology.hosts:
        if ends[host.name] > 1:
            yield f"host {host.name} has {ends[host.name]} links, and hosts do not forward; use a switch"


def _nodes(topology: Topology) -> list[str]:
    return [*(host.name for host in topology.hosts), *(switch.name for switch in topology.switches)]


def _spanning_tree(topology: Topology, root: str) -> dict[str, Link]:
    """Node → the link by which a walk from ``root`` reaches it."""
    came_by: dict[str, Link] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for link in topology.links:
            if node not in (link.a, link.b):
                continue
            other = link.b if link.a == node else link.a
            if other != root and other not in came_by:
                came_by[other] = link
                waiting.append(other)
    return came_by

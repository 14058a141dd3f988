"""Hosts, switches and the links between them: what a slice definition returns.

A topology is a tree, because then a path needs no routing and a bottleneck cannot be bypassed. Links are
named in the direction of the data, ``a`` to ``b``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pydantic import model_validator
from typing_extensions import Self

from fabbbr import limits
from fabbbr.errors import SpecError
from fabbbr.foreign import listed, shown
from fabbbr.model import Host, Switch
from fabbbr.record import Record
from fabbbr.suggest import did_you_mean

_NAME = re.compile(r"[a-z][a-z0-9]{0,7}")


class Link(Record):
    """A cable from ``a`` to ``b``. The queue of a bottleneck is held by its end ``a``, a switch."""

    name: str
    a: str
    b: str
    bottleneck: bool = False

    def beyond(self, node: str) -> str:
        """The end of the link that is not ``node``."""
        return self.b if self.a == node else self.a


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
        for check in (
            _too_large,
            _bad_names,
            _bad_links,
            _bad_pairs,
            _no_tree,
        ):  # each relies on those before
            faults = list(check(self))
            if faults:
                message = f"topology: {listed(faults, most=limits.MISTAKES_SHOWN, separator='; ')}"
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
            if name not in self.host_names:
                hint = did_you_mean(name, self.host_names)
                message = f"no host {shown(name)}{hint} (hosts: {listed(self.host_names)})"
                raise SpecError(message)
        here, there = sender, receiver
        rising: list[Link] = []
        falling: list[Link] = []
        while here != there:
            if self._tree.depth[here] >= self._tree.depth[there]:
                rising.append(self._tree.up[here])
                here = rising[-1].beyond(here)
            else:
                falling.append(self._tree.up[there])
                there = falling[-1].beyond(there)
        return (*rising, *reversed(falling))

    def backwards(self, sender: str, receiver: str) -> frozenset[str]:
        """Names of the links that data from ``sender`` to ``receiver`` crosses from ``b`` to ``a``."""
        node, names = sender, set()
        for link in self.path(sender, receiver):
            if link.a != node:
                names.add(link.name)
            node = link.beyond(node)
        return frozenset(names)

    @cached_property
    def host_names(self) -> dict[str, None]:
        """In the order of the slice."""
        return dict.fromkeys(host.name for host in self.hosts)

    @cached_property
    def _tree(self) -> _Tree:
        return _hang(self)


@dataclass(frozen=True, kw_only=True)
class _Tree:
    """The topology as it hangs from its first node."""

    up: dict[str, Link]
    """Node → the link towards the first one, which has none."""
    depth: dict[str, int]
    """Node → links to the first one; what cannot be reached has none."""


def _too_large(topology: Topology) -> Iterator[str]:
    nodes = len(topology.hosts) + len(topology.switches)
    if nodes > limits.NODES:
        yield f"{nodes} hosts and switches; at most {limits.NODES}, make the slice smaller"
    elif len(topology.links) >= nodes > 0:
        yield f"{len(topology.links)} links between {nodes} nodes make a loop; a tree has {nodes - 1}"


def _bad_names(topology: Topology) -> Iterator[str]:
    names = [*_nodes(topology), *(link.name for link in topology.links)]
    for name, times in Counter(names).items():
        if _NAME.fullmatch(name) is None:
            yield (
                f"the name {shown(name)} does not do; use a lower case letter, then "
                f"letters and digits, at most 8 (interface names are built from it)"
            )
        if times > 1:
            yield f"{shown(name)} names {times} things; hosts, switches and links need different names"


def _bad_links(topology: Topology) -> Iterator[str]:
    switches = {switch.name for switch in topology.switches}
    nodes = set(_nodes(topology))
    for link in topology.links:
        for end in {link.a, link.b} - nodes:
            yield f"link {link.name} ends at {shown(end)}, which is neither host nor switch; add it"
        if link.bottleneck and link.a not in switches:
            yield (
                f"bottleneck {link.name} starts at {link.a}, but a switch must hold its queue; put one there"
            )
    if not topology.bottlenecks:
        yield "no link is a bottleneck; set bottleneck=True on one"


def _bad_pairs(topology: Topology) -> Iterator[str]:
    hosts = {host.name for host in topology.hosts}
    for pair in topology.pairs:
        for end in {pair.sender, pair.receiver} - hosts:
            yield f"pair {pair.sender} to {pair.receiver}: {shown(end)} is no host; add it"
        if pair.sender == pair.receiver:
            yield f"{pair.sender} is paired with itself; name two hosts"
    if not topology.pairs:
        yield "no pair of hosts; add Pair(sender=…, receiver=…)"


def _no_tree(topology: Topology) -> Iterator[str]:
    nodes, reached = _nodes(topology), _hang(topology).depth
    for node in nodes:
        if node not in reached:
            yield f"{node} is not connected to {nodes[0]}; add a link"
    ends = Counter(end for link in topology.links for end in (link.a, link.b))
    for host in topology.hosts:
        if ends[host.name] > 1:
            yield f"host {host.name} has {ends[host.name]} links, and hosts do not forward; use a switch"


def _nodes(topology: Topology) -> list[str]:
    return [*(host.name for host in topology.hosts), *(switch.name for switch in topology.switches)]


def _hang(topology: Topology) -> _Tree:
    """Walk from the first node over every link once."""
    links: dict[str, list[Link]] = defaultdict(list)
    for link in topology.links:
        links[link.a].append(link)
        links[link.b].append(link)
    root = _nodes(topology)[0]
    tree = _Tree(up={}, depth={root: 0})
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for link in links[node]:
            other = link.beyond(node)
            if other not in tree.depth:
                tree.up[other], tree.depth[other] = link, tree.depth[node] + 1
                waiting.append(other)
    return tree

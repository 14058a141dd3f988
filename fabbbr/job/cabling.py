"""Cell → nodes, cables, interface names and addresses: the one place that decides them.

A link that delays or drops becomes two cables with a pass-through wire node between them, so that neither
a sender nor the bottleneck's own queue ever holds the netem qdisc.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fabbbr.job.records import Cable, Interface, Node
from fabbbr.model import Bottleneck, Cell, CellLink
from fabbbr.testbed import Testbed

_NETWORK = "10.77"
PREFIX_LENGTH = 16


@dataclass(frozen=True, kw_only=True)
class LinkEnds:
    """Where the qdiscs of one link go."""

    link: CellLink
    far: Interface
    """The interface of ``link.b``."""
    queue: Interface
    """Egress of ``link.a`` in the data direction: the bottleneck queue of a link that is one."""
    reverse_queues: tuple[Interface, ...]
    """Egresses that queue the opposite direction, when the link shapes both."""
    wire_forward: Interface | None
    """Egress of the wire in the data direction: delay and loss."""
    wire_backward: Interface | None

    @property
    def queues(self) -> tuple[tuple[Interface, Bottleneck], ...]:
        """Each egress that queues, with its bottleneck; that of the data direction first."""
        queue = self.link.bottleneck
        if queue is None:
            return ()
        back = queue.way_back
        reverse = () if back is None else tuple((interface, back) for interface in self.reverse_queues)
        return ((self.queue, queue), *reverse)


@dataclass(frozen=True, kw_only=True)
class Hop:
    """A neighbouring host or switch: wires between do not count, they only pass frames on."""

    node: str
    out: Interface
    mac: str
    """Of the neighbour's interface."""


@dataclass(frozen=True, kw_only=True)
class Cabling:
    """The emulated network of one cell."""

    nodes: tuple[Node, ...]
    cables: tuple[Cable, ...]
    ends: tuple[LinkEnds, ...]

    def interfaces(self, node: str) -> tuple[Interface, ...]:
        """The interfaces of ``node``, in order."""
        return tuple(self._interfaces[node])

    def next_hop(self, node: str, host: str) -> Hop:
        """Where ``node`` sends what is for ``host``; the network is a tree, so there is one way."""
        at = host
        while self._depth[at] > self._depth[node] + 1:
            at = self._up[at]
        below = self._up.get(at) == node
        return self._hops[node][at if below else self._up[node]]

    def links_between(self, sender: str, receiver: str) -> tuple[str, ...]:
        """The names of the links from one host to the other, in order."""
        at, names = sender, []
        while at != receiver:
            hop = self.next_hop(at, receiver)
            names.append(hop.out.link)
            at = hop.node
        return tuple(names)

    @cached_property
    def _interfaces(self) -> dict[str, list[Interface]]:
        of: dict[str, list[Interface]] = defaultdict(list)
        for cable in self.cables:
            for side in (cable.a, cable.b):
                of[side.node].append(side)
        return of

    @cached_property
    def _hops(self) -> dict[str, dict[str, Hop]]:
        """Host or switch → its neighbours."""
        hops: dict[str, dict[str, Hop]] = defaultdict(dict)
        for ends in self.ends:
            a, b = ends.link.a, ends.link.b
            hops[a][b] = Hop(node=b, out=ends.queue, mac=ends.far.mac)
            hops[b][a] = Hop(node=a, out=ends.far, mac=ends.queue.mac)
        return hops

    @cached_property
    def _up(self) -> dict[str, str]:
        """Host or switch → the neighbour towards the first node, from the first node on outwards."""
        first = self.nodes[0].name
        up: dict[str, str] = {}
        waiting = [first]
        while waiting:
            node = waiting.pop()
            further = [hop for hop in self._hops[node] if hop != up.get(node)]
            up |= dict.fromkeys(further, node)
            waiting += further
        return up

    @cached_property
    def _depth(self) -> dict[str, int]:
        """Host or switch → hops to the first node."""
        depth = {self.nodes[0].name: 0}
        for node, above in self._up.items():
            depth[node] = depth[above] + 1
        return depth

    @cached_property
    def _addresses(self) -> dict[str, str]:
        return {node.name: node.address for node in self.nodes if node.address is not None}

    def address(self, host: str) -> str:
        """IPv4 address of a host, without prefix length."""
        return self._addresses[host].split("/")[0]


def needs_wire(link: CellLink) -> bool:
    """Whether the link delays, drops, reorders, aggregates or delivers by a trace."""
    delays = link.delay is not None and link.delay.ns > 0
    ways = link.bottleneck.distinct if link.bottleneck is not None else ()
    follows = any(way.trace is not None for way in ways)
    at_random = link.loss is not None or link.reordering is not None
    return delays or follows or at_random or link.ack_aggregation is not None


def lay_cables(cell: Cell, testbed: Testbed) -> Cabling:
    """Lay out the network of ``cell``; interfaces that ``testbed`` has already keep their MAC addresses."""
    hosts = [
        Node(name=host.name, kind="host", address=f"{_NETWORK}.{i // 250}.{i % 250 + 1}/{PREFIX_LENGTH}")
        for i, host in enumerate(cell.hosts)
    ]
    switches = [Node(name=switch.name, kind="switch") for switch in cell.switches]
    ports = _Ports(testbed.interfaces)
    wires: list[Node] = []
    laid: list[tuple[CellLink, Cable, Cable | None]] = []
    switch_names = {switch.name for switch in cell.switches}
    for link in cell.links:
        if needs_wire(link):
            middle = Node(name=f"w{len(wires) + 1}", kind="wire")
            wires.append(middle)
            laid.append((link, *ports.join_through(link, middle.name, beside_b=link.a not in switch_names)))
        else:
            laid.append((link, ports.join(link, link.a, link.b), None))
    cables = tuple(cable for _, first, second in laid for cable in (first, second) if cable is not None)
    ends = tuple(_ends(link, first, second, cables, switch_names) for link, first, second in laid)
    return Cabling(nodes=(*hosts, *switches, *wires), cables=cables, ends=ends)


class _Ports:
    """Numbers interfaces per node and gives each that is not there yet a fixed MAC address."""

    def __init__(self, there: Mapping[str, Mapping[str, str]]) -> None:
        self._there = there
        self._used: Counter[str] = Counter()
        self._serial = 0

    def join(self, link: CellLink, a: str, b: str) -> Cable:
        return Cable(a=self._next(a, b, link, a), b=self._next(b, a, link, b))

    def join_through(self, link: CellLink, wire: str, *, beside_b: bool) -> tuple[Cable, Cable]:
        """Two cables with a wire between, which stands beside one end of the link.

        Where that end has a network card for the link, the wire gets it, and the end a port with the same
        address: what the network carries has the card's address, as if no wire were there.
        """
        towards_a, towards_b = (link.b, None) if beside_b else (None, link.a)
        first = Cable(a=self._next(link.a, wire, link, link.a), b=self._next(wire, link.a, link, towards_a))
        second = Cable(a=self._next(wire, link.b, link, towards_b), b=self._next(link.b, wire, link, link.b))
        return first, second

    def _next(self, node: str, peer: str, link: CellLink, end: str | None) -> Interface:
        """The next interface of ``node``; it may be that of the link's ``end``."""
        name = f"{node}-eth{self._used[node]}"
        self._used[node] += 1
        self._serial += 1
        made = f"02:00:00:00:{self._serial >> 8:02x}:{self._serial & 255:02x}"
        mac = made if end is None else self._there.get(link.name, {}).get(end, made)
        return Interface(name=name, node=node, peer_node=peer, mac=mac, link=link.name)


def _ends(
    link: CellLink, first: Cable, second: Cable | None, cables: tuple[Cable, ...], switches: set[str]
) -> LinkEnds:
    far = second.b if second is not None else first.b
    reverse: tuple[Interface, ...] = ()
    if link.bottleneck is not None and link.bottleneck.way_back is not None:
        # A host must not shape its own sending: the switch at this end then queues towards its other ports.
        at_switch = (side for cable in cables for side in (cable.a, cable.b) if side.node == link.a)
        reverse = (far,) if far.node in switches else tuple(side for side in at_switch if side != first.a)
    return LinkEnds(
        link=link,
        far=far,
        queue=first.a,
        reverse_queues=reverse,
        wire_forward=second.a if second is not None else None,
        wire_backward=first.b if second is not None else None,
    )

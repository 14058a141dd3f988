"""What a slice asks for, as plain records: read once from the graph, so that only ``graph`` knows FIM."""

from __future__ import annotations

from fabbbr.record import Record


class AskedPort(Record):
    """An interface of a component."""

    id: str
    name: str


class AskedComponent(Record):
    """``kind`` as in the resource summary, as in ``SharedNIC-ConnectX-6``."""

    id: str
    name: str
    kind: str
    ports: tuple[AskedPort, ...]


class AskedNode(Record):
    """A virtual machine; ``host`` when the experimenter insists on one."""

    id: str
    name: str
    site: str
    host: str | None
    image: str
    cores: int
    ram_gb: int
    disk_gb: int
    components: tuple[AskedComponent, ...]


class AskedNetwork(Record):
    """A network service; ``rate_gbps`` when it asks for a bandwidth."""

    id: str
    name: str
    kind: str
    site: str | None
    rate_gbps: int | None


class AskedPlug(Record):
    """``service_port`` is the network's own end of the link."""

    port: str
    service_port: str
    network: str
    site: str
    vlan: int | None


class Asked(Record):
    """A whole slice."""

    nodes: tuple[AskedNode, ...] = ()
    networks: tuple[AskedNetwork, ...] = ()
    plugs: tuple[AskedPlug, ...] = ()
    strange: tuple[str, ...] = ()
    """What the sandbox has nothing for, as in ``Switch p4``."""

    @property
    def elements(self) -> tuple[str, ...]:
        """Ids of what becomes a sliver: every node and every network."""
        return (*(node.id for node in self.nodes), *(network.id for network in self.networks))

    @property
    def sites(self) -> frozenset[str]:
        """Every site that a node stands at."""
        return frozenset(node.site for node in self.nodes)

    def sites_of(self, network: str) -> tuple[str, ...]:
        """The sites that a network reaches, in order."""
        return tuple(sorted({plug.site for plug in self.plugs if plug.network == network}))


class Changes(Record):
    """What is new and what is gone between two states of a slice; components are those of nodes that stay."""

    new_nodes: tuple[AskedNode, ...] = ()
    gone_nodes: tuple[AskedNode, ...] = ()
    new_components: tuple[tuple[AskedNode, AskedComponent], ...] = ()
    gone_components: tuple[tuple[AskedNode, AskedComponent], ...] = ()
    new_networks: tuple[AskedNetwork, ...] = ()
    gone_networks: tuple[AskedNetwork, ...] = ()
    new_plugs: tuple[AskedPlug, ...] = ()
    gone_plugs: tuple[AskedPlug, ...] = ()

    @property
    def abandoned(self) -> frozenset[str]:
        """Ids of the nodes and networks that do not come again."""
        gone = {node.id for node in self.gone_nodes} | {network.id for network in self.gone_networks}
        return frozenset(gone - {network.id for network in self.new_networks})

    def __bool__(self) -> bool:
        """Whether there is anything to do; a slice whose notes alone changed has none."""
        return any(getattr(self, field) for field in type(self).model_fields)


def changes(old: Asked, new: Asked) -> Changes:
    """What leads from ``old`` to ``new``.

    A network whose sites have changed is taken away and made anew, with all its plugs.
    """
    moved = {
        network.id for network in new.networks
        if network.id in _ids(old.networks) and old.sites_of(network.id) != new.sites_of(network.id)
    }  # fmt: skip
    stay = _ids(old.nodes) & _ids(new.nodes)
    before = {
        (node.id, part.id): (node, part) for node in old.nodes if node.id in stay for part in node.components
    }
    after = {
        (node.id, part.id): (node, part) for node in new.nodes if node.id in stay for part in node.components
    }
    old_plugs, new_plugs = ({_key(plug): plug for plug in state.plugs} for state in (old, new))
    return Changes(
        new_nodes=tuple(node for node in new.nodes if node.id not in stay),
        gone_nodes=tuple(node for node in old.nodes if node.id not in stay),
        new_components=tuple(pair for key, pair in after.items() if key not in before),
        gone_components=tuple(pair for key, pair in before.items() if key not in after),
        new_networks=tuple(n for n in new.networks if n.id not in _ids(old.networks) or n.id in moved),
        gone_networks=tuple(n for n in old.networks if n.id not in _ids(new.networks) or n.id in moved),
        new_plugs=tuple(p for key, p in new_plugs.items() if key not in old_plugs or p.network in moved),
        gone_plugs=tuple(p for key, p in old_plugs.items() if key not in new_plugs or p.network in moved),
    )


def _ids(things: tuple[AskedNode, ...] | tuple[AskedNetwork, ...]) -> set[str]:
    return {thing.id for thing in things}


def _key(plug: AskedPlug) -> tuple[str, str, int | None]:
    return plug.port, plug.network, plug.vlan

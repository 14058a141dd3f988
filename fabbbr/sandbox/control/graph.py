"""The slice's graph: the only module that reads and writes FABRIC's information model (FIM).

Client and orchestrator pass each other GraphML. What was granted is written into it, and that is how
fablib sees a live node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args
from uuid import uuid4

from fabbbr.sandbox.control.answers import Json, RefusedError
from fabbbr.sandbox.control.asked import Asked, AskedComponent, AskedNetwork, AskedNode, AskedPlug, AskedPort
from fabbbr.sandbox.granted import Machine, Network, NetworkKind, Port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fim.user.topology import ExperimentTopology

DEFAULT_IMAGE = "default_rocky_9"


def load() -> None:
    """Import FIM, which takes seconds; before the first request that needs it."""
    import fim.graph.networkx_property_graph_disjoint
    import fim.user.topology  # noqa: F401


class Graph:
    """One state of a slice. FIM is not safe from several threads at once: its user takes turns."""

    def __init__(self, text: str) -> None:
        """Read GraphML and validate it; RefusedError with FIM's own words, as the orchestrator answers."""
        from fim.graph.networkx_property_graph_disjoint import NetworkXGraphImporterDisjoint
        from fim.user.topology import ExperimentTopology

        try:
            # FIM keeps all graphs of the process in one store, by name: under the name that it came with this
            # graph would take the place of the slice's own before anybody has permitted it.
            importer = NetworkXGraphImporterDisjoint()
            self._topology: ExperimentTopology = ExperimentTopology(importer=importer)
            self._topology.load(graph_string=text, new_graph_id=str(uuid4()))
            self._topology.validate()
        except Exception as error:  # FIM raises many unrelated classes
            raise RefusedError(str(error)) from error

    @property
    def id(self) -> str:
        """The graph's own name; a new one with every modification."""
        return str(self._topology.graph_model.graph_id)

    def discard(self) -> None:
        """Take it out of FIM's store; it is not to be used any more."""
        self._topology.graph_model.delete_graph()

    def serialize(self) -> str:
        """The graph as GraphML."""
        return str(self._topology.serialize())

    def asked(self) -> Asked:
        """What the slice asks for."""
        ports = {
            port.node_id: (node.site, port) for node in self._topology.nodes.values() for port in _ports(node)
        }
        networks = tuple(self._networks())
        return Asked(
            nodes=tuple(_node(node) for node in self._topology.nodes.values()),
            networks=tuple(_network(network) for network in networks),
            plugs=tuple(plug for network in networks for plug in self._plugs(network, ports)),
            strange=tuple(self._strange()),
        )

    def mark(self, element: str, *, sliver: str, state: str, error: str | None = None) -> None:
        """Write the reservation of a node or a network."""
        from fim.slivers.capacities_labels import ReservationInfo

        said = {} if error is None else {"error_message": error}
        info = ReservationInfo(reservation_id=sliver, reservation_state=state, **said)
        self._element(element).set_properties(reservation_info=info)

    def refuse_component(self, node: str, component: str) -> None:
        """Write that a component of a node cannot be had, so that it is pruned."""
        from fim.slivers.capacities_labels import ReservationInfo

        info = ReservationInfo(reservation_state="Failed")
        for found in self._element(node).components.values():
            if found.node_id == component:
                found.set_properties(reservation_info=info)

    def grant_machine(self, machine: Machine) -> None:
        """Write what a node was given."""
        from fim.slivers.capacities_labels import Labels

        node = self._element(machine.id)
        address = {} if machine.management is None else {"management_ip": str(machine.management.ip)}
        node.set_properties(
            capacity_allocations=node.capacities,
            label_allocations=Labels(instance=machine.instance, instance_parent=machine.host),
            **address,
        )
        components = {component.node_id: component for component in node.components.values()}
        for card in machine.cards:
            component = components[card.id]
            component.set_properties(label_allocations=Labels(bdf=card.bdf, numa=card.numa))
            interfaces = {interface.node_id: interface for interface in component.interface_list}
            for number, port in enumerate(card.ports, start=1):
                self._grant_port(interfaces[port.id], port, card.bdf, number)

    def grant_network(self, network: Network) -> None:
        """Write what a network was given."""
        from fim.slivers.capacities_labels import Labels
        from fim.slivers.gateway import Gateway

        if network.gateway is not None:
            version = network.gateway.version
            labels = {
                f"ipv{version}_subnet": str(network.gateway.network),
                f"ipv{version}": str(network.gateway.ip),
            }
            self._element(network.id).set_properties(gateway=Gateway(Labels(**labels)))

    def grant_plug(self, plug: AskedPlug, vlan: int) -> None:
        """Write where in the site's switch a network's end is."""
        from fim.slivers.capacities_labels import Labels

        for network in self._networks():
            for end in network.interface_list:
                if end.node_id == plug.service_port:
                    labels = Labels(
                        local_name=f"HundredGigE0/0/0/{vlan % 32}",
                        device_name=f"{plug.site.lower()}-data-sw",
                        vlan=str(vlan),
                    )
                    end.set_properties(labels=labels, label_allocations=labels)

    def prune(self) -> None:
        """Take out what was refused or closed."""
        for state in ("Closed", "Failed"):
            self._topology.prune(reservation_state=state)

    def sliver(self, element: str) -> tuple[str, Json]:
        """The kind of a sliver and all its properties, as the orchestrator lists them."""
        from fim.graph.abc_property_graph import ABCPropertyGraph

        model = self._topology.graph_model
        if element in {node.node_id for node in self._topology.nodes.values()}:
            return "NodeSliver", ABCPropertyGraph.sliver_to_dict(
                model.build_deep_node_sliver(node_id=element)
            )
        return "NetworkServiceSliver", ABCPropertyGraph.sliver_to_dict(
            model.build_deep_ns_sliver(node_id=element)
        )

    @staticmethod
    def _grant_port(interface: Any, port: Port, bdf: str, number: int) -> None:  # noqa: ANN401 - FIM is untyped
        from fim.slivers.capacities_labels import Labels

        interface.set_properties(label_allocations=Labels(mac=port.mac, bdf=bdf, local_name=f"p{number}"))

    def _networks(self) -> Iterator[Any]:
        from fim.slivers.network_service import ServiceType

        inside_cards = {ServiceType.OVS, ServiceType.P4, ServiceType.MPLS, ServiceType.VLAN}
        yield from (n for n in self._topology.network_services.values() if n.type not in inside_cards)

    def _strange(self) -> Iterator[str]:
        yield from (
            f"{node.type} {node.name}" for node in self._topology.nodes.values() if str(node.type) != "VM"
        )
        yield from (f"facility port {name}" for name in self._topology.facilities)
        known = get_args(NetworkKind)
        yield from (f"{net.type} {net.name}" for net in self._networks() if str(net.type) not in known)

    def _element(self, element: str) -> Any:  # noqa: ANN401 - FIM is untyped
        everything = (*self._topology.nodes.values(), *self._topology.network_services.values())
        return next(found for found in everything if found.node_id == element)

    def _plugs(self, network: Any, ports: dict[str, tuple[str, Any]]) -> Iterator[AskedPlug]:  # noqa: ANN401
        for end in network.interface_list:
            for peer in end.get_peers() or ():
                if peer.node_id not in ports:
                    continue
                site, port = ports[peer.node_id]
                yield AskedPlug(
                    port=self._carrier(peer, ports),
                    service_port=end.node_id,
                    network=network.node_id,
                    site=site,
                    vlan=_vlan(port),
                )

    @staticmethod
    def _carrier(peer: Any, ports: dict[str, tuple[str, Any]]) -> str:  # noqa: ANN401 - FIM is untyped
        """The port that carries an interface: itself, or of a sub-interface the one that it belongs to."""
        for identity, (_, port) in ports.items():
            if peer.node_id in {child.node_id for child in port.interface_list}:
                return identity
        return str(peer.node_id)


def _ports(node: Any) -> Iterator[Any]:  # noqa: ANN401 - FIM is untyped
    for component in node.components.values():
        for port in component.interface_list:
            yield port
            yield from port.interface_list


def _node(node: Any) -> AskedNode:  # noqa: ANN401 - FIM is untyped
    capacities, labels = node.capacities, node.labels
    return AskedNode(
        id=node.node_id,
        name=node.name,
        site=node.site,
        host=None if labels is None else labels.instance_parent,
        image=node.image_ref or DEFAULT_IMAGE,
        cores=capacities.core if capacities else 0,
        ram_gb=capacities.ram if capacities else 0,
        disk_gb=capacities.disk if capacities else 0,
        components=tuple(_component(component) for component in node.components.values()),
    )


def _component(component: Any) -> AskedComponent:  # noqa: ANN401 - FIM is untyped
    model = "" if component.model is None else f"-{component.model}"
    return AskedComponent(
        id=component.node_id,
        name=component.name,
        kind=f"{component.type}{model}",
        ports=tuple(AskedPort(id=port.node_id, name=port.name) for port in component.interface_list),
    )


def _network(network: Any) -> AskedNetwork:  # noqa: ANN401 - FIM is untyped
    capacities = network.capacities
    return AskedNetwork(
        id=network.node_id,
        name=network.name,
        kind=str(network.type),
        site=network.site,
        rate_gbps=capacities.bw if capacities and capacities.bw else None,
    )


def _vlan(port: Any) -> int | None:  # noqa: ANN401 - FIM is untyped
    labels = port.labels
    return int(labels.vlan) if labels is not None and labels.vlan else None

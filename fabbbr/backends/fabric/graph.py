"""Between our records and FABRIC's graph of a slice, by fablib and the information model under it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fabbbr.backends.fabric.answers import GraphSeen, NetworkSeen, NodeSeen, PortSeen
from fabbbr.backends.fabric.cabling import PTP_VLAN, Card, cards, link_of, networks
from fabbbr.backends.provider import ProviderError
from fabbbr.foreign import inline
from fabbbr.reserve.records import MachineWish, Reservation


def composed(fablib: Any, reservation: Reservation) -> str:  # noqa: ANN401 - fablib has no types
    """The GraphML of a reservation, built by fablib; raise ProviderError when fablib refuses it."""
    try:
        topology = fablib.new_slice(name=reservation.name)
        nodes = {wish.name: _node(topology, wish) for wish in reservation.machines}
        ports: dict[tuple[str, str], Any] = {}
        for card in cards(reservation):
            ports.update(_ports(nodes[card.machine], card))
        for net in networks(reservation):
            ends = [ports[end] for end in net.ends]
            if net.kind == "FABNetv4":
                topology.add_l3network(name=net.name, interfaces=ends, type="IPv4")
                continue
            if net.kind == "L2PTP":
                for end in ends:
                    end.set_vlan(PTP_VLAN)
            topology.add_l2network(name=net.name, interfaces=ends, type=net.kind)
        return str(topology.get_fim_topology().serialize())
    except Exception as error:  # fablib and the model under it raise what comes to hand
        why = f"fablib refuses it: {inline(str(error))}"
        message = f"slice {reservation.name}: {why}; change the slice or its sites"
        raise ProviderError(message) from error


def _node(topology: Any, wish: MachineWish) -> Any:  # noqa: ANN401
    return topology.add_node(
        name=wish.name,
        site=wish.site,
        cores=wish.size.cores,
        ram=wish.size.ram_gb,
        disk=wish.size.disk_gb,
        image=wish.image,
        host=wish.worker,
    )


def _ports(node: Any, card: Card) -> Iterator[tuple[tuple[str, str], Any]]:  # noqa: ANN401
    component = node.add_component(model=card.model, name=card.name)
    interfaces = sorted(component.get_interfaces(), key=lambda interface: str(interface.get_name()))
    for link, interface in zip(card.links, interfaces, strict=False):
        yield (card.machine, link), interface


def seen(graphml: str) -> GraphSeen:
    """What a slice's graph says of its parts. Networks that are not of our naming are left out."""
    from fim.graph.networkx_property_graph_disjoint import NetworkXGraphImporterDisjoint
    from fim.user.topology import ExperimentTopology

    # The importer that fim takes by itself keeps every graph for as long as the process lives.
    topology = ExperimentTopology(graph_string=graphml, importer=NetworkXGraphImporterDisjoint())
    nets = [net for name, net in topology.network_services.items() if link_of(name)]
    return GraphSeen(
        nodes=tuple(_node_seen(name, node) for name, node in topology.nodes.items()),
        networks=tuple(map(_network_seen, nets)),
        ports=tuple(port for net in nets for port in _ports_seen(topology, net)),
    )


def _node_seen(name: str, node: Any) -> NodeSeen:  # noqa: ANN401
    reservation = node.get_property("reservation_info")
    labels = node.get_property("label_allocations")
    address = node.get_property("management_ip")
    return NodeSeen(
        name=name,
        site=str(node.get_property("site")),
        image=str(node.get_property("image_ref") or ""),
        state=reservation and reservation.reservation_state,
        error=(reservation and reservation.error_message) or "",
        address=str(address) if address else None,
        worker=labels and labels.instance_parent,
    )


def _network_seen(net: Any) -> NetworkSeen:  # noqa: ANN401
    reservation = net.get_property("reservation_info")
    gateway = net.get_property("gateway")
    router = None
    if gateway is not None and gateway.gateway and gateway.subnet:
        router = f"{gateway.gateway}/{str(gateway.subnet).rpartition('/')[2]}"
    return NetworkSeen(
        name=net.name,
        state=reservation and reservation.reservation_state,
        error=(reservation and reservation.error_message) or "",
        gateway=router,
    )


def _ports_seen(topology: Any, net: Any) -> Iterator[PortSeen]:  # noqa: ANN401
    tagged = str(net.get_property("type")) == "L2PTP"
    for interface in net.interface_list:
        for port in interface.get_peers() or ():
            given = port.get_property("label_allocations")
            asked = port.get_property("labels")
            vlan = asked.vlan if tagged and asked else None
            yield PortSeen(
                network=net.name,
                node=topology.get_owner_node(port).name,
                mac=given and given.mac,
                vlan=int(vlan) if vlan else None,
            )

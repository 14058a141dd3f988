"""From what FABRIC says of a slice to how it is: never better than it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fabbbr.backends.fabric.answers import GraphSeen, NetworkSeen, NodeSeen, SliceSeen, SliverSeen
from fabbbr.backends.fabric.cabling import link_of
from fabbbr.backends.fabric.refusals import brief, remedy
from fabbbr.reserve.records import LiveMachine, LiveSlice, SliceState

STABLE = ("StableOK", "StableError", "ModifyOK", "ModifyError", "AllocatedOK", "AllocatedError")
"""In which FABRIC renews and deletes."""
_STATES: dict[str, SliceState] = {
    "StableOK": "ok",
    "ModifyOK": "ok",
    "StableError": "failed",
    "ModifyError": "failed",
    "AllocatedError": "failed",
    "Closing": "closing",
    "Dead": "gone",
}
"""All others are on their way."""
_ENDED = ("Closed", "CloseWait", "Failed", "CloseFail")


def coarse(state: str) -> SliceState:
    """FABRIC's word for the state of a slice in ours."""
    return _STATES.get(state, "configuring")


def live_slice(
    seen: SliceSeen,
    graph: GraphSeen,
    slivers: Sequence[SliverSeen] = (),
    users: Mapping[str, str] | None = None,
) -> LiveSlice:
    """How a slice is. It is ``ok`` only when every machine in it can be used.

    ``users`` is image → the user to log in as. FABRIC's stable slices may still lack addresses.
    """
    machines = tuple(filter(None, (_machine(node, graph, users or {}) for node in graph.nodes)))
    state, said = coarse(seen.state), seen.state
    if state == "ok":
        state, said = _settled(seen.state, graph, len(machines))
    elif state == "failed":
        said = _because(seen.state, tuple(_faults(graph, slivers)))
    elif state == "configuring":
        said = _because(seen.state, tuple(_progress(graph)))
    return LiveSlice(
        name=seen.name, id=seen.id, state=state, said=said, lease_end=seen.lease_end, machines=machines
    )


def _machine(node: NodeSeen, graph: GraphSeen, users: Mapping[str, str]) -> LiveMachine | None:
    """The machine, if it is up."""
    ports = [port for port in graph.ports if port.node == node.name and link_of(port.network)]
    if node.state != "Active" or not node.address or not all(port.mac for port in ports):
        return None
    links = {link_of(port.network) or "": port for port in ports}
    gateway = {network.name: network.gateway for network in graph.networks}
    return LiveMachine(
        name=node.name,
        site=node.site,
        address=node.address,
        user=users.get(node.image, "root"),
        interfaces={link: (port.mac or "").lower() for link, port in links.items()},
        vlans={link: port.vlan for link, port in links.items() if port.vlan is not None},
        gateways={link: way for link, port in links.items() if (way := gateway.get(port.network))},
        worker=node.worker,
    )


def _settled(said: str, graph: GraphSeen, up: int) -> tuple[SliceState, str]:
    """What a stable slice is: ok, failed after all, or still short of something."""
    if faults := tuple(_faults(graph, ())):
        return "failed", _because(f"{said}, but", faults)
    missing = tuple(_missing(graph))
    if missing or up < len(graph.nodes) or not graph.nodes:
        return "configuring", _because(f"{said}, but", missing or ("nothing in it is known yet",))
    return "ok", said


def _missing(graph: GraphSeen) -> Iterator[str]:
    for node in graph.nodes:
        if node.state != "Active":
            yield f"{node.name} is {node.state}"
        elif not node.address:
            yield f"{node.name} has no management address yet"
    for port in graph.ports:
        if not port.mac:
            yield f"{port.node} has no MAC address on {port.network} yet"
    for network in graph.networks:
        if network.state != "Active":
            yield f"{network.name} is {network.state}"


def _faults(graph: GraphSeen, slivers: Sequence[SliverSeen]) -> Iterator[str]:
    """What ended and why, with the remedy of the first reason."""
    noticed = {sliver.name: sliver.notice for sliver in slivers if sliver.state in _ENDED}
    told: dict[str, None] = {}
    parts: tuple[NodeSeen | NetworkSeen, ...] = (*graph.nodes, *graph.networks)
    for part in parts:
        if part.state in _ENDED or part.error:
            reason = part.error or noticed.get(part.name, "")
            told.setdefault(reason)
            why = f": {brief(reason)}" if reason else ""
            yield f"{part.name} is {part.state}{why}"
    for reason in told:
        if reason:
            yield remedy(reason)
            return


def _progress(graph: GraphSeen) -> Iterator[str]:
    for node in graph.nodes:
        yield f"{node.name} {node.state or 'Nascent'}"


def _because(said: str, parts: Sequence[str]) -> str:
    joint = " " if said.endswith("but") else ": "
    return f"{said}{joint}{'; '.join(parts)}" if parts else said.removesuffix(", but")

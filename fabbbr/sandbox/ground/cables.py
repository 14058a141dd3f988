"""Networks: bridges in a name space of their own, delayed cables between sites, routers of FABNet."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from ipaddress import IPv4Interface, IPv6Interface, ip_interface

from fabbbr.sandbox.granted import Network, Plug
from fabbbr.sandbox.ground import tools
from fabbbr.sandbox.ground.abilities import Abilities
from fabbbr.sandbox.ground.distances import Position, rtt_ms

PLANT = "plant"
"""The name space that holds every bridge and the far end of every cable; no node and no client is in it."""

MANAGEMENT_BRIDGE = "mgmt"
MANAGEMENT_GATEWAYS = (ip_interface("198.19.0.1/16"), ip_interface("2001:db8:fab::1/48"))
MTU_BYTES = 9000
_LINK_PACKETS = 1_000_000
"""Room in a delay element: a 100 Gbit/s path of 200 ms, in full packets."""
_TBF_BURST_S = 0.004
_TBF_LATENCY_MS = 50

Event = Callable[..., None]


class Cables:
    """All networks. Not safe from several threads at once: its caller takes turns."""

    def __init__(self, positions: Mapping[str, Position], abilities: Abilities, event: Event) -> None:
        self._positions = positions
        self._abilities = abilities
        self._event = event
        self._number = itertools.count(1)
        self._networks: dict[str, Network] = {}
        self._bridges: dict[tuple[str, str], str] = {}
        self._ends: dict[str, str] = {}
        self._tagged: dict[tuple[str, int], str] = {}
        self._routers: dict[str, str] = {}
        self._roads: set[frozenset[str]] = set()

    def lay(self) -> None:
        """Make the plant and its management network, whose gateway answers that nothing lies beyond."""
        tools.run("ip", "netns", "add", PLANT)
        quiet = {"net.ipv6.conf.default.disable_ipv6": "1", "net.ipv4.ip_forward": "1"}
        tools.write_sysctls(PLANT, quiet | {"net.ipv6.conf.all.forwarding": "1"})
        self._bridge(MANAGEMENT_BRIDGE, mtu_bytes=1500)
        tools.write_sysctls(PLANT, {f"net.ipv6.conf.{MANAGEMENT_BRIDGE}.disable_ipv6": "0"})
        nodad = ("", " nodad")
        tools.ip(
            PLANT,
            [f"addr add {g} dev {MANAGEMENT_BRIDGE}{nodad[g.version == 6]}" for g in MANAGEMENT_GATEWAYS],
        )

    def end(self, port: str) -> str:
        """Name of the far end of a port's cable; the same as long as the port exists."""
        if port not in self._ends:
            self._ends[port] = f"p{next(self._number)}"
        return self._ends[port]

    def forget(self, port: str) -> None:
        """The port is gone, and its cable with it."""
        self._ends.pop(port, None)
        for tagged in [key for key in self._tagged if key[0] == port]:
            del self._tagged[tagged]

    def add_network(self, network: Network) -> None:
        """A bridge at each site; between two sites a cable, for FABNet a router."""
        self._networks[network.id] = network
        for site in network.sites:
            name = f"b{next(self._number)}"
            self._bridges[network.id, site] = name
            self._bridge(name, mtu_bytes=MTU_BYTES)
            if network.gateway is not None:
                self._route(network, site, network.gateway)
        for one, other in itertools.combinations(network.sites, 2):
            self._long_cable(self._bridges[network.id, one], self._bridges[network.id, other], one, other)

    def remove_network(self, network: str) -> None:
        """Take its bridges away, and with them what leads to them."""
        gone = self._networks.pop(network)
        for site in gone.sites:
            bridge = self._bridges.pop((network, site))
            if gone.gateway is not None:
                self._unroute(gone, site)
            self._remove_ports_of(bridge)
            tools.ip(PLANT, [f"link del {bridge}"])

    def plug(self, plug: Plug) -> None:
        """Join a port to its network's bridge, by a tag if it has one and the kernel knows tags."""
        bridge = self._bridges[plug.network, plug.site]
        device = self._tagged_device(plug.port, plug.vlan) if plug.vlan is not None else self.end(plug.port)
        tools.ip(PLANT, [f"link set {device} master {bridge}", f"link set {device} up"])
        self._shape(device, self._networks[plug.network].rate_bps)

    def unplug(self, plug: Plug) -> None:
        """Leave the port without this network."""
        if plug.vlan is not None and (plug.port, plug.vlan) in self._tagged:
            tools.ip(PLANT, [f"link del {self._tagged.pop((plug.port, plug.vlan))}"])
        elif plug.port in self._ends:
            tools.ip(PLANT, [f"link set {self.end(plug.port)} nomaster"])

    def lost(self, plug: Plug) -> None:
        """The port's cable was laid anew: its tagged devices went with the old one."""
        if plug.vlan is not None:
            self._tagged.pop((plug.port, plug.vlan), None)

    def _bridge(self, name: str, *, mtu_bytes: int) -> None:
        tools.ip(
            PLANT, [f"link add {name} mtu {mtu_bytes} type bridge mcast_snooping 0", f"link set {name} up"]
        )

    def _tagged_device(self, port: str, vlan: int) -> str:
        end = self.end(port)
        if not self._abilities.vlan:
            self._event("no VLAN in this kernel", port=port, vlan=vlan, effect="frames pass as they are")
            return end
        if (port, vlan) not in self._tagged:
            name = f"t{next(self._number)}"
            self._tagged[port, vlan] = name
            lines = [f"link set {end} up", f"link add link {end} name {name} type vlan id {vlan}"]
            tools.ip(PLANT, lines)
        return self._tagged[port, vlan]

    def _shape(self, device: str, rate_bps: int | None) -> None:
        if rate_bps is None:
            return
        if not self._abilities.rate:
            self._event("no token bucket in this kernel", device=device, rate_bps=rate_bps)
            return
        burst_bytes = max(int(rate_bps / 8 * _TBF_BURST_S), 2 * MTU_BYTES)
        tools.tc(
            PLANT,
            *("qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{rate_bps}bit"),
            *("burst", str(burst_bytes), "latency", f"{_TBF_LATENCY_MS}ms"),
        )

    def _long_cable(self, bridge: str, other_bridge: str, site: str, other: str) -> None:
        one, two = f"w{next(self._number)}", f"w{next(self._number)}"
        ends = ((one, bridge), (two, other_bridge))
        lines = [f"link add {one} mtu {MTU_BYTES} type veth peer name {two} mtu {MTU_BYTES}"]
        tools.ip(PLANT, lines + [f"link set {end} master {to} up" for end, to in ends])
        self._delay(PLANT, one, site, other)
        self._delay(PLANT, two, site, other)

    def _delay(self, namespace: str, device: str, site: str, other: str) -> None:
        """Half of the round trip, for what leaves by this device."""
        rtt = rtt_ms(site, other, self._positions)
        if rtt == 0:
            return
        if not self._abilities.delay:
            self._event("no netem in this kernel", sites=[site, other], rtt_ms=rtt, effect="no delay")
            return
        limits = ("limit", str(_LINK_PACKETS))
        tools.tc(
            namespace, "qdisc", "replace", "dev", device, "root", "netem", "delay", f"{rtt / 2}ms", *limits
        )

    def _route(self, network: Network, site: str, gateway: IPv4Interface | IPv6Interface) -> None:
        """A leg of the site's router in the network, and the way there from all other sites' routers."""
        router = self._router(site)
        leg, end = f"g{next(self._number)}", f"g{next(self._number)}"
        tools.ip(None, [_veth(leg, router, end, PLANT)])
        tools.ip(PLANT, [f"link set {end} master {self._bridges[network.id, site]} up"])
        nodad = " nodad" if gateway.version == 6 else ""
        tools.ip(router, [f"addr add {gateway} dev {leg}{nodad}", f"link set {leg} up"])
        for other in self._routers:
            if other != site:
                self._way(other, site, gateway, "replace")

    def _unroute(self, network: Network, site: str) -> None:
        if network.gateway is not None:
            for other in self._routers:
                if other != site:
                    self._way(other, site, network.gateway, "del")

    def _way(self, at: str, to: str, gateway: IPv4Interface | IPv6Interface, verb: str) -> None:
        towards = _road_address(self._number_of(to), self._number_of(at), gateway.version)
        tools.ip(self._routers[at], [f"route {verb} {gateway.network} via {towards}"])

    def _router(self, site: str) -> str:
        if site not in self._routers:
            name = f"fabnet-{site}"
            tools.run("ip", "netns", "add", name)
            forward = {"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"}
            tools.write_sysctls(name, forward | {"net.ipv6.conf.default.accept_dad": "0"})
            tools.ip(name, ["link set lo up"])
            self._routers[site] = name
            for other in list(self._routers):
                if other != site:
                    self._road(site, other)
                    self._ways_from(site, other)
        return self._routers[site]

    def _road(self, site: str, other: str) -> None:
        """A cable between the routers of two sites."""
        one, two = self._number_of(site), self._number_of(other)
        here, there = self._routers[site], self._routers[other]
        tools.ip(None, [_veth(f"r{two}", here, f"r{one}", there)])
        for namespace, own, far in ((here, one, two), (there, two, one)):
            v4, v6 = (_road_address(own, far, version) for version in (4, 6))
            tools.ip(
                namespace,
                [
                    f"addr add {v4}/31 dev r{far}",
                    f"addr add {v6}/127 dev r{far} nodad",
                    f"link set r{far} up",
                ],
            )
            self._delay(namespace, f"r{far}", site, other)

    def _ways_from(self, site: str, other: str) -> None:
        """Tell a new router what networks there are at another site."""
        for network in self._networks.values():
            if network.gateway is not None and other in network.sites:
                self._way(site, other, network.gateway, "replace")

    def _number_of(self, site: str) -> int:
        return list(self._routers).index(site)

    def _remove_ports_of(self, bridge: str) -> None:
        """Cables to other sites and to routers end with the bridge; those of nodes stay, unplugged."""
        listed = tools.run("ip", "-n", PLANT, "-o", "link", "show", "master", bridge)
        names = [line.split(":")[1].strip().split("@")[0] for line in listed.splitlines()]
        for name in names:
            if name[0] in "wg" and tools.succeeds("ip", "-n", PLANT, "link", "show", name):
                tools.ip(PLANT, [f"link del {name}"])


def _veth(one: str, namespace: str, other: str, other_namespace: str) -> str:
    mtu = f"mtu {MTU_BYTES}"
    return f"link add {one} {mtu} netns {namespace} type veth peer name {other} {mtu} netns {other_namespace}"


def _road_address(own: int, far: int, version: int) -> str:
    """Address of router ``own`` on its cable to router ``far``; the two ends differ in the last bit."""
    low, high = min(own, far), max(own, far)
    last = int(own == high)
    if version == 4:
        return f"100.64.{low}.{2 * high + last}"
    return f"fd00:fab:{low:x}:{high:x}::{last}"

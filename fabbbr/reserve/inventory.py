"""A slice as Ansible's inventory: groups by what a machine carries, its interfaces by MAC address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fabbbr.reserve.records import LiveMachine, LiveSlice, MachineWish, Reservation
from fabbbr.topology import Topology

HOSTS, SWITCHES = "tcp_hosts", "software_switches"


def inventory(
    reservation: Reservation,
    live: LiveSlice,
    topology: Topology,
    connections: Mapping[str, Mapping[str, object]],
) -> dict[str, Any]:
    """The inventory as JSON, which Ansible reads too; ``connections`` is machine → how Ansible reaches it.

    Below ``fabbbr`` are ``tcp_hosts`` and ``software_switches``; a machine that carries both is in both.
    """
    there = {machine.name: machine for machine in live.machines}
    groups: dict[str, dict[str, Any]] = {HOSTS: {}, SWITCHES: {}}
    for wish in reservation.machines:
        carries = [node in topology.host_names for node in wish.nodes]
        variables = {**connections[wish.name], **_variables(wish, there[wish.name])}
        for group, wanted in ((HOSTS, True), (SWITCHES, False)):
            if wanted in carries:
                groups[group][wish.name] = variables
    return {
        "all": {
            "children": {
                "fabbbr": {"children": {group: {"hosts": members} for group, members in groups.items()}}
            }
        }
    }


def _variables(wish: MachineWish, live: LiveMachine) -> dict[str, Any]:
    return {
        "fabbbr_site": live.site,
        "fabbbr_nodes": list(wish.nodes),
        "fabbbr_interfaces": [{"link": link, "mac": mac} for link, mac in live.interfaces.items()],
        "tcp_host_interfaces": list(live.interfaces.values()),
    }

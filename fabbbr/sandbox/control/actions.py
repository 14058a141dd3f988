"""Operational actions on a node (FABRIC's POAs) that only tell or note something: processors and memory.

A host is told as FABRIC's workers are: 128 processors and 512 GB in eight NUMA nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

from fabbbr.sandbox.control.answers import Json
from fabbbr.sandbox.granted import Machine

OPERATIONS = ("cpuinfo", "numainfo", "cpupin", "numatune", "reboot", "addkey", "removekey", "rescan")
_NODES = 8
_CPUS_A_NODE = 8
_NODE_MB = 64507


def cpu_info(machine: Machine, cores: int, pins: Mapping[int, int]) -> Json:
    """What ``cpuinfo`` answers: by host and by instance; ``pins`` maps virtual processors to the host's."""
    everywhere = ",".join(str(cpu) for cpu in range(2 * _NODES * _CPUS_A_NODE))
    host: Json = {f"NUMA node{node} CPU(s):": _ranges(node) for node in range(_NODES)}
    guest = [
        {
            "VCPU": str(vcpu),
            "CPU": str(pins.get(vcpu, vcpu)),
            "CPU Affinity": str(pins[vcpu]) if vcpu in pins else everywhere,
            "CPU time": "0.0s",
            "State": "running",
        }
        for vcpu in range(cores)
    ]
    pinned = sorted(str(cpu) for cpu in pins.values())
    return {machine.host: host | {"pinned_cpus": pinned}, machine.instance: guest}


def numa_info(machine: Machine, ram_gb: int) -> Json:
    """What ``numainfo`` answers; all of the node's memory is at the first NUMA node."""
    host: Json = {"available": f"{_NODES} nodes (0-{_NODES - 1})"}
    guest: Json = {}
    for node in range(_NODES):
        total = ram_gb * 1024 if node == 0 else 0
        host[f"node {node}"] = {"size": f"{_NODE_MB} MB", "free": f"{_NODE_MB - total} MB"}
        guest[f"Node {node}"] = {"Heap": "0", "Huge": "0", "Private": str(total), "Total": str(total)}
    return {machine.host: host, machine.instance: guest}


def pins(data: object) -> dict[int, int]:
    """The map of a ``cpupin``: ``{"vcpu_cpu_map": [{"vcpu": "0", "cpu": "5"}, …]}``."""
    listed = data.get("vcpu_cpu_map") if isinstance(data, dict) else None
    return {int(entry["vcpu"]): int(entry["cpu"]) for entry in listed or ()}


def keys(data: object) -> tuple[str, ...]:
    """The keys of an ``addkey`` or ``removekey``: ``{"keys": [{"key": "ssh-rsa …", "comment": "…"}, …]}``."""
    listed = data.get("keys") if isinstance(data, dict) else None
    return tuple(str(entry["key"] if isinstance(entry, dict) else entry) for entry in listed or ())


def _ranges(node: int) -> str:
    half = _NODES * _CPUS_A_NODE
    first = node * _CPUS_A_NODE
    return f"{first}-{first + _CPUS_A_NODE - 1},{half + first}-{half + first + _CPUS_A_NODE - 1}"

"""Builds the emulated network: a name space per node, and all cables in a few ``ip -batch``.

Where starting a process takes milliseconds (a guest) it is most of the set-up time, so a node has no
process of its own.
"""

import contextlib
import os
from typing import Any, Dict, Iterator, List

from . import namespace
from .attach import attached
from .namespace import Namespaces

_CABLES_AT_ONCE = 200
"""ip keeps the name spaces of a batch open, two per cable."""


@contextlib.contextmanager
def built(job: Dict[str, Any]) -> Iterator[Namespaces]:
    """In this block the nodes and cables of ``job`` are there and up."""
    with namespace.made(node["name"] for node in job["nodes"]) as inside, cabled(job, inside):
        yield inside


@contextlib.contextmanager
def cabled(job: Dict[str, Any], inside: Namespaces) -> Iterator[None]:
    """In this block the cables of ``job`` join its nodes, and all is up.

    A cable with both ends here is a veth pair; of the others, the network's, the end that is here is moved in.
    """
    for node in job["nodes"]:
        with inside.inside(node["name"]):
            _switch_off_ipv6()
    lines = _cable_lines(inside, own_cables(job, inside), job["mtu_bytes"])
    for start in range(0, len(lines), _CABLES_AT_ONCE):
        inside.ip(None, lines[start : start + _CABLES_AT_ONCE])
    ends = (_ends_here(inside, cable) for cable in job["cables"])
    with attached(inside, [here[0] for here in ends if len(here) == 1], job["mtu_bytes"]):
        for node in job["nodes"]:
            inside.ip(node["name"], _node_lines(node, job))
        yield


def own_cables(job: Dict[str, Any], inside: Namespaces) -> List[Dict[str, Any]]:
    """Those with both ends here."""
    return [cable for cable in job["cables"] if len(_ends_here(inside, cable)) == 2]


def _ends_here(inside: Namespaces, cable: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [side for side in (cable["a"], cable["b"]) if inside.has(side["node"])]


def _switch_off_ipv6() -> None:
    """Neighbour discovery would send packets that no flow sent, and conservation would not add up."""
    for scope in ("all", "default"):
        path = "/proc/sys/net/ipv6/conf/%s/disable_ipv6" % scope
        if os.path.exists(path):
            with open(path, "w") as file:
                file.write("1")


def _cable_lines(inside: Namespaces, cables: List[Dict[str, Any]], mtu: int) -> List[str]:
    lines = []
    for cable in cables:
        a, b = cable["a"], cable["b"]
        lines.append(
            "link add %s mtu %d address %s netns %s type veth peer name %s mtu %d address %s netns %s"
            % (
                a["name"],
                mtu,
                a["mac"],
                inside.path(a["node"]),
                b["name"],
                mtu,
                b["mac"],
                inside.path(b["node"]),
            )
        )
    return lines


def _node_lines(node: Dict[str, Any], job: Dict[str, Any]) -> List[str]:
    ports = [
        side["name"]
        for cable in job["cables"]
        for side in (cable["a"], cable["b"])
        if side["node"] == node["name"]
    ]
    lines = ["link set lo up"]
    if node["kind"] == "host":
        lines.append("addr add %s dev %s" % (node["address"], ports[0]))
    return lines + ["link set %s up" % port for port in ports]

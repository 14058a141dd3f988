"""Builds the emulated network with Mininet's Python API: hosts, software switches, wires and links.

Mininet starts a shell per node and runs a handful of processes per link. On a machine where starting a process
takes milliseconds (a guest) that is most of the set-up time, so the classes here keep Mininet's interface but
give a node no process at all, and make all links in one ``ip -batch``.
"""

import contextlib
import os
import subprocess
from typing import Any, Dict, Iterator, List, Optional

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node

from . import namespace
from .namespace import Namespaces

_CABLES_AT_ONCE = 200
"""ip keeps the name spaces of a batch open, two per cable."""


class LabNode(Node):
    """A network name space that this process holds open, without a process of its own."""

    namespace: int
    """File descriptor."""

    @classmethod
    def setup(cls) -> None:
        """Mininet looks for programs here that such a node never runs."""

    def startShell(self, mnopts: Any = None) -> None:
        """Make the name space; there is no shell in it."""
        self.namespace = namespace.new()
        self.shell: Optional[bool] = True
        self.pid = os.getpid()
        self.lastCmd, self.lastPid, self.waiting = None, None, False

    @property
    def path(self) -> str:
        """Where other processes find the name space."""
        return "/proc/%d/fd/%d" % (os.getpid(), self.namespace)

    def cmd(self, *args: Any, **kwargs: Any) -> str:
        """Run one command in the node, as Mininet's ``cmd`` does, but without a shell that stays."""
        if len(args) == 1 and isinstance(args[0], str):
            argv: List[str] = ["sh", "-c", args[0]]
        else:
            argv = [str(word) for word in (args[0] if len(args) == 1 else args)]
        process = subprocess.run(
            ["nsenter", "--net=" + self.path] + argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            check=False,
        )
        return str(process.stdout)

    def terminate(self) -> None:
        """Let go of the name space."""
        if self.shell:
            os.close(self.namespace)
            self.shell = None

    def cleanup(self) -> None:
        """Mininet's name for the same."""
        self.terminate()


class LabInterface(Intf):
    """An interface that ``ip -batch`` makes in its name space: nothing to run or to move per interface."""

    def __init__(
        self, name: str, node: Any = None, port: Any = None, link: Any = None, mac: Any = None, **params: Any
    ) -> None:
        super().__init__(name, node=node, port=port, link=link, mac=mac, moveIntfFn=lambda *a, **k: True)

    def config(self, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        """Configured by the batches of :func:`built`."""
        return {}

    def ifconfig(self, *args: Any) -> str:
        """Never needed: addresses come with the batch."""
        return ""

    def delete(self) -> None:
        """Goes with its name space."""


class LabLink(Link):
    """A veth pair, made later by :func:`built` together with all others."""

    @classmethod
    def makeIntfPair(cls, *args: Any, **kwargs: Any) -> None:
        """Made by the batch."""


@contextlib.contextmanager
def built(job: Dict[str, Any]) -> Iterator[Namespaces]:
    """In this block the nodes and cables of ``job`` are there and up."""
    net = Mininet(build=False, cleanup=False, topo=None, link=LabLink, intf=LabInterface)
    try:
        for node in job["nodes"]:
            net.addHost(node["name"], cls=LabNode, ip=node["address"], inNamespace=True)
        inside = Namespaces({node["name"]: net[node["name"]].namespace for node in job["nodes"]})
        for node in job["nodes"]:
            with inside.inside(node["name"]):
                _switch_off_ipv6()
        with _cabled(net, inside, job):
            for node in job["nodes"]:
                _batch(inside, node["name"], _node_lines(node, job))
            yield inside
    finally:
        for host in net.hosts:
            host.terminate()


@contextlib.contextmanager
def _cabled(net: Mininet, inside: Namespaces, job: Dict[str, Any]) -> Iterator[None]:
    """A cable with both ends here is a veth pair; of the others, the network's, the end that is here is moved in."""
    own = [cable for cable in job["cables"] if len(_ends_here(inside, cable)) == 2]
    for cable in own:
        a, b = cable["a"], cable["b"]
        net.addLink(
            net[a["node"]],
            net[b["node"]],
            intfName1=a["name"],
            intfName2=b["name"],
            addr1=a["mac"],
            addr2=b["mac"],
        )
    lines = _cable_lines(inside, own, job["mtu_bytes"])
    for start in range(0, len(lines), _CABLES_AT_ONCE):
        _batch(inside, None, lines[start : start + _CABLES_AT_ONCE])
    ends = (_ends_here(inside, cable) for cable in job["cables"])
    moved = [here[0] for here in ends if len(here) == 1]
    if not moved:
        yield
        return
    from .attach import attached

    with attached(inside, moved, job["mtu_bytes"]):
        yield


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


def _batch(inside: Namespaces, node: Optional[str], lines: List[str]) -> None:
    answer = inside.run({"node": node, "argv": ["ip", "-batch", "-"], "stdin": "\n".join(lines) + "\n"})
    if answer["exit"] != 0:
        raise OSError("ip refused a line: %s" % answer["stderr"].strip())

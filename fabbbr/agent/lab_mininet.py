"""The emulated network as Mininet knows it: hosts, switches, wires and links with Mininet's Python API.

Mininet starts a shell per node and runs a handful of processes per link. The classes here keep its interface, but
leave the making to :mod:`network`.
"""

import contextlib
import os
import subprocess
from typing import Any, Dict, Iterator, List, Optional

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node

from . import namespace, network
from .namespace import Namespaces


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
        """Configured by the batches of :func:`network.cabled`."""
        return {}

    def ifconfig(self, *args: Any) -> str:
        """Never needed: addresses come with the batch."""
        return ""

    def delete(self) -> None:
        """Goes with its name space."""


class LabLink(Link):
    """A veth pair, made later by :func:`network.cabled` together with all others."""

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
        for cable in network.own_cables(job, inside):
            _add_link(net, cable["a"], cable["b"])
        with network.cabled(job, inside):
            yield inside
    finally:
        for host in net.hosts:
            host.terminate()


def _add_link(net: Mininet, a: Dict[str, Any], b: Dict[str, Any]) -> None:
    net.addLink(
        net[a["node"]],
        net[b["node"]],
        intfName1=a["name"],
        intfName2=b["name"],
        addr1=a["mac"],
        addr2=b["mac"],
    )

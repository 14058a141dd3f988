"""Builds the emulated network with Mininet's Python API: hosts, software switches, wires and links.

Mininet starts a shell per node and runs a handful of processes per link. On a machine where starting a process
takes milliseconds (a guest) that is most of the set-up time, so the classes here keep Mininet's interface but
give a node a process without a shell, and make all links in one ``ip -batch``.
"""

import ctypes
import os
import signal
import subprocess
from typing import Any, Dict, List, Optional

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node

_CLONE_NEWNET = 0x40000000


class _Shell:
    """Stands where Mininet keeps the shell of a node."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.stdin = self.stdout = None


class LabNode(Node):
    """A network name space held by a process that only waits."""

    def startShell(self, mnopts: Any = None) -> None:
        """Fork the process that holds the name space, and wait until it is there."""
        readable, writable = os.pipe()
        pid = os.fork()
        if pid == 0:
            _hold_a_namespace(writable)
        os.close(writable)
        answer = os.read(readable, 64).decode()
        os.close(readable)
        if answer != "ok":
            raise OSError("no network name space for %s: %s" % (self.name, answer))
        self.shell: Optional[_Shell] = _Shell(pid)
        self.pid = pid
        self.lastCmd, self.lastPid, self.waiting = None, None, False

    def cmd(self, *args: Any, **kwargs: Any) -> str:
        """Run one command in the node, as Mininet's ``cmd`` does, but without a shell that stays."""
        if len(args) == 1 and isinstance(args[0], str):
            argv: List[str] = ["sh", "-c", args[0]]
        else:
            argv = [str(word) for word in (args[0] if len(args) == 1 else args)]
        process = subprocess.run(
            ["mnexec", "-a", str(self.pid)] + argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            check=False,
        )
        return str(process.stdout)

    def terminate(self) -> None:
        """End the holding process; its name space goes with it."""
        if self.shell is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.shell = None

    def cleanup(self) -> None:
        """Mininet's name for the same."""
        self.terminate()


class LabInterface(Intf):
    """An interface that ``ip -batch`` has made or will make: nothing to run per interface."""

    def config(self, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        """Configured by the batches of :func:`build`."""
        return {}

    def ifconfig(self, *args: Any) -> str:
        """Never needed: addresses come with the batch."""
        return ""

    def delete(self) -> None:
        """Goes with its name space."""


class LabLink(Link):
    """A veth pair, made later by :func:`build` together with all others."""

    @classmethod
    def makeIntfPair(cls, *args: Any, **kwargs: Any) -> None:
        """Made by the batch."""


class _LabInterfaceInPlace(LabInterface):
    def __init__(
        self, name: str, node: Any = None, port: Any = None, link: Any = None, mac: Any = None, **params: Any
    ) -> None:
        super().__init__(name, node=node, port=port, link=link, mac=mac, moveIntfFn=lambda *a, **k: True)


def build(job: Dict[str, Any]) -> Mininet:
    """Make all nodes and cables of ``job`` and bring them up; return the Mininet network."""
    net = Mininet(build=False, cleanup=False, topo=None, link=LabLink, intf=_LabInterfaceInPlace)
    for node in job["nodes"]:
        net.addHost(node["name"], cls=LabNode, ip=node["address"], inNamespace=True)
    for cable in job["cables"]:
        a, b = cable["a"], cable["b"]
        net.addLink(
            net[a["node"]],
            net[b["node"]],
            intfName1=a["name"],
            intfName2=b["name"],
            addr1=a["mac"],
            addr2=b["mac"],
        )
    _batch("ip", None, _cable_lines(net, job))
    for node in job["nodes"]:
        _batch("ip", net[node["name"]].pid, _node_lines(node, job))
    return net


def _hold_a_namespace(writable: int) -> None:
    """Run in the forked child: never returns."""
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.unshare(_CLONE_NEWNET)
    if not failed:
        _switch_off_ipv6()
    os.write(writable, os.strerror(ctypes.get_errno()).encode() if failed else b"ok")
    os.close(writable)
    # A parent that dies must not leave name spaces behind.
    libc.prctl(1, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        signal.pause()


def _switch_off_ipv6() -> None:
    """Neighbour discovery would send packets that no flow sent, and conservation would not add up."""
    for scope in ("all", "default"):
        path = "/proc/sys/net/ipv6/conf/%s/disable_ipv6" % scope
        if os.path.exists(path):
            with open(path, "w") as file:
                file.write("1")


def _cable_lines(net: Mininet, job: Dict[str, Any]) -> List[str]:
    lines = []
    for cable in job["cables"]:
        a, b = cable["a"], cable["b"]
        lines.append(
            "link add %s mtu %d address %s netns %d type veth peer name %s mtu %d address %s netns %d"
            % (
                a["name"],
                job["mtu_bytes"],
                a["mac"],
                net[a["node"]].pid,
                b["name"],
                job["mtu_bytes"],
                b["mac"],
                net[b["node"]].pid,
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
    if node["kind"] == "switch":
        lines.append(
            "link add %s-br mtu %d type bridge stp_state 0 mcast_snooping 0 forward_delay 0"
            % (node["name"], job["mtu_bytes"])
        )
        lines += ["link set %s master %s-br" % (port, node["name"]) for port in ports]
        lines.append("link set %s-br up" % node["name"])
    if node["kind"] == "host":
        lines.append("addr add %s dev %s" % (node["address"], ports[0]))
    return lines + ["link set %s up" % port for port in ports]


def _batch(tool: str, pid: Any, lines: List[str]) -> None:
    argv = [tool, "-batch", "-"]
    if pid is not None:
        argv = ["nsenter", "--net=/proc/%d/ns/net" % pid] + argv
    done = subprocess.run(
        argv,
        input="\n".join(lines) + "\n",
        stderr=subprocess.PIPE,
        universal_newlines=True,
        check=False,
    )
    if done.returncode != 0:
        raise OSError("%s refused a line: %s" % (tool, done.stderr.strip()))

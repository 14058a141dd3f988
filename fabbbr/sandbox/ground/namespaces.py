"""The ground made of name spaces: everything that the control plane grants, on this machine's kernel."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from fabbbr.errors import BackendError
from fabbbr.sandbox.granted import Ground, Machine, Network, Plug, Port
from fabbbr.sandbox.ground.abilities import probe
from fabbbr.sandbox.ground.bastion import Bastion
from fabbbr.sandbox.ground.cables import Cables
from fabbbr.sandbox.ground.distances import Position
from fabbbr.sandbox.ground.nodes import Node

_SHORTEST_LIFE_S = 2.0
"""A node that ends sooner than this after it was started did not boot; it is not started again."""


class NameSpaces(Ground):
    """Made once per private world. Calls may come from any thread; they take turns."""

    def __init__(self, folder: Path, positions: Mapping[str, Position], event: Callable[..., None]) -> None:
        self._folder = folder
        self._event = event
        self._lock = threading.RLock()
        abilities = probe()
        event("kernel", **abilities.model_dump())
        self._cables = Cables(positions, abilities, event)
        self._bastion = Bastion(folder / "bastion")
        self._nodes: dict[str, Node] = {}
        self._owner: dict[str, str] = {}
        self._plugs: list[Plug] = []
        self._started: dict[str, float] = {}
        self._number = itertools.count(1)

    def start(self) -> None:
        """Lay the management network and open the bastion."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._cables.lay()
        self._bastion.start()

    def add_network(self, network: Network) -> None:
        with self._lock:
            self._cables.add_network(network)

    def remove_network(self, network: str) -> None:
        with self._lock:
            self._cables.remove_network(network)

    def add_machine(self, machine: Machine) -> None:
        with self._lock:
            number = next(self._number)
            node = Node(machine, number, self._folder / f"{number}-{machine.name}", self._died)
            node.make()
            node.boot()
            self._nodes[machine.id] = node
            self._started[machine.id] = time.monotonic()
            for port in machine.ports:
                self._socket(node, port)

    def remove_machine(self, machine: str) -> None:
        with self._lock:
            node = self._nodes.pop(machine)
            node.remove()
            for socket in node.sockets:
                self._forget(socket.port.id)

    def restart_machine(self, machine: str) -> None:
        with self._lock:
            node = self._nodes[machine]
            node.halt()
            node.unwire()
            node.boot()
            self._started[machine] = time.monotonic()
            node.rewire()
            for plug in [plug for plug in self._plugs if self._owner.get(plug.port) == machine]:
                self._cables.lost(plug)
                self._cables.plug(plug)

    def stop_machine(self, machine: str) -> None:
        with self._lock:
            self._nodes[machine].die()

    def add_port(self, machine: str, port: Port) -> None:
        with self._lock:
            self._socket(self._nodes[machine], port)

    def remove_port(self, port: str) -> None:
        with self._lock:
            self._nodes[self._owner[port]].unsocket(port)
            self._forget(port)

    def plug(self, plug: Plug) -> None:
        with self._lock:
            self._cables.plug(plug)
            self._plugs.append(plug)

    def unplug(self, plug: Plug) -> None:
        with self._lock:
            self._cables.unplug(plug)
            self._plugs.remove(plug)

    def authorize(self, machine: str, *, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        with self._lock:
            self._nodes[machine].authorize(add, remove)

    def admit(self, keys: tuple[str, ...]) -> None:
        with self._lock:
            self._bastion.admit(keys)

    def bastion(self, *, reachable: bool) -> None:
        with self._lock:
            if reachable:
                self._bastion.run()
            else:
                self._bastion.halt()

    def _socket(self, node: Node, port: Port) -> None:
        node.socket(port, self._cables.end(port.id))
        self._owner[port.id] = node.machine.id

    def _forget(self, port: str) -> None:
        self._cables.forget(port)
        self._owner.pop(port, None)
        self._plugs = [plug for plug in self._plugs if plug.port != port]

    def _died(self, machine: str) -> None:
        """A node's first process ended: somebody on it asked for a reboot, or it never came up."""
        with self._lock:
            node = self._nodes.get(machine)
            if node is None:
                return
            lived_s = time.monotonic() - self._started[machine]
            if lived_s < _SHORTEST_LIFE_S:
                self._event("node failed", node=node.machine.name, said=node.last_words())
                return
            self._event("node rebooted itself", node=node.machine.name)
            try:
                self.restart_machine(machine)
            except BackendError as error:
                self._event("node failed", node=node.machine.name, said=str(error))

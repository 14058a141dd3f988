"""Bringing about what a slice asks for, and taking it away: tickets first, then networks, then nodes.

Runs in a thread per operation. FABRIC's waits pass on the double's clock; failures that were ordered strike
here, and end in a sliver's error and the slice's state, never in an exception.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fabbbr.errors import BackendError
from fabbbr.sandbox.control import states
from fabbbr.sandbox.control.asked import AskedNetwork, AskedNode, AskedPlug, Changes
from fabbbr.sandbox.control.capacity import InsufficientError, Inventory
from fabbbr.sandbox.control.grants import Grants
from fabbbr.sandbox.control.slices import Slice
from fabbbr.sandbox.faults import Faults, Kind
from fabbbr.sandbox.granted import Ground, Machine, Plug
from fabbbr.sandbox.timing import Clock

TICKET_S = 10.0
NETWORK_S = 15.0
BOOT_S = (60.0, 120.0)
CLOSE_S = 15.0
RENEW_S = 10.0
REBOOT_S = 30.0
"""What these take on FABRIC, in seconds; nodes come up one by one, each after a delay of its own."""

_DEPENDENT = "Redeem predecessor is in a terminal state, failing the reservation"
Login = Callable[[str], str | None]


class Deployment:
    """``login`` tells who logs in on an image, or None for an image that there is not."""

    def __init__(  # noqa: PLR0913 - the parts that it joins
        self, *, ground: Ground, inventory: Inventory, grants: Grants, faults: Faults, clock: Clock,
        login: Login, event: Callable[..., None], seed: int,
    ) -> None:  # fmt: skip
        self._ground = ground
        self._inventory = inventory
        self._grants = grants
        self._faults = faults
        self._clock = clock
        self._login = login
        self._event = event
        self._random = random.Random(seed)  # noqa: S311 - nothing here is secret
        self._turn = threading.RLock()

    def apply(self, made: Slice, wanted: Changes) -> None:
        """Carry changes out and leave the slice in the state that they came to."""
        self._take_away(made, wanted)
        self._clock.wait(TICKET_S, made.wake)
        with made.lock:
            machines = [node for node in wanted.new_nodes if self._ticket(made, node)]
            extended = [node.id for node, part in wanted.new_components if self._extend(made, node, part.id)]
            networks = [network for network in wanted.new_networks if self._connectable(made, network)]
        self._make_networks(made, networks)
        self._boot(made, machines)
        self._make_cards(made, wanted, set(extended))
        self._plug(made, wanted.new_plugs)
        with made.lock:
            if made.state not in states.GONE:  # the lease may have ended meanwhile
                made.step("failed" if made.failed else "done")
        self._event("slice", name=made.name, id=made.id, state=made.state)

    def close(self, made: Slice) -> None:
        """Take a whole slice away, which is Closing already."""
        made.wake.set()
        self._clock.wait(CLOSE_S, threading.Event())
        with made.lock:
            for machine in list(made.machines):
                self._remove_machine(made, machine)
            for network in list(made.networks):
                self._remove_network(made, network)
            for element in made.slivers:
                self._inventory_release(element)
                made.mark(element, "Closed", made.slivers[element].error)
            made.step("closed")
        self._event("slice", name=made.name, id=made.id, state=made.state)

    def reboot(self, made: Slice, element: str) -> None:
        """Restart a node as FABRIC's POA does."""
        self._clock.wait(REBOOT_S, made.wake)
        with made.lock:
            if element in made.machines:
                self._ground.restart_machine(element)

    def strike(self, made: Slice) -> None:
        """Have machines that stand meet with the faults that are waiting for one."""
        with made.lock:
            for machine in [made.machines[each] for each in made.live & made.machines.keys()]:
                self._strike_machine(made, machine)

    def _take_away(self, made: Slice, wanted: Changes) -> None:
        with made.lock:
            for plug in wanted.gone_plugs:
                self._unplug(made, plug)
            for network in wanted.gone_networks:
                self._remove_network(made, network.id)
            for node in wanted.gone_nodes:
                self._remove_machine(made, node.id)
                self._inventory_release(node.id)
            for _, component in wanted.gone_components:
                for port in component.ports:
                    self._ground.remove_port(port.id)
            shrunk = {node.id for node, _ in wanted.gone_components}
            grown = {node.id for node, _ in wanted.new_components}
            for node in [node for node in made.asked.nodes if node.id in shrunk - grown]:
                with self._turn:
                    self._inventory.extend(node)

    def _ticket(self, made: Slice, node: AskedNode) -> bool:
        """Find a host; a refusal closes the sliver with FABRIC's words."""
        try:
            user = self._user(node)
            self._strike("insufficient-resources", node)
            if made.state == "Modifying":
                self._strike("modify-error", node)
            with self._turn:
                host = self._inventory.allocate(node)
                made.machines[node.id] = self._grants.machine(node, host, made.keys, user)
        except InsufficientError as error:
            made.mark(node.id, "Closed", str(error))
            return False
        made.mark(node.id, "Ticketed")
        return True

    def _user(self, node: AskedNode) -> str:
        user = self._login(node.image)
        if user is None:
            message = f"Insufficient resources : Image {node.image} is not available at {node.site}"
            raise InsufficientError(message)
        return user

    def _strike(self, kind: Kind, node: AskedNode) -> None:
        if self._faults.for_node(kind, node=node.name, site=node.site) is not None:
            message = f"Insufficient resources : No candidates nodes found to serve {node.name}"
            raise InsufficientError(message)

    def _extend(self, made: Slice, node: AskedNode, component: str) -> bool:
        """Room for a component on the host of a node that is there already."""
        if node.id not in made.machines:
            return False
        try:
            self._strike("modify-error", node)
            with self._turn:
                self._inventory.extend(node)
        except InsufficientError as error:
            self._event("component refused", slice=made.name, node=node.name, said=str(error))
            made.mark(node.id, "Active", str(error))
            made.graph.refuse_component(node.id, component)
            made.refused.add(component)
            return False
        return True

    def _connectable(self, made: Slice, network: AskedNetwork) -> bool:
        nodes = {
            port.id: node.id for node in made.asked.nodes for part in node.components for port in part.ports
        }
        ends = [nodes.get(plug.port) for plug in made.asked.plugs if plug.network == network.id]
        if any(end is not None and end not in made.machines for end in ends):
            made.mark(network.id, "Closed", _DEPENDENT)
            return False
        sites = made.asked.sites_of(network.id) or ((network.site,) if network.site else ())
        try:
            with self._turn:
                made.networks[network.id] = self._grants.network(network, sites)
        except ValueError as error:
            made.mark(network.id, "Closed", str(error))
            return False
        made.mark(network.id, "Ticketed")
        return True

    def _make_networks(self, made: Slice, networks: list[AskedNetwork]) -> None:
        if not networks or self._clock.wait(NETWORK_S, made.wake):
            return
        with made.lock:
            for network in networks if made.state not in states.GONE else ():
                granted = made.networks[network.id]
                with self._failing(made, network.id):
                    self._ground.add_network(granted)
                    made.live.add(network.id)
                    made.graph.grant_network(granted)
                    made.mark(network.id, "Active")

    def _boot(self, made: Slice, nodes: list[AskedNode]) -> None:
        """Nodes come up in the order of their delays."""
        with self._turn:
            delays = sorted((self._random.uniform(*BOOT_S), number) for number in range(len(nodes)))
        passed_s = 0.0
        for delay_s, number in delays:
            if self._clock.wait(delay_s - passed_s, made.wake):
                return
            passed_s = delay_s
            with made.lock, self._failing(made, nodes[number].id):
                if made.state not in states.GONE:
                    self._start(made, made.machines[nodes[number].id])

    def _start(self, made: Slice, machine: Machine) -> None:
        self._ground.add_machine(machine)
        made.live.add(machine.id)
        made.graph.grant_machine(machine)
        made.mark(machine.id, "Active")
        self._event("node", slice=made.name, node=machine.name, address=machine.management)
        self._strike_machine(made, machine)

    def _strike_machine(self, made: Slice, machine: Machine) -> None:
        dies = self._faults.for_node("node-dies", node=machine.name, site=machine.site)
        if dies is not None:
            _later(dies.seconds, lambda: self._kill(made, machine))

    def _kill(self, made: Slice, machine: Machine) -> None:
        with made.lock:
            if machine.id in made.machines:
                self._ground.stop_machine(machine.id)
                self._event("node died", slice=made.name, node=machine.name)

    def _make_cards(self, made: Slice, wanted: Changes, extended: set[str]) -> None:
        with made.lock:
            for node, component in wanted.new_components:
                if node.id not in made.live & extended or component.id in made.refused:
                    continue
                with self._turn:
                    card = self._grants.card(component)
                machine = made.machines[node.id]
                made.machines[node.id] = machine.model_copy(update={"cards": (*machine.cards, card)})
                with self._failing(made, node.id):
                    for port in card.ports:
                        self._ground.add_port(node.id, port)
                    made.graph.grant_machine(made.machines[node.id])

    def _plug(self, made: Slice, plugs: tuple[AskedPlug, ...]) -> None:
        with made.lock:
            living = [machine for machine in made.machines.values() if machine.id in made.live]
            ports = {port.id for machine in living for port in machine.ports}
            for asked in plugs:
                if asked.port not in ports or asked.network not in made.live:
                    continue
                plug = Plug(port=asked.port, network=asked.network, site=asked.site, vlan=asked.vlan)
                with self._failing(made, asked.network), self._turn:
                    self._ground.plug(plug)
                    made.plugs.append(plug)
                    made.graph.grant_plug(asked, asked.vlan or self._grants.vlan())

    def _unplug(self, made: Slice, asked: AskedPlug) -> None:
        for plug in [
            p for p in made.plugs if (p.port, p.network, p.vlan) == (asked.port, asked.network, asked.vlan)
        ]:
            self._ground.unplug(plug)
            made.plugs.remove(plug)

    def _remove_machine(self, made: Slice, element: str) -> None:
        machine = made.machines.pop(element, None)
        if machine is None:
            return
        ports = {port.id for port in machine.ports}
        made.plugs = [plug for plug in made.plugs if plug.port not in ports]
        if element in made.live:
            made.live.remove(element)
            self._ground.remove_machine(element)

    def _remove_network(self, made: Slice, element: str) -> None:
        if made.networks.pop(element, None) is None:
            return
        made.plugs = [plug for plug in made.plugs if plug.network != element]
        if element in made.live:
            made.live.remove(element)
            self._ground.remove_network(element)

    def _inventory_release(self, element: str) -> None:
        with self._turn:
            self._inventory.release(element)

    @contextmanager
    def _failing(self, made: Slice, element: str) -> Iterator[None]:
        """What the ground refuses is the sliver's failure."""
        try:
            yield
        except BackendError as error:
            self._event("ground refused", slice=made.name, element=element, said=str(error))
            made.mark(element, "Failed", str(error))


def _later(seconds: float, what: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, what)
    timer.daemon = True
    timer.start()

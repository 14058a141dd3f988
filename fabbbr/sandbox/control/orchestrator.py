"""The orchestrator: what it checks, in FABRIC's order, and what it answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from uuid import uuid4

from fabbbr.errors import BackendError
from fabbbr.sandbox import names
from fabbbr.sandbox.control import actions, answers, policy, states
from fabbbr.sandbox.control.answers import Answer, Json, RefusedError
from fabbbr.sandbox.control.asked import Asked, changes
from fabbbr.sandbox.control.capacity import Inventory
from fabbbr.sandbox.control.deployment import RENEW_S, Deployment
from fabbbr.sandbox.control.graph import Graph
from fabbbr.sandbox.control.request import Request
from fabbbr.sandbox.control.slices import Slice, Slices
from fabbbr.sandbox.faults import Faults
from fabbbr.sandbox.granted import Ground
from fabbbr.sandbox.timing import Clock

DEFAULT_LEASE_HOURS = 24
_LONGEST_TIMER_S = 7 * 24 * 3600.0


class Orchestrator:
    """Every public method answers one route; RefusedError is what FABRIC refuses."""

    def __init__(  # noqa: PLR0913 - the parts that it joins
        self, *, deployment: Deployment, inventory: Inventory, ground: Ground, faults: Faults, clock: Clock,
        tags: tuple[str, ...], event: Callable[..., None],
    ) -> None:  # fmt: skip
        self._deployment = deployment
        self._inventory = inventory
        self._ground = ground
        self._faults = faults
        self._clock = clock
        self._tags = tags
        self._event = event
        self._slices = Slices()
        self._actions: dict[str, Json] = {}

    def resources(self, request: Request) -> Answer:
        """GET /resources/summary."""
        listed = self._inventory.summary() | {"links": [], "facility_ports": []}
        only, without = (_listed(request.one(word)) for word in ("includes", "excludes"))
        sites = [s for s in listed["sites"] if (not only or s["name"] in only) and s["name"] not in without]
        kept = {site["name"] for site in sites}
        hosts = [host for host in listed["hosts"] if host["site"] in kept]
        wanted = _listed(request.one("type")) or set(listed)
        whole = listed | {"sites": sites, "hosts": hosts}
        return answers.data([{key: whole[key] for key in whole if key in wanted}], "resources.summary")

    def create(self, request: Request) -> Answer:
        """POST /slices/creates."""
        name = request.required("name")
        body = request.json()
        keys = tuple(str(key) for key in _list(body.get("ssh_keys")))
        if not keys:
            message = "ssh_keys are missing"
            raise RefusedError(message, HTTPStatus.BAD_REQUEST)
        now = self._clock.now()
        end = self._lease_end(now, request.one("lease_end_time"), request.one("lifetime"))
        graph = Graph(str(body.get("graph_model", "")))
        asked = graph.asked()
        self._permit(asked)
        made = Slice(id=str(uuid4()), name=name, keys=keys, graph=graph, asked=asked, start=now, end=end)
        if not self._slices.add(made):
            message = f"Slice {name} already exists"
            raise RefusedError(message)
        with made.lock:
            made.reserve(asked.elements)
            made.step("demand")
            said = answers.data(made.sliver_records(), "slivers")
        self._watch_lease(made)
        _in_thread(self._deploy, made, changes(Asked(), asked))
        return said

    def modify(self, request: Request, slice_id: str) -> Answer:
        """PUT /slices/modify/{id}."""
        made = self._find(slice_id)
        with made.lock:
            if made.state not in states.STABLE:
                message = f"Unable to modify Slice# {slice_id} that is not yet stable, try again later"
                raise RefusedError(message)
            graph = Graph(request.text())
            asked = graph.asked()
            self._permit(asked)
            wanted = changes(made.asked, asked)
            made.refused.clear()
            made.graph.discard()
            made.graph, made.asked = graph, asked
            for element in wanted.abandoned:
                made.slivers.pop(element)
            self._write_again(made)
            made.reserve(asked.elements)
            made.step("modify")
            if not wanted:  # only its notes have changed: nobody has anything to do
                made.step("failed" if made.failed else "done")
            said = answers.data(made.sliver_records(), "slivers")
        if wanted:
            _in_thread(self._deployment.apply, made, wanted)
        return said

    def accept(self, _request: Request, slice_id: str) -> Answer:
        """POST /slices/modify/{id}/accept: what failed leaves the graph."""
        made = self._find(slice_id)
        with made.lock:
            if made.state in states.MODIFIED:
                made.graph.prune()
                made.asked = made.graph.asked()
                made.refused.clear()
                kept = made.asked.elements
                made.slivers = {
                    element: sliver for element, sliver in made.slivers.items() if element in kept
                }
                made.step("accept")
            return answers.data([made.record(model=True)], "slice_details")

    def renew(self, request: Request, slice_id: str) -> Answer:
        """POST /slices/renew/{id}."""
        made = self._find(slice_id, f"Slice# {slice_id} not found")
        end = self._lease_end(self._clock.now(), request.required("lease_end_time"), None)
        with made.lock:
            if made.state in states.GONE:
                message = f"Slice# {slice_id} already closed"
                raise RefusedError(message, HTTPStatus.BAD_REQUEST)
            if made.state not in states.STABLE | states.MODIFIED:
                message = f"Unable to renew Slice# {slice_id} that is not yet stable, try again later"
                raise RefusedError(message)
            if end < made.end:
                message = "Attempted new term end time is shorter than current slice end time"
                raise RefusedError(message)
            if end > made.end:
                made.step("renew")
                _in_thread(self._extend, made, end)
        return answers.no_content(f"Slice '{slice_id}' has been successfully renewed")

    def delete(self, _request: Request, slice_id: str) -> Answer:
        """DELETE /slices/delete/{id}."""
        made = self._find(slice_id, f"Slice# {slice_id} not found")
        if not self._close(made, "close"):
            message = f"Unable to delete Slices ['{slice_id}'] that are not yet stable, try again later"
            raise RefusedError(message)
        return answers.no_content(f"Slice '{slice_id}' has been successfully deleted")

    def delete_all(self, _request: Request) -> Answer:
        """DELETE /slices/delete."""
        stuck = [made.id for made in self._slices.all() if not self._close(made, "close")]
        if stuck:
            message = f"Unable to delete Slices {stuck} that are not yet stable, try again later"
            raise RefusedError(message)
        return answers.no_content("Slices for user have been successfully deleted")

    def slices(self, request: Request) -> Answer:
        """GET /slices: FABRIC looks at name and states, and not at search and exact_match."""
        name, wanted = request.one("name"), set(request.many("states"))
        records = []
        for made in self._slices.all():
            with made.lock:
                if (not wanted or made.state in wanted) and name in {None, made.name}:
                    records.append(made.record(model=False))
        offset, limit = int(request.one("offset") or 0), int(request.one("limit") or 5)
        return answers.data(records[offset : offset + limit], "slices")

    def slice(self, request: Request, slice_id: str) -> Answer:
        """GET /slices/{id}."""
        made = self._find(slice_id)
        with made.lock:
            model = request.one("graph_format") != "NONE"
            return answers.data([made.record(model=model)], "slice_details")

    def slivers(self, request: Request) -> Answer:
        """GET /slivers."""
        made = self._find(request.required("slice_id"))
        with made.lock:
            return answers.data(made.sliver_records(), "slivers")

    def sliver(self, _request: Request, sliver_id: str) -> Answer:
        """GET /slivers/{id}."""
        made, _ = self._sliver(sliver_id)
        with made.lock:
            found = [record for record in made.sliver_records() if record["sliver_id"] == sliver_id]
        return answers.data(found, "slivers")

    def act(self, request: Request, sliver_id: str) -> Answer:
        """POST /poas/create/{sliver}."""
        made, element = self._sliver(sliver_id)
        body = request.json()
        operation = str(body.get("operation", ""))
        if operation not in actions.OPERATIONS:
            message = f"Unsupported operation: {operation}"
            raise RefusedError(message, HTTPStatus.BAD_REQUEST)
        with made.lock:
            if made.slivers[element].state != "Active":
                message = f"Cannot trigger POA; Reservation# {sliver_id} is not ReservationStates.Active"
                raise RefusedError(message)
        action: Json = {
            "poa_id": str(uuid4()),
            "operation": operation,
            "sliver_id": sliver_id,
            "slice_id": made.id,
            "state": "Nascent",
        }
        self._actions[str(action["poa_id"])] = action
        said = answers.data([dict(action)], "poas")
        _in_thread(self._perform, made, element, action, body.get("data"))
        return said

    def action(self, _request: Request, poa_id: str) -> Answer:
        """GET /poas/{id}."""
        if poa_id not in self._actions:
            message = f"Reservation# {poa_id} not found"
            raise RefusedError(message, HTTPStatus.NOT_FOUND)
        return answers.data([dict(self._actions[poa_id])], "poas")

    def _permit(self, asked: Asked) -> None:
        violated = policy.violations(asked, self._tags)
        if violated:
            raise RefusedError(violated[0])
        if asked.strange:
            message = f"The sandbox has no double of {', '.join(asked.strange)}; FABRIC itself may have it"
            raise RefusedError(message)

    def _lease_end(self, now: datetime, wanted: str | None, hours: str | None) -> datetime:
        longest = now + policy.longest_lease(self._tags)
        if wanted is None:
            return min(now + timedelta(hours=int(hours or DEFAULT_LEASE_HOURS)), longest)
        try:
            end = datetime.strptime(wanted, names.TIME_FORMAT)  # noqa: DTZ007 - the format has a zone
        except ValueError as error:
            message = f"Lease Time is not in format {names.TIME_FORMAT}"
            raise RefusedError(message, HTTPStatus.BAD_REQUEST) from error
        if end <= now:
            message = f"New lease time {end} is in the past! "
            raise RefusedError(message, HTTPStatus.BAD_REQUEST)
        return min(end, longest)

    def _find(self, slice_id: str, otherwise: str = "User# has no Slices") -> Slice:
        found = self._slices.find(slice_id)
        if found is None:
            raise RefusedError(otherwise, HTTPStatus.NOT_FOUND)
        return found

    def _sliver(self, sliver_id: str) -> tuple[Slice, str]:
        for made in self._slices.all():
            with made.lock:
                for element, sliver in made.slivers.items():
                    if sliver.id == sliver_id:
                        return made, element
        message = f"Reservation# {sliver_id} not found"
        raise RefusedError(message, HTTPStatus.NOT_FOUND)

    @staticmethod
    def _write_again(made: Slice) -> None:
        """A client's graph need not hold what was granted before; the orchestrator's own memory does."""
        nodes = {node.id for node in made.asked.nodes}
        networks = {network.id for network in made.asked.networks}
        parts = {part.id for node in made.asked.nodes for part in node.components}
        for machine in made.machines.values():
            if machine.id in nodes and made.slivers[machine.id].state == "Active":
                cards = tuple(card for card in machine.cards if card.id in parts)
                made.machines[machine.id] = machine.model_copy(update={"cards": cards})
                made.graph.grant_machine(made.machines[machine.id])
        for network in made.networks.values():
            if network.id in networks:
                made.graph.grant_network(network)

    def strike(self) -> None:
        """Have slices and machines that stand meet with the faults that are waiting for one."""
        for made in self._slices.all():
            if made.state in states.STABLE:
                self._deployment.strike(made)
                self._strike(made)

    def _deploy(self, made: Slice, wanted: object) -> None:
        self._deployment.apply(made, wanted)  # type: ignore[arg-type]
        self._strike(made)

    def _strike(self, made: Slice) -> None:
        fault = self._faults.for_slice("lease-ends", made.name)
        if fault is not None:
            _timer(fault.seconds, self._expire, made).start()

    def _extend(self, made: Slice, end: datetime) -> None:
        self._clock.wait(RENEW_S, made.wake)
        with made.lock:
            if made.state != "Configuring":
                return
            made.end = end
            made.step("failed" if made.failed else "done")
        self._watch_lease(made)

    def _watch_lease(self, made: Slice) -> None:
        """Wake at the end of the lease; long waits in pieces, since a timer has a longest wait."""
        left_s = (made.end - self._clock.now()).total_seconds()
        if made.lease is not None:
            made.lease.cancel()
        if left_s <= 0:
            self._expire(made)
        elif made.state not in states.GONE:
            made.lease = _timer(min(left_s, _LONGEST_TIMER_S), self._watch_lease, made)
            made.lease.start()

    def _expire(self, made: Slice) -> None:
        self._event("lease ended", slice=made.name, id=made.id)
        self._close(made, "expire")

    def _close(self, made: Slice, step: states.Step) -> bool:
        """Begin to close it; True also for one that closes already, False when it cannot be now."""
        with made.lock:
            if made.state in states.GONE:
                return True
            try:
                made.step(step)
            except states.NotNowError:
                return False
            if made.lease is not None:
                made.lease.cancel()
        _in_thread(self._deployment.close, made)
        return True

    def _perform(self, made: Slice, element: str, action: Json, given: object) -> None:
        try:
            action["info"] = {action["operation"]: self._done(made, element, str(action["operation"]), given)}
            action["state"] = "Success"
        except (BackendError, KeyError, ValueError) as error:
            action["error"] = str(error)
            action["state"] = "Failed"

    def _done(self, made: Slice, element: str, operation: str, given: object) -> Json:
        if operation == "reboot":
            self._deployment.reboot(made, element)
            return {}
        with made.lock:
            machine = made.machines[element]
            node = next(node for node in made.asked.nodes if node.id == element)
            if operation == "cpupin":
                made.pins[element] = actions.pins(given)
            elif operation == "addkey":
                self._ground.authorize(element, add=actions.keys(given), remove=())
            elif operation == "removekey":
                self._ground.authorize(element, add=(), remove=actions.keys(given))
            elif operation == "cpuinfo":
                return actions.cpu_info(machine, node.cores, made.pins.get(element, {}))
            elif operation == "numainfo":
                return actions.numa_info(machine, node.ram_gb)
            return {}


def _in_thread(work: Callable[..., None], *given: object) -> None:
    threading.Thread(target=work, args=given, daemon=True).start()


def _timer(seconds: float, work: Callable[[Slice], None], made: Slice) -> threading.Timer:
    timer = threading.Timer(seconds, work, (made,))
    timer.daemon = True
    return timer


def _listed(text: str | None) -> set[str]:
    return {word.strip() for word in (text or "").split(",") if word.strip()}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]

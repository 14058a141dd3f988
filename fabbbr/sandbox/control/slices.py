"""Slices as the orchestrator remembers them: graph, state, lease and slivers."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from fabbbr.sandbox import names
from fabbbr.sandbox.control import states
from fabbbr.sandbox.control.answers import Json
from fabbbr.sandbox.control.asked import Asked
from fabbbr.sandbox.control.graph import Graph
from fabbbr.sandbox.granted import Machine, Network, Plug


@dataclass
class Sliver:
    """The reservation of one node or network."""

    id: str
    element: str
    state: str = "Nascent"
    error: str | None = None


@dataclass
class Slice:
    """One slice. Whoever reads or changes it holds ``lock``; ``wake`` ends a wait that no longer matters.

    ``refused`` are components that a modification could not add, ``live`` the elements that the ground has.
    """

    id: str
    name: str
    keys: tuple[str, ...]
    graph: Graph
    asked: Asked
    start: datetime
    end: datetime
    state: states.State = "Nascent"
    slivers: dict[str, Sliver] = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)
    networks: dict[str, Network] = field(default_factory=dict)
    plugs: list[Plug] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    pins: dict[str, dict[int, int]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    wake: threading.Event = field(default_factory=threading.Event)
    lease: threading.Timer | None = None

    def step(self, step: states.Step) -> None:
        """Go on to the state that follows; NotNowError when it cannot."""
        self.state = states.after(self.state, step)

    def reserve(self, elements: Iterable[str]) -> None:
        """A sliver for each of these nodes and networks that has none."""
        for element in elements:
            self.slivers.setdefault(element, Sliver(id=str(uuid4()), element=element))
            self.mark(element, self.slivers[element].state, self.slivers[element].error)

    def mark(self, element: str, state: str, error: str | None = None) -> None:
        """Note a sliver's state, here and in the graph."""
        sliver = self.slivers[element]
        sliver.state, sliver.error = state, error
        self.graph.mark(element, sliver=sliver.id, state=state, error=error)

    @property
    def failed(self) -> bool:
        """Whether anything that it asks for came to nothing."""
        closed = (sliver.state in {"Closed", "Failed"} for sliver in self.slivers.values())
        return bool(self.refused) or any(closed)

    def record(self, *, model: bool) -> Json:
        """What GET /slices tells of it."""
        record: Json = {
            "slice_id": self.id,
            "name": self.name,
            "graph_id": self.graph.id,
            "state": self.state,
            "owner_email": names.USER_EMAIL,
            "owner_user_id": names.USER_ID,
            "project_id": names.PROJECT_ID,
            "project_name": names.PROJECT_NAME,
            "lease_start_time": self.start.strftime(names.TIME_FORMAT),
            "lease_end_time": self.end.strftime(names.TIME_FORMAT),
        }
        return record | {"model": self.graph.serialize()} if model else record

    def sliver_records(self) -> list[Json]:
        """What GET /slivers tells of it."""
        return [self._sliver_record(sliver) for sliver in self.slivers.values()]

    def _sliver_record(self, sliver: Sliver) -> Json:
        kind, properties = self.graph.sliver(sliver.element)
        return {
            "slice_id": self.id,
            "sliver_id": sliver.id,
            "graph_node_id": sliver.element,
            "sliver_type": kind,
            "state": sliver.state,
            "pending_state": "None_",
            "join_state": "NoJoin",
            "sliver": properties,
            "notice": sliver.error or "",
            "lease_start_time": self.start.strftime(names.TIME_FORMAT),
            "lease_end_time": self.end.strftime(names.TIME_FORMAT),
            "owner_user_id": names.USER_ID,
            "owner_email": names.USER_EMAIL,
            "project_id": names.PROJECT_ID,
            "project_name": names.PROJECT_NAME,
        }


class Slices:
    """All slices, the dead ones too: FABRIC still answers for them by their id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: dict[str, Slice] = {}

    def add(self, made: Slice) -> bool:
        """Remember it, unless one of the same name lives."""
        with self._lock:
            if any(
                other.name == made.name and other.state not in states.GONE for other in self._all.values()
            ):
                return False
            self._all[made.id] = made
            return True

    def find(self, identity: str) -> Slice | None:
        with self._lock:
            return self._all.get(identity)

    def all(self) -> list[Slice]:
        with self._lock:
            return list(self._all.values())

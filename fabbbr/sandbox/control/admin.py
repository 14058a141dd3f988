"""The double's own door, which FABRIC does not have: order a failure, read what was asked so far."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus

from fabbbr.errors import UsageError
from fabbbr.sandbox.control.answers import Answer, RefusedError
from fabbbr.sandbox.control.request import Request
from fabbbr.sandbox.faults import Fault, Faults
from fabbbr.sandbox.granted import Ground
from fabbbr.sandbox.journal import Journal


class Admin:
    """Needs no token: only programs inside the sandbox reach it."""

    def __init__(
        self, *, faults: Faults, ground: Ground, journal: Journal, strike: Callable[[], None]
    ) -> None:
        self._faults = faults
        self._ground = ground
        self._journal = journal
        self._strike = strike
        """Have what stands already meet with the faults that are waiting."""

    def order(self, request: Request) -> Answer:
        """POST /faults: the body is a fault as the command line writes it."""
        try:
            fault = Fault.parse(request.text().strip())
        except UsageError as error:
            raise RefusedError(str(error), HTTPStatus.BAD_REQUEST) from error
        self.begin(fault)
        return Answer(200, {"fault": fault.model_dump()})

    def begin(self, fault: Fault) -> None:
        """What strikes at a time begins now; the others wait for what they strike."""
        self._journal.event("fault ordered", **fault.model_dump(exclude_defaults=True))
        if fault.kind == "bastion-away":
            _after(fault.after, lambda: self._ground.bastion(reachable=False))
            _after(fault.after + fault.seconds, lambda: self._ground.bastion(reachable=True))
        else:
            self._faults.add(fault)
            self._strike()

    def waiting(self, _request: Request) -> Answer:
        """GET /faults."""
        return Answer(200, {"faults": [fault.model_dump() for fault in self._faults.waiting()]})

    def clear(self, _request: Request) -> Answer:
        """DELETE /faults."""
        self._faults.clear()
        return Answer(200, {"faults": []})

    def requests(self, _request: Request) -> Answer:
        """GET /requests."""
        return Answer(200, {"requests": self._journal.requests()})

    def events(self, _request: Request) -> Answer:
        """GET /events."""
        return Answer(200, {"events": self._journal.events()})


def _after(seconds: float, work: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, work)
    timer.daemon = True
    timer.start()

"""The control plane put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fabbbr.sandbox.control.admin import Admin
from fabbbr.sandbox.control.application import Application
from fabbbr.sandbox.control.capacity import Inventory
from fabbbr.sandbox.control.credentials import Credentials
from fabbbr.sandbox.control.deployment import Deployment
from fabbbr.sandbox.control.grants import Grants
from fabbbr.sandbox.control.orchestrator import Orchestrator
from fabbbr.sandbox.control.people import People
from fabbbr.sandbox.faults import Faults
from fabbbr.sandbox.granted import Ground
from fabbbr.sandbox.journal import Journal
from fabbbr.sandbox.settings import Settings
from fabbbr.sandbox.timing import Clock


class Plane(NamedTuple):
    """The WSGI application, and the token file of its person."""

    application: Application
    token: dict[str, object]


def build(settings: Settings, ground: Ground, journal: Journal, login: Callable[[str], str | None]) -> Plane:
    """All services over one ground; the ordered faults begin."""
    clock = Clock(scale=settings.scale)
    faults = Faults()
    inventory = Inventory()
    deployment = Deployment(
        ground=ground,
        inventory=inventory,
        grants=Grants(settings.seed, faults),
        faults=faults,
        clock=clock,
        login=login,
        event=journal.event,
        seed=settings.seed,
    )
    orchestrator = Orchestrator(
        deployment=deployment,
        inventory=inventory,
        ground=ground,
        faults=faults,
        clock=clock,
        tags=settings.tags,
        event=journal.event,
    )
    credentials = Credentials(
        clock=clock, hours=settings.token_hours, tags=settings.tags, event=journal.event
    )
    admin = Admin(faults=faults, ground=ground, journal=journal, strike=orchestrator.strike)
    for fault in settings.faults:
        admin.begin(fault)
    application = Application(
        credentials=credentials,
        people=People(clock=clock, tags=settings.tags, admit=ground.admit),
        orchestrator=orchestrator,
        admin=admin,
        faults=faults,
        journal=journal,
    )
    return Plane(application, credentials.first())

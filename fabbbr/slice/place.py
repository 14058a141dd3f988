"""A slice as a place for cells: its machines are surveyed, and carry out a part of each job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from fabbbr.backends.base import Backend
from fabbbr.backends.registry import open_backend
from fabbbr.backends.standing import StandingMachines
from fabbbr.backends.survey import survey
from fabbbr.errors import PlanError
from fabbbr.foreign import listed
from fabbbr.model import Cell
from fabbbr.reserve.records import Reservation
from fabbbr.slice.opening import backend_of, load
from fabbbr.slice.state import only_worker

_GUEST = "guest"


@contextmanager
def standing_place(
    name: str, cells: Sequence[Cell], *, emulates_rtt: bool, tell: Callable[[str], None]
) -> Iterator[Backend]:
    """The slice of this name, for as long as the block lasts; ``tell`` hears what takes long before it is.

    Nobody else works on its machines meanwhile. Raises PlanError when ``cells`` are for another topology,
    UsageError and ProviderError when the slice is not there or in use, BackendError when a machine of it
    does not answer.
    """
    if backend_of(name) == _GUEST:
        with load(name) as opened, closing(open_backend(_GUEST, None)) as guests:
            require_same_network(opened.reservation, cells)
            yield guests
        return
    with only_worker(name), load(name) as opened:
        require_same_network(opened.reservation, cells)
        channels = {machine.name: opened.provider.channel(machine) for machine in opened.live.machines}
        testbed = survey(
            opened.known.wish.backend,
            opened.reservation,
            opened.live,
            channels,
            emulates_rtt=emulates_rtt,
            tell=tell,
        )
        with closing(StandingMachines(testbed, channels, f"fabbbr slice show {name}")) as machines:
            yield machines


def require_same_network(reservation: Reservation, cells: Sequence[Cell]) -> None:
    """Raise PlanError unless the machines carry all nodes and links of the cells."""
    placement = reservation.placement
    for cell in cells:
        nodes = [host.name for host in cell.hosts] + [switch.name for switch in cell.switches]
        missing = [node for node in nodes if node not in placement]
        carried = {cable.link for cable in reservation.cables}
        missing += [
            link.name
            for link in cell.links
            if not {link.a, link.b} & set(missing)
            and placement[link.a] != placement[link.b]
            and link.name not in carried
        ]
        if missing:
            message = (
                f"slice {reservation.name} was made of {reservation.definition.name} and has no "
                f"{listed(missing)}, which {cell.experiment} needs; create one of the experiment's own slice"
            )
            raise PlanError(message)

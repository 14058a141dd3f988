"""Which cards and networks of FABRIC carry the links of a topology, and how a link is found again by name."""

from __future__ import annotations

import re

from fabbbr.backends.provider import ProviderError
from fabbbr.foreign import shown
from fabbbr.record import Record
from fabbbr.reserve.records import CableWish, NetworkKind, NicKind, Reservation

PORTS_OF_A_CARD = 2
"""Of a dedicated one; NIC_Basic has one."""
PTP_VLAN = 100
"""L2PTP carries tagged frames only. fablib 2.0.9 means to choose this tag and does not."""
_PREFIX = "link-"
_NAME = re.compile(r"[\w.-]{2,255}", re.ASCII)


class Card(Record):
    """A network card of a machine."""

    machine: str
    name: str
    model: NicKind
    links: tuple[str, ...]
    """In the order of its ports."""


class Net(Record):
    """A network service, with the machine and link of each of its interfaces."""

    name: str
    kind: NetworkKind
    ends: tuple[tuple[str, str], ...]


def require_names(reservation: Reservation) -> None:
    """Raise ProviderError unless FABRIC takes the names of slice and machines."""
    for what, name in (
        ("slice", reservation.name),
        *(("machine", machine.name) for machine in reservation.machines),
    ):
        if not _NAME.fullmatch(name):
            message = (
                f"{what} {shown(name)}: FABRIC takes names of 2 to 255 letters, digits, dots, dashes and "
                "underscores; choose another"
            )
            raise ProviderError(message)


def cards(reservation: Reservation) -> tuple[Card, ...]:
    """A share of a card for each end of a cable, and whole cards filled port by port, for they are few."""
    found: list[Card] = []
    for cable in reservation.cables:
        for machine in (cable.a_machine, cable.b_machine):
            room = next(
                (
                    at
                    for at, card in enumerate(found)
                    if cable.nic != "NIC_Basic"
                    and (card.machine, card.model) == (machine, cable.nic)
                    and len(card.links) < PORTS_OF_A_CARD
                ),
                None,
            )
            if room is None:
                number = sum(card.machine == machine for card in found) + 1
                found.append(Card(machine=machine, name=f"nic{number}", model=cable.nic, links=(cable.link,)))
            else:
                card = found[room]
                found[room] = card.model_copy(update={"links": (*card.links, cable.link)})
    return tuple(found)


def networks(reservation: Reservation) -> tuple[Net, ...]:
    """The network services: one for each cable, and one for each of its two sites where FABRIC routes."""
    site = {machine.name: machine.site for machine in reservation.machines}
    return tuple(net for cable in reservation.cables for net in _networks(cable, site))


def _networks(cable: CableWish, site: dict[str, str]) -> tuple[Net, ...]:
    name = f"{_PREFIX}{cable.link}"
    a, b = (cable.a_machine, cable.link), (cable.b_machine, cable.link)
    if cable.kind != "FABNetv4" or site[cable.a_machine] == site[cable.b_machine]:
        return (Net(name=name, kind=cable.kind, ends=(a, b)),)
    return tuple(
        Net(name=f"{name}-{end}", kind=cable.kind, ends=((machine, cable.link),))
        for end, (machine, _) in (("a", a), ("b", b))
    )


def link_of(network: str) -> str | None:
    """The link that a network service carries; None when it is none of ours.

    >>> link_of("link-h1sw"), link_of("link-h1sw-b"), link_of("h1-nic1-l2ovs")
    ('h1sw', 'h1sw', None)
    """
    return network[len(_PREFIX) :].partition("-")[0] if network.startswith(_PREFIX) else None

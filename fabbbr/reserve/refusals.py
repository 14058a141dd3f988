"""Everything that a testbed would refuse, said before it is asked, each with its remedy.

Permissions are FABRIC's, by the names that its portal has for them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from fabbbr.errors import PlanError, UsageError
from fabbbr.foreign import listed, shown
from fabbbr.record import Record
from fabbbr.reserve.records import CableWish, Key, MachineWish, NicKind, Offer, Project, Reservation
from fabbbr.reserve.sites import demands, nearest, unfit
from fabbbr.suggest import did_you_mean

LONGEST_NAME = 60
_SLICE_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{1,{LONGEST_NAME - 1}}}")
"""fablib's rule, and what a file and a name space may be called."""
_MACHINE_NAME = re.compile(r"[\w.-]{2,255}", re.ASCII)

FREE_CORES, FREE_RAM_GB, FREE_DISK_GB = 2, 10, 10
"""Of a machine, in a project without permissions."""
DAY_S = 24 * 3600.0
LONGEST_LEASE_S = 15 * DAY_S
"""FABRIC makes a longer one so long, and does not say so."""
_LONGEST_WITH_TAG_S = 26 * 7 * DAY_S
_LEAST_BITS = {"ssh-rsa": 3072, "ecdsa": 256}
_TAG_OF_NIC: dict[NicKind, str] = {
    "NIC_ConnectX_5": "Component.SmartNIC_ConnectX_5",
    "NIC_ConnectX_6": "Component.SmartNIC_ConnectX_6",
    "NIC_ConnectX_7_100": "Component.SmartNIC_ConnectX_7_100",
    "NIC_ConnectX_7_400": "Component.SmartNIC_ConnectX_7_400",
}


class Problem(Record):
    """One thing that would be refused."""

    what: str
    remedy: str

    def __str__(self) -> str:
        """For people."""
        return f"{self.what}; {self.remedy}"


def require_name(name: str) -> None:
    """Raise UsageError unless a slice may be called so."""
    if _SLICE_NAME.fullmatch(name) is None:
        message = (
            f"{shown(name)} is no name for a slice; give 2 to {LONGEST_NAME} letters, digits, '.', '-' "
            "or '_', the first a letter or digit"
        )
        raise UsageError(message)


def require_none(reservation: Reservation, offer: Offer) -> None:
    """Raise PlanError with all problems."""
    found = problems(reservation, offer)
    if found:
        lines = "".join(f"\n  - {problem}" for problem in found)
        message = f"slice {reservation.name} would be refused:{lines}"
        raise PlanError(message)


def problems(reservation: Reservation, offer: Offer) -> tuple[Problem, ...]:
    """All of them, in the order of names, networks, sites, permissions, lease, keys."""
    checks: tuple[Callable[[Reservation, Offer], Iterator[Problem]], ...] = (
        _names,
        _networks,
        _sites,
        _permissions,
        _lease,
        _keys,
    )
    return tuple(problem for check in checks for problem in check(reservation, offer))


def _names(reservation: Reservation, _: Offer) -> Iterator[Problem]:
    names = Counter(machine.name for machine in reservation.machines)
    for name, times in names.items():
        if _MACHINE_NAME.fullmatch(name) is None:
            yield Problem(
                what=f"a machine cannot be called {shown(name)}",
                remedy="2 to 255 letters, digits, '.', '-' and '_' do",
            )
        if times > 1:
            yield Problem(what=f"{times} machines are called {name}", remedy="give each a name of its own")


def _networks(reservation: Reservation, _: Offer) -> Iterator[Problem]:
    site_of = {machine.name: machine.site for machine in reservation.machines}
    for cable in reservation.cables:
        yield from _network(cable, site_of[cable.a_machine], site_of[cable.b_machine])


def _network(cable: CableWish, a_site: str, b_site: str) -> Iterator[Problem]:
    if cable.kind == "L2Bridge" and a_site != b_site:
        yield Problem(
            what=f"link {cable.link} is an L2Bridge from {a_site} to {b_site}, which stays at one site",
            remedy="use L2STS",
        )
    if cable.kind in ("L2STS", "L2PTP") and a_site == b_site:
        # Of an L2STS this is also fablib's rule of one NIC_Basic per site: our networks have two ends.
        yield Problem(
            what=f"link {cable.link} is an {cable.kind} with both ends at {a_site}, which joins two",
            remedy="use L2Bridge",
        )
    if cable.kind == "L2PTP":
        whole = "" if cable.nic != "NIC_Basic" else ", and needs whole cards"
        yield Problem(
            what=(
                f"link {cable.link} is an L2PTP, which carries only frames with a VLAN tag{whole}; "
                "a job's have none"
            ),
            remedy=(
                "leave the network L2STS; with --nic NIC_ConnectX_6 or another whole card no port is "
                "shared there either"
            ),
        )
    if cable.kind == "FABNetv4":
        yield Problem(
            what=f"link {cable.link} is FABNetv4, which routes between addresses of its own",
            remedy="leave the network L2STS, L2Bridge within a site: a job brings its own addresses",
        )


def _sites(reservation: Reservation, offer: Offer) -> Iterator[Problem]:
    if offer.any_site:
        return
    for name, demand in demands(reservation).items():
        site = offer.sites.get(name)
        others = nearest(site, offer, demand)
        instead = f"take {' or '.join(others)}" if others else "no other site has that much free now"
        if site is None:
            hint = did_you_mean(name, offer.sites)
            yield Problem(
                what=f"there is no site {shown(name)}{hint}",
                remedy=f"there are {listed(sorted(offer.sites))}",
            )
        elif why := unfit(site, demand):
            yield Problem(what=f"site {name} {why}", remedy=f"{instead}, or ask for less or later")


def _permissions(reservation: Reservation, offer: Offer) -> Iterator[Problem]:
    if offer.project is None:
        return
    has = set(offer.project.tags)
    for tag, why in _needed(reservation, has).items():
        yield Problem(
            what=f"project {offer.project.name} has no permission {tag}, which {why} needs",
            remedy="ask for it on the portal (the project's owner can), or ask for less",
        )
    yield from _only_there(reservation, offer.project)


def _needed(reservation: Reservation, has: set[str]) -> dict[str, str]:
    """Permission that is missing → what needs it."""
    needed: dict[str, str] = {}
    sites = list(dict.fromkeys(machine.site for machine in reservation.machines))
    if len(sites) > 1:
        needed["Slice.Multisite"] = f"a slice at {len(sites)} sites"
    if "VM.NoLimit" not in has:
        for machine in reservation.machines:
            needed |= _size_tags(machine)
    if "Component.SmartNIC" not in has:
        for cable in reservation.cables:
            if cable.nic in _TAG_OF_NIC:
                needed[_TAG_OF_NIC[cable.nic]] = f"the kind of card {cable.nic}"
    return {tag: why for tag, why in needed.items() if tag not in has}


def _size_tags(machine: MachineWish) -> dict[str, str]:
    size = machine.size
    limits = (
        ("VM.NoLimitCPU", size.cores, FREE_CORES, "cores"),
        ("VM.NoLimitRAM", size.ram_gb, FREE_RAM_GB, "GB of memory"),
        ("VM.NoLimitDisk", size.disk_gb, FREE_DISK_GB, "GB of disk"),
    )
    return {tag: f"a machine of more than {free} {of}" for tag, asked, free, of in limits if asked > free}


def _only_there(reservation: Reservation, project: Project) -> Iterator[Problem]:
    elsewhere = {machine.site for machine in reservation.machines} - {"EDUKY"}
    if "Slice.OnlyEDUKY" in project.tags and elsewhere:
        yield Problem(
            what=f"project {project.name} may use site EDUKY alone (Slice.OnlyEDUKY)",
            remedy="choose --sites EDUKY, or another project",
        )


def _lease(reservation: Reservation, offer: Offer) -> Iterator[Problem]:
    if offer.project is None:
        return
    longer = "Slice.NoLimitLifetime" in offer.project.tags
    most = _LONGEST_WITH_TAG_S if longer else LONGEST_LEASE_S
    if reservation.lease_s > most:
        days, most_days = reservation.lease_s / DAY_S, most / DAY_S
        yield Problem(
            what=f"a lease of {days:g} days is longer than the {most_days:g} that are given",
            remedy=f"ask for --lease {most / 3600:g}h and renew it later",
        )


def _keys(_: Reservation, offer: Offer) -> Iterator[Problem]:
    for key in offer.keys:
        least = next((bits for kind, bits in _LEAST_BITS.items() if key.kind.startswith(kind)), None)
        if least is None or key.bits < least:
            yield Problem(
                what=f"key {key.place} is {_described(key)}, and machines are made with others only",
                remedy="take RSA of 3072 bits or more, or ECDSA: ssh-keygen -t ecdsa -b 256",
            )


def _described(key: Key) -> str:
    return f"{key.kind} of {key.bits} bits" if key.kind == "ssh-rsa" else key.kind

"""Which sites: by a wished round trip, or by lot among those that have room."""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Collection, Iterable, Mapping
from importlib import resources

from pydantic import Field

from fabbbr.errors import PlanError
from fabbbr.foreign import listed
from fabbbr.record import Record
from fabbbr.reserve.records import NicKind, Offer, Reservation, Site, Size
from fabbbr.units import Duration

_CALLED = {"UMASS": "MASS"}
"""The name of a table's site → that of the testbed, where they differ."""
_NAMELESS = ("unnamed", "ESnet")
"""Rows of measurements between places that nobody can reserve."""
_EARTH_RADIUS_KM = 6371.0


class Distance(Record):
    """Between two sites, or two machines of one, as somebody found it."""

    a: str
    b: str
    rtt_s: float
    source: str


class Choice(Record):
    """Sites for the places of a slice definition, and why these."""

    sites: tuple[str, ...]
    """In the order of the places."""
    said: str


def distances() -> tuple[Distance, ...]:
    """The published round trips between sites of FABRIC: a guide to choose by, not what a slice will have.

    The table is that of the analysis' references; a test holds the two files together.
    """
    text = (resources.files("fabbbr.reserve") / "site_rtt.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(io.StringIO(text))
    return tuple(
        Distance(
            a=_CALLED.get(row["site1"], row["site1"]),
            b=_CALLED.get(row["site2"], row["site2"]),
            rtt_s=float(row["rtt_ms"]) / 1e3,
            source=row["source"],
        )
        for row in rows
        if row["site1"] not in _NAMELESS
    )


def by_rtt(wished_s: float, table: Iterable[Distance], usable: Mapping[str, str]) -> Choice:
    """The two sites whose round trip is nearest to the wished one.

    ``usable`` is site → why it cannot be had; empty for those that can. Sites that it does not have are
    unknown. Raises PlanError when no pair of the table can be had.
    """
    left_out: list[str] = []
    for one in sorted(table, key=lambda one: abs(one.rtt_s - wished_s)):
        why = {site: usable.get(site, "is not known here") for site in (one.a, one.b)}
        against = [f"{site} {reason}" for site, reason in why.items() if reason]
        if not against:
            skipped = f"; nearer, but not to be had: {'; '.join(left_out)}" if left_out else ""
            said = f"{one.a} and {one.b}, {_ms(one.rtt_s)} by {one.source}{skipped}"
            return Choice(sites=(one.a, one.b), said=said)
        left_out.append(f"{one.a}–{one.b} at {_ms(one.rtt_s)} ({listed(against)})")
    tried = listed(left_out, most=5, separator="; ")
    message = f"no pair of sites for a round trip of {_ms(wished_s)}: {tried}; give --sites"
    raise PlanError(message)


def by_lot(demands: Mapping[str, Demand], offer: Offer, *, avoid: Collection[str], seed: int) -> Choice:
    """A site for each place, different ones, among the active ones with room for it; the same for a ``seed``.

    ``demands`` is place → what it needs. Raises PlanError, which says what each site lacks, when some place
    finds none.
    """
    lot = random.Random(f"{seed} sites")  # noqa: S311 - to be repeated, not to be secret
    chosen: dict[str, str] = {}
    # Who needs most chooses first: it has the fewest sites to choose from.
    for place in sorted(demands, key=lambda one: (-demands[one].weight, one)):
        against = {
            name: _against(site, demands[place], {*avoid, *chosen.values()})
            for name, site in sorted(offer.sites.items())
        }
        fit = [name for name, why in against.items() if not why]
        if not fit:
            lacks = listed((f"{name} {why}" for name, why in against.items()), separator="; ")
            message = f"no site has room for {place} ({demands[place]}): {lacks}; ask for less, or wait"
            raise PlanError(message)
        chosen[place] = lot.choice(fit)
    sites = tuple(chosen[place] for place in demands)
    return Choice(sites=sites, said=f"{listed(sites)}, drawn by lot with --seed {seed}")


def _against(site: Site, demand: Demand, taken: Collection[str]) -> str:
    if site.name in taken:
        return "is taken or to be avoided"
    if site.state != "active":
        return f"is {site.state}"
    return unfit(site, demand)


class Demand(Record):
    """What machines of one site need together."""

    cores: int = 0
    ram_gb: int = 0
    disk_gb: int = 0
    nics: dict[NicKind, int] = Field(default_factory=dict)

    @property
    def weight(self) -> int:
        """To put the larger first."""
        return self.cores + 1000 * sum(self.nics.values())

    def __str__(self) -> str:
        """For people."""
        cards = [f"{count} {kind}" for kind, count in self.nics.items()]
        return listed(
            [f"{self.cores} cores", f"{self.ram_gb} GB of memory", f"{self.disk_gb} GB of disk", *cards]
        )


def demands(reservation: Reservation) -> dict[str, Demand]:
    """Site → what the reservation needs there. Each end of a cable is counted as a card of its own."""
    found: dict[str, Demand] = {}
    site_of = {machine.name: machine.site for machine in reservation.machines}
    for machine in reservation.machines:
        found[machine.site] = _plus(found.get(machine.site, Demand()), machine.size)
    for cable in reservation.cables:
        for end in (cable.a_machine, cable.b_machine):
            before = found[site_of[end]]
            nics = {**before.nics, cable.nic: before.nics.get(cable.nic, 0) + 1}
            found[site_of[end]] = before.model_copy(update={"nics": nics})
    return found


def _plus(before: Demand, size: Size) -> Demand:
    return before.model_copy(
        update={
            "cores": before.cores + size.cores,
            "ram_gb": before.ram_gb + size.ram_gb,
            "disk_gb": before.disk_gb + size.disk_gb,
        }
    )


def unfit(site: Site, demand: Demand) -> str:
    """Why the site cannot give it now, as the rest of a sentence that its name begins; empty when it can."""
    if site.state == "in maintenance":
        return "is in maintenance"
    if site.state == "partly in maintenance" and not site.workers:
        return "is partly in maintenance, with no host in service"
    rooms = (
        ("cores", demand.cores, site.cores.available),
        ("GB of memory", demand.ram_gb, site.ram_gb.available),
        ("GB of disk", demand.disk_gb, site.disk_gb.available),
        *((kind, count, _cards(site, kind)) for kind, count in demand.nics.items()),
    )
    short = [f"{there} {what} free of {needed} needed" for what, needed, there in rooms if there < needed]
    return f"has {listed(short)}" if short else ""


def _cards(site: Site, kind: NicKind) -> int:
    room = site.nics.get(kind)
    return room.available if room is not None else 0


def nearest(site: Site | None, offer: Offer, demand: Demand, *, most: int = 3) -> list[str]:
    """Names of other sites that have room for it, those near this one first."""
    fit = [one for one in offer.sites.values() if one != site and not unfit(one, demand)]
    return [one.name for one in sorted(fit, key=lambda one: (_km(site, one), one.name))[:most]]


def _km(a: Site | None, b: Site) -> float:
    """Along a great circle; infinite where a location is not known."""
    if a is None or a.location is None or b.location is None:
        return math.inf
    (lat1, lon1), (lat2, lon2) = ((math.radians(x), math.radians(y)) for x, y in (a.location, b.location))
    half = (
        math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * _EARTH_RADIUS_KM * math.asin(math.sqrt(half))


def _ms(seconds: float) -> str:
    return str(Duration(round(seconds * 1e9)))

"""From what the user asked for to a reservation: sites are chosen, the definition is built.

A parameter of the definition that ends in ``_site`` is a place. ``--sites A,B`` fills the places in the order
in which the definition declares them (two_site: the sender's, then the receiver's); ``--sites A`` is one site
for all; ``--sites receiver=B,sender=A`` names them. Without places, all nodes stand at the one site.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabbbr.backends.provider import Provider
from fabbbr.backends.providers import placement_of
from fabbbr.errors import UsageError
from fabbbr.foreign import listed, shown
from fabbbr.plan import definitions
from fabbbr.reserve.records import Offer, Reservation
from fabbbr.reserve.reservation import Options, reserve, size_of
from fabbbr.reserve.sites import by_lot, by_rtt, demands, distances
from fabbbr.slice.state import Wish
from fabbbr.spec.experiment import SliceChoice
from fabbbr.suggest import did_you_mean
from fabbbr.topology import Topology
from fabbbr.trust import Trust

RANDOM = "random"
_LABELS = {"mininet": "here", "guest": "here", "ssh": "lab"}
"""Backend whose sites are only labels → the one for those who name none."""
_SITE = "_site"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A wish with everything decided."""

    reservation: Reservation
    said: str = ""
    """How sites were chosen; empty when the user named them."""


class Decision:
    """Decides what a wish leaves open; the testbed is asked for sites only where they are to be chosen."""

    def __init__(self, name: str, wish: Wish, provider: Provider, trust: Trust) -> None:
        self._name = name
        self._wish = wish
        self._provider = provider
        self._trust = trust

    def asked(self) -> Asked:
        """Raises UsageError and PlanError for what cannot be decided, and as ``definitions.load``."""
        wish, trust = self._wish, self._trust
        places = definitions.places(wish.definition, trust=trust)
        left = tuple(one for one in places if one not in wish.definition.parameters)
        sites, elsewhere, said = _sites(wish, left, self._provider, trust)
        choice = _with(wish.definition, sites)
        topology = definitions.load(choice, trust=trust)
        return Asked(reservation=reserve(self._name, choice, topology, _options(wish, elsewhere)), said=said)

    def topology(self, reservation: Reservation) -> Topology:
        """What a reservation was made for."""
        return topology_of(reservation, self._trust)


def topology_of(reservation: Reservation, trust: Trust) -> Topology:
    """The topology that a reservation was made for."""
    return definitions.load(reservation.definition, trust=trust)


def _with(choice: SliceChoice, sites: dict[str, str]) -> SliceChoice:
    return choice.model_copy(update={"parameters": {**choice.parameters, **sites}})


def _options(wish: Wish, elsewhere: str | None) -> Options:
    return Options(
        nic=wish.nic,
        wide=wish.wide,
        size=size_of(wish.size),
        image=wish.image,
        lease_s=wish.lease_s,
        elsewhere=elsewhere,
        placement=placement_of(wish.backend, wish.options),
    )


def _sites(
    wish: Wish, places: tuple[str, ...], provider: Provider, trust: Trust
) -> tuple[dict[str, str], str | None, str]:
    """Place → site; the site of nodes without a place; how they were chosen."""
    if wish.rtt_s is not None:
        return _by_rtt(wish, places, provider.offer())
    if wish.sites == (RANDOM,):
        return _by_lot(wish, places, provider.offer(), trust)
    if not wish.sites:
        label = _LABELS.get(wish.backend)
        return (dict.fromkeys(places, label) if label else {}), label, ""
    if any("=" in one for one in wish.sites):
        return _named(wish, places), None, ""
    if len(wish.sites) == 1:
        return dict.fromkeys(places, wish.sites[0]), wish.sites[0], ""
    if len(wish.sites) != len(places):
        message = (
            f"--sites names {len(wish.sites)}, and {_described(wish, places)}; name as many, or one for all"
        )
        raise UsageError(message)
    return dict(zip(places, wish.sites, strict=True)), None, ""


def _named(wish: Wish, places: tuple[str, ...]) -> dict[str, str]:
    known = {place.removesuffix(_SITE): place for place in places}
    sites = {}
    for one in wish.sites:
        place, _, site = one.partition("=")
        if place not in known or not site:
            message = f"--sites {shown(one)}{did_you_mean(place, known)}: {_described(wish, places)}"
            raise UsageError(message)
        sites[known[place]] = site
    return sites


def _by_rtt(wish: Wish, places: tuple[str, ...], offer: Offer) -> tuple[dict[str, str], str | None, str]:
    if wish.sites or len(places) != 2:
        why = "--sites is given too" if wish.sites else _described(wish, places)
        message = f"--rtt chooses the sites of two places, and {why}; name sites with --sites"
        raise UsageError(message)
    assert wish.rtt_s is not None
    if offer.any_site:
        message = (
            f"--rtt: sites are labels on backend {wish.backend}, and nothing is far away; leave --rtt out"
        )
        raise UsageError(message)
    usable = {
        site.name: "is to be avoided"
        if site.name in wish.avoid
        else ("" if site.state == "active" else f"is {site.state}")
        for site in offer.sites.values()
    }
    choice = by_rtt(wish.rtt_s, distances(), usable)
    return dict(zip(places, choice.sites, strict=True)), None, choice.said


def _by_lot(
    wish: Wish, places: tuple[str, ...], offer: Offer, trust: Trust
) -> tuple[dict[str, str], str | None, str]:
    """What each place needs is what a reservation needs whose sites are the places themselves."""
    if offer.any_site:
        message = f"--sites random: sites are labels on backend {wish.backend}; name any, or none"
        raise UsageError(message)
    choice = _with(wish.definition, {place: place for place in places})
    only = "the slice"
    trial = reserve("trial", choice, definitions.load(choice, trust=trust), _options(wish, only))
    needed = {site: demand for site, demand in demands(trial).items() if site in (*places, only)}
    drawn = by_lot(needed, offer, avoid=wish.avoid, seed=wish.seed)
    sites = dict(zip(needed, drawn.sites, strict=True))
    elsewhere = sites.pop(only, None)
    return sites, elsewhere, drawn.said


def _described(wish: Wish, places: tuple[str, ...]) -> str:
    if not places:
        return f"slice {wish.definition.name} has no places to give sites to"
    names = [place.removesuffix(_SITE) for place in places]
    return f"slice {wish.definition.name} has the places {listed(names)}"

"""Who sends to whom: the groups of a file on the hosts of a slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fabbbr.foreign import listed
from fabbbr.plan.misfits import Complaints, MisfitError
from fabbbr.spec.document import Loc
from fabbbr.spec.experiment import FlowGroup, Setup
from fabbbr.suggest import did_you_mean
from fabbbr.topology import Pair, Topology
from fabbbr.units import Duration


@dataclass(frozen=True, kw_only=True)
class Assigned:
    """A flow that knows its ends but not yet its RTT."""

    position: int
    """Of its group in the file."""
    label: str
    group: FlowGroup
    start: Duration
    ends: Pair
    absent: bool = False
    """Whether it stands for a group of which this condition has none: its ``count`` is 0."""


def _labels(groups: tuple[FlowGroup, ...]) -> list[str]:
    """The given labels; otherwise what the group is called, numbered when several are called so."""
    groups_of, seen = Counter(group.called for group in groups), Counter[str]()
    labels = []
    for group in groups:
        seen[group.called] += 1
        number = f".{seen[group.called]}" if groups_of[group.called] > 1 else ""
        labels.append(group.label or group.called + number)
    return labels


def assign(setup: Setup, topology: Topology, complaints: Complaints) -> Iterator[Assigned]:
    """Every flow and ping with its ends; those whose ends are wrong are only complained of.

    A group whose ``count`` is 0 is there once, as absent, and takes no turn.
    """
    turn, partners = 0, _partners(topology)
    for index, (group, label) in enumerate(zip(setup.flows, _labels(setup.flows), strict=True)):
        try:
            named = _named_ends(index, group, topology, partners)
        except MisfitError as error:
            complaints.found.extend(error.found)
            continue
        starts = group.starts()
        for start in starts or (group.start,):
            ends = named
            if ends is None:
                # Pings go beside the first flow, and take no flow its turn.
                pings = group.kind == "ping"
                pair = topology.pairs[0 if pings else turn % len(topology.pairs)]
                turn += bool(starts) and not pings
                swap = group.direction == "reverse"
                ends = Pair(sender=pair.receiver, receiver=pair.sender) if swap else pair
            yield Assigned(
                position=index, label=label, group=group, start=start, ends=ends, absent=not starts
            )


_Partners = dict[tuple[str | None, str | None], Pair]


def _partners(topology: Topology) -> _Partners:
    """The first pair with this sender, with this receiver, and with both."""
    first: _Partners = {}
    for pair in topology.pairs:
        for key in ((pair.sender, pair.receiver), (pair.sender, None), (None, pair.receiver)):
            first.setdefault(key, pair)
    return first


def _named_ends(index: int, group: FlowGroup, topology: Topology, partners: _Partners) -> Pair | None:
    sender, receiver = group.sender, group.receiver
    loc: Loc = ("flows", index)
    hosts = topology.host_names
    unknown = [
        (
            (*loc, key),
            f"the slice has no host {name!r}{did_you_mean(name, hosts)} (hosts: {listed(hosts)})",
        )
        for key, name in (("from", sender), ("to", receiver))
        if name is not None and name not in hosts
    ]
    if unknown:
        raise MisfitError.of(*unknown)
    if sender is None and receiver is None:
        return None
    if (sender, receiver) in partners:
        return partners[sender, receiver]
    if sender is None or receiver is None:
        message = f"{sender or receiver} is in no pair of the slice; give both from and to"
        raise MisfitError.of((loc, message))
    if sender == receiver:
        message = f"from and to are both {sender}; name two hosts"
        raise MisfitError.of((loc, message))
    return Pair(sender=sender, receiver=receiver)

"""What all parts of a wiring look at: who sends over which links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fabbbr.model import Aqm
from fabbbr.plan.assign import Assigned
from fabbbr.plan.link_traces import Trace
from fabbbr.plan.misfits import MisfitError
from fabbbr.plan.step_files import AskedStep
from fabbbr.sources import Sources
from fabbbr.spec.document import Loc
from fabbbr.spec.experiment import ReverseSetup, Setup
from fabbbr.topology import Link, Topology
from fabbbr.units import ETHERNET_HEADER_BYTES, Duration


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A setup, its slice, and who sends there."""

    setup: Setup
    topology: Topology
    assigned: tuple[Assigned, ...]
    """Flows."""
    pings: tuple[Assigned, ...]
    absent: tuple[Assigned, ...]
    """One of each group that other conditions have flows of. A path is the same with them and without: they
    have their round trips, and a BDP is as long as theirs."""
    modules: Mapping[str, Sources]
    traces: Mapping[str, Trace]
    """By the names that the setup gives them, from where a run begins."""
    steps: tuple[AskedStep, ...]

    @property
    def trace(self) -> Trace | None:
        """That which the way there of the first bottleneck follows."""
        name = self.setup.path.trace
        return None if name is None else self.trace_named(name, ("path", "trace"))

    def trace_named(self, name: str, loc: Loc) -> Trace:
        """What was read of that name; raise MisfitError where it was not."""
        if name not in self.traces:
            raise MisfitError.of((loc, f"{name} was not read; pass its contents to the plan"))
        return self.traces[name]

    @property
    def all(self) -> tuple[Assigned, ...]:
        """All that goes from one host to another."""
        return (*self.assigned, *self.pings)

    @property
    def frame_bytes(self) -> int:
        """Of a full packet on Ethernet."""
        return self.setup.path.mtu + ETHERNET_HEADER_BYTES

    @cached_property
    def _routes(self) -> dict[tuple[str, str], tuple[Link, ...]]:
        """Of every pair of hosts between which something goes."""
        pairs = _between((*self.all, *self.absent))
        return {pair: self.topology.path(*pair) for pair in pairs}

    @cached_property
    def _crossing(self) -> dict[str, list[tuple[Link, ...]]]:
        """Link → the routes of flows over it, those of absent ones too."""
        crossing = defaultdict(list)
        for pair in dict.fromkeys((*self._of_flows, *_between(self.absent))):
            for link in self._routes[pair]:
                crossing[link.name].append(self._routes[pair])
        return crossing

    @cached_property
    def backwards(self) -> frozenset[str]:
        """Names of the links that some flow's data crosses from ``b`` to ``a``."""
        return frozenset(name for pair in self._of_flows for name in self.topology.backwards(*pair))

    @cached_property
    def _of_flows(self) -> dict[tuple[str, str], None]:
        """Pairs of hosts between which some flow goes, in order: a ping decides neither shaping nor BDP."""
        return _between(self.assigned)

    @cached_property
    def losses_stepped(self) -> dict[str, Loc]:
        """Links whose loss some step changes, and where the first of these is asked for."""
        stepped = ((each.step.link or self.topology.trunk, each) for each in self.steps if each.step.loss)
        found: dict[str, Loc] = {}
        for link, each in stepped:
            found.setdefault(link, each.mistake(("loss",), "")[0])
        return found

    @cached_property
    def bottlenecks(self) -> dict[str, Link]:
        """Those of the slice, by name."""
        return {link.name: link for link in self.topology.bottlenecks}

    def route(self, flow: Assigned) -> tuple[Link, ...]:
        """The links that it crosses, in order."""
        return self._routes[flow.ends.sender, flow.ends.receiver]

    def access(self, flow: Assigned, loc: Loc, why: str) -> str:
        """Name of the access link of its sender; raise MisfitError, saying ``why`` there must be one."""
        first = self.route(flow)[0]
        if first.bottleneck:
            message = (
                f"{why} needs an access link, and {flow.ends.sender} stands right at bottleneck {first.name}"
            )
            raise MisfitError.of((loc, message))
        return first.name

    def longest_rtt(self, link: str, delays: dict[str, Duration]) -> Duration:
        """Of the flows through ``link``; of the path as asked when no flow crosses it."""
        rtts = [round_trip(route, delays) for route in self._crossing.get(link, ())]
        return max(rtts, default=self.setup.path.longest_rtt)


def _between(flows: Iterable[Assigned]) -> dict[tuple[str, str], None]:
    """Pairs of hosts between which they go, in order."""
    return dict.fromkeys((flow.ends.sender, flow.ends.receiver) for flow in flows)


def round_trip(route: tuple[Link, ...], delays: dict[str, Duration]) -> Duration:
    """Twice the sum of the one-way delays."""
    return Duration(2 * sum(delays[link.name].ns for link in route if link.name in delays))


def half(rtt: Duration) -> Duration:
    """One way of a round trip."""
    return Duration(rtt.ns // 2)  # even: the spec refuses odd round trips


def reverse_of(ground: Ground, link: str) -> tuple[ReverseSetup, Loc] | None:
    """What the way back of ``link`` was given, and where; None where it is as the way there."""
    own = ground.setup.links.get(link)
    if own is not None and own.reverse is not None:
        return own.reverse, ("links", link, "reverse")
    shared = ground.setup.path.reverse
    return (shared, ("path", "reverse")) if shared is not None and link in ground.bottlenecks else None


def follows_there(ground: Ground, link: str) -> bool:
    """Whether the way there of ``link`` follows a trace, by single opportunities or in bins."""
    return ground.setup.path.trace is not None and link == ground.topology.trunk


def aqm_of(ground: Ground, link: str) -> Aqm:
    """Of its queue there."""
    own = ground.setup.links.get(link)
    return own.aqm if own is not None and own.aqm is not None else ground.setup.path.aqm


def delivers(ground: Ground, link: str) -> bool:
    """Whether a trace of the way there is followed by single opportunities: no queue of tc is asked for."""
    trunk = ground.topology.trunk
    steps = (asked.step for asked in ground.steps)
    resized = any(step.buffer is not None and (step.link or trunk) == link for step in steps)
    both_ways_alike = link in ground.backwards and reverse_of(ground, link) is None
    taildrop = aqm_of(ground, link) == "taildrop"
    return follows_there(ground, link) and taildrop and not resized and not both_ways_alike

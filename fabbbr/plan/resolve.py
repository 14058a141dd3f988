"""One setup on one topology: who sends to whom, and what every link does.

Where things are put: rate, buffer and AQM on the bottlenecks; a scalar RTT on the bottlenecks, half of it
each way; RTTs by sender on the access links of those senders; loss after the bottleneck on the bottlenecks
(their wire stands behind the queue), before it on the access links of the senders; aggregation of
acknowledgements on the bottlenecks, on their way back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from fabbbr import limits
from fabbbr.errors import PlanError
from fabbbr.foreign import listed, shown
from fabbbr.model import (
    AckAggregation,
    Bottleneck,
    CellLink,
    Datagrams,
    Flow,
    LinkTrace,
    Loss,
    Module,
    Ping,
    Step,
)
from fabbbr.plan.link_traces import Trace
from fabbbr.sources import Sources
from fabbbr.spec.contradictions import FASTEST_RATE, SLOWEST_RATE, Mistake
from fabbbr.spec.document import Loc, spell
from fabbbr.spec.experiment import ArrivalProcess, FlowGroup, Setup, StepSetup
from fabbbr.suggest import did_you_mean
from fabbbr.topology import Link, Pair, Topology
from fabbbr.units import (
    ETHERNET_HEADER_BYTES,
    Duration,
    QueueSize,
    Rate,
    bdp_bytes,
)

LARGEST_QUEUE_BYTES = 2**32 - 1
"""The limit of a queue is a 32-bit number in the kernel's interface (struct tc_tbf_qopt)."""


class MisfitError(PlanError):
    """Keys that do not fit the topology; ``found`` has each with what to do about it."""

    def __init__(self, message: str, found: Sequence[Mistake] = ()) -> None:
        super().__init__(message)
        self.found = tuple(found)

    @classmethod
    def of(cls, *found: Mistake) -> MisfitError:
        """All of them."""
        return cls("\n".join(f"{spell(loc)}: {message}" for loc, message in found), found)


class _Complaints:
    """Collects what does not fit, so that one thing does not hide the next."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Go on after the block when it finds a misfit."""
        try:
            yield
        except MisfitError as error:
            self.found.extend(error.found)

    def refuse(self) -> None:
        """Raise all that was noted; nothing noted, no error."""
        if self.found:
            raise MisfitError.of(*dict.fromkeys(self.found))


Processes: TypeAlias = Mapping[int, tuple[ArrivalProcess, Duration]]
"""Number of a flow that stands for those that come at random → how, and for how long."""


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """Links, flows and steps of a cell."""

    links: tuple[CellLink, ...]
    flows: tuple[Flow, ...]
    pings: tuple[Ping, ...]
    steps: tuple[Step, ...]
    arrivals: Processes


@dataclass(frozen=True, kw_only=True)
class _Assigned:
    """A flow that knows its ends but not yet its RTT."""

    position: int
    """Of its group in the file."""
    label: str
    group: FlowGroup
    start: Duration
    ends: Pair


@dataclass(frozen=True, kw_only=True)
class _Ground:
    """What all parts of the wiring look at."""

    setup: Setup
    topology: Topology
    assigned: tuple[_Assigned, ...]
    """Flows."""
    pings: tuple[_Assigned, ...]
    modules: Mapping[str, Sources]

    @property
    def all(self) -> tuple[_Assigned, ...]:
        """All that goes from one host to another."""
        return (*self.assigned, *self.pings)

    @property
    def frame_bytes(self) -> int:
        return self.setup.path.mtu + ETHERNET_HEADER_BYTES

    @cached_property
    def _routes(self) -> dict[tuple[str, str], tuple[Link, ...]]:
        """Of every pair of hosts between which something goes."""
        ends = dict.fromkeys((one.ends.sender, one.ends.receiver) for one in self.all)
        return {pair: self.topology.path(*pair) for pair in ends}

    @cached_property
    def _crossing(self) -> dict[str, list[tuple[Link, ...]]]:
        """Link → the routes of flows over it."""
        crossing = defaultdict(list)
        for pair in self._of_flows:
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
        return dict.fromkeys((flow.ends.sender, flow.ends.receiver) for flow in self.assigned)

    @cached_property
    def bottlenecks(self) -> dict[str, Link]:
        """Those of the slice, by name."""
        return {link.name: link for link in self.topology.bottlenecks}

    def route(self, flow: _Assigned) -> tuple[Link, ...]:
        return self._routes[flow.ends.sender, flow.ends.receiver]

    def access(self, flow: _Assigned, loc: Loc, why: str) -> str:
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


def round_trip(route: tuple[Link, ...], delays: dict[str, Duration]) -> Duration:
    """Twice the sum of the one-way delays."""
    return Duration(2 * sum(delays[link.name].ns for link in route if link.name in delays))


def wire(
    setup: Setup,
    topology: Topology,
    *,
    trace: Trace | None = None,
    modules: Mapping[str, Sources] | None = None,
) -> Wiring:
    """Resolve ``setup`` on ``topology``; raise MisfitError with all that does not fit.

    ``modules`` holds the sources that ``cca`` names, by their places as written.
    """
    complaints = _Complaints()
    _check_link_names(setup, topology, complaints)
    assigned = tuple(_assign(setup, topology, complaints))
    if isinstance(setup.path.rtt, dict) or not assigned:
        complaints.refuse()  # whose round trips are missing shows when all senders are known
    ground = _Ground(
        setup=setup,
        topology=topology,
        assigned=tuple(one for one in assigned if one.group.kind != "ping"),
        pings=tuple(one for one in assigned if one.group.kind == "ping"),
        modules=modules or {},
    )
    try:
        delays, rates = _delays(ground), _rates(ground, trace)
    except MisfitError as error:
        raise MisfitError.of(*complaints.found, *error.found) from None
    return _wired(ground, delays, rates, trace, complaints)


def _wired(
    ground: _Ground,
    delays: dict[str, Duration],
    rates: dict[str, Rate],
    trace: Trace | None,
    complaints: _Complaints,
) -> Wiring:
    for check in (
        _check_crossings(ground, rates),
        _check_round_trips(ground, delays),
        _check_maxrates(ground),
        _check_queue_delay(ground, trace),
    ):
        complaints.found.extend(check)
    flows: list[Flow] = []
    for index, flow in enumerate(ground.assigned):
        with complaints.noted():
            flows.append(_flow(ground, index, flow, delays))
    steps = tuple(_steps(ground, dict(delays), dict(rates), trace, complaints))
    links = tuple(_links(ground, delays, rates, trace, complaints))
    complaints.refuse()
    pings = tuple(_ping(ground, index, one, delays) for index, one in enumerate(ground.pings))
    arrivals = {
        index: (one.group.arrivals, one.group.duration)
        for index, one in enumerate(ground.assigned)
        if one.group.arrivals is not None and one.group.duration is not None
    }
    return Wiring(links=links, flows=tuple(flows), pings=pings, steps=steps, arrivals=arrivals)


def _check_link_names(setup: Setup, topology: Topology, complaints: _Complaints) -> None:
    known = dict.fromkeys(link.name for link in topology.links)
    named: list[tuple[Loc, str]] = [(("links", name), name) for name in setup.links]
    named += [(("steps", i, "link"), step.link) for i, step in enumerate(setup.steps) if step.link]
    named += [(("capture", i), capture.link) for i, capture in enumerate(setup.capture)]
    for loc, name in named:
        if name not in known:
            message = f"the slice has no link {name!r}{did_you_mean(name, known)} (links: {listed(known)})"
            complaints.found.append((loc, message))


def _check_crossings(ground: _Ground, rates: dict[str, Rate]) -> Iterator[Mistake]:
    for flow in ground.all:
        if not any(link.name in rates for link in ground.route(flow)):
            ends = f"{flow.ends.sender} to {flow.ends.receiver}"
            message = (
                f"{flow.label} from {ends} crosses no bottleneck, so nothing would limit "
                f"it; choose other hosts (bottlenecks: {listed(rates)})"
            )
            yield ("flows", flow.position), message


def _check_round_trips(ground: _Ground, delays: dict[str, Duration]) -> Iterator[Mistake]:
    for flow in ground.all:
        if not round_trip(ground.route(flow), delays).ns:
            names = listed(link.name for link in ground.route(flow))
            message = (
                f"{flow.label} from {flow.ends.sender} to {flow.ends.receiver} has no round trip on "
                f"any of its links ({names}); give one of them an rtt"
            )
            yield ("links",), message


def _check_maxrates(ground: _Ground) -> Iterator[Mistake]:
    """The limit is of the host's own ``fq``, which cannot tell the flows of one group from another's."""
    first: dict[str, _Assigned] = {}
    for flow in ground.assigned:
        other = first.setdefault(flow.ends.sender, flow)
        if flow.group.maxrate != other.group.maxrate:
            limits_of = " and ".join(
                f"{each.label} {each.group.maxrate or 'has none'}" for each in (other, flow)
            )
            message = (
                f"maxrate holds for all that {flow.ends.sender} sends, but {limits_of}; give each "
                f"group a host of its own (from: h1, from: h2), or limit single connections with pacing"
            )
            yield ("flows", flow.position), message


def _check_queue_delay(ground: _Ground, trace: Trace | None) -> Iterator[Mistake]:
    """Where a trace is followed by single opportunities the queue is a program in the wire, and no qdisc."""
    trunk = ground.topology.trunk
    if ground.setup.queue_delay == "packets" and trace is not None and _delivers(ground, trunk):
        message = (
            f"the queue of {trunk} delivers by a trace, so no packet passes a queueing "
            f"discipline there; capture the links around it instead (capture: [{trunk}]), or give a rate"
        )
        yield ("queue_delay",), message


def _labels(groups: tuple[FlowGroup, ...]) -> list[str]:
    """The given labels; otherwise what the group is called, numbered when several are called so."""
    groups_of, seen = Counter(group.called for group in groups), Counter[str]()
    labels = []
    for group in groups:
        seen[group.called] += 1
        number = f".{seen[group.called]}" if groups_of[group.called] > 1 else ""
        labels.append(group.label or group.called + number)
    return labels


def _assign(setup: Setup, topology: Topology, complaints: _Complaints) -> Iterator[_Assigned]:
    turn, partners = 0, _partners(topology)
    for index, (group, label) in enumerate(zip(setup.flows, _labels(setup.flows), strict=True)):
        try:
            named = _named_ends(index, group, topology, partners)
        except MisfitError as error:
            complaints.found.extend(error.found)
            continue
        for start in group.starts():
            ends = named
            if ends is None:
                # Pings go beside the first flow, and take no flow its turn.
                pings = group.kind == "ping"
                pair = topology.pairs[0 if pings else turn % len(topology.pairs)]
                turn += not pings
                swap = group.direction == "reverse"
                ends = Pair(sender=pair.receiver, receiver=pair.sender) if swap else pair
            yield _Assigned(position=index, label=label, group=group, start=start, ends=ends)


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


def _half(rtt: Duration) -> Duration:
    return Duration(rtt.ns // 2)  # even: the spec refuses odd round trips


def _delays(ground: _Ground) -> dict[str, Duration]:
    """One-way propagation delay of every link that has one."""
    rtt = ground.setup.path.rtt
    delays: dict[str, Duration] = {}
    if isinstance(rtt, Duration):
        delays = dict.fromkeys(ground.bottlenecks, _half(rtt))
    else:
        senders = {flow.ends.sender: flow for flow in ground.assigned}
        wrong = list(_senders_apart(rtt, senders))
        if wrong:
            raise MisfitError.of(*wrong)
        for sender, flow in senders.items():
            access = ground.access(flow, ("path", "rtt", sender), "an RTT by sender")
            delays[access] = _half(rtt[sender])
    own = {name: _half(link.rtt) for name, link in ground.setup.links.items() if link.rtt is not None}
    return delays | own


def _senders_apart(rtt: dict[str, Duration], senders: dict[str, _Assigned]) -> Iterator[Mistake]:
    """Round trips of hosts that do not send, and hosts that send without one."""
    for sender in rtt:
        if sender not in senders:
            hint = did_you_mean(sender, senders)
            message = f"no flow is sent from there{hint} (senders: {listed(senders)})"
            yield ("path", "rtt", sender), message
    for sender in senders:
        if sender not in rtt:
            message = f"{sender} sends too; add its round trip, e.g. {sender}: 20 ms"
            yield ("path", "rtt"), message


def _rates(ground: _Ground, trace: Trace | None) -> dict[str, Rate]:
    """The rate of every bottleneck; with a trace, its mean."""
    rate = ground.setup.path.rate if trace is None else _mean_rate(ground, trace)
    if rate is None:
        message = f"{ground.setup.path.trace} was not read; pass its contents to the plan"
        raise MisfitError.of((("path", "trace"), message))
    rates = dict.fromkeys(ground.bottlenecks, rate)
    switches = {switch.name for switch in ground.topology.switches}
    for link in ground.topology.links:
        own = ground.setup.links.get(link.name)
        if own is None or own.rate is None:
            continue
        if link.a not in switches:
            message = f"its sending end {link.a} is a host; only a switch shapes"
            raise MisfitError.of((("links", link.name, "rate"), message))
        rates[link.name] = own.rate
    return rates


def _mean_rate(ground: _Ground, trace: Trace) -> Rate:
    if ground.setup.end is None:
        message = "needs flows with a duration, to know how far to follow it; replace size or arrivals"
        raise MisfitError.of((("path", "trace"), message))
    trunk, *more = ground.bottlenecks
    own = ground.setup.links.get(trunk)
    if more or (own is not None and own.rate is not None):
        message = f"sets the rate of {trunk} alone; use a slice with one bottleneck and no links.{trunk}.rate"
        raise MisfitError.of((("path", "trace"), message))
    if not SLOWEST_RATE <= trace.mean_rate <= FASTEST_RATE:
        message = (
            f"{shown(ground.setup.path.trace)} has a mean rate of "
            f"{trace.mean_rate}; record one of {SLOWEST_RATE} to {FASTEST_RATE}"
        )
        raise MisfitError.of((("path", "trace"), message))
    return trace.mean_rate


def _losses(ground: _Ground) -> dict[str, Loss]:
    loss = ground.setup.path.loss
    losses: dict[str, Loss] = {}
    if loss is not None and loss.position == "after_bottleneck":
        losses = dict.fromkeys(ground.bottlenecks, loss)
    elif loss is not None:
        losses = {
            ground.access(flow, ("path", "loss"), "loss before the bottleneck"): loss
            for flow in ground.assigned
        }
    losses |= {name: link.loss for name, link in ground.setup.links.items() if link.loss is not None}
    return {name: loss for name, loss in losses.items() if loss.rate.base}


def _aggregation(ground: _Ground, link: str) -> AckAggregation | None:
    """That of the path, on every bottleneck; None when it holds nothing."""
    asked = ground.setup.path.ack_aggregation
    holds = asked is not None and asked.most.ns > 0
    return asked if holds and link in ground.bottlenecks else None


def _flow(ground: _Ground, index: int, flow: _Assigned, delays: dict[str, Duration]) -> Flow:
    group = flow.group
    path_mtu = ground.setup.path.mtu
    packet_bytes = group.packet_size.bytes if group.packet_size is not None else path_mtu
    return Flow(
        index=index,
        group=flow.label,
        cca=group.cca,
        sender=flow.ends.sender,
        receiver=flow.ends.receiver,
        streams=group.streams,
        start=flow.start,
        duration=group.duration if group.arrivals is None else None,
        size=group.size,
        udp=Datagrams(rate=group.udp, packet_bytes=packet_bytes) if group.udp is not None else None,
        video=group.video,
        pacing=group.pacing,
        maxrate=group.maxrate,
        rtt=round_trip(ground.route(flow), delays),
        implementation=None if group.whose == "mainline" else group.whose,
        profile=group.own_profile,
        module=_module(ground, flow),
    )


def _module(ground: _Ground, flow: _Assigned) -> Module | None:
    choice = ground.setup.module_of(flow.group)
    if choice is None:
        return None
    loc = ("flows", flow.position, "cca")
    sources = ground.modules.get(choice.module)
    if sources is None:
        raise MisfitError.of((loc, f"{shown(choice.module)} was not read; pass its sources to the plan"))
    names = tuple(dict.fromkeys(named.name for named in sources.names))
    if choice.name is None and len(names) > 1:
        message = f"{choice.module} registers {listed(names)}; say which: name: {names[0]}"
        raise MisfitError.of((loc, message))
    if choice.name is None and not names:
        message = (
            f'no struct tcp_congestion_ops of {choice.module} has .name = "…" written out; say what it is: '
            f"name: {choice.called}"
        )
        raise MisfitError.of((loc, message))
    return Module(
        sha256=sources.sha256,
        kernel_name=choice.name or names[0],
        params=choice.params,
        form="module" if sources.program is None else "bpf",
    )


def _ping(ground: _Ground, index: int, ping: _Assigned, delays: dict[str, Duration]) -> Ping:
    assert ping.group.ping is not None
    return Ping(
        index=index,
        group=ping.label,
        sender=ping.ends.sender,
        receiver=ping.ends.receiver,
        interval=ping.group.ping,
        start=ping.start,
        duration=ping.group.duration,
        rtt=round_trip(ground.route(ping), delays),
    )


def _buffer_bytes(
    ground: _Ground, loc: Loc, buffer: QueueSize, rate: Rate, rtt: Duration, *, of: str = ""
) -> int:
    size = buffer.bytes(rate=rate, rtt=rtt, mtu_bytes=ground.setup.path.mtu)
    if size < ground.frame_bytes:
        message = (
            f"{of}a buffer of {buffer} is {size} bytes at {rate} and {rtt}, less than one packet "
            f"({ground.frame_bytes} bytes); enlarge it"
        )
        raise MisfitError.of((loc, message))
    if size > LARGEST_QUEUE_BYTES:
        message = (
            f"{of}a buffer of {buffer} is {size} bytes at {rate} and {rtt}, and tc counts to "
            f"{LARGEST_QUEUE_BYTES}; lower the buffer or the rate"
        )
        raise MisfitError.of((loc, message))
    return size


def _steps(
    ground: _Ground,
    delays: dict[str, Duration],
    rates: dict[str, Rate],
    trace: Trace | None,
    complaints: _Complaints,
) -> Iterator[Step]:
    """The changes in the order of time; ``delays`` and ``rates`` are carried along."""
    known = {link.name for link in ground.topology.links}
    steps: list[Step] = []
    for index, step in sorted(enumerate(ground.setup.steps), key=lambda step: step[1].at):
        if step.link is None or step.link in known:  # another was complained of
            with complaints.noted():
                steps.append(_step(ground, ("steps", index), step, delays, rates))
    with complaints.noted():
        steps = [*_trace_steps(ground, trace), *steps]
    yield from sorted(steps, key=lambda step: step.at)


def _step(
    ground: _Ground, loc: Loc, step: StepSetup, delays: dict[str, Duration], rates: dict[str, Rate]
) -> Step:
    link = step.link or ground.topology.trunk
    if link not in rates and (step.rate is not None or step.buffer is not None):
        message = f"link {link} has no queue; name a bottleneck ({listed(rates)})"
        raise MisfitError.of((loc, message))
    if link not in delays and step.rtt is not None:
        message = f"link {link} has no delay of its own; name one that has ({listed(delays)})"
        raise MisfitError.of(((*loc, "rtt"), message))
    if step.rtt is not None:
        delays[link] = _half(step.rtt)
    if step.rate is not None:
        rates[link] = step.rate
    size = None
    if step.buffer is not None:
        rtt = ground.longest_rtt(link, delays)
        size = _buffer_bytes(ground, (*loc, "buffer"), step.buffer, rates[link], rtt)
    return Step(at=step.at, link=link, rate=step.rate, rtt=step.rtt, buffer_bytes=size)


def _trace_steps(ground: _Ground, trace: Trace | None) -> list[Step]:
    end = ground.setup.end
    if trace is None or end is None or _delivers(ground, ground.topology.trunk):
        return []
    trunk, rates = ground.topology.trunk, trace.rates(until=end)
    if len(rates) > limits.STEPS:
        message = (
            f"{shown(ground.setup.path.trace)} changes the rate {len(rates)} times "
            f"until {end}; at most {limits.STEPS}, shorten the flows"
        )
        raise MisfitError.of((("path", "trace"), message))
    return [Step(at=at, link=trunk, rate=rate) for at, rate in rates]


def _delivers(ground: _Ground, link: str) -> bool:
    """Whether a trace of ``link`` is followed by single opportunities: no queue of tc is asked for."""
    path, own, trunk = ground.setup.path, ground.setup.links.get(link), ground.topology.trunk
    aqm = own.aqm if own is not None and own.aqm is not None else path.aqm
    resized = any(step.buffer is not None and (step.link or trunk) == link for step in ground.setup.steps)
    return path.trace is not None and aqm == "taildrop" and not resized and link not in ground.backwards


def _links(
    ground: _Ground,
    delays: dict[str, Duration],
    rates: dict[str, Rate],
    trace: Trace | None,
    complaints: _Complaints,
) -> Iterator[CellLink]:
    losses = _losses(ground)
    for link in ground.topology.links:
        with complaints.noted():
            yield _link(ground, link, losses.get(link.name), delays, rates, trace)


def _link(
    ground: _Ground,
    link: Link,
    loss: Loss | None,
    delays: dict[str, Duration],
    rates: dict[str, Rate],
    trace: Trace | None,
) -> CellLink:
    aggregation = _aggregation(ground, link.name)
    if link.name in ground.backwards:
        _check_backwards(ground, link, loss, aggregation)
    return CellLink(
        name=link.name,
        a=link.a,
        b=link.b,
        delay=delays.get(link.name),
        loss=loss,
        ack_aggregation=aggregation,
        bottleneck=_bottleneck(ground, link.name, delays, rates[link.name], trace)
        if link.name in rates
        else None,
    )


def _check_backwards(
    ground: _Ground, link: Link, loss: Loss | None, aggregation: AckAggregation | None
) -> None:
    """What falls on one direction alone needs all data to go that way."""
    if loss is not None:
        own = ground.setup.links.get(link.name)
        loc: Loc = ("links", link.name, "loss") if own is not None and own.loss else ("path", "loss")
        message = (
            f"loss on link {link.name} would fall on the acknowledgements of the flows that "
            f"send from {link.b} to {link.a}; loss needs all data to go from {link.a} to {link.b}"
        )
        raise MisfitError.of((loc, message))
    if aggregation is not None:
        message = (
            f"aggregation on link {link.name} would hold the data of the flows that "
            f"send from {link.b} to {link.a}; it needs all data to go from {link.a} to {link.b}"
        )
        raise MisfitError.of((("path", "ack_aggregation"), message))


def _ce_threshold(ground: _Ground) -> Duration | None:
    asked = ground.setup.path.ce_threshold
    return asked if asked is not None and asked.ns else None


def _bottleneck(
    ground: _Ground, link: str, delays: dict[str, Duration], rate: Rate, trace: Trace | None
) -> Bottleneck:
    path, own = ground.setup.path, ground.setup.links.get(link)
    buffer = path.buffer
    loc: Loc = ("path", "buffer")
    if own is not None and own.buffer is not None:
        buffer, loc = own.buffer, ("links", link, "buffer")
    aqm = own.aqm if own is not None and own.aqm is not None else path.aqm
    rtt = ground.longest_rtt(link, delays)
    return Bottleneck(
        rate=rate,
        buffer_bytes=_buffer_bytes(ground, loc, buffer, rate, rtt, of=f"link {link}: "),
        buffer_asked=str(buffer),
        bdp_bytes=int(bdp_bytes(rate, rtt)),
        aqm=aqm,
        ecn=path.ecn and aqm != "taildrop",
        ce_threshold=_ce_threshold(ground) if aqm == "fq_codel" else None,
        both_directions=link in ground.backwards,
        trace=_followed(ground, link, trace),
    )


def _followed(ground: _Ground, link: str, trace: Trace | None) -> LinkTrace | None:
    """The trace, where this link delivers by it."""
    if trace is None or link != ground.topology.trunk or not _delivers(ground, link):
        return None
    if len(trace.opportunities_ms) > limits.OPPORTUNITIES:
        message = (
            f"{shown(ground.setup.path.trace)} has {len(trace.opportunities_ms)} opportunities; "
            f"at most {limits.OPPORTUNITIES}, cut it"
        )
        raise MisfitError.of((("path", "trace"), message))
    return trace.link(ground.setup.path.trace or "")

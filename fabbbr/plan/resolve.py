"""One setup on one topology: who sends to whom, and what every link does.

Where things are put: rate, buffer and AQM on the bottlenecks; a scalar RTT on the bottlenecks, half of it
each way; RTTs by sender on the access links of those senders; loss after the bottleneck on the bottlenecks
(their wire stands behind the queue), before it on the access links of the senders; aggregation of
acknowledgements on the bottlenecks, on their way back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fabbbr import limits
from fabbbr.errors import PlanError
from fabbbr.foreign import listed, shown
from fabbbr.model import AckAggregation, Bottleneck, CellLink, Flow, LinkTrace, Loss, Module, Step
from fabbbr.plan.link_traces import Trace
from fabbbr.sources import Sources
from fabbbr.spec.contradictions import FASTEST_RATE, SLOWEST_RATE
from fabbbr.spec.experiment import FlowGroup, ModuleChoice, Setup, StepSetup
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


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """Links, flows and steps of a cell."""

    links: tuple[CellLink, ...]
    flows: tuple[Flow, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True)
class _Assigned:
    """A flow that knows its ends but not yet its RTT."""

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
    modules: Mapping[str, Sources]

    @property
    def frame_bytes(self) -> int:
        return self.setup.path.mtu + ETHERNET_HEADER_BYTES

    @cached_property
    def _routes(self) -> dict[tuple[str, str], tuple[Link, ...]]:
        """Of every pair of hosts between which some flow goes."""
        ends = dict.fromkeys((flow.ends.sender, flow.ends.receiver) for flow in self.assigned)
        return {pair: self.topology.path(*pair) for pair in ends}

    @cached_property
    def _crossing(self) -> dict[str, list[tuple[Link, ...]]]:
        """Link → the routes over it."""
        crossing = defaultdict(list)
        for route in self._routes.values():
            for link in route:
                crossing[link.name].append(route)
        return crossing

    @cached_property
    def backwards(self) -> frozenset[str]:
        """Names of the links that some flow's data crosses from ``b`` to ``a``."""
        return frozenset(name for pair in self._routes for name in self.topology.backwards(*pair))

    @cached_property
    def bottlenecks(self) -> dict[str, Link]:
        """Those of the slice, by name."""
        return {link.name: link for link in self.topology.bottlenecks}

    def route(self, flow: _Assigned) -> tuple[Link, ...]:
        return self._routes[flow.ends.sender, flow.ends.receiver]

    def access(self, flow: _Assigned, why: str) -> str:
        first = self.route(flow)[0]
        if first.bottleneck:
            message = (
                f"{why} needs an access link, and {flow.ends.sender} stands right at bottleneck {first.name}"
            )
            raise PlanError(message)
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
    """Resolve ``setup`` on ``topology``; raise PlanError where they do not fit.

    ``modules`` holds the sources that ``cca`` names, by their places as written.
    """
    _check_link_names(setup, topology)
    ground = _Ground(
        setup=setup, topology=topology, assigned=tuple(_assign(setup, topology)), modules=modules or {}
    )
    delays, rates = _delays(ground), _rates(ground, trace)
    _check_crossings(ground, rates)
    _check_round_trips(ground, delays)
    _check_maxrates(ground)
    flows = tuple(_flow(ground, index, flow, delays) for index, flow in enumerate(ground.assigned))
    steps = tuple(_steps(ground, dict(delays), dict(rates), trace))
    links = tuple(_links(ground, delays, rates, trace))
    return Wiring(links=links, flows=flows, steps=steps)


def _check_link_names(setup: Setup, topology: Topology) -> None:
    known = dict.fromkeys(link.name for link in topology.links)
    named = [(f"links.{name}", name) for name in setup.links]
    named += [(f"steps[{i}].link", step.link) for i, step in enumerate(setup.steps) if step.link]
    for key, name in named:
        if name not in known:
            message = (
                f"{key}: the slice has no link {name!r}{did_you_mean(name, known)} (links: {listed(known)})"
            )
            raise PlanError(message)


def _check_crossings(ground: _Ground, rates: dict[str, Rate]) -> None:
    for flow in ground.assigned:
        if not any(link.name in rates for link in ground.route(flow)):
            ends = f"{flow.ends.sender} to {flow.ends.receiver}"
            message = (
                f"flows: {flow.label} from {ends} crosses no bottleneck, so nothing would limit "
                f"it; choose other hosts (bottlenecks: {listed(rates)})"
            )
            raise PlanError(message)


def _check_round_trips(ground: _Ground, delays: dict[str, Duration]) -> None:
    for flow in ground.assigned:
        if not round_trip(ground.route(flow), delays).ns:
            names = listed(link.name for link in ground.route(flow))
            message = (
                f"links: {flow.label} from {flow.ends.sender} to {flow.ends.receiver} has no round trip on "
                f"any of its links ({names}); give one of them an rtt"
            )
            raise PlanError(message)


def _check_maxrates(ground: _Ground) -> None:
    """The limit is of the host's own ``fq``, which cannot tell the flows of one group from another's."""
    first: dict[str, _Assigned] = {}
    for flow in ground.assigned:
        other = first.setdefault(flow.ends.sender, flow)
        if flow.group.maxrate != other.group.maxrate:
            limits_of = " and ".join(
                f"{each.label} {each.group.maxrate or 'has none'}" for each in (other, flow)
            )
            message = (
                f"flows: maxrate holds for all that {flow.ends.sender} sends, but {limits_of}; give each "
                f"group a host of its own (from: h1, from: h2), or limit single connections with pacing"
            )
            raise PlanError(message)


def _labels(groups: tuple[FlowGroup, ...]) -> list[str]:
    """The given labels; otherwise the CCA, numbered when several groups run it."""
    groups_of, seen = Counter(group.cca for group in groups), Counter[str]()
    labels = []
    for group in groups:
        seen[group.cca] += 1
        number = f".{seen[group.cca]}" if groups_of[group.cca] > 1 else ""
        labels.append(group.label or group.cca + number)
    return labels


def _assign(setup: Setup, topology: Topology) -> Iterator[_Assigned]:
    turn, partners = 0, _partners(topology)
    for index, (group, label) in enumerate(zip(setup.flows, _labels(setup.flows), strict=True)):
        named = _named_ends(index, group, topology, partners)
        for start in group.starts():
            ends = named
            if ends is None:
                pair = topology.pairs[turn % len(topology.pairs)]
                turn += 1
                swap = group.direction == "reverse"
                ends = Pair(sender=pair.receiver, receiver=pair.sender) if swap else pair
            yield _Assigned(label=label, group=group, start=start, ends=ends)


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
    for key, name in (("from", sender), ("to", receiver)):
        if name is not None and name not in topology.host_names:
            hint = did_you_mean(name, topology.host_names)
            hosts = listed(topology.host_names)
            message = f"flows[{index}].{key}: the slice has no host {name!r}{hint} (hosts: {hosts})"
            raise PlanError(message)
    if sender is None and receiver is None:
        return None
    if (sender, receiver) in partners:
        return partners[sender, receiver]
    if sender is None or receiver is None:
        message = f"flows[{index}]: {sender or receiver} is in no pair of the slice; give both from and to"
        raise PlanError(message)
    if sender == receiver:
        message = f"flows[{index}]: from and to are both {sender}; name two hosts"
        raise PlanError(message)
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
        for sender in rtt:
            if sender not in senders:
                hint = did_you_mean(sender, senders)
                message = f"path.rtt.{sender}: no flow is sent from there{hint} (senders: {listed(senders)})"
                raise PlanError(message)
        for sender, flow in senders.items():
            if sender not in rtt:
                message = f"path.rtt: {sender} sends too; add its round trip, e.g. {sender}: 20 ms"
                raise PlanError(message)
            delays[ground.access(flow, "an RTT by sender")] = _half(rtt[sender])
    own = {name: _half(link.rtt) for name, link in ground.setup.links.items() if link.rtt is not None}
    return delays | own


def _rates(ground: _Ground, trace: Trace | None) -> dict[str, Rate]:
    """The rate of every bottleneck; with a trace, its mean."""
    rate = ground.setup.path.rate if trace is None else _mean_rate(ground, trace)
    if rate is None:
        message = f"path.trace: {ground.setup.path.trace} was not read; pass its contents to the plan"
        raise PlanError(message)
    rates = dict.fromkeys(ground.bottlenecks, rate)
    switches = {switch.name for switch in ground.topology.switches}
    for link in ground.topology.links:
        own = ground.setup.links.get(link.name)
        if own is None or own.rate is None:
            continue
        if link.a not in switches:
            message = f"links.{link.name}.rate: its sending end {link.a} is a host; only a switch shapes"
            raise PlanError(message)
        rates[link.name] = own.rate
    return rates


def _mean_rate(ground: _Ground, trace: Trace) -> Rate:
    if ground.setup.end is None:
        message = "path.trace: needs flows with a duration, to know how far to follow it; replace size"
        raise PlanError(message)
    trunk, *more = ground.bottlenecks
    own = ground.setup.links.get(trunk)
    if more or (own is not None and own.rate is not None):
        message = (
            f"path.trace: sets the rate of {trunk} alone; use a slice with one bottleneck "
            f"and no links.{trunk}.rate"
        )
        raise PlanError(message)
    if not SLOWEST_RATE <= trace.mean_rate <= FASTEST_RATE:
        message = (
            f"path.trace: {shown(ground.setup.path.trace)} has a mean rate of "
            f"{trace.mean_rate}; record one of {SLOWEST_RATE} to {FASTEST_RATE}"
        )
        raise PlanError(message)
    return trace.mean_rate


def _losses(ground: _Ground) -> dict[str, Loss]:
    loss = ground.setup.path.loss
    losses: dict[str, Loss] = {}
    if loss is not None and loss.position == "after_bottleneck":
        losses = dict.fromkeys(ground.bottlenecks, loss)
    elif loss is not None:
        losses = {ground.access(flow, "loss before the bottleneck"): loss for flow in ground.assigned}
    losses |= {name: link.loss for name, link in ground.setup.links.items() if link.loss is not None}
    return {name: loss for name, loss in losses.items() if loss.rate.base}


def _aggregation(ground: _Ground, link: str) -> AckAggregation | None:
    """That of the path, on every bottleneck; None when it holds nothing."""
    asked = ground.setup.path.ack_aggregation
    holds = asked is not None and asked.most.ns > 0
    return asked if holds and link in ground.bottlenecks else None


def _flow(ground: _Ground, index: int, flow: _Assigned, delays: dict[str, Duration]) -> Flow:
    group = flow.group
    return Flow(
        index=index,
        group=flow.label,
        cca=group.cca,
        sender=flow.ends.sender,
        receiver=flow.ends.receiver,
        streams=group.streams,
        start=flow.start,
        duration=group.duration,
        size=group.size,
        pacing=group.pacing,
        maxrate=group.maxrate,
        rtt=round_trip(ground.route(flow), delays),
        implementation=None if group.whose == "mainline" else group.whose,
        profile=group.own_profile,
        module=_module(ground, group),
    )


def _module(ground: _Ground, group: FlowGroup) -> Module | None:
    choice = ground.setup.module_of(group)
    if choice is None:
        return None
    sources = ground.modules.get(choice.module)
    if sources is None:
        message = f"cca: {shown(choice.module)} was not read; pass its sources to the plan"
        raise PlanError(message)
    return Module(sha256=sources.sha256, kernel_name=_kernel_name(choice, sources), params=choice.params)


def _kernel_name(choice: ModuleChoice, sources: Sources) -> str:
    if choice.name is not None:
        return choice.name
    names = tuple(dict.fromkeys(named.name for named in sources.names))
    if len(names) == 1:
        return names[0]
    if names:
        message = f"cca: {choice.module} registers {listed(names)}; say which: name: {names[0]}"
        raise PlanError(message)
    message = (
        f'cca: no struct tcp_congestion_ops of {choice.module} has .name = "…" written out; say what it is: '
        f"name: {choice.called}"
    )
    raise PlanError(message)


def _buffer_bytes(ground: _Ground, key: str, buffer: QueueSize, rate: Rate, rtt: Duration) -> int:
    size = buffer.bytes(rate=rate, rtt=rtt, mtu_bytes=ground.setup.path.mtu)
    if size < ground.frame_bytes:
        message = (
            f"{key}: a buffer of {buffer} is {size} bytes at {rate} and {rtt}, less than one packet "
            f"({ground.frame_bytes} bytes); enlarge it"
        )
        raise PlanError(message)
    if size > LARGEST_QUEUE_BYTES:
        message = (
            f"{key}: a buffer of {buffer} is {size} bytes at {rate} and {rtt}, and tc counts to "
            f"{LARGEST_QUEUE_BYTES}; lower the buffer or the rate"
        )
        raise PlanError(message)
    return size


def _steps(
    ground: _Ground, delays: dict[str, Duration], rates: dict[str, Rate], trace: Trace | None
) -> Iterator[Step]:
    """The changes in the order of time; ``delays`` and ``rates`` are carried along."""
    asked = sorted(enumerate(ground.setup.steps), key=lambda step: step[1].at)
    steps = [_step(ground, index, step, delays, rates) for index, step in asked]
    yield from sorted([*_trace_steps(ground, trace), *steps], key=lambda step: step.at)


def _step(
    ground: _Ground, index: int, step: StepSetup, delays: dict[str, Duration], rates: dict[str, Rate]
) -> Step:
    key, link = f"steps[{index}]", step.link or ground.topology.trunk
    if link not in rates and (step.rate is not None or step.buffer is not None):
        message = f"{key}: link {link} has no queue; name a bottleneck ({listed(rates)})"
        raise PlanError(message)
    if link not in delays and step.rtt is not None:
        message = f"{key}.rtt: link {link} has no delay of its own; name one that has ({listed(delays)})"
        raise PlanError(message)
    if step.rtt is not None:
        delays[link] = _half(step.rtt)
    if step.rate is not None:
        rates[link] = step.rate
    size = None
    if step.buffer is not None:
        rtt = ground.longest_rtt(link, delays)
        size = _buffer_bytes(ground, f"{key}.buffer", step.buffer, rates[link], rtt)
    return Step(at=step.at, link=link, rate=step.rate, rtt=step.rtt, buffer_bytes=size)


def _trace_steps(ground: _Ground, trace: Trace | None) -> list[Step]:
    end = ground.setup.end
    if trace is None or end is None or _delivers(ground, ground.topology.trunk):
        return []
    trunk, rates = ground.topology.trunk, trace.rates(until=end)
    if len(rates) > limits.STEPS:
        message = (
            f"path.trace: {shown(ground.setup.path.trace)} changes the rate {len(rates)} times "
            f"until {end}; at most {limits.STEPS}, shorten the flows"
        )
        raise PlanError(message)
    return [Step(at=at, link=trunk, rate=rate) for at, rate in rates]


def _delivers(ground: _Ground, link: str) -> bool:
    """Whether a trace of ``link`` is followed by single opportunities: no queue of tc is asked for."""
    path, own, trunk = ground.setup.path, ground.setup.links.get(link), ground.topology.trunk
    aqm = own.aqm if own is not None and own.aqm is not None else path.aqm
    resized = any(step.buffer is not None and (step.link or trunk) == link for step in ground.setup.steps)
    return path.trace is not None and aqm == "taildrop" and not resized and link not in ground.backwards


def _links(
    ground: _Ground, delays: dict[str, Duration], rates: dict[str, Rate], trace: Trace | None
) -> Iterator[CellLink]:
    losses, backwards = _losses(ground), ground.backwards
    for link in ground.topology.links:
        if link.name in losses and link.name in backwards:
            message = (
                f"loss on link {link.name} would fall on the acknowledgements of the flows that "
                f"send from {link.b} to {link.a}; loss needs all data to go from {link.a} to {link.b}"
            )
            raise PlanError(message)
        aggregation = _aggregation(ground, link.name)
        if aggregation is not None and link.name in backwards:
            message = (
                f"path.ack_aggregation on link {link.name} would hold the data of the flows that "
                f"send from {link.b} to {link.a}; it needs all data to go from {link.a} to {link.b}"
            )
            raise PlanError(message)
        yield CellLink(
            name=link.name,
            a=link.a,
            b=link.b,
            delay=delays.get(link.name),
            loss=losses.get(link.name),
            ack_aggregation=aggregation,
            bottleneck=_bottleneck(ground, link.name, delays, rates[link.name], trace)
            if link.name in rates
            else None,
        )


def _ce_threshold(ground: _Ground) -> Duration | None:
    asked = ground.setup.path.ce_threshold
    return asked if asked is not None and asked.ns else None


def _bottleneck(
    ground: _Ground, link: str, delays: dict[str, Duration], rate: Rate, trace: Trace | None
) -> Bottleneck:
    path, own = ground.setup.path, ground.setup.links.get(link)
    buffer = own.buffer if own is not None and own.buffer is not None else path.buffer
    aqm = own.aqm if own is not None and own.aqm is not None else path.aqm
    rtt = ground.longest_rtt(link, delays)
    return Bottleneck(
        rate=rate,
        buffer_bytes=_buffer_bytes(ground, f"link {link}", buffer, rate, rtt),
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
            f"path.trace: {shown(ground.setup.path.trace)} has {len(trace.opportunities_ms)} opportunities; "
            f"at most {limits.OPPORTUNITIES}, cut it"
        )
        raise PlanError(message)
    return trace.link(ground.setup.path.trace or "")

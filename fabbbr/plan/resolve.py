"""One setup on one topology: who sends to whom, and what every link does.

Where things are put: rate, buffer and AQM on the bottlenecks; a scalar RTT on the bottlenecks, half of it
each way; RTTs by sender on the access links of those senders; loss after the bottleneck on the bottlenecks
(their wire stands behind the queue), before it on the access links of the senders; aggregation of
acknowledgements on the bottlenecks, on their way back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fabbbr.foreign import listed, shown
from fabbbr.model import CellLink, Datagrams, Flow, Module, Ping, Step
from fabbbr.plan.assign import Assigned, assign
from fabbbr.plan.beside import NOTHING, Beside
from fabbbr.plan.ground import Ground, delivers, follows_there, half, reverse_of, round_trip
from fabbbr.plan.links import links_of, mean_rate
from fabbbr.plan.misfits import Complaints, MisfitError
from fabbbr.plan.step_files import AskedStep, asked_steps
from fabbbr.plan.steps import steps_of
from fabbbr.spec.contradictions import NO_BUCKET, NO_RATE
from fabbbr.spec.document import Loc, Mistake
from fabbbr.spec.experiment import ArrivalProcess, Setup
from fabbbr.suggest import did_you_mean
from fabbbr.topology import Topology
from fabbbr.units import Duration, Rate


@dataclass(frozen=True, kw_only=True)
class AtRandom:
    """How flows of a group come at random, and for how long."""

    process: ArrivalProcess
    duration: Duration
    position: int
    """Of their group in the file."""


Processes: TypeAlias = Mapping[int, AtRandom]
"""By the number of the flow that stands for them until they are drawn."""


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """Links, flows and steps of a cell."""

    links: tuple[CellLink, ...]
    flows: tuple[Flow, ...]
    pings: tuple[Ping, ...]
    steps: tuple[Step, ...]
    arrivals: Processes


def wire(
    setup: Setup,
    topology: Topology,
    beside: Beside = NOTHING,
) -> Wiring:
    """Resolve ``setup`` on ``topology``; raise MisfitError with all that does not fit.

    ``beside`` holds what the setup names, traces from where a run begins.
    """
    complaints = Complaints()
    steps: tuple[AskedStep, ...] = ()
    with complaints.noted():
        steps = asked_steps(setup, beside.step_files)
    _check_link_names(setup, steps, topology, complaints)
    assigned = tuple(assign(setup, topology, complaints))
    if isinstance(setup.path.rtt, dict) or not assigned:
        complaints.refuse()  # whose round trips are missing shows when all senders are known
    ground = Ground(
        setup=setup,
        topology=topology,
        assigned=tuple(one for one in assigned if one.group.kind != "ping" and not one.absent),
        pings=tuple(one for one in assigned if one.group.kind == "ping"),
        absent=tuple(one for one in assigned if one.absent),
        modules=beside.modules,
        traces=beside.traces,
        steps=steps,
    )
    try:
        delays, rates = _delays(ground), _rates(ground)
    except MisfitError as error:
        raise MisfitError.of(*complaints.found, *error.found) from None
    return _wired(ground, delays, rates, complaints)


def _wired(
    ground: Ground,
    delays: dict[str, Duration],
    rates: dict[str, Rate],
    complaints: Complaints,
) -> Wiring:
    for check in (
        _check_crossings(ground, rates),
        _check_queues(ground, rates),
        _check_round_trips(ground, delays),
        _check_maxrates(ground),
        _check_initial_windows(ground),
        _check_queue_delay(ground, rates),
    ):
        complaints.found.extend(check)
    flows: list[Flow] = []
    for index, flow in enumerate(ground.assigned):
        with complaints.noted():
            flows.append(_flow(ground, index, flow, delays))
    steps = tuple(steps_of(ground, dict(delays), dict(rates), complaints))
    links = tuple(links_of(ground, delays, rates, complaints))
    complaints.refuse()
    pings = tuple(_ping(ground, index, one, delays) for index, one in enumerate(ground.pings))
    arrivals = {
        index: AtRandom(process=one.group.arrivals, duration=one.group.duration, position=one.position)
        for index, one in enumerate(ground.assigned)
        if one.group.arrivals is not None and one.group.duration is not None
    }
    return Wiring(links=links, flows=tuple(flows), pings=pings, steps=steps, arrivals=arrivals)


def _check_link_names(
    setup: Setup, steps: Sequence[AskedStep], topology: Topology, complaints: Complaints
) -> None:
    known = dict.fromkeys(link.name for link in topology.links)
    links: list[tuple[Loc, str]] = [(("links", name), name) for name in setup.links]
    captured: list[tuple[Loc, str]] = [(("capture", i), one.link) for i, one in enumerate(setup.capture)]

    def unknown(name: str) -> str:
        return f"the slice has no link {name!r}{did_you_mean(name, known)} (links: {listed(known)})"

    stepped = [each for each in steps if each.step.link and each.step.link not in known]
    complaints.found += [(loc, unknown(name)) for loc, name in links if name not in known]
    complaints.found += [each.mistake(("link",), unknown(each.step.link or "")) for each in stepped]
    complaints.found += [(loc, unknown(name)) for loc, name in captured if name not in known]


def _check_crossings(ground: Ground, rates: dict[str, Rate]) -> Iterator[Mistake]:
    for flow in ground.all:
        if not any(link.name in rates for link in ground.route(flow)):
            ends = f"{flow.ends.sender} to {flow.ends.receiver}"
            message = (
                f"{flow.label} from {ends} crosses no bottleneck, so nothing would limit "
                f"it; choose other hosts (bottlenecks: {listed(rates)})"
            )
            yield ("flows", flow.position), message


_OF_A_QUEUE = ("buffer", "burst", "reverse", "aqm")


def _check_queues(ground: Ground, rates: dict[str, Rate]) -> Iterator[Mistake]:
    """What is of a queue, on links that have none, or none of tc."""
    known = {link.name for link in ground.topology.links}
    for name, link in ground.setup.links.items():
        if name in known - rates.keys():
            message = f"link {name} is no bottleneck; give it a rate too (bottlenecks: {listed(rates)})"
            yield from (
                (("links", name, key), message) for key in _OF_A_QUEUE if getattr(link, key) is not None
            )
        if link.burst is not None and follows_there(ground, name):
            yield ("links", name, "burst"), NO_BUCKET


def _check_round_trips(ground: Ground, delays: dict[str, Duration]) -> Iterator[Mistake]:
    for flow in ground.all:
        if not round_trip(ground.route(flow), delays).ns:
            names = listed(link.name for link in ground.route(flow))
            message = (
                f"{flow.label} from {flow.ends.sender} to {flow.ends.receiver} has no round trip on "
                f"any of its links ({names}); give one of them an rtt"
            )
            yield ("links",), message


def _check_maxrates(ground: Ground) -> Iterator[Mistake]:
    """The limit is of the host's own ``fq``, which cannot tell the flows of one group from another's."""
    for flow, said in _differ(
        ground.assigned, by=lambda flow: flow.ends.sender, asked=lambda flow: flow.group.maxrate
    ):
        message = (
            f"maxrate holds for all that {flow.ends.sender} sends, but {said}; give each group "
            f"a host of its own ({_other_senders(ground)}), or limit single connections with pacing"
        )
        yield ("flows", flow.position), message


def _check_initial_windows(ground: Ground) -> Iterator[Mistake]:
    """It is of the route from one host to another, which all connections between them take."""
    for flow, said in _differ(
        [flow for flow in ground.assigned if flow.group.kind != "udp"],
        by=lambda flow: (flow.ends.sender, flow.ends.receiver),
        asked=lambda flow: flow.group.initial_window,
    ):
        message = (
            f"initial_window holds for all that {flow.ends.sender} sends to {flow.ends.receiver}, "
            f"but {said}; give both the same (the kernel's is 10), or hosts of their own "
            f"({_other_senders(ground)})"
        )
        yield ("flows", flow.position), message


def _other_senders(ground: Ground) -> str:
    """How a file gives two groups senders of their own, if need be with a slice that has them."""
    senders = dict.fromkeys(pair.sender for pair in ground.topology.pairs)
    if len(senders) > 1:
        return ", ".join(f"from: {sender}" for sender in list(senders)[:2])
    return "slice: {name: dumbbell, hosts: 2} has two: from: h1, from: h2"


def _differ(
    flows: Sequence[Assigned], *, by: Callable[[Assigned], Hashable], asked: Callable[[Assigned], object]
) -> Iterator[tuple[Assigned, str]]:
    """Flows that do not ask for what the first of theirs does, and what both ask for."""
    first: dict[Hashable, Assigned] = {}
    for flow in flows:
        other = first.setdefault(by(flow), flow)
        if asked(flow) != asked(other):
            yield flow, " and ".join(f"{each.label} {asked(each) or 'has none'}" for each in (other, flow))


def _check_queue_delay(ground: Ground, rates: dict[str, Rate]) -> Iterator[Mistake]:
    """Where a trace is followed by single opportunities the queue is a program in the wire, and no qdisc."""
    for link in rates if ground.setup.queue_delay == "packets" else ():
        back = reverse_of(ground, link)
        if delivers(ground, link) or (back is not None and back[0].trace is not None):
            message = (
                f"a queue of {link} delivers by a trace, so no packet passes a queueing "
                f"discipline there; capture the links around it instead (capture: [{link}]), or give a rate"
            )
            yield ("queue_delay",), message
            return


def _delays(ground: Ground) -> dict[str, Duration]:
    """One-way propagation delay of every link that has one."""
    rtt = ground.setup.path.rtt
    delays: dict[str, Duration] = {}
    if isinstance(rtt, Duration):
        delays = dict.fromkeys(ground.bottlenecks, half(rtt))
    else:
        senders = {flow.ends.sender: flow for flow in (*ground.assigned, *ground.absent)}
        wrong = list(_senders_apart(rtt, senders))
        if wrong:
            raise MisfitError.of(*wrong)
        for sender, flow in senders.items():
            access = ground.access(flow, ("path", "rtt", sender), "an RTT by sender")
            delays[access] = half(rtt[sender])
    own = {name: half(link.rtt) for name, link in ground.setup.links.items() if link.rtt is not None}
    return delays | own


def _senders_apart(rtt: dict[str, Duration], senders: dict[str, Assigned]) -> Iterator[Mistake]:
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


def _rates(ground: Ground) -> dict[str, Rate]:
    """The rate of every bottleneck; with a trace, its mean."""
    rate = ground.setup.path.rate or _mean_rate(ground)
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


def _mean_rate(ground: Ground) -> Rate:
    name = ground.setup.path.trace
    if name is None:
        raise MisfitError.of((("path",), NO_RATE))
    if ground.setup.end is None and not delivers(ground, ground.topology.trunk):
        message = (
            "becomes rates where tc holds the queue, and needs flows with a duration to know how many; "
            "replace size or arrivals, or leave the queue to tail drop, at one size, with data one way"
        )
        raise MisfitError.of((("path", "trace"), message))
    trunk, *more = ground.bottlenecks
    own = ground.setup.links.get(trunk)
    if more or (own is not None and own.rate is not None):
        message = f"sets the rate of {trunk} alone; use a slice with one bottleneck and no links.{trunk}.rate"
        raise MisfitError.of((("path", "trace"), message))
    return mean_rate(ground, name, ("path", "trace"))


def _flow(ground: Ground, index: int, flow: Assigned, delays: dict[str, Duration]) -> Flow:
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
        initial_window=group.initial_window,
        rtt=round_trip(ground.route(flow), delays),
        implementation=None if group.whose == "mainline" else group.whose,
        profile=group.own_profile,
        module=_module(ground, flow),
    )


def _module(ground: Ground, flow: Assigned) -> Module | None:
    choice = ground.setup.module_of(flow.group)
    if choice is None:
        return None
    loc = ("flows", flow.position, "cca")
    sources = ground.modules.get(choice.module)
    if sources is None:
        raise MisfitError.of((loc, f"{shown(choice.module)} was not read; pass its sources to the plan"))
    names = tuple(dict.fromkeys(named.name for named in sources.names))
    name = choice.name or (flow.group.cca if flow.group.cca in names else "".join(names[:1]))
    if choice.name is None and len(names) > 1 and name != flow.group.cca:
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
        kernel_name=name,
        params=choice.params,
        form="module" if sources.program is None else "bpf",
    )


def _ping(ground: Ground, index: int, ping: Assigned, delays: dict[str, Duration]) -> Ping:
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

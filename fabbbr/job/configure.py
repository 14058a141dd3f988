"""Cell → the commands that shape the network, and what must be read back. Pure.

Rules, each with its reason:

* TBF holds the bottleneck queue; ``limit`` is the buffer in bytes. With an AQM the TBF only paces and the AQM
  below it holds the queue, because TBF ignores its own limit once it has a child. The AQM comes when the rate
  is measured: on a slow link it would drop what measures.
* Switches route, and do not bridge. A veth passes a frame on, sending socket and all, where a network card
  would have freed it; through a bridge it stays charged to the sender even in the bottleneck, and TCP small
  queues keep the queue at a few packets. IP forwarding lets go of the socket.
* No qdisc follows a trace of single opportunities: the queue of such a link is a program of the agent, in the
  link's wire.
* netem holds delay, loss, reordering and aggregation on a wire node. Its packet limit is set so high that it
  cannot bind.
* Injected loss hits data only: iperf3's control connection shares the path and would end the test early,
  which is a property of the tool and not of the path. Data has the top bit of its source port set. What comes
  late is data too.
* Hosts get windows of at least 2 BDP + buffer, so that the path and not the host limits a flow.
* A host whose flows have a ``maxrate`` has ``fq`` for their data alone, so that the probes before them, and
  iperf3's control connection, pass beside it.
* Segmentation offloads are off wherever a packet can be dropped or counted: one loss is one packet. A cell
  that wants them has them on everywhere: a cable of ours carries super-packets as they are, and what comes
  from a network card is put together again (GRO).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from fabbbr.capacity import opportunity_s
from fabbbr.job import congestion
from fabbbr.job.cabling import Cabling, LinkEnds
from fabbbr.job.expected import HostPacing, HostSettings, InitialWindow, Offloads, Queue, Wire, slots_s
from fabbbr.job.headroom import Extremes, window_bytes
from fabbbr.job.qdiscs import aqm_lines, aqm_times, netem_lines, netem_seed, tbf_burst_bytes, tbf_line
from fabbbr.job.records import Cable, Capture, Command, GateTask, Interface, Node, StepTask
from fabbbr.model import Bottleneck, Cell, CellLink, LinkTrace, Loss, Step
from fabbbr.testbed import Testbed
from fabbbr.units import NANOSECONDS_PER_SECOND, Duration, Rate

_OFFLOADS = ("tso", "gso", "gro", "lro")
_HOST_OFFLOADS = ("tso", "gro", "lro")
_WANTED = ("tso", "gso")
_WANTED_OF_CARDS = ("gso", "gro")
"""A card that cannot cut segments itself is handed those of GSO."""
_EPHEMERAL_PORTS = "10000 29999"


def configure_commands(
    cell: Cell, testbed: Testbed, cabling: Cabling, network: Sequence[Cable] = ()
) -> tuple[Command, ...]:
    """Everything to do before the first packet, in order; ``network`` are the cables between machines."""
    return (
        *_offload_commands(cell, cabling, network),
        *_wire_commands(cabling),
        *_queue_commands(cell, testbed, cabling),
        *_host_commands(cell, cabling),
        *_pacing_commands(cell, cabling),
        *congestion.profile_commands(cell),
        *_switch_commands(cell, cabling),
    )


def aqm_commands(cell: Cell, cabling: Cabling) -> Iterator[Command]:
    """Every AQM below its rate limit."""
    for interface, queue in _queues(cabling):
        if queue.aqm != "taildrop":
            yield _tc(interface.node, *aqm_lines("add", cell, interface, queue))


def _queues(cabling: Cabling) -> Iterator[tuple[Interface, Bottleneck]]:
    return (each for ends in cabling.ends for each in ends.queues)


def seeding_commands(cell: Cell, cabling: Cabling) -> Iterator[Command]:
    """Every netem as it is, but with a seed that depends on the cell's and on the place of the qdisc.

    It draws one by itself when it is made, and losses from it ever since. Linux before 6.6 ignores ours.
    """
    most = Extremes.of(cell)
    for ends in cabling.ends:
        if ends.wire_forward is not None:
            lines = netem_lines("change", most, ends, ends.link)
            yield _tc(ends.wire_forward.node, *(f"{line} seed {netem_seed(cell, line)}" for line in lines))


def anew_commands(cell: Cell, cabling: Cabling) -> Iterator[Command]:
    """Every netem seeded once more, and every AQM put in anew: it drew its randomness when it was made."""
    yield from seeding_commands(cell, cabling)
    for interface, queue in _queues(cabling):
        if queue.aqm != "taildrop":
            gone = f"qdisc del dev {interface.name} parent 1:1 handle 2:"
            yield _tc(interface.node, gone, *aqm_lines("add", cell, interface, queue))


def step_tasks(cell: Cell, testbed: Testbed, cabling: Cabling) -> Iterator[StepTask]:
    """The changes of each step, in the order of the cell's; settings that a step does not name stay."""
    ends_of = {ends.link.name: ends for ends in cabling.ends}
    most = Extremes.of(cell)
    fastest = {name: queue.rate for name, queue in cell.bottlenecks.items()}
    for step, link in zip(cell.steps, _links_after(cell), strict=True):
        ends, commands, queue = ends_of[step.link], [], link.bottleneck
        if queue is not None and (step.rate is not None or step.buffer_bytes is not None):
            fastest[step.link] = max(fastest[step.link], queue.rate)
            # A way back with a rate of its own keeps it.
            alike = ends.reverse_queues if queue.reverse is None else ()
            for at in (ends.queue, *alike):
                lines = [tbf_line("change", at, cell, testbed, queue, fastest=fastest[step.link])]
                if step.buffer_bytes is not None:
                    lines += aqm_lines("change", cell, at, queue)
                commands.append(_tc(at.node, *lines))
        if step.rtt is not None or step.loss is not None:
            commands.append(_tc(_wire_of(ends).node, *netem_lines("change", most, ends, link)))
        counted = () if step.loss is None else (_losses_counted(_wire_of(ends)),)
        yield StepTask(at_ns=step.at.ns, commands=tuple(commands), counted=counted)


def _losses_counted(wire: Interface) -> Capture:
    """What is lost until a step is not of the loss that it sets."""
    return _capture(f"losses.{wire.name}", wire.node, "tc", "-s", "-j", "qdisc", "show")


def gate_tasks(cabling: Cabling) -> Iterator[GateTask]:
    """The gates of the links that deliver by a trace, each way, in the wire of their link."""
    for ends in cabling.ends:
        for interface, queue in ends.queues:
            if queue.trace is not None:
                yield _gate_task(ends, interface, queue, queue.trace)


def _gate_task(ends: LinkEnds, interface: Interface, queue: Bottleneck, trace: LinkTrace) -> GateTask:
    there, back = ends.wire_forward, ends.wire_backward
    assert there is not None, f"link {ends.link.name} has no wire to hold its gate"
    assert back is not None, f"link {ends.link.name} has no wire to hold its gate"
    into, out = (back, there) if interface == ends.queue else (there, back)
    return GateTask(
        node=there.node,
        into=into.name,
        out=out.name,
        queue_node=interface.node,
        interface=interface.name,
        limit_bytes=queue.buffer_bytes,
        every_ns=opportunity_s(queue.rate) * NANOSECONDS_PER_SECOND,
        gaps_ms=trace.gaps_ms,
    )


def readback_captures(cell: Cell, cabling: Cabling) -> tuple[Capture, ...]:
    """What to ask of the running network before any flow starts."""
    captures, sysctls = congestion.captures(cell), tuple(_host_sysctls(cell))
    maxrates = _maxrates(cell)
    for node in cabling.nodes:
        if node.kind != "host" or node.name in maxrates:
            captures.append(_capture(_qdiscs_of(node.name), node.name, "tc", "-r", "-j", "qdisc", "show"))
        if node.kind == "host":
            captures.append(_capture(_sysctls_of(node.name), node.name, "sysctl", *sysctls))
        if any(sender == node.name for sender, _ in cell.initial_windows):
            captures.append(_capture(_routes_of(node.name), node.name, "ip", "-j", "route", "show"))
        captures += [
            _capture(_features_of(interface), node.name, "ethtool", "-k", interface.name)
            for interface in cabling.interfaces(node.name)
        ]
    return tuple(captures)


def _qdiscs_of(node: str) -> str:
    return f"qdisc.{node}"


def _sysctls_of(node: str) -> str:
    return f"sysctl.{node}"


def _routes_of(node: str) -> str:
    return f"routes.{node}"


def _features_of(interface: Interface) -> str:
    return f"offloads.{interface.name}"


def expected_host_settings(cell: Cell, cabling: Cabling) -> Iterator[HostSettings]:
    """What each host must report."""
    sysctls = _host_sysctls(cell)
    for node in cabling.nodes:
        if node.kind == "host":
            yield HostSettings(node=node.name, captured=_sysctls_of(node.name), sysctls=sysctls)


def expected_initial_windows(cell: Cell, cabling: Cabling) -> Iterator[InitialWindow]:
    """That of every route whose flows have one."""
    for (sender, receiver), segments in cell.initial_windows.items():
        yield InitialWindow(
            node=sender,
            receiver=receiver,
            address=cabling.address(receiver),
            captured=_routes_of(sender),
            segments=segments,
        )


def expected_offloads(cell: Cell, cabling: Cabling, network: Sequence[Cable]) -> Iterator[Offloads]:
    """What must be off at every interface; on where the cell wants offloads."""
    cards = _ends_of(network)
    for node in cabling.nodes:
        off = _offloads_off(cell, node)
        for interface in cabling.interfaces(node.name):
            wanted = _WANTED_OF_CARDS if interface in cards else _WANTED
            yield Offloads(
                interface=interface,
                captured=_features_of(interface),
                off=off,
                on=wanted if cell.offloads else (),
            )


def _ends_of(cables: Sequence[Cable]) -> tuple[Interface, ...]:
    return tuple(side for cable in cables for side in (cable.a, cable.b))


def _offloads_off(cell: Cell, node: Node) -> tuple[str, ...]:
    if cell.offloads:
        return ()
    return _HOST_OFFLOADS if node.kind == "host" else _OFFLOADS


def expected_queues(cell: Cell, testbed: Testbed, cabling: Cabling) -> Iterator[Queue]:
    """Every bottleneck queue, in the order of the links."""
    for ends in cabling.ends:
        for interface, queue in ends.queues:
            yield Queue(
                interface=interface,
                captured=_qdiscs_of(interface.node),
                link=ends.link.name,
                rate=queue.rate,
                buffer_bytes=queue.buffer_bytes,
                burst_bytes=tbf_burst_bytes(interface, cell, testbed, queue, fastest=queue.rate),
                burst_is_asked=queue.burst_bytes is not None,
                aqm=queue.aqm,
                aqm_times_s={word: time.seconds for word, time in aqm_times(queue).items()},
                reverse=interface != ends.queue,
                trace=queue.trace,
                gate_node=ends.wire_forward.node if queue.trace and ends.wire_forward else None,
            )


def expected_pacings(cell: Cell, cabling: Cabling) -> Iterator[HostPacing]:
    """The ``fq`` of every host whose flows have a maxrate."""
    for host, maxrate in _maxrates(cell).items():
        yield HostPacing(interface=_only_interface(cabling, host), captured=_qdiscs_of(host), maxrate=maxrate)


def _maxrates(cell: Cell) -> dict[str, Rate]:
    """Host → the maxrate of the flows that it sends; the plan has seen to it that they agree."""
    return {flow.sender: flow.maxrate for flow in cell.flows if flow.maxrate is not None}


def _only_interface(cabling: Cabling, host: str) -> Interface:
    (interface,) = cabling.interfaces(host)
    return interface


def expected_wires(cell: Cell, cabling: Cabling) -> Iterator[Wire]:
    """Both directions of every wire, in the order of the links."""
    most, later = Extremes.of(cell), _later_losses(cell)
    for ends in cabling.ends:
        for interface in (ends.wire_forward, ends.wire_backward):
            if interface is None:
                continue
            forward, late = interface == ends.wire_forward, ends.link.reordering
            yield Wire(
                interface=interface,
                captured=_qdiscs_of(interface.node),
                link=ends.link.name,
                delay_s=ends.link.delay.seconds if ends.link.delay is not None else 0.0,
                limit_packets=most.netem_limit(ends.link),
                loss=ends.link.loss if forward else None,
                later_losses=tuple(later[ends.link.name]) if forward else (),
                counted=_losses_counted(interface),
                late_s=late.late.seconds if forward and late is not None else 0.0,
                slots_s=slots_s(None if forward else ends.link.ack_aggregation),
            )


def _later_losses(cell: Cell) -> Mapping[str, Sequence[Loss]]:
    """Link → what each step of its loss leaves, in the order of time."""
    later: dict[str, list[Loss]] = defaultdict(list)
    for step, after in sorted(zip(cell.steps, _links_after(cell), strict=True), key=lambda each: each[0].at):
        if step.loss is not None and after.loss is not None:
            later[step.link].append(after.loss)
    return later


def interface_roles(cabling: Cabling) -> dict[str, dict[str, str]]:
    """Interface → link and what its qdisc is for, so that analysis need not know how it was built."""
    roles: dict[str, dict[str, str]] = {}
    for ends in cabling.ends:
        for interface, _ in ends.queues:
            role = "bottleneck" if interface == ends.queue else "bottleneck_reverse"
            roles[interface.name] = {"link": ends.link.name, "role": role}
        if ends.wire_forward is not None and ends.wire_backward is not None:
            forward = "loss" if ends.link.loss is not None else "delay"
            roles[ends.wire_forward.name] = {"link": ends.link.name, "role": forward}
            roles[ends.wire_backward.name] = {"link": ends.link.name, "role": "delay"}
    return roles


def _offload_commands(cell: Cell, cabling: Cabling, network: Sequence[Cable]) -> Iterator[Command]:
    if cell.offloads:
        # A veth is made with them on. On a card some may have been switched off.
        for interface in _ends_of(network):
            yield _switched(interface, ("tso", *_WANTED_OF_CARDS), "on")
        return
    for node in cabling.nodes:
        for interface in cabling.interfaces(node.name):
            yield _switched(interface, _offloads_off(cell, node), "off")


def _switched(interface: Interface, features: tuple[str, ...], state: str) -> Command:
    """One that cannot be switched (lro on veth) is "fixed": the read-back decides, not the exit status."""
    flags = tuple(word for feature in features for word in (feature, state))
    return Command(node=interface.node, argv=("ethtool", "-K", interface.name, *flags), may_fail=True)


def _wire_commands(cabling: Cabling) -> Iterator[Command]:
    gated = {gate.into for gate in gate_tasks(cabling)}
    for node in cabling.nodes:
        if node.kind != "wire":
            continue
        one, two = (interface.name for interface in cabling.interfaces(node.name))
        lines = []
        for here, there in ((one, two), (two, one)):
            lines.append(f"qdisc add dev {here} clsact")
            # A gate has seen the frame by then, and puts it out itself.
            action = "drop" if here in gated else f"mirred egress redirect dev {there}"
            lines.append(f"filter add dev {here} ingress matchall action {action}")
        yield _tc(node.name, *lines)


def _queue_commands(cell: Cell, testbed: Testbed, cabling: Cabling) -> Iterator[Command]:
    most = Extremes.of(cell)
    for ends in cabling.ends:
        for interface, queue in ends.queues:
            if queue.trace is None:
                yield _tc(
                    interface.node, tbf_line("add", interface, cell, testbed, queue, fastest=queue.rate)
                )
        if ends.wire_forward is not None:
            yield _tc(ends.wire_forward.node, *netem_lines("add", most, ends, ends.link))


def _host_sysctls(cell: Cell) -> dict[str, str]:
    window = window_bytes(cell)
    return {
        "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_rmem": f"4096 {window} {window}",
        "net.ipv4.tcp_wmem": f"4096 16384 {window}",
        "net.ipv4.tcp_ecn": "1" if cell.ecn else "0",
        "net.ipv4.ip_local_port_range": _EPHEMERAL_PORTS,
        **{f"net.ipv4.{name}": value for name, value in cell.sysctls.items()},
    }


def _host_commands(cell: Cell, cabling: Cabling) -> Iterator[Command]:
    hosts = [node.name for node in cabling.nodes if node.kind == "host"]
    settings = tuple(f"{key}={value}" for key, value in _host_sysctls(cell).items())
    position, peers = {host: index for index, host in enumerate(hosts)}, _peers(cell)
    for host in hosts:
        yield Command(node=host, argv=("sysctl", "-q", "-w", *settings))
        others = sorted(peers[host], key=position.__getitem__)
        if others:
            yield _ip(host, [_neighbour(cabling, host, other) for other in others])
        windows = {to: segments for (sender, to), segments in cell.initial_windows.items() if sender == host}
        if windows:
            yield _ip(host, [_route(cabling, host, to, segments) for to, segments in windows.items()])


def _pacing_commands(cell: Cell, cabling: Cabling) -> Iterator[Command]:
    priomap = " ".join(["1"] * 16)
    for host, maxrate in _maxrates(cell).items():
        device = _only_interface(cabling, host).name
        yield _tc(
            host,
            f"qdisc add dev {device} root handle 1: prio bands 2 priomap {priomap}",
            f"qdisc add dev {device} parent 1:1 handle 30: fq maxrate {maxrate.bps}bit",
            f"filter add dev {device} parent 1: protocol ip prio 1 "
            "u32 match ip protocol 6 0xff match ip sport 0x8000 0x8000 flowid 1:1",
        )


def _switch_commands(cell: Cell, cabling: Cabling) -> Iterator[Command]:
    for switch in (node.name for node in cabling.nodes if node.kind == "switch"):
        ports = [interface.name for interface in cabling.interfaces(switch)]
        filters = (f"net.ipv4.conf.{port}.rp_filter=0" for port in ("all", *ports))
        yield Command(node=switch, argv=("sysctl", "-q", "-w", "net.ipv4.ip_forward=1", *filters))
        lines = []
        for host in cell.talking:
            out = cabling.next_hop(switch, host).out.name
            lines += [
                f"route add {cabling.address(host)}/32 dev {out}",
                _neighbour(cabling, switch, host),
            ]
        yield _ip(switch, lines)


def _neighbour(cabling: Cabling, node: str, host: str) -> str:
    """A permanent neighbour: a lost ARP packet would show as a second of silence."""
    hop = cabling.next_hop(node, host)
    return f"neigh replace {cabling.address(host)} lladdr {hop.mac} dev {hop.out.name} nud permanent"


def _route(cabling: Cabling, host: str, to: str, segments: int) -> str:
    """Beside that of the whole network, which it takes the place of."""
    device = cabling.next_hop(host, to).out.name
    return f"route add {cabling.address(to)}/32 dev {device} initcwnd {segments}"


def _peers(cell: Cell) -> dict[str, set[str]]:
    """Host → those with which it talks."""
    peers: dict[str, set[str]] = defaultdict(set)
    for sender, receiver in cell.pairs:
        peers[sender].add(receiver)
        peers[receiver].add(sender)
    return peers


def _links_after(cell: Cell) -> list[CellLink]:
    """For each step, its link as it stands once that step and all up to its instant are carried out."""
    links = {link.name: link for link in cell.links}
    after: dict[int, CellLink] = {}
    for _, group in groupby(sorted(enumerate(cell.steps), key=_instant), key=_instant):
        at_once = list(group)
        for _, step in at_once:
            links[step.link] = _changed(links[step.link], step)
        for index, step in at_once:
            after[index] = links[step.link]
    return [after[index] for index in range(len(cell.steps))]


def _instant(numbered: tuple[int, Step]) -> int:
    return numbered[1].at.ns


def _changed(link: CellLink, step: Step) -> CellLink:
    """``link`` after ``step``."""
    asked = {"rate": step.rate, "buffer_bytes": step.buffer_bytes}
    update = {name: value for name, value in asked.items() if value is not None}
    changes: dict[str, object] = {}
    if update and link.bottleneck is not None:
        changes["bottleneck"] = link.bottleneck.model_copy(update=update)
    if step.rtt is not None:
        changes["delay"] = Duration(step.rtt.ns // 2)
    if step.loss is not None:
        changes["loss"] = step.loss
    return link.model_copy(update=changes)


def _wire_of(ends: LinkEnds) -> Interface:
    assert ends.wire_forward is not None, f"link {ends.link.name} has no wire to change the RTT of"
    return ends.wire_forward


def _ip(node: str, lines: list[str]) -> Command:
    return Command(node=node, argv=("ip", "-batch", "-"), stdin="\n".join(lines) + "\n")


def _tc(node: str, *lines: str) -> Command:
    return Command(node=node, argv=("tc", "-batch", "-"), stdin="\n".join(lines) + "\n")


def _capture(name: str, node: str, *argv: str) -> Capture:
    return Capture(name=name, command=Command(node=node, argv=argv))

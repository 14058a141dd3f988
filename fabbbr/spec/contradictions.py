"""What a setup says that cannot be meant: mistakes between keys that are each well formed.

Each check yields the location of a key and a message with the remedy. What changes nothing is
looked for in :mod:`fabbbr.spec.in_vain`; checks that need the hosts and links of a slice are made in
:mod:`fabbbr.plan.expand`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from fabbbr.model import (
    DATA_PORT,
    PORTS_PER_FLOW,
    AckAggregation,
    Loss,
    Reordering,
    Video,
)
from fabbbr.spec.document import Loc
from fabbbr.spec.experiment import (
    BBR_PROFILES,
    CCAS,
    IMPLEMENTATIONS,
    ArrivalProcess,
    FlowGroup,
    Kind,
    LinkSetup,
    ModuleChoice,
    PathSetup,
    ReverseSetup,
    Setup,
    SizeDistribution,
    StepSetup,
)
from fabbbr.units import (
    ETHERNET_HEADER_BYTES,
    NANOSECONDS_PER_SECOND,
    TCP_IPV4_HEADER_BYTES,
    UDP_IPV4_HEADER_BYTES,
    Duration,
    Frequency,
    QueueSize,
    Rate,
    Ratio,
    Size,
)

Mistake = tuple[Loc, str]

SLOWEST_RATE = Rate(8_000)
"""A 1500-byte frame takes 1.5 s at 8 kbit/s; TCP gives up below."""

FASTEST_RATE = Rate(10**12)
LONGEST_RTT = Duration(60 * NANOSECONDS_PER_SECOND)
"""A lost packet is not sent again before a round trip; TCP's own timers end at two minutes."""

SHORTEST_CE_THRESHOLD = Duration(10_000)
"""The kernel keeps it in steps of 1024 ns, and tc in microseconds."""

LONGEST_AGGREGATION = Duration(NANOSECONDS_PER_SECOND)
"""Far beyond any link layer; what waits longer than TCP's least retransmission
timeout of 200 ms is sent again."""

WINDOW_OF_HANDSHAKE_BYTES = 65_535

MOST_REORDERED = Ratio.parse("50 %")
"""Where more come late, the others are early."""

REORDERED_STEP = Ratio.parse("0.01 %")
"""netem draws a delay evenly from a table of at most 16 384 numbers (NETEM_DIST_MAX)."""

LATEST = Duration(NANOSECONDS_PER_SECOND)
"""A jitter of netem has 31 bits, of nanoseconds; what is later than TCP's timeout is sent again by it."""

LONGEST_RUN = Duration(86_400 * NANOSECONDS_PER_SECOND)
"""What ``iperf3 -t`` takes at most."""

FASTEST_MAXRATE = Rate(8 * (2**32 - 2))
"""fq keeps it in bytes per second, in 32 bits, of which the largest number means none."""

LARGEST_TRANSFER = Size(10**15)
RAREST_ARRIVALS = Frequency(1)
MOST_ARRIVALS = Frequency(1000 * 10**6)
"""Programs in a second: more than any machine starts."""

SMALLEST_DATAGRAM = Size(UDP_IPV4_HEADER_BYTES + 16)
"""iperf3 puts time and number of each into its first 16 bytes."""

SHORTEST_CHUNK = Duration(10_000_000)
"""At the slowest rate that is 10 bytes."""

SHORTEST_PING = Duration(1_000_000)
"""0.8 Mbit/s of requests, and what a program in Python can still send evenly."""

SHORTEST_SAMPLE_PERIOD = Duration(1_000_000)
MOST_FLOWS = (65_536 - DATA_PORT) // PORTS_PER_FLOW


def mistakes(setup: Setup) -> Iterator[Mistake]:
    """All of them."""
    yield from _path(setup.path)
    for name, link in setup.links.items():
        yield from _link(("links", name), link, setup.path.mtu)
    yield from _flows(setup)
    yield from _bbrs_together(setup.flows)
    yield from _modules(setup)
    yield from _steps(setup)
    yield from _times(setup)
    yield from _captures(setup)


def _captures(setup: Setup) -> Iterator[Mistake]:
    first: set[str] = set()
    for index, capture in enumerate(setup.capture):
        if capture.link in first:
            yield ("capture", index), f"link {capture.link} is captured already; name it once"
        first.add(capture.link)
        if capture.bytes == "full" and setup.path.offloads:
            said = "a super-packet has up to 64 kB; take headers, or leave offloads off"
            yield ("capture", index, "bytes"), said
    if setup.queue_delay == "packets" and setup.path.offloads:
        said = (
            "a super-packet may be cut inside the queue, and its segments have no arrival of their own; "
            "leave offloads off"
        )
        yield ("queue_delay",), said


def _path(path: PathSetup) -> Iterator[Mistake]:
    if (path.rate is None) == (path.trace is None):
        said = (
            "needs a rate, e.g. rate: 100 Mbit/s" if path.rate is None else "give a rate or a trace, not both"
        )
        yield ("path",), said
    if path.trace is not None and path.offloads:
        yield ("path", "offloads"), "a trace delivers packets of 1500 bytes one by one, so leave offloads off"
    yield from _rate(("path", "rate"), path.rate)
    if isinstance(path.rtt, dict):
        if not path.rtt:
            yield ("path", "rtt"), "names no sender, e.g. {h1: 61 ms, h2: 113 ms}"
        for sender, rtt in path.rtt.items():
            yield from _rtt(("path", "rtt", sender), rtt)
    else:
        yield from _rtt(("path", "rtt"), path.rtt)
    yield from _buffer(("path", "buffer"), path.buffer, path.mtu)
    yield from _reverse(("path", "reverse"), path.reverse, path.mtu)
    yield from _loss(("path", "loss"), path.loss)
    yield from _reordering(("path", "reordering"), path.reordering)
    yield from _aggregation(("path", "ack_aggregation"), path.ack_aggregation)
    if path.ce_threshold != Duration(0):
        yield from _within(("path", "ce_threshold"), path.ce_threshold, SHORTEST_CE_THRESHOLD, LONGEST_RTT)


def _link(loc: Loc, link: LinkSetup, mtu: int) -> Iterator[Mistake]:
    if link == LinkSetup():
        yield loc, "changes nothing; give rate, rtt, buffer, reverse, loss, reordering or aqm, or remove it"
    yield from _rate((*loc, "rate"), link.rate)
    if link.rtt != Duration(0):
        yield from _rtt((*loc, "rtt"), link.rtt)
    yield from _buffer((*loc, "buffer"), link.buffer, mtu)
    yield from _reverse((*loc, "reverse"), link.reverse, mtu)
    yield from _loss((*loc, "loss"), link.loss)
    yield from _reordering((*loc, "reordering"), link.reordering)


_Quantity = TypeVar("_Quantity", Rate, Duration, Size, Frequency, Ratio)


def _within(loc: Loc, value: _Quantity | None, least: _Quantity, most: _Quantity) -> Iterator[Mistake]:
    if value is not None and not least <= value <= most:
        yield loc, f"{value} is out of range; give {least} to {most}"


def _rate(loc: Loc, rate: Rate | None) -> Iterator[Mistake]:
    yield from _within(loc, rate, SLOWEST_RATE, FASTEST_RATE)


def _rtt(loc: Loc, rtt: Duration | None) -> Iterator[Mistake]:
    yield from _within(loc, rtt, Duration(2), LONGEST_RTT)
    if rtt is not None and rtt.ns % 2:
        yield loc, f"{rtt} is an odd number of nanoseconds, and half of it goes each way; make it even"


def _buffer(loc: Loc, buffer: QueueSize | None, mtu: int) -> Iterator[Mistake]:
    if buffer is not None and buffer.size is not None and buffer.size.bytes < mtu + ETHERNET_HEADER_BYTES:
        packet = mtu + ETHERNET_HEADER_BYTES
        yield loc, f"{buffer} does not hold one packet of {packet} bytes; give at least {packet} B"


def _reverse(loc: Loc, reverse: ReverseSetup | None, mtu: int) -> Iterator[Mistake]:
    if reverse is not None:
        yield from _rate((*loc, "rate"), reverse.rate)
        yield from _buffer((*loc, "buffer"), reverse.buffer, mtu)


def _loss(loc: Loc, loss: Loss | None) -> Iterator[Mistake]:
    if loss is None:
        return
    if loss.model == "gilbert_elliott" and loss.recovery is None:
        yield (*loc, "recovery"), "is missing: gilbert_elliott needs it, e.g. recovery: 10 %"
    if loss.model == "bursts" and loss.burst is None:
        yield (*loc, "burst"), "is missing: bursts need it, e.g. burst: 10"
    most = loss.burst / (loss.burst + 1) if loss.burst is not None else 1.0
    if loss.model == "bursts" and loss.rate.value > most:
        # Between two bursts there is a packet.
        said = f"{loss.rate} cannot be lost {loss.burst} in a row; give {100 * most:.4g} % at most"
        yield (*loc, "rate"), said
    for key, model in _OF_MODEL.items():
        if loss.model != model and getattr(loss, key) is not None:
            said = _CALLED.get(loss.model, loss.model)
            yield (*loc, key), f"means nothing for {said}; add model: {model} or remove it"


_OF_MODEL = {
    "burst": "bursts",
    "recovery": "gilbert_elliott",
    "loss_in_bad": "gilbert_elliott",
    "loss_in_good": "gilbert_elliott",
}
_CALLED = {"random": "random loss"}


def _reordering(loc: Loc, reordering: Reordering | None) -> Iterator[Mistake]:
    if reordering is None:
        return
    yield from _within((*loc, "rate"), reordering.rate, Ratio(0), MOST_REORDERED)
    if reordering.rate.base % REORDERED_STEP.base:
        said = f"{reordering.rate} is no whole number of hundredths of a percent, in which netem draws"
        yield (*loc, "rate"), said
    yield from _within((*loc, "late"), reordering.late, Duration(0), LATEST)
    if reordering.late.ns % 1000:
        said = (
            f"{reordering.late} is no whole number of microseconds, which are the finest that every tc reads"
        )
        yield (*loc, "late"), said


def _aggregation(loc: Loc, aggregation: AckAggregation | None) -> Iterator[Mistake]:
    if aggregation is None:
        return
    yield from _within((*loc, "most"), aggregation.most, Duration(0), LONGEST_AGGREGATION)
    if not Duration(0) <= aggregation.least <= aggregation.most:
        yield (*loc, "least"), f"{aggregation.least} is not between 0 s and most, {aggregation.most}"


def _flows(setup: Setup) -> Iterator[Mistake]:
    for index, group in enumerate(setup.flows):
        loc: Loc = ("flows", index)
        yield from _kind(loc, group)
        if group.kind == "ping":
            yield from _ping(loc, group, setup)
            continue
        yield from _how_long(loc, group)
        yield from _udp(loc, group, setup.path.mtu)
        yield from _video((*loc, "video"), group.video)
        yield from _group(loc, group)
        yield from _initial_window((*loc, "initial_window"), group, setup.path.mtu)
        yield from _bbr(loc, group)
    yield from _some_begin_at_once(setup.flows)
    total = sum(_expected_flows(group) for group in setup.flows)
    if total > MOST_FLOWS:
        yield ("flows",), f"{total} flows; at most {MOST_FLOWS} have ports to send from, use fewer"
    last = {group.label: index for index, group in enumerate(setup.flows)}
    for label, times in Counter(group.label for group in setup.flows if group.label).items():
        if times > 1:
            yield ("flows", last[label], "label"), f"{label!r} names {times} groups; give each its own"


def _some_begin_at_once(groups: tuple[FlowGroup, ...]) -> Iterator[Mistake]:
    present = [group for group in groups if group.count]
    if not present:
        yield ("flows",), "every count is 0, so there is nothing to run; raise one"
    elif all(group.kind == "ping" for group in present):
        said = "nothing but pings, which need flows to be beside; add e.g. {cca: cubic, duration: 60 s}"
        yield ("flows",), said
    elif min(group.start.ns for group in present) > 0:
        first = next(index for index, group in enumerate(groups) if group.count)
        said = "some flow must start at 0 s: the clock begins with the first flow"
        yield ("flows", first, "start"), said


_OF_EVERY_KIND = frozenset({"start", "duration", "direction", "sender", "receiver", "label"})
_OF_TCP = frozenset(FlowGroup.model_fields) - {"ping", "arrivals", "video", "udp", "packet_size"}
_OF_KIND: dict[Kind, frozenset[str]] = {
    "ping": _OF_EVERY_KIND | {"ping"},
    "udp": _OF_EVERY_KIND | {"udp", "packet_size", "count", "stagger"},
    "video": _OF_TCP - {"size", "streams"} | {"video"},
    "arrivals": _OF_TCP - {"size", "count", "stagger"} | {"arrivals"},
    "tcp": _OF_TCP,
}


def _kind(loc: Loc, group: FlowGroup) -> Iterator[Mistake]:
    """What a group of its kind must say, and what it must not."""
    if group.control is None and "control" in _OF_KIND[group.kind]:
        yield (*loc, "cca"), "is missing; add e.g. cca: cubic"
    for name in sorted(group.model_fields_set - _OF_KIND[group.kind]):
        key = FlowGroup.model_fields[name].alias or name
        yield (*loc, key), f"means nothing for a group of kind {group.kind}; remove it, or make two groups"


def _arrivals(loc: Loc, group: FlowGroup, arrivals: ArrivalProcess) -> Iterator[Mistake]:
    if group.duration is None:
        yield (*loc, "duration"), "is missing: how long flows keep coming; add e.g. duration: 60 s"
    yield from _within((*loc, "arrivals", "rate"), arrivals.rate, RAREST_ARRIVALS, MOST_ARRIVALS)
    yield from _sizes((*loc, "arrivals", "size"), arrivals.size)


_OF_DISTRIBUTION = {
    "fixed": ("mean",),
    "exponential": ("mean", "most"),
    "lognormal": ("mean", "sigma", "most"),
    "pareto": ("mean", "shape", "most"),
}


def _sizes(loc: Loc, sizes: SizeDistribution) -> Iterator[Mistake]:
    allowed = ("file",) if sizes.file is not None else _OF_DISTRIBUTION[sizes.distribution]
    named = "a file" if sizes.file is not None else sizes.distribution
    for name in ("mean", "sigma", "shape", "most", "file"):
        value = getattr(sizes, name)
        if value is None and name in allowed and name != "most":
            yield (*loc, name), f"is missing: {named} needs it"
        elif value is not None and name not in allowed:
            yield (*loc, name), f"means nothing for {named}; remove it or choose another distribution"
    yield from _within((*loc, "mean"), sizes.mean, Size(1), LARGEST_TRANSFER)
    yield from _within((*loc, "most"), sizes.most, Size(1), LARGEST_TRANSFER)
    if sizes.mean is not None and sizes.most is not None and sizes.most <= sizes.mean:
        yield (*loc, "most"), f"{sizes.most} is not above the mean of {sizes.mean}; raise it"


def _udp(loc: Loc, group: FlowGroup, mtu: int) -> Iterator[Mistake]:
    yield from _rate((*loc, "udp"), group.udp)
    yield from _within((*loc, "packet_size"), group.packet_size, SMALLEST_DATAGRAM, Size(mtu))


def _video(loc: Loc, video: Video | None) -> Iterator[Mistake]:
    if video is None:
        return
    yield from _rate((*loc, "bitrate"), video.bitrate)
    yield from _within((*loc, "chunk"), video.chunk, SHORTEST_CHUNK, LONGEST_RUN)
    if video.buffer < video.chunk:
        yield (*loc, "buffer"), f"{video.buffer} has no room for a chunk of {video.chunk}; enlarge it"


def _ping(loc: Loc, group: FlowGroup, setup: Setup) -> Iterator[Mistake]:
    yield from _within((*loc, "ping"), group.ping, SHORTEST_PING, LONGEST_RTT)
    yield from _within((*loc, "start"), group.start, Duration(0), LONGEST_RUN)
    yield from _within((*loc, "duration"), group.duration, Duration(1), LONGEST_RUN)
    yield from _directed(loc, group)
    if setup.end is not None and group.start >= setup.end:
        said = f"{group.start} is not before the end of the flows at {setup.end}, which also ends pings"
        yield (*loc, "start"), f"{said}; move it or lengthen them"


def _expected_flows(group: FlowGroup) -> int:
    """On average, where they come at random."""
    if group.arrivals is not None and group.duration is not None:
        return round(group.arrivals.rate.per_s * group.duration.seconds)
    return 0 if group.kind == "ping" else group.count


def _how_long(loc: Loc, group: FlowGroup) -> Iterator[Mistake]:
    if group.arrivals is not None:
        yield from _arrivals(loc, group, group.arrivals)
    elif group.kind in ("udp", "video"):
        if group.duration is None:
            yield (*loc, "duration"), f"is missing: {group.kind} goes on and on; add e.g. duration: 60 s"
    elif (group.duration is None) == (group.size is None):
        both = ", not both" if group.size is not None else ""
        yield loc, f"give either duration, e.g. 60 s, or size, e.g. 100 MB{both}"
    second = Duration(NANOSECONDS_PER_SECOND)
    yield from _within((*loc, "duration"), group.duration, second, LONGEST_RUN)
    if group.duration is not None and group.duration.ns % second.ns:
        yield (*loc, "duration"), f"{group.duration} is not whole seconds, which iperf3 needs; change it"
    yield from _within((*loc, "size"), group.size, Size(1), LARGEST_TRANSFER)
    yield from _within((*loc, "start"), group.start, Duration(0), LONGEST_RUN)
    yield from _within((*loc, "stagger"), group.stagger, Duration(0), LONGEST_RUN)


def _group(loc: Loc, group: FlowGroup) -> Iterator[Mistake]:
    yield from _directed(loc, group)
    yield from _rate((*loc, "pacing"), group.pacing)
    yield from _within((*loc, "maxrate"), group.maxrate, SLOWEST_RATE, FASTEST_MAXRATE)


def _initial_window(loc: Loc, group: FlowGroup, mtu: int) -> Iterator[Mistake]:
    """In a handshake windows are not scaled yet (RFC 7323, 2.2)."""
    segment_bytes = mtu - TCP_IPV4_HEADER_BYTES
    most = WINDOW_OF_HANDSHAKE_BYTES // segment_bytes
    if group.initial_window is not None and group.initial_window > most:
        said = f"of {segment_bytes} bytes each are more than the {WINDOW_OF_HANDSHAKE_BYTES} that a receiver"
        yield loc, f"{group.initial_window} segments {said} offers in its handshake; {most} at most"


def _directed(loc: Loc, group: FlowGroup) -> Iterator[Mistake]:
    if group.direction == "reverse" and (group.sender or group.receiver):
        yield (*loc, "direction"), "from and to already say where the data goes; swap them instead"


def _bbr(loc: Loc, group: FlowGroup) -> Iterator[Mistake]:
    if group.cca is None:
        return
    known, profiles = IMPLEMENTATIONS.get(group.cca, ("mainline",)), BBR_PROFILES.get(group.cca, ())
    if group.whose not in known:
        yield (*loc, "implementation"), f"{group.cca} is {' or '.join(known)}, not {group.whose}"
    if group.profile is not None and profiles and group.profile not in profiles:
        yield (*loc, "profile"), f"{group.cca} is {' or '.join(profiles)}, not {group.profile}"
    elif group.profile is not None and group.whose == "google":
        said = f"Google's {group.cca} has no profiles; remove it, or take implementation: fabbbr"
        yield (*loc, "profile"), said
    elif group.profile == "v1cap3" and group.whose == "mainline":
        yield (*loc, "profile"), "mainline's bbr1 has no such cap; add implementation: fabbbr"


def _bbrs_together(groups: tuple[FlowGroup, ...]) -> Iterator[Mistake]:
    """One kernel has one profile of bbr2 at a time, and one ``bbr``."""
    profiles = {
        index: str(group.own_profile)
        for index, group in enumerate(groups)
        if (group.cca, group.whose) == ("bbr2", "fabbbr")
    }
    if len(set(profiles.values())) > 1:
        both = " and ".join(sorted(set(profiles.values())))
        remedy = "compare them in conditions of their own, with vary: {profile: [v2alpha, draft01]}"
        yield ("flows", max(profiles), "profile"), f"{both} at once, and a kernel runs one of them; {remedy}"
    runs = [(group.cca, group.whose) for group in groups]
    if ("bbr3", "google") in runs and ("bbr1", "mainline") in runs:
        said = "Google's bbr3 takes the place of mainline's bbr1; take implementation: fabbbr for one of them"
        yield ("flows", runs.index(("bbr3", "google")), "implementation"), said


def _modules(setup: Setup) -> Iterator[Mistake]:
    """A kernel has a module once, and a name in tables stands for one thing."""
    ways: dict[str, ModuleChoice] = {}
    names: dict[str, ModuleChoice | None] = {}
    for index, group in enumerate(setup.flows):
        loc: Loc = ("flows", index, "cca")
        choice = setup.module_of(group)
        if group.cca is None:
            continue
        if names.setdefault(group.cca, choice) != choice or (choice is not None and group.cca in CCAS):
            yield (
                loc,
                f"{group.cca} would name two things; name yours: ccas: {{mine: {{module: …}}}}, cca: mine",
            )
        if choice is None:
            continue
        before = ways.setdefault(choice.module, choice)
        if before.params != choice.params:
            said = "with other parameters at once, and a kernel has a module once"
            remedy = "compare them in conditions of their own, with params: {beta: $beta}"
            yield loc, f"{choice.module} {said}; {remedy}"
        if group.profile is not None or group.implementation is not None:
            yield loc, f"{group.cca} is a module of your own; remove profile and implementation"


def _steps(setup: Setup) -> Iterator[Mistake]:
    end = setup.end
    for index, step in enumerate(setup.steps):
        loc: Loc = ("steps", index)
        if end is not None and step.at >= end:
            yield (
                (*loc, "at"),
                f"{step.at} is not before the end of the flows at {end}; move it or lengthen them",
            )
        yield from _step(loc, step, setup)


def _step(loc: Loc, step: StepSetup, setup: Setup) -> Iterator[Mistake]:
    if step.rate is None and step.rtt is None and step.buffer is None:
        yield loc, "changes nothing; give rate, rtt or buffer"
    if step.rate is not None and step.link is None and setup.path.trace is not None:
        yield (*loc, "rate"), "path.trace already sets the rate of the bottleneck; use one of the two"
    yield from _within((*loc, "at"), step.at, Duration(0), LONGEST_RUN)
    yield from _rate((*loc, "rate"), step.rate)
    yield from _rtt((*loc, "rtt"), step.rtt)
    yield from _buffer((*loc, "buffer"), step.buffer, setup.path.mtu)


def _times(setup: Setup) -> Iterator[Mistake]:
    end = setup.end
    yield from _within(("sample_period",), setup.sample_period, SHORTEST_SAMPLE_PERIOD, end or LONGEST_RUN)
    if setup.warm_up is not None and end is not None and setup.warm_up >= end:
        yield ("warm_up",), f"{setup.warm_up} leaves nothing of a run of {end}; shorten it"
    elif setup.warm_up is not None:
        yield from _within(("warm_up",), setup.warm_up, Duration(0), LONGEST_RUN)

"""What groups of flows say that cannot be meant, each by itself and beside the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fabbbr.model import Video
from fabbbr.ports import MOST_FLOWS, MOST_PROGRAMS, ports_per_flow
from fabbbr.spec.bounds import (
    FASTEST_MAXRATE,
    LARGEST_TRANSFER,
    LONGEST_RTT,
    LONGEST_RUN,
    MOST_ARRIVALS,
    RAREST_ARRIVALS,
    SHORTEST_CHUNK,
    SHORTEST_PING,
    SLOWEST_RATE,
    SMALLEST_DATAGRAM,
    WINDOW_OF_HANDSHAKE_BYTES,
    rate_within,
    within,
)
from fabbbr.spec.document import Loc, Mistake
from fabbbr.spec.experiment import (
    BBR_PROFILES,
    CCAS,
    IMPLEMENTATIONS,
    ArrivalProcess,
    FlowGroup,
    Kind,
    ModuleChoice,
    Setup,
    SizeDistribution,
)
from fabbbr.units import NANOSECONDS_PER_SECOND, TCP_IPV4_HEADER_BYTES, Duration, Size


def flow_mistakes(setup: Setup) -> Iterator[Mistake]:
    """All of them."""
    yield from _groups(setup)
    yield from _bbrs_together(setup.flows)
    yield from _modules(setup)


def _groups(setup: Setup) -> Iterator[Mistake]:
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
    yield from _too_many(setup.flows)
    last = {group.label: index for index, group in enumerate(setup.flows)}
    for label, times in Counter(group.label for group in setup.flows if group.label).items():
        if times > 1:
            yield ("flows", last[label], "label"), f"{label!r} names {times} groups; give each its own"


def _too_many(groups: Sequence[FlowGroup]) -> Iterator[Mistake]:
    alone = sum(_expected_flows(group) for group in groups if group.arrivals is None)
    total = sum(map(_expected_flows, groups))
    if alone > MOST_PROGRAMS:
        yield ("flows",), f"{alone} flows; at most {MOST_PROGRAMS} have ports to send from, use fewer"
    elif total > MOST_FLOWS:
        yield ("flows",), f"{total} flows; at most {MOST_FLOWS} have ports to be received on, use fewer"
    elif total:
        ports = ports_per_flow(total)
        for index, group in enumerate(groups):
            if group.streams > ports:
                said = (
                    f"each of {total} flows has {ports} ports to send from; use fewer flows, or fewer streams"
                )
                yield ("flows", index, "streams"), said


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
    yield from within((*loc, "arrivals", "rate"), arrivals.rate, RAREST_ARRIVALS, MOST_ARRIVALS)
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
    yield from within((*loc, "mean"), sizes.mean, Size(1), LARGEST_TRANSFER)
    yield from within((*loc, "most"), sizes.most, Size(1), LARGEST_TRANSFER)
    if sizes.mean is not None and sizes.most is not None and sizes.most <= sizes.mean:
        yield (*loc, "most"), f"{sizes.most} is not above the mean of {sizes.mean}; raise it"


def _udp(loc: Loc, group: FlowGroup, mtu: int) -> Iterator[Mistake]:
    yield from rate_within((*loc, "udp"), group.udp)
    yield from within((*loc, "packet_size"), group.packet_size, SMALLEST_DATAGRAM, Size(mtu))


def _video(loc: Loc, video: Video | None) -> Iterator[Mistake]:
    if video is None:
        return
    yield from rate_within((*loc, "bitrate"), video.bitrate)
    yield from within((*loc, "chunk"), video.chunk, SHORTEST_CHUNK, LONGEST_RUN)
    if video.buffer < video.chunk:
        yield (*loc, "buffer"), f"{video.buffer} has no room for a chunk of {video.chunk}; enlarge it"


def _ping(loc: Loc, group: FlowGroup, setup: Setup) -> Iterator[Mistake]:
    yield from within((*loc, "ping"), group.ping, SHORTEST_PING, LONGEST_RTT)
    yield from within((*loc, "start"), group.start, Duration(0), LONGEST_RUN)
    yield from within((*loc, "duration"), group.duration, Duration(1), LONGEST_RUN)
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
    yield from within((*loc, "duration"), group.duration, second, LONGEST_RUN)
    if group.duration is not None and group.duration.ns % second.ns:
        yield (*loc, "duration"), f"{group.duration} is not whole seconds, which iperf3 needs; change it"
    yield from within((*loc, "size"), group.size, Size(1), LARGEST_TRANSFER)
    yield from within((*loc, "start"), group.start, Duration(0), LONGEST_RUN)
    yield from within((*loc, "stagger"), group.stagger, Duration(0), LONGEST_RUN)


def _group(loc: Loc, group: FlowGroup) -> Iterator[Mistake]:
    yield from _directed(loc, group)
    yield from rate_within((*loc, "pacing"), group.pacing)
    yield from within((*loc, "maxrate"), group.maxrate, SLOWEST_RATE, FASTEST_MAXRATE)


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

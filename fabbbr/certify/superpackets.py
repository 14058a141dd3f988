"""Of cells with segmentation offloads: what became of every super-packet and of every segment in it.

Queues and netem hold and drop super-packets, and count what they drop in these. How many segments were in it
is what entered less what left, and must be possible: so many drops, each of between one segment and as many
as a super-packet can have. (Which counter has which unit: :mod:`fabbbr.job.superpackets`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fabbbr.certify.counters import Counted, Counters, QdiscCounters
from fabbbr.certify.evidence import Evidence
from fabbbr.certify.losses import binomial_interval, loss_check
from fabbbr.certify.packets import Grown, grown, interfaces_of
from fabbbr.job.expected import Prepared, Queue, SizeClass, Sizes, SuperPackets, Wire
from fabbbr.job.records import Cable, Interface
from fabbbr.manifest import Check
from fabbbr.model import Loss
from fabbbr.testbed import Tolerances

_LIMITED_IN_PACKETS = ("codel", "fq_codel", "pie", "fq_pie")
"""AQMs whose limit is a number of packets."""


def checks(
    prepared: Prepared, counted: SuperPackets, evidence: Evidence, *, lossy_links: int
) -> Iterator[Check]:
    """Conservation at every node and on every cable, drops and sizes at queues, and injected loss."""
    ledger = _Ledger(prepared, counted, evidence)
    for node in prepared.job.nodes:
        if node.kind != "host":
            yield from _conserved(node.name, ledger)
    yield _carried(ledger)
    for cable in prepared.expected.network_cables:
        yield _carried_by_network(cable, ledger, prepared.testbed.tolerances)
    for queue, sizes in zip(prepared.expected.queues, counted.sizes, strict=True):
        if not queue.reverse:
            yield _congestion(queue, sizes, ledger)
            yield _sorted(sizes, ledger)
    for wire in prepared.expected.wires:
        if wire.loss is not None:
            yield _injected(wire, wire.loss, ledger, lossy_links)


@dataclass(frozen=True)
class _Lost:
    """What a queueing discipline dropped or still holds."""

    drops: int
    """Super-packets, and segments of those that were cut."""
    standing: int
    most_segments: int
    """That can go at once."""

    @property
    def fewest(self) -> int:
        """Segments."""
        return self.drops + self.standing

    @property
    def most(self) -> int:
        """Segments."""
        return self.fewest * self.most_segments


@dataclass(frozen=True)
class _Ledger:
    """What the counters of a cell grew by."""

    prepared: Prepared
    counted: SuperPackets
    evidence: Evidence

    def interfaces(self, node: str) -> Sequence[Interface]:
        return self._there[node]

    @cached_property
    def own_cables(self) -> list[Cable]:
        network = self.prepared.expected.network_cables
        return [cable for cable in self.prepared.job.cables if cable not in network]

    def entered(self, at: Interface) -> Counted:
        return self._filtered(at, self._captured[at.name], 0)

    def sorted(self, sizes: Sizes) -> dict[SizeClass, Counted]:
        """What came to a bottleneck queue."""
        return {each: self._filtered(sizes.interface, sizes.captured, each.chain) for each in sizes.classes}

    def packets(self, at: Interface) -> Grown:
        """Super-packets, as the interface and its queueing discipline count."""
        return grown(self.evidence, at)

    def queued_segments(self, at: Interface) -> int | None:
        """What left the queueing discipline of ``at``; None where nothing is queued."""
        early, late = (each.root(at.node, at.name) for each in self._readings)
        return None if late.kind == "noqueue" else late.packets - early.packets

    def left_segments(self, at: Interface) -> int:
        """Where nothing is queued, what arrives at the other end."""
        queued = self.queued_segments(at)
        return self.entered(self._other_end[at.name]).segments if queued is None else queued

    def leaf(self, at: Interface, handle: str) -> QdiscCounters:
        """What one of the queueing disciplines of ``at`` counted."""
        early, late = (each.qdisc(at.node, at.name, handle) for each in self._readings)
        update = {name: getattr(late, name) - getattr(early, name) for name in ("packets", "drops", "qlen")}
        return late.model_copy(update=update)

    def lost(self, at: Interface) -> _Lost:
        counted = self.packets(at)
        whole = [sizes.whole_segments for sizes in self.counted.sizes if sizes.interface == at]
        most = whole[0] if whole else self.counted.most_segments
        return _Lost(counted.dropped, counted.standing, most)

    def on_own_cables(self, at: Interface) -> bool:
        """Whether the interface counts super-packets: a network card counts what it has cut."""
        return any(at in (cable.a, cable.b) for cable in self.own_cables)

    def _filtered(self, at: Interface, captured: str, chain: int) -> Counted:
        early, late = (each.filtered(at.node, captured, chain) for each in self._readings)
        return Counted(late.packets - early.packets, late.segments - early.segments)

    def made_by_cutting(self, interfaces: Sequence[Interface]) -> tuple[int, int]:
        """By how many the segments of super-packets that queues cut are more than these: least and most."""
        seen = [self.sorted(sizes) for sizes in self.counted.sizes if sizes.interface in interfaces]
        more = [(size, one.segments - one.packets) for each in seen for size, one in each.items()]
        return sum(made for size, made in more if size.is_cut), sum(
            made for size, made in more if size.may_be_cut
        )

    @property
    def _readings(self) -> tuple[Counters, Counters]:
        return self.evidence.before, self.evidence.after

    @cached_property
    def _there(self) -> Mapping[str, Sequence[Interface]]:
        return interfaces_of(self.prepared.job)

    @cached_property
    def _captured(self) -> dict[str, str]:
        return {each.interface.name: each.captured for each in self.counted.entrances}

    @cached_property
    def _other_end(self) -> dict[str, Interface]:
        cables = self.prepared.job.cables
        return {one.name: other for cable in cables for one, other in _both_ways(cable)}


def _both_ways(cable: Cable) -> tuple[tuple[Interface, Interface], tuple[Interface, Interface]]:
    return (cable.a, cable.b), (cable.b, cable.a)


# Conservation


def _conserved(node: str, ledger: _Ledger) -> Iterator[Check]:
    interfaces = ledger.interfaces(node)
    if all(map(ledger.on_own_cables, interfaces)):
        yield _packets_conserved(node, interfaces, ledger)
    yield _segments_conserved(node, interfaces, ledger)


def _packets_conserved(node: str, interfaces: Sequence[Interface], ledger: _Ledger) -> Check:
    entered = sum(ledger.entered(at).packets for at in interfaces)
    _, left, dropped, standing = map(sum, zip(*map(ledger.packets, interfaces), strict=True))
    least, most = ledger.made_by_cutting(interfaces)
    made = left + dropped + standing - entered
    return Check(
        name=f"super-packets of {node}",
        passed=least <= made <= most,
        asked="entered + made by cutting = left + dropped + standing, in super-packets",
        measured=f"{entered} + {made} = {left} + {dropped} + {standing}"
        + ("" if least <= made <= most else f", {_span(least, most)} were made"),
    )


def _segments_conserved(node: str, interfaces: Sequence[Interface], ledger: _Ledger) -> Check:
    entered = sum(ledger.entered(at).segments for at in interfaces)
    left = sum(map(ledger.left_segments, interfaces))
    lost = [ledger.lost(at) for at in interfaces]
    gone, fewest, most = entered - left, sum(each.fewest for each in lost), sum(each.most for each in lost)
    drops, standing = sum(each.drops for each in lost), sum(each.standing for each in lost)
    return Check(
        name=f"segments of {node}",
        passed=fewest <= gone <= most,
        asked="entered = left + those of what was dropped or stands",
        measured=f"{entered} = {left} + {gone}",
        detail=f"{drops} drops and {standing} standing can hold {_span(fewest, most)} segments",
    )


def _span(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}"


def _carried(ledger: _Ledger) -> Check:
    """Over cables of ours, which are veth pairs and lose nothing."""
    wrong = [
        f"{here.name}→{there.name}: {sent - received} {unit}"
        for cable in ledger.own_cables
        for here, there in _both_ways(cable)
        for unit, sent, received in (
            ("super-packets", ledger.packets(here).left, ledger.packets(there).entered),
            ("super-packets passed on", ledger.packets(here).left, ledger.entered(there).packets),
            ("segments", ledger.left_segments(here), ledger.entered(there).segments),
        )
        if sent != received
    ]
    return Check(
        name="super-packets on cables",
        passed=not wrong,
        asked="received = sent, in super-packets and in segments",
        measured="; ".join(wrong) if wrong else "equal on every cable",
    )


def _carried_by_network(cable: Cable, ledger: _Ledger, allowed: Tolerances) -> Check:
    """In segments: network cards cut super-packets, and put them together again otherwise than they were."""
    ways = [
        (f"{here.name}→{there.name}", *_through(here, there, ledger)) for here, there in _both_ways(cable)
    ]
    return Check(
        name=f"network between {cable.a.name} and {cable.b.name}",
        passed=all(0 <= sent - received <= allowed.network_loss * sent for _, sent, received in ways),
        asked=f"at most {allowed.network_loss:.6%} of the segments lost each way",
        measured="; ".join(f"{way}: {sent - received} of {sent} lost" for way, sent, received in ways),
    )


def _through(here: Interface, there: Interface, ledger: _Ledger) -> tuple[int, int]:
    """Segments; packets of both ends where the sending one, as no network card, queues nothing."""
    queued = ledger.queued_segments(here)
    if queued is None:
        return ledger.packets(here).left, ledger.packets(there).entered
    return queued, ledger.entered(there).segments


# Queues


def _congestion(queue: Queue, sizes: Sizes, ledger: _Ledger) -> Check:
    at, lost = sizes.interface, ledger.lost(sizes.interface)
    came = ledger.sorted(sizes).values()
    gone = sum(each.segments for each in came) - (ledger.queued_segments(at) or 0)
    least, most = ledger.made_by_cutting([at])
    made = ledger.packets(at).left + lost.fewest - sum(each.packets for each in came)
    cuts = any(each.may_be_cut for each in sizes.classes)
    unit = "super-packets or segments of what was cut" if cuts else "super-packets"
    return Check(
        name=f"congestion drops at {at.name}, in super-packets",
        passed=lost.fewest <= gone <= lost.most and (not ledger.on_own_cables(at) or least <= made <= most),
        asked="counted apart from injected loss; came + made by cutting = left + dropped + standing",
        measured=f"{lost.drops} {unit}, {gone} segments in all",
        detail=(
            f"the largest that is queued whole has {sizes.whole_segments} segments; cutting made "
            f"{_span(least, most)} more packets"
            if cuts
            else "each is queued or dropped whole"
        )
        + _beyond_the_buffer(queue),
    )


def _beyond_the_buffer(queue: Queue) -> str:
    if queue.aqm not in _LIMITED_IN_PACKETS:
        return ""
    return f"; {queue.aqm} counts a super-packet as one, so it may hold more than {queue.buffer_bytes} B"


def _sorted(sizes: Sizes, ledger: _Ledger) -> Check:
    seen = ledger.sorted(sizes)
    packets = sum(each.packets for each in seen.values())
    segments = sum(each.segments for each in seen.values())
    fits = all(
        each.least_segments * one.packets <= one.segments <= each.most_segments * one.packets
        for each, one in seen.items()
    )
    return Check(
        name=f"sizes of super-packets at {sizes.interface.name}",
        passed=packets > 0 and fits,
        asked="each class has segments of its sizes",
        measured=f"{packets} super-packets of {segments / max(packets, 1):.4g} segments on average",
        detail="; ".join(f"{_in_words(each)}: {one.packets}" for each, one in seen.items() if one.packets),
    )


def _in_words(size: SizeClass) -> str:
    cut = ", cut" if size.is_cut else ", cut at some rates" if size.may_be_cut else ""
    plural = "s" if size.most_segments > 1 else ""
    return f"{_span(size.least_segments, size.most_segments)} segment{plural}{cut}"


# Injected loss


def _injected(wire: Wire, loss: Loss, ledger: _Ledger, lossy_links: int) -> Check:
    """Of what came into the wire and has to pass the netem that drops; the rest passes another beside it."""
    (came_in,) = (at for at in ledger.interfaces(wire.interface.node) if at != wire.interface)
    lossy, beside = (ledger.leaf(wire.interface, handle) for handle in ("10:", "20:"))
    spared = beside.packets + beside.drops + beside.qlen
    came = ledger.entered(came_in)
    offered, segments = came.packets - spared, came.segments - spared
    gone = segments - lossy.packets
    lost = _Lost(lossy.drops, lossy.qlen, ledger.counted.most_segments)
    low, high = segments_interval(
        loss,
        max(lossy.drops, 0),
        mean_segments=segments / max(offered, 1),
        most_segments=lost.most_segments,
        lossy_links=lossy_links,
    )
    check = loss_check(loss, wire.link, lossy.drops, offered, lossy_links, unit="super-packets")
    wrong = _unlike(wire.interface, came, lossy, beside, ledger)
    possible = lost.fewest <= gone <= lost.most and low <= gone <= high
    return check.model_copy(
        update={
            "name": f"{check.name}, in super-packets",
            "passed": check.passed and possible and not wrong,
            "asked": f"{check.asked}; as large as the others, {low} to {high} segments",
            "measured": f"{check.measured} super-packets, {gone} segments{wrong}",
            "detail": f"{check.detail}; those of the control connection, which are spared, have one segment",
        }
    )


def _unlike(
    at: Interface, came: Counted, lossy: QdiscCounters, beside: QdiscCounters, ledger: _Ledger
) -> str:
    """What the two netems of a wire count otherwise than the interface and the discipline above them."""
    left, above = ledger.packets(at).left, ledger.queued_segments(at)
    gone = lossy.drops + beside.drops + lossy.qlen + beside.qlen
    wrong = ""
    if ledger.on_own_cables(at) and left + gone != came.packets:
        wrong += f"; {came.packets} super-packets came in, {left} went out"
    if lossy.packets + beside.packets != above:
        wrong += f"; {lossy.packets} + {beside.packets} segments passed, {above} in all"
    return wrong


def segments_interval(
    loss: Loss, drops: int, *, mean_segments: float, most_segments: int, lossy_links: int
) -> tuple[int, int]:
    """The fewest and the most segments in so many super-packets that were drawn blindly.

    The sizes are not known one by one. What spreads most are super-packets of one segment and of the most: as
    many of each as give the mean.
    """
    large = min(max((mean_segments - 1) / max(most_segments - 1, 1), 0.0), 1.0)
    fewest, most = binomial_interval(loss, drops, large, lossy_links)
    return drops + (most_segments - 1) * fewest, drops + (most_segments - 1) * most

"""What the running network must say when it is asked: decided with the commands, compared in ``certify``.

Whoever decides a setting says here what a read-back or a probe of it must give. A certificate therefore asks
nothing of the rooms that built the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabbbr.job.records import Cable, Capture, Interface, Job
from fabbbr.model import AckAggregation, Aqm, Cell, LinkTrace, Loss, Module
from fabbbr.testbed import Testbed
from fabbbr.units import Rate

Slots = tuple[float, float]
"""How many seconds the first of an aggregate waits, at least and at most; zeros where
nothing is aggregated."""


def slots_s(aggregation: AckAggregation | None) -> Slots:
    """In seconds."""
    return (aggregation.least.seconds, aggregation.most.seconds) if aggregation is not None else (0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """What one host must report."""

    node: str
    captured: str
    """Name of the capture that asks."""
    sysctls: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Offloads:
    """The features of ethtool that must be off at one interface, or on."""

    interface: Interface
    captured: str
    off: tuple[str, ...]
    on: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A bottleneck queue at one interface."""

    interface: Interface
    captured: str
    link: str
    rate: Rate
    buffer_bytes: int
    burst_bytes: int
    burst_is_asked: bool
    """Whether the experiment says it: then it stays while the rate changes, and is measured."""
    aqm: Aqm
    aqm_times_s: Mapping[str, float]
    """By tc's words: ``target``, ``interval``, ``rtt``, ``ce_threshold``; the kernel's own are not in it."""
    reverse: bool
    """Whether it queues what goes against the direction of the data."""
    trace: LinkTrace | None = None
    """By which it delivers; ``rate`` is then the mean."""
    gate_node: str | None = None
    """The wire whose gate holds it; None where tc does."""


@dataclass(frozen=True, kw_only=True)
class HostPacing:
    """The ``fq`` at the interface of a host whose flows have a ``maxrate``."""

    interface: Interface
    captured: str
    maxrate: Rate


@dataclass(frozen=True, kw_only=True)
class InitialWindow:
    """Of the route from a host to another, where flows have an ``initial_window``."""

    node: str
    receiver: str
    address: str
    captured: str
    segments: int


@dataclass(frozen=True, kw_only=True)
class Wire:
    """One direction of a wire: delay, and on the way of the data loss and lateness, back aggregation."""

    interface: Interface
    captured: str
    link: str
    delay_s: float
    limit_packets: int
    loss: Loss | None
    """Until a step changes it."""
    later_losses: tuple[Loss, ...]
    """From each step of the loss on, in the order of time."""
    counted: Capture
    """What steps of the loss ask, and keep: what was lost until then, and from then on."""
    late_s: float
    """How much later some of the data comes; zero without reordering."""
    slots_s: Slots


@dataclass(frozen=True, kw_only=True)
class RoundTrip:
    """A ping between two hosts that talk."""

    sender: str
    receiver: str
    addresses: tuple[str, str]
    capture: Capture
    propagation_s: float
    held_s: Slots
    """How long an answer that comes alone waits on its way back."""
    serialisation_s: float
    """Of the ping on all bottlenecks."""


@dataclass(frozen=True, kw_only=True)
class BurstProbe:
    """The burst of packets before the flows."""

    queue: Queue
    frame_bytes: int
    tokens: int
    """Frames that pass before the queue builds, at least."""
    queued: int
    """Of the packets before any refill: how many at least stand in the queue when all are sent."""
    fills_buffer: bool
    """Whether it overfills the buffer: where that is cheap, and tail drop counts bytes."""
    departs_whole: bool
    """Whether all packets leave the bottleneck: all fit."""
    held_s: float = 0.0
    """How long a packet may wait behind the queue to leave in an aggregate."""


@dataclass(frozen=True, kw_only=True)
class TrainProbe:
    """The packets that show which share comes late, and how late."""

    links: tuple[str, ...]
    """On their way that reorder."""
    gap_ns: int
    """From one to the next."""
    late_share: float
    """Probability that one comes late, on whichever link."""
    late_s: tuple[float, float]
    """How late: on one link at least, on all of them at most."""
    waits_s: float
    """What one may wait besides: for another on a slow link, for an opportunity of a trace."""


@dataclass(frozen=True, kw_only=True)
class Entrance:
    """An interface at whose ingress a matchall filter counts super-packets and segments."""

    interface: Interface
    captured: str
    """Name of the capture among those that count."""


@dataclass(frozen=True, kw_only=True)
class SizeClass:
    """Super-packets of one range of sizes; the matchall filter of chain ``chain`` counts them."""

    chain: int
    least_bytes: int
    """As the IP header says."""
    least_segments: int
    most_segments: int
    may_be_cut: bool
    """Into segments, by the queue; with steps of the rate the burst that decides is not always the same."""
    is_cut: bool


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Filters in front of a bottleneck queue, which sort super-packets by size."""

    interface: Interface
    captured: str
    classes: tuple[SizeClass, ...]
    """From the smallest to the largest."""
    whole_segments: int
    """The most segments that can be dropped at once."""


@dataclass(frozen=True, kw_only=True)
class SuperPackets:
    """Where super-packets and their segments are counted, in a cell with segmentation offloads."""

    entrances: tuple[Entrance, ...]
    """Of all interfaces."""
    sizes: tuple[Sizes, ...]
    """In the order of the queues."""
    most_segments: int
    """That a super-packet can have."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """What stands behind the name of a flow's congestion control."""

    cca: str
    kernel_name: str
    sender: str
    implementation: str | None
    profile: str | None
    asked_of_ours: Capture | None
    """None where it is not fabbbr's own."""
    asked_of_bbr: Capture | None
    """None where its name in the kernel is not ``bbr``."""
    version: str | None
    """Which the kernel's ``bbr`` must have: empty, as in mainline, for none."""
    module: Module | None = None
    """Of the user's own."""
    asked_of_module: Capture | None = None


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Of one cell on one testbed."""

    hosts: tuple[HostSettings, ...]
    offloads: tuple[Offloads, ...]
    queues: tuple[Queue, ...]
    pacings: tuple[HostPacing, ...]
    initial_windows: tuple[InitialWindow, ...]
    wires: tuple[Wire, ...]
    round_trips: tuple[RoundTrip, ...]
    burst: BurstProbe
    burst_back: BurstProbe | None
    """None where no way back differs, or none can be measured by itself."""
    train: TrainProbe | None
    """None where nothing comes late."""
    controls: tuple[Control, ...]
    """In the order of the flows of TCP."""
    network_cables: tuple[Cable, ...]
    """Between two machines: what is lost there is the network's."""
    super_packets: SuperPackets | None
    """None without segmentation offloads: then each packet is one."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A cell on a testbed, with everything decided: what happens, and what must come of it."""

    cell: Cell
    testbed: Testbed
    job: Job
    expected: Expected
    roles: dict[str, dict[str, str]]
    """Interface → link and what its qdisc is for."""

"""The records that the rooms hand to one another: frozen, validated, and JSON on disk.

Data flows one way: an ``Experiment`` and a ``Topology`` become ``Cell`` records in ``plan``, a cell becomes a
``Job`` in ``job`` (whose records are in ``job.records``), and running a job leaves raw files and a manifest
(:mod:`fabbbr.manifest`) behind. Nothing here computes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fabbbr.quantity import WHOLE, BitRate, ByteSize, PerSecond, Share, Span
from fabbbr.record import FileRecord, Record
from fabbbr.units import ETHERNET_HEADER_BYTES, NANOSECONDS_PER_SECOND, UDP_IPV4_HEADER_BYTES, Duration

JOB_VERSION = 1
"""Of what an agent is given."""

Aqm = Literal["taildrop", "codel", "fq_codel", "cake", "red", "pie", "fq_pie"]
THRESHOLD_AQMS: tuple[Aqm, ...] = ("codel", "fq_codel")
"""Those that can mark whatever has waited longer than a threshold."""
_CODEL_TARGET, _PIE_TARGET, _INTERVAL = (Duration(1_000_000 * each) for each in (5, 15, 100))
AQM_TARGETS: dict[Aqm, Duration] = {
    "codel": _CODEL_TARGET, "fq_codel": _CODEL_TARGET, "pie": _PIE_TARGET, "fq_pie": _PIE_TARGET,
}  # fmt: skip
"""Those that can be told how long packets may wait → how long by themselves, in Linux."""
AQM_INTERVALS: dict[Aqm, Duration] = dict.fromkeys(("codel", "fq_codel", "cake"), _INTERVAL)
"""Those that can be told in which time senders have answered → which by themselves. CAKE calls it ``rtt``,
and its target is a twentieth of it."""
LossPosition = Literal["after_bottleneck", "before_bottleneck"]
Implementation = Literal["mainline", "fabbbr", "google"]
"""Whose BBR: that of the mainline kernel, of fabbbr's module fab_bbr, or of a
kernel built from Google's tree."""
BbrProfile = Literal["v1", "v1cap3", "v2alpha", "draft01", "v3"]
"""Which set of constants the module fab_bbr runs."""


QueueDelay = Literal["samples", "packets"]
"""How the delay of bottleneck queues is known: from the senders' RTT samples alone, or of every packet."""


class Loss(FileRecord):
    """Injected loss, on the data direction only.

    ``bursts`` says how many packets are lost and how many in a row; ``gilbert_elliott`` says the same process
    (and more) in the parameters of netem's ``gemodel``: ``rate``, ``recovery``, ``loss_in_bad`` and
    ``loss_in_good`` are its p, r, 1-h and 1-k.
    """

    rate: Share
    """Probability that a packet is dropped; in ``gilbert_elliott``, that the link goes bad."""
    model: Literal["random", "bursts", "gilbert_elliott"] = "random"
    """``random``: packets are lost independently; ``bursts`` and ``gilbert_elliott``: several in a row."""
    position: LossPosition = "after_bottleneck"
    """Behind the bottleneck's queue, or before it on the access links of the senders."""
    burst: Annotated[int, Field(ge=1, le=1_000_000), WHOLE] | None = None
    """How many packets are lost in a row on average. No default: ``bursts`` needs it."""
    recovery: Share | None = None
    """Probability per packet that a bad link recovers. No default: ``gilbert_elliott`` needs it."""
    loss_in_bad: Share | None = None
    """Probability of a drop in the bad state. Default: netem's 100 %."""
    loss_in_good: Share | None = None
    """Probability of a drop in the good state. Default: netem's 0 %."""


class Reordering(FileRecord):
    """Some packets of data come late from behind the bottleneck, and those sent meanwhile overtake them.

    As where a link layer sends again what it lost, or packets take several ways. All others come as without
    it, so that RTprop and BDP stay.
    """

    rate: Share = Field(examples=["1 %"])
    """Probability that a packet comes late, independently: a whole number of hundredths of a percent."""
    late: Span = Field(examples=["5 ms"])
    """How much later it comes, in ms or µs."""


class AckAggregation(FileRecord):
    """Acknowledgements leave the wire in aggregates, as from radio links, cable modems and virtual machines.

    The first of an aggregate waits between ``least`` and ``most``, uniformly; what comes meanwhile leaves
    with it, in order (netem's ``slot``).
    """

    least: Span
    """Shortest time that the first acknowledgement of an aggregate waits, in ms or µs."""
    most: Span
    """Longest time that it waits, in ms or µs."""


class LinkTrace(Record):
    """When a link delivers: opportunities of 1500 bytes of IP packets each, over and over."""

    name: str
    """The file that it was read from."""
    opportunities: int
    length_ms: int
    most_at_once: int
    """Most opportunities within a second: how fast the link can be."""
    gaps_ms: str
    """Milliseconds from one opportunity to the next, the first from 0: ``1 0x3 5`` is 1, 1, 1, 1 and 6 ms."""


class LinkWay(Record):
    """How a bottleneck serves what goes one way."""

    rate: BitRate
    buffer_bytes: int
    buffer_asked: str
    """As in the experiment file, as in ``2 BDP``."""
    bdp_bytes: int
    """Of its rate and the longest round trip of the flows that cross the link."""
    aqm: Aqm = "taildrop"
    ecn: bool = False
    ce_threshold: Span | None = None
    """Of ``codel``, ``fq_codel``: what has waited longer is marked as it leaves, whatever CoDel decides."""
    aqm_target: Span | None = None
    """How long packets may wait; None: as in AQM_TARGETS."""
    aqm_interval: Span | None = None
    """In which time senders have answered; None: as in AQM_INTERVALS."""
    burst_bytes: int | None = None
    """What its token bucket holds; None: what the rate needs between two ticks of the kernel."""
    burst_asked: str | None = None
    """As in the experiment file, as in ``20 ms``."""
    trace: LinkTrace | None = None
    """Delivers by these opportunities, and ``rate`` is their mean; None: at ``rate``."""


class Bottleneck(LinkWay):
    """The queue at the head of a link, held by the switch ``a`` of that link."""

    both_directions: bool = False
    """Shape b → a too: set when some flow sends that way."""
    reverse: LinkWay | None = None
    """Of what goes b → a, whatever that is; None: as a → b, where some flow sends that way."""
    binned_trace: str | None = None
    """The trace whose rates over bins the steps set, where tc holds the queue."""
    trace_start: Span | None = None
    """How far in its trace a run begins, and in that of its way back; None: at their beginnings."""
    trace_start_drawn: bool = False
    """Whether that was drawn: the same in equal repetitions of all conditions."""

    @property
    def trace_name(self) -> str | None:
        """Of the trace that it follows, packet by packet or in bins."""
        return self.binned_trace if self.trace is None else self.trace.name

    @property
    def way_back(self) -> Bottleneck | None:
        """The queue of what goes b → a; None where nothing limits it."""
        if self.reverse is not None:
            return self.model_copy(update={**dict(self.reverse), "reverse": None, "binned_trace": None})
        return self if self.both_directions else None

    @property
    def own_way_back(self) -> Bottleneck | None:
        """The queue of what goes b → a, where it is another than that of a → b."""
        return self.way_back if self.reverse is not None else None

    @property
    def of_data(self) -> tuple[Bottleneck, ...]:
        """The queue of each way that some flow's data goes."""
        back = self.way_back if self.both_directions else None
        return (self,) if back is None else (self, back)

    @property
    def distinct(self) -> tuple[Bottleneck, ...]:
        """Its queues that differ: one, or two where the way back is of its own."""
        back = self.own_way_back
        return (self,) if back is None else (self, back)


class CellLink(Record):
    """One link of a cell, resolved. Data flows from ``a`` to ``b``.

    A link with a ``delay`` (one way, applied in both directions), a ``loss``, a ``reordering`` or an
    ``ack_aggregation`` gets a pass-through wire node.
    """

    name: str
    a: str
    b: str
    delay: Span | None = None
    loss: Loss | None = None
    reordering: Reordering | None = None
    ack_aggregation: AckAggregation | None = None
    bottleneck: Bottleneck | None = None
    """None where the link is faster than anything that crosses it."""


class Module(Record):
    """A congestion control that comes as sources: of a kernel module, or of a BPF program."""

    sha256: str
    """Of the sources: see :class:`fabbbr.sources.Sources`."""
    kernel_name: str
    """Under which it registers itself."""
    params: dict[str, str] = Field(default_factory=dict)
    """Parameters that it is loaded with."""
    form: Literal["module", "bpf"] = "module"
    """What the sources are. A BPF program runs as one, or is compiled as a module where no kernel runs it."""


class Datagrams(Record):
    """What a flow of UDP sends, whatever becomes of it."""

    rate: BitRate
    """Of Ethernet frames, as the rate of a link is."""
    packet_bytes: int
    """Of an IP packet."""

    @property
    def payload_bytes(self) -> int:
        """Of each datagram."""
        return self.packet_bytes - UDP_IPV4_HEADER_BYTES

    @property
    def gap_ns(self) -> float:
        """From one datagram to the next."""
        frame_bits = 8 * (self.packet_bytes + ETHERNET_HEADER_BYTES)
        return frame_bits * NANOSECONDS_PER_SECOND / self.rate.bps

    def count_in(self, duration: Span) -> int:
        """Datagrams that leave within ``duration``, the first at its beginning."""
        frame_bits = 8 * (self.packet_bytes + ETHERNET_HEADER_BYTES)
        return -(-duration.ns * self.rate.bps // (frame_bits * NANOSECONDS_PER_SECOND))


class Video(FileRecord):
    """A paced video: its receiver asks for a chunk whenever its buffer has room for one."""

    bitrate: BitRate = Field(examples=["4 Mbit/s"])
    """At which it plays, in bit/s of payload."""
    chunk: Span = Duration(2 * NANOSECONDS_PER_SECOND)
    """How long a chunk plays, in s or ms."""
    buffer: Span = Duration(10 * NANOSECONDS_PER_SECOND)
    """How much play the receiver has room for, in s or ms."""

    @property
    def chunk_bytes(self) -> int:
        """Of each chunk; a fraction of a byte is cut."""
        return self.bitrate.bps * self.chunk.ns // (8 * NANOSECONDS_PER_SECOND)


class Flow(Record):
    """One sender and its receiver, iperf3 or the agent's own. ``sender`` is where the data comes from."""

    index: int
    group: str
    cca: str | None
    """None for UDP."""
    sender: str
    receiver: str
    streams: int = 1
    start: Span
    duration: Span | None = None
    size: ByteSize | None = None
    """Bytes per flow to send instead of a duration."""
    at_random: bool = False
    """Whether it came at random, with others of its group."""
    udp: Datagrams | None = None
    """None for TCP."""
    video: Video | None = None
    """None for what is sent as fast as may be."""
    pacing: BitRate | None = None
    maxrate: BitRate | None = None
    """Of the ``fq`` that its sending host has; all flows of a host share it. None for a host without one."""
    initial_window: int | None = None
    """Segments, of all flows between these two hosts; None for what the kernel has."""
    rtt: Span
    """Propagation round trip of the path of this flow."""
    implementation: Implementation | None = None
    """None for what the mainline kernel has."""
    profile: BbrProfile | None = None
    """Of fabbbr's own BBR; None for everything else."""
    module: Module | None = None
    """None for what the place has of itself."""

    @property
    def elastic(self) -> bool:
        """Whether it takes what it can get; UDP and a video have a rate of their own."""
        return self.udp is None and self.video is None

    @property
    def of_iperf3(self) -> bool:
        """Whether iperf3 sends and receives it; programs of the agent do all else."""
        return self.duration is not None and self.udp is None and self.video is None


class Arrivals(Record):
    """A group of flows that came at random, each with a size of its own; they are among the flows."""

    group: str
    rate: PerSecond
    sizes: str
    """As the experiment file says, as in ``pareto, mean 100 kB, shape 1.2``."""
    start: Span
    duration: Span
    """Within which they start."""


class Ping(Record):
    """Echo requests beside the flows, from the agent's own program: what a small packet waits.

    Injected loss spares them, so one without an answer was dropped in a queue.
    """

    index: int
    group: str
    sender: str
    receiver: str
    interval: Span
    """From one request to the next, answered or not."""
    start: Span
    duration: Span | None = None
    """None: until the last flow is over, which also ends one that has a duration."""
    rtt: Span
    """Propagation round trip of the path."""


class Step(Record):
    """A change of a link while flows run; ``at`` counts from the start of the first flow."""

    at: Span
    link: str
    rate: BitRate | None = None
    rtt: Span | None = None
    buffer_bytes: int | None = None
    loss: Loss | None = None
    """From then on, of data; a ``rate`` of zero: none."""


class LinkCapture(FileRecord):
    """A link whose packets are kept, at both of its ends."""

    link: str = Field(examples=["trunk"])
    """Name of the link."""
    bytes: Literal["headers", "full"] = "headers"
    """``headers``: the first 94 bytes of each frame, which hold all that Ethernet, IPv4 and TCP say."""


class Host(Record):
    """An end host."""

    name: str
    site: str | None = None


class Switch(Record):
    """A software switch: forwards frames, and holds the bottleneck queues of its links."""

    name: str
    site: str | None = None


class Cell(Record):
    """One condition × one repetition: everything that is needed to run it, and nothing machine-specific."""

    id: str
    experiment: str
    condition: str
    """The id without its repetition: cells that differ in seed alone share it."""
    axes: dict[str, str]
    """Varied key → value as written in the experiment file, in the order of ``vary``."""
    repetition: int
    """From 1."""
    seed: int
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[CellLink, ...]
    flows: tuple[Flow, ...]
    arrivals: tuple[Arrivals, ...] = ()
    pings: tuple[Ping, ...] = ()
    steps: tuple[Step, ...] = ()
    steps_file: str | None = None
    """The table that has them; None where the experiment file does."""
    mtu_bytes: int = 1500
    offloads: bool = False
    """True keeps segmentation offloads on everywhere: what is queued, lost and counted are super-packets."""
    ecn: bool = False
    sysctls: dict[str, str] = Field(default_factory=dict)
    """What was asked of the hosts' TCP: name without ``net.ipv4.`` → value, as ``sysctl`` has it."""
    sample_period: Span
    warm_up: Span
    """Left out of steady-state metrics, never of whole-run ones."""
    captures: tuple[LinkCapture, ...] = ()
    """Links whose packets are kept."""
    queue_delay: QueueDelay = "samples"
    kernel: str | None = None
    """Name of the kernel that the guest boots; None for the one that its image came with."""

    @property
    def tuning(self) -> str:
        """What was asked of the hosts' TCP, as ``tcp_rmem 4096 131072 6291456, tcp_sack 0``."""
        return ", ".join(f"{name} {value}" for name, value in self.sysctls.items())

    @property
    def traffic(self) -> tuple[Flow | Ping, ...]:
        """All that goes from one host to another."""
        return (*self.flows, *self.pings)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Sender and receiver of all traffic, each pair once; those of flows first."""
        return tuple(dict.fromkeys((one.sender, one.receiver) for one in self.traffic))

    @property
    def initial_windows(self) -> dict[tuple[str, str], int]:
        """Sender and receiver → segments, where asked for; the plan has seen to it that their flows agree."""
        return {
            (flow.sender, flow.receiver): flow.initial_window
            for flow in self.flows
            if flow.initial_window is not None
        }

    @property
    def talking(self) -> tuple[str, ...]:
        """The hosts that send or receive anything, each once."""
        return tuple(dict.fromkeys(host for pair in self.pairs for host in pair))

    @property
    def bottlenecks(self) -> dict[str, Bottleneck]:
        """Name of each link that is one → its bottleneck, in the order of the links."""
        return {link.name: link.bottleneck for link in self.links if link.bottleneck is not None}

    @property
    def queues(self) -> tuple[Bottleneck, ...]:
        """All bottlenecks, and their ways back where these differ."""
        return tuple(queue for each in self.bottlenecks.values() for queue in each.distinct)

    @property
    def bottleneck(self) -> Bottleneck:
        """The first."""
        return next(link.bottleneck for link in self.links if link.bottleneck is not None)

    @property
    def shares_draws(self) -> bool:
        """Whether what comes at random is the same in equal repetitions of other conditions."""
        return bool(self.arrivals) or any(queue.trace_start_drawn for queue in self.bottlenecks.values())

    @property
    def asked_steps(self) -> tuple[Step, ...]:
        """Those that the experiment file has, and not those that a trace became."""
        traced = self.bottleneck.binned_trace is not None
        return tuple(step for step in self.steps if not (traced and step.rate is not None))

    @property
    def trunk(self) -> CellLink:
        """The link of the first bottleneck."""
        return next(link for link in self.links if link.bottleneck is not None)

    @property
    def frame_bytes(self) -> int:
        """A packet of full size with its Ethernet header."""
        return self.mtu_bytes + ETHERNET_HEADER_BYTES

"""What an experiment file says, as frozen records. :mod:`fabbbr.spec.read` reads the file into them.

A ``Setup`` is one condition of the experiment with every ``$name`` replaced; nothing here knows a topology.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, ValidationInfo

from fabbbr.foreign import shown
from fabbbr.kernels import OF_IMAGE, kernel_called
from fabbbr.model import (
    AckAggregation,
    Aqm,
    BbrProfile,
    Implementation,
    LinkCapture,
    Loss,
    QueueDelay,
    Reordering,
    Video,
)
from fabbbr.ports import MOST_STREAMS
from fabbbr.quantity import WHOLE, BitRate, Buffer, ByteSize, PerSecond, Span, refused
from fabbbr.record import FileRecord, Record
from fabbbr.spec.axes import squeeze
from fabbbr.spec.document import Loc
from fabbbr.spec.sysctls import Sysctls
from fabbbr.suggest import did_you_mean
from fabbbr.units import Duration, QueueSize

Profile = Literal["default", "quick", "full"]
PROFILES: tuple[Profile, ...] = ("default", "quick", "full")

CCAS = (
    *("cubic", "reno", "htcp", "bbr1", "bbr2", "bbr3", "bic", "westwood", "vegas", "illinois", "hybla"),
    *("dctcp", "highspeed", "scalable", "veno", "yeah", "lp", "nv", "cdg"),
)
"""Congestion controls by the names of fabbbr: ``bbr1`` is the ``bbr`` of the mainline kernel."""

Kind = Literal["tcp", "arrivals", "video", "udp", "ping"]
"""What a group of ``flows`` can be."""

IMPLEMENTATIONS: dict[str, tuple[Implementation, ...]] = {
    "bbr1": ("mainline", "fabbbr"),
    "bbr2": ("fabbbr", "google"),
    "bbr3": ("fabbbr", "google"),
}
"""Congestion control → whose there are, the default first; of all others there is
the mainline kernel's alone."""

BBR_PROFILES: dict[str, tuple[BbrProfile, ...]] = {
    "bbr1": ("v1", "v1cap3"),
    "bbr2": ("v2alpha", "draft01"),
    "bbr3": ("v3",),
}
"""Congestion control → profiles of fabbbr's module, the default first."""


def _known_cca(name: str, reading: ValidationInfo) -> str:
    own = tuple(one for one in (reading.context or {}).get(OWN_CCAS, ()) if one not in CCAS)
    if name in (*CCAS, *own):
        return name
    if name == "bbr":
        hint = "; the kernel's bbr is called bbr1 here"
    elif "/" in name or name.endswith(".c"):
        hint = f"; for a module of your own write cca: {{module: {name}}}"
    else:
        hint = did_you_mean(name, (*CCAS, *own))
    why = f"{shown(name)} is no congestion control known here{hint} (known: {', '.join((*CCAS, *own))})"
    raise refused(why)


def _some(value: object) -> object:
    if value == []:
        why = "is empty; give at least one group, e.g. - {cca: cubic, duration: 60 s}"
        raise refused(why)
    return value


def _rate_alone(value: object) -> object:
    return {"rate": value} if isinstance(value, str) else value


def _duration_alone(value: object) -> object:
    return {"least": value, "most": value} if isinstance(value, str) else value


def _link_alone(value: object) -> object:
    return {"link": value} if isinstance(value, str) else value


def _mean_alone(value: object) -> object:
    return {"mean": value} if isinstance(value, str) else value


def _named_alone(value: object) -> object:
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, dict) and "parameters" not in value:
        rest = {key: text for key, text in value.items() if key != "name"}
        return {key: value[key] for key in ("name",) if key in value} | {"parameters": rest}
    return value


def _kernel_may_say(value: str) -> str:
    if _PARAMETER_VALUE.fullmatch(value) is None:
        why = f"{shown(value)} cannot be a module's parameter; use letters, digits and . , _ + - (no blanks)"
        raise refused(why)
    return value


def _named_kernel(text: str) -> str:
    name = kernel_called(text)
    if name is None:
        why = f"{shown(text)} is no name of a kernel; write one as 6.12, {OF_IMAGE} or ./linux"
        raise refused(why)
    return name


def _free_name(name: str) -> str:
    if name in (*CCAS, "bbr"):
        why = f"{shown(name)} is what a congestion control of the kernel is called; give yours another name"
        raise refused(why)
    return name


_PARAMETER_VALUE = re.compile(r"[A-Za-z0-9._,+-]{1,200}")
OWN_CCAS = "ccas"
"""Under which the context of a validation has the names of the file's own congestion controls."""
MOST_INITIAL_SEGMENTS = 125
"""So many of the smallest MTU are in the window of a handshake."""
MOST_NAME_CHARACTERS = 15
"""Of a congestion control: the kernel's TCP_CA_NAME_MAX - 1."""

Cca = Annotated[str, AfterValidator(_known_cca)]
ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=60)]
ParameterValue = Annotated[str, AfterValidator(_kernel_may_say)]
OwnName = Annotated[
    str,
    Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=MOST_NAME_CHARACTERS, examples=["mine"]),
    AfterValidator(_free_name),
]
KernelName = Annotated[str, AfterValidator(_named_kernel)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$", max_length=8, examples=["h1"])]
RoundTrip = Annotated[
    Annotated[Span, Tag("one for all")] | Annotated[dict[Name, Span], Tag("by sender")],
    Discriminator(lambda value: "by sender" if isinstance(value, dict) else "one for all"),
]
TraceStart = Annotated[
    Annotated[Span, Tag("a time")] | Annotated[Literal["random"], Tag("a word")],
    Discriminator(lambda value: "a word" if isinstance(value, str) and value[:1].isalpha() else "a time"),
]
InjectedLoss = Annotated[Loss, BeforeValidator(_rate_alone)]
CapturedLink = Annotated[LinkCapture, BeforeValidator(_link_alone)]
HeldAcks = Annotated[AckAggregation, BeforeValidator(_duration_alone)]


class ReverseSetup(FileRecord):
    """The way back of a bottleneck: what goes from its far end to its near one, whatever that is."""

    rate: BitRate | None = Field(None, examples=["5 Mbit/s"])
    """In bit/s: 8 kbit/s to 1 Tbit/s. Default: that of ``trace``."""
    trace: str | None = Field(None, examples=["lte.up"])
    """A Mahimahi trace beside the experiment file, which it follows. Default: ``rate`` throughout."""
    buffer: Buffer | None = Field(None, examples=["100 packets"])
    """In bytes, packets, BDP or time (of this rate). Default: as the link's ``buffer`` says."""
    burst: Buffer | None = Field(None, examples=["250 kB"])
    """Of its token bucket, in bytes, packets, BDP or time (of this rate). Default: as the link's ``burst``
    says; with a trace there is none."""
    aqm: Aqm | None = None
    """Queue discipline. Default: that of the way there."""


SlowerBack = Annotated[ReverseSetup, BeforeValidator(_rate_alone)]


class SliceChoice(FileRecord):
    """A slice definition by name (or ``./file.py``) and the values of its parameters, as written."""

    name: Annotated[str, Field(examples=["two_site", "dumbbell"])]
    """A bundled slice, or the path of a slice file beside the experiment file (``./mine.py``)."""
    parameters: dict[str, str] = Field(default_factory=dict)


class PathSetup(FileRecord):
    """What ``path`` says."""

    rate: BitRate | None = Field(None, examples=["100 Mbit/s"])
    """Of every bottleneck of the slice, in bit/s: 8 kbit/s to 1 Tbit/s. Default: that of ``trace``."""
    trace: str | None = Field(None, examples=["lte.down"])
    """A Mahimahi trace beside the experiment file, which the rate follows. Default: ``rate`` throughout."""
    trace_start: TraceStart | None = Field(None, examples=["random"])
    """Where in its traces a run begins: a time from their beginning, or ``random``, drawn for each
    repetition. Default: at their beginning."""
    rtt: RoundTrip = Field(examples=["100 ms"])
    """Propagation round trip, in s, ms or µs: one for all flows, or one for each sender."""
    buffer: Buffer = Field(QueueSize.parse("1 BDP"), examples=["1 BDP"])
    """Of every bottleneck, in bytes, packets (MTU + 14 bytes), BDP or the time that it takes to drain."""
    burst: Buffer | None = Field(None, examples=["250 kB"])
    """Of every bottleneck: what its token bucket lets pass at once after a pause, in bytes, packets, BDP or
    the time in which it fills. Default: no more than the rate needs."""
    reverse: SlowerBack | None = Field(None, examples=["5 Mbit/s"])
    """The way back of every bottleneck: a rate, or a mapping of rate, buffer, burst and AQM. Default: data
    goes as the way there, and acknowledgements alone without a limit."""
    loss: InjectedLoss | None = Field(None, examples=["0.1 %"])
    """Injected on the data direction alone: a probability, or a mapping. Default: none."""
    reordering: Reordering | None = Field(None, examples=["{rate: 1 %, late: 5 ms}"])
    """Data that comes late from behind the bottlenecks: which share, and how late. Default: none."""
    ack_aggregation: HeldAcks | None = Field(None, examples=["1 ms"])
    """How long acknowledgements are held to leave in aggregates, in ms or µs. Default: not at all."""
    aqm: Aqm = "taildrop"
    """Queue discipline of every bottleneck."""
    ecn: bool = False
    """Whether hosts negotiate ECN and the AQM marks instead of dropping; refused with tail drop."""
    ce_threshold: Span | None = None
    """``codel`` and ``fq_codel`` mark what has waited longer, in ms or µs; ``0 s`` is none. Default: as CoDel
    decides."""
    aqm_target: Span | None = Field(None, examples=["20 ms"])
    """How long packets may wait for ``codel`` and ``fq_codel`` (default: 5 ms), ``pie`` and ``fq_pie``
    (15 ms)."""
    aqm_interval: Span | None = Field(None, examples=["200 ms"])
    """For how long ``codel`` and ``fq_codel`` bear longer waits before the first drop, and ``rtt`` of
    ``cake``, in ms or s: some round trip of the flows. Default: 100 ms."""
    mtu: Annotated[int, Field(ge=576, le=65_500), WHOLE] = 1500
    """Bytes of an IP packet."""
    offloads: bool = False
    """Whether segmentation offloads stay on, so that super-packets of many segments are queued and lost."""

    @property
    def longest_rtt(self) -> Duration:
        """The round trip, or the longest of those given by sender."""
        return max(self.rtt.values()) if isinstance(self.rtt, dict) else self.rtt


class LinkSetup(FileRecord):
    """What one named link does differently from ``path``."""

    rate: BitRate | None = None
    """In bit/s; makes the link a bottleneck. Default: as in ``path`` if it is one."""
    rtt: Span | None = None
    """Propagation round trip of this link, in s, ms or µs; ``0 s``: none. Default: its part of ``path``'s."""
    buffer: Buffer | None = None
    """In bytes, packets, BDP or time. Default: as in ``path``."""
    burst: Buffer | None = None
    """Of its token bucket, in bytes, packets, BDP or time. Default: as in ``path``."""
    reverse: SlowerBack | None = None
    """Its way back: a rate, or a mapping of rate, buffer, burst and AQM. Default: as in ``path``."""
    loss: InjectedLoss | None = None
    """Injected on the data direction alone: a probability, or a mapping. Default: as ``path`` places it."""
    reordering: Reordering | None = None
    """Data that comes late: which share, and how late. Default: as in ``path`` if it is a bottleneck."""
    aqm: Aqm | None = None
    """Queue discipline. Default: as in ``path``."""


class ModuleChoice(FileRecord):
    """A congestion control of the user's own: the sources of a kernel module, or of a BPF program."""

    module: Annotated[str, Field(min_length=1, examples=["./tcp_mine"])]
    """A folder with a Kbuild or a Makefile, or one ``.c`` file (of BPF: ``.bpf.c``), beside this file."""
    params: dict[ParameterName, ParameterValue] = Field(default_factory=dict)
    """Parameter of the module → the value that it is loaded with. Default: the module's own."""
    name: Annotated[str, Field(min_length=1, max_length=MOST_NAME_CHARACTERS)] | None = None
    """What it registers itself as, where its sources register several. Default: the only one."""

    @property
    def called(self) -> str:
        """What tables call it without a name in the file: as the folder or file, without ``tcp_``."""
        name = PurePath(self.module).name.lower().removesuffix(".bpf.c")
        stem = PurePath(name).stem.removeprefix("tcp_")
        return re.sub(r"[^a-z0-9]+", "_", stem).strip("_") or "module"


def _control_kind(value: object) -> str:
    return "of one's own" if isinstance(value, dict | ModuleChoice) else "by name"


class SizeDistribution(FileRecord):
    """How large flows are that come at random: a size alone, a distribution, or a file of sizes."""

    distribution: Literal["fixed", "exponential", "lognormal", "pareto"] = "fixed"
    """``fixed``: all have the mean."""
    mean: ByteSize | None = Field(None, examples=["100 kB"])
    """In bytes, before ``most`` cuts the distribution. Default: none; all but a file need it."""
    sigma: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] | None = None
    """Of ``lognormal``: standard deviation of the size's natural logarithm. Default: none; it needs one."""
    shape: Annotated[float, Field(gt=1, le=100, allow_inf_nan=False)] | None = None
    """Of ``pareto``: the exponent of its tail, above 1. Default: none; it needs one."""
    most: ByteSize | None = None
    """The largest that is drawn, in bytes: the distribution is cut there. Default: it is not cut."""
    file: str | None = Field(None, examples=["web.sizes"])
    """Beside the experiment file, a whole number of bytes a line, drawn evenly. Default: a distribution."""

    def __str__(self) -> str:
        """As in ``pareto, mean 100 kB, shape 1.2``."""
        if self.file is not None:
            return f"from {self.file}"
        told = {"mean": self.mean, "sigma": self.sigma, "shape": self.shape, "at most": self.most}
        given = (
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in told.items()
            if value is not None
        )
        return ", ".join((self.distribution, *given))


class ArrivalProcess(FileRecord):
    """Flows that come at random, independently of one another: a Poisson process."""

    rate: PerSecond = Field(examples=["5 /s"])
    """How many come in a second on average."""
    size: Annotated[SizeDistribution, BeforeValidator(_mean_alone)] = Field(examples=["100 kB"])
    """How large they are: a size for all in bytes, a distribution or a file."""


class FlowGroup(FileRecord):
    """``count`` flows that differ in their start alone, or what goes on beside flows."""

    control: (
        Annotated[
            Annotated[Cca, Tag("by name")] | Annotated[ModuleChoice, Tag("of one's own")],
            Discriminator(_control_kind),
        ]
        | None
    ) = Field(None, alias="cca", examples=["cubic", "bbr2"])
    """By name (``bbr1`` is mainline's ``bbr``), or ``{module: ./tcp_mine}``. Default: none; TCP needs one."""
    arrivals: ArrivalProcess | None = Field(None, examples=["{rate: 5 /s, size: 100 kB}"])
    """Flows of random sizes that come at random while ``duration`` lasts. Default: ``count`` flows."""
    video: Video | None = Field(None, examples=["{bitrate: 4 Mbit/s}"])
    """A video over TCP, chunk by chunk, watched for ``duration``. Default: none, as fast as may be."""
    udp: BitRate | None = Field(None, examples=["5 Mbit/s"])
    """UDP at this constant rate, in bit/s of Ethernet frames as the link has it. Default: none, TCP."""
    packet_size: ByteSize | None = None
    """Of an IP packet of ``udp``, in bytes. Default: ``mtu``."""
    ping: Span | None = Field(None, examples=["100 ms"])
    """Echo requests beside the flows, one every so many ms or s. Default: none, flows of TCP."""
    profile: BbrProfile | None = None
    """Constants of fabbbr's own BBR. Default: ``v1``, ``v2alpha`` or ``v3``, by its version."""
    implementation: Implementation | None = None
    """Whose BBR. Default: ``mainline`` for ``bbr1``, ``fabbbr`` for ``bbr2`` and ``bbr3``."""
    count: Annotated[int, Field(ge=0, le=400), WHOLE] = 1
    """Flows in this group, each with its own iperf3; 0 where a condition has none of them."""
    streams: Annotated[int, Field(ge=1, le=MOST_STREAMS), WHOLE] = 1
    """Parallel connections of each flow, each from a port of its own."""
    start: Span = Duration(0)
    """Of the first flow of the group, in s or ms; some group starts at 0 s."""
    stagger: Span = Duration(0)
    """From the start of one flow of the group to the start of the next, in s or ms."""
    duration: Span | None = None
    """Whole seconds, up to 24 h. Default: until ``size`` has arrived; of a ping until the flows are over."""
    size: ByteSize | None = None
    """Bytes that each flow delivers, all its streams together. Default: what ``duration`` allows."""
    pacing: BitRate | None = None
    """The sender's own rate limit, in bit/s for each connection. Default: none."""
    maxrate: BitRate | None = None
    """Gives the sending host ``fq``, which lets no connection exceed it, in bit/s. Default: no ``fq``."""
    initial_window: Annotated[int, Field(ge=1, le=MOST_INITIAL_SEGMENTS), WHOLE] | None = None
    """Segments that each connection may send before anything is acknowledged (``initcwnd`` of its route).
    Default: the kernel's, 10."""
    direction: Literal["forward", "reverse"] = "forward"
    """``reverse``: the receiver of the slice's pair sends."""
    sender: Name | None = Field(None, alias="from")
    """Host that sends. Default: the partner of ``to``, or the slice's pairs in turn."""
    receiver: Name | None = Field(None, alias="to")
    """Host that receives. Default: the partner of ``from``, or the slice's pairs in turn."""
    label: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    """Name of the group in tables and figures. Default: the CCA or kind, numbered if several have it."""

    @property
    def kind(self) -> Kind:
        """What the group is."""
        if self.ping is not None:
            return "ping"
        if self.udp is not None:
            return "udp"
        if self.video is not None:
            return "video"
        return "arrivals" if self.arrivals is not None else "tcp"

    @property
    def called(self) -> str:
        """What tables and figures call it when it has no label and is the only one."""
        return self.kind if self.cca is None or self.video is not None else self.cca

    @property
    def cca(self) -> str | None:
        """What tables call the congestion control; None for what has none."""
        return self.control.called if isinstance(self.control, ModuleChoice) else self.control

    @property
    def whose(self) -> Implementation:
        """The implementation that the flows run."""
        return self.implementation or IMPLEMENTATIONS.get(self.cca or "", ("mainline",))[0]

    @property
    def own_profile(self) -> BbrProfile | None:
        """What the flows run of module fab_bbr; None when it is something else."""
        known = BBR_PROFILES.get(self.cca or "", ())
        return (self.profile or known[0]) if self.whose == "fabbbr" and known else None

    def starts(self) -> list[Duration]:
        """When each flow of the group starts, from the beginning of the run."""
        return [Duration(self.start.ns + k * self.stagger.ns) for k in range(self.count)]


class StepSetup(FileRecord):
    """A change of a link while flows run."""

    at: Span = Field(examples=["20 s"])
    """From the start of the first flow, in s or ms."""
    link: Name | None = None
    """The link that changes. Default: the first bottleneck."""
    rate: BitRate | None = None
    """From then on, in bit/s. Default: unchanged."""
    rtt: Span | None = None
    """Propagation round trip from then on, in s, ms or µs. Default: unchanged."""
    buffer: Buffer | None = None
    """From then on, in bytes, packets, BDP or time (of the rate and RTT from then on). Default: unchanged."""
    loss: InjectedLoss | None = Field(None, examples=["2 %"])
    """From then on behind the link's queue, of data alone: a probability or a mapping. Default: unchanged."""


StepsAsked = Annotated[
    Annotated[tuple[StepSetup, ...], Tag("a list")] | Annotated[str, Tag("a file")],
    Discriminator(lambda value: "a file" if isinstance(value, str) else "a list"),
]


class Setup(FileRecord):
    """One condition: everything that may carry a ``$name``, with none left."""

    ccas: dict[OwnName, ModuleChoice] = Field(default_factory=dict)
    """Name → a congestion control of your own, which ``cca`` may then name. Default: none."""

    slice: Annotated[SliceChoice, BeforeValidator(_named_alone)] = Field(examples=["two_site"])
    """The topology: a name, a mapping of the name and its parameters, or ``./mine.py`` beside this file."""
    path: PathSetup = Field(examples=["{rate: 100 Mbit/s, rtt: 100 ms}"])
    """The path that all flows share: the bottleneck and the propagation delay."""
    links: dict[Name, LinkSetup] = Field(default_factory=dict)
    """Link of the slice → what it does differently from ``path``. Default: nothing."""
    flows: Annotated[tuple[FlowGroup, ...], BeforeValidator(_some)] = Field(
        examples=["[{cca: cubic, duration: 60 s}]"]
    )
    """Groups of flows, one at least."""
    steps: StepsAsked = ()
    """Changes of links while flows run: a list, or a file of comma-separated values beside this file."""
    sysctl: Sysctls | None = Field(None, examples=["{tcp_rmem: 6 MB}"])
    """How TCP of all hosts is tuned. Default: as the kernel has it, with buffers that limit no flow."""
    warm_up: Span | None = None
    """Left out of steady-state metrics. Default: 20 s or 50 RTT, the longer; at most half the run."""
    sample_period: Span = Duration(100_000_000)
    """How often sockets and queues are read, 1 ms or more."""
    capture: tuple[CapturedLink, ...] = Field((), examples=["[trunk]"])
    """Links whose packets are kept as pcapng files: names, or mappings of ``link`` and ``bytes``."""
    queue_delay: QueueDelay = "samples"
    """``packets``: how long each packet stands in a bottleneck queue. Default: from RTT samples alone."""

    kernel: KernelName | None = Field(None, examples=["6.12"])
    """Of the guest, one that ``fabbbr kernel build`` made: its name, or the folder of its tree. Default: that
    of the guest image, which is also called ``default``."""

    def module_of(self, group: FlowGroup) -> ModuleChoice | None:
        """The module that the flows of a group run; None for what the kernel has."""
        return (
            group.control if isinstance(group.control, ModuleChoice) else self.ccas.get(group.control or "")
        )

    @property
    def own_steps(self) -> tuple[StepSetup, ...]:
        """The list of steps; none where a file has them."""
        return () if isinstance(self.steps, str) else self.steps

    @property
    def steps_file(self) -> str | None:
        """Name of the file that has the steps."""
        return self.steps if isinstance(self.steps, str) else None

    @property
    def traces(self) -> dict[Loc, str]:
        """Where a trace is named → which; that of the way there first."""
        found: dict[Loc, str | None] = {("path", "trace"): self.path.trace}
        found |= {(*loc, "trace"): back.trace for loc, back in self.ways_back.items()}
        return {loc: name for loc, name in found.items() if name is not None}

    @property
    def ways_back(self) -> dict[Loc, ReverseSetup]:
        """Those that are given, and where."""
        found: dict[Loc, ReverseSetup | None] = {("path", "reverse"): self.path.reverse}
        found |= {("links", name, "reverse"): link.reverse for name, link in self.links.items()}
        return {loc: back for loc, back in found.items() if back is not None}

    @property
    def aqms(self) -> dict[Loc, Aqm]:
        """All that are asked for, both ways, and where."""
        found: dict[Loc, Aqm | None] = {("path", "aqm"): self.path.aqm}
        found |= {("links", name, "aqm"): link.aqm for name, link in self.links.items()}
        found |= {(*loc, "aqm"): back.aqm for loc, back in self.ways_back.items()}
        return {loc: aqm for loc, aqm in found.items() if aqm is not None}

    @property
    def end(self) -> Duration | None:
        """When the last flow stops; None when some flow sends a size, or comes at random."""
        flows = [group for group in self.flows if group.kind != "ping" and group.count]
        ends = [
            group.start.ns + (group.count - 1) * group.stagger.ns + group.duration.ns
            for group in flows
            if group.duration is not None and group.arrivals is None
        ]
        return Duration(max(ends)) if ends and len(ends) == len(flows) else None


class Header(FileRecord):
    """What holds for the whole experiment, whatever varies."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60, examples=["my_experiment"])]
    """Name of the experiment: lower case letters, digits and ``_``."""
    title: Annotated[str, Field(min_length=1, examples=["Goodput under random loss"])]
    """One line for reports."""
    source: str | None = None
    """What is being repeated: paper and figure. Default: none."""
    repeat: Annotated[int, Field(ge=1, le=1000), WHOLE] = 5
    """Repetitions of every condition."""
    claims: tuple[Annotated[str, Field(pattern=r"^[A-Z]+[0-9A-Za-z]*(\.[0-9a-z]+)?$")], ...] = ()
    """Ids of the published claims that this experiment tests."""


def spell_axes(axes: dict[str, str]) -> str:
    """``cca=bbr1,loss=1%``; empty when nothing varies."""
    return ",".join(f"{axis}={squeeze(text)}" for axis, text in axes.items())


class Condition(Record):
    """One combination of the varied values, and the setup that it gives."""

    axes: dict[str, str]
    setup: Setup

    @property
    def id(self) -> str:
        """``cca=bbr1,loss=1%``; empty when nothing varies."""
        return spell_axes(self.axes)


class Experiment(Header):
    """A whole experiment file, resolved for one profile."""

    profile: Profile
    axes: dict[str, tuple[str, ...]]
    """Varied key → its values as written, in the order of the file."""
    conditions: tuple[Condition, ...]

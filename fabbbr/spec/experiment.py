"""What an experiment file says, as frozen records. :mod:`fabbbr.spec.read` reads the file into them.

A ``Setup`` is one condition of the experiment with every ``$name`` replaced; nothing here knows a topology.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from fabbbr.foreign import shown
from fabbbr.model import PORTS_PER_FLOW, AckAggregation, Aqm, BbrProfile, Implementation, Loss, Record
from fabbbr.quantity import BitRate, Buffer, ByteSize, Span
from fabbbr.spec.axes import squeeze
from fabbbr.suggest import did_you_mean
from fabbbr.units import Duration, QueueSize

Profile = Literal["default", "quick", "full"]
PROFILES: tuple[Profile, ...] = ("default", "quick", "full")

CCAS = (
    *("cubic", "reno", "htcp", "bbr1", "bbr2", "bbr3", "bic", "westwood", "vegas", "illinois", "hybla"),
    *("dctcp", "highspeed", "scalable", "veno", "yeah", "lp", "nv", "cdg"),
)
"""Congestion controls by the names of fabbbr: ``bbr1`` is the ``bbr`` of the mainline kernel."""

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


def _wrong(why: str) -> PydanticCustomError:
    kind = "plain_words"  # of mistakes: takes them as they are
    return PydanticCustomError(kind, "{why}", {"why": why})


def _known_cca(name: str) -> str:
    if name in CCAS:
        return name
    hint = "; the kernel's bbr is called bbr1 here" if name == "bbr" else did_you_mean(name, CCAS)
    why = f"{shown(name)} is no congestion control known here{hint} (known: {', '.join(CCAS)})"
    raise _wrong(why)


def _whole(value: object) -> object:
    """Refuse ``5.0`` and ``1_000`` for a count, which pydantic would take."""
    if isinstance(value, str) and re.fullmatch(r"\s*\d+\s*", value) is None:
        why = f"{shown(value)} is not a whole number"
        raise _wrong(why)
    return value


def _some(value: object) -> object:
    if value == []:
        why = "is empty; give at least one group, e.g. - {cca: cubic, duration: 60 s}"
        raise _wrong(why)
    return value


def _rate_alone(value: object) -> object:
    return {"rate": value} if isinstance(value, str) else value


def _duration_alone(value: object) -> object:
    return {"least": value, "most": value} if isinstance(value, str) else value


def _named_alone(value: object) -> object:
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, dict) and "parameters" not in value:
        rest = {key: text for key, text in value.items() if key != "name"}
        return {key: value[key] for key in ("name",) if key in value} | {"parameters": rest}
    return value


_WHOLE = BeforeValidator(_whole)
Cca = Annotated[str, AfterValidator(_known_cca)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$", max_length=8, examples=["h1"])]
RoundTrip = Annotated[
    Annotated[Span, Tag("one")] | Annotated[dict[Name, Span], Tag("by sender")],
    Discriminator(lambda value: "by sender" if isinstance(value, dict) else "one"),
]
InjectedLoss = Annotated[Loss, BeforeValidator(_rate_alone)]
HeldAcks = Annotated[AckAggregation, BeforeValidator(_duration_alone)]


class SliceChoice(Record):
    """A slice definition by name (or ``./file.py``) and the values of its parameters, as written."""

    name: Annotated[str, Field(examples=["two_site"])]
    parameters: dict[str, str] = Field(default_factory=dict)


class PathSetup(Record):
    """The path that all flows share: the bottleneck and the propagation delay."""

    rate: BitRate | None = Field(None, examples=["100 Mbit/s"])
    trace: str | None = Field(None, examples=["lte.up"])
    rtt: RoundTrip = Field(examples=["100 ms"])
    buffer: Buffer = Field(QueueSize.parse("1 BDP"), examples=["1 BDP"])
    loss: InjectedLoss | None = Field(None, examples=["0.1 %"])
    ack_aggregation: HeldAcks | None = Field(None, examples=["1 ms"])
    aqm: Aqm = "taildrop"
    ecn: bool = False
    mtu: Annotated[int, Field(ge=576, le=65_500), _WHOLE] = 1500
    """Bytes of an IP packet."""
    offloads: bool = False

    @property
    def longest_rtt(self) -> Duration:
        """The round trip, or the longest of those given by sender."""
        return max(self.rtt.values()) if isinstance(self.rtt, dict) else self.rtt


class LinkSetup(Record):
    """What one named link does differently from ``path``."""

    rate: BitRate | None = None
    rtt: Span | None = None
    buffer: Buffer | None = None
    loss: InjectedLoss | None = None
    aqm: Aqm | None = None


class FlowGroup(Record):
    """``count`` flows that differ in their start alone."""

    cca: Cca = Field(examples=["cubic"])
    profile: BbrProfile | None = None
    """Of a BBR; the first of :data:`BBR_PROFILES` unless given."""
    implementation: Implementation | None = None
    """Of a BBR; the first of :data:`IMPLEMENTATIONS` unless given."""
    count: Annotated[int, Field(ge=1, le=400), _WHOLE] = 1
    streams: Annotated[int, Field(ge=1, le=PORTS_PER_FLOW), _WHOLE] = 1
    """Parallel connections of each flow, each from a port of its own."""
    start: Span = Duration(0)
    stagger: Span = Duration(0)
    """From the start of one flow of the group to the start of the next."""
    duration: Span | None = None
    size: ByteSize | None = None
    """What each flow sends, instead of a duration."""
    pacing: BitRate | None = None
    direction: Literal["forward", "reverse"] = "forward"
    sender: Name | None = Field(None, alias="from")
    receiver: Name | None = Field(None, alias="to")
    label: Annotated[str, Field(min_length=1, max_length=40)] | None = None

    @property
    def whose(self) -> Implementation:
        """The implementation that the flows run."""
        return self.implementation or IMPLEMENTATIONS.get(self.cca, ("mainline",))[0]

    @property
    def own_profile(self) -> BbrProfile | None:
        """What the flows run of module fab_bbr; None when it is something else."""
        return (self.profile or BBR_PROFILES[self.cca][0]) if self.whose == "fabbbr" else None

    def starts(self) -> list[Duration]:
        """When each flow of the group starts, from the beginning of the run."""
        return [Duration(self.start.ns + k * self.stagger.ns) for k in range(self.count)]


class StepSetup(Record):
    """A change of a link while flows run."""

    at: Span = Field(examples=["20 s"])
    link: Name | None = None
    """Default: the bottleneck."""
    rate: BitRate | None = None
    rtt: Span | None = None
    buffer: Buffer | None = None


class Setup(Record):
    """One condition: everything that may carry a ``$name``, with none left."""

    slice: Annotated[SliceChoice, BeforeValidator(_named_alone)] = Field(examples=["two_site"])
    path: PathSetup = Field(examples=["{rate: 100 Mbit/s, rtt: 100 ms}"])
    links: dict[Name, LinkSetup] = Field(default_factory=dict)
    flows: Annotated[tuple[FlowGroup, ...], BeforeValidator(_some)] = Field(
        examples=["[{cca: cubic, duration: 60 s}]"]
    )
    steps: tuple[StepSetup, ...] = ()
    warm_up: Span | None = None
    sample_period: Span = Duration(100_000_000)

    @property
    def end(self) -> Duration | None:
        """When the last flow stops; None when some flow sends a size instead of a time."""
        ends = [
            group.start.ns + (group.count - 1) * group.stagger.ns + group.duration.ns
            for group in self.flows
            if group.duration is not None
        ]
        return Duration(max(ends)) if len(ends) == len(self.flows) else None


class Header(Record):
    """What holds for the whole experiment, whatever varies."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60, examples=["my_experiment"])]
    title: Annotated[str, Field(min_length=1, examples=["Goodput under random loss"])]
    source: str | None = None
    """What is being repeated: paper and figure."""
    repeat: Annotated[int, Field(ge=1, le=1000), _WHOLE] = 5
    claims: tuple[Annotated[str, Field(pattern=r"^[A-Z]+[0-9A-Za-z]*(\.[0-9a-z]+)?$")], ...] = ()


class Condition(Record):
    """One combination of the varied values, and the setup that it gives."""

    axes: dict[str, str]
    setup: Setup

    @property
    def id(self) -> str:
        """``cca=bbr1,loss=1%``; empty when nothing varies."""
        return ",".join(f"{axis}={squeeze(text)}" for axis, text in self.axes.items())


class Experiment(Header):
    """A whole experiment file, resolved for one profile."""

    profile: Profile
    axes: dict[str, tuple[str, ...]]
    """Varied key → its values as written, in the order of the file."""
    conditions: tuple[Condition, ...]

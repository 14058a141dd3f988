"""What the tools printed while a cell ran, read once and typed: all that the certificate is made from.

Whatever a tool left out, cut short or printed otherwise is one BackendError that names the file, the
tool and the place; such a cell is put aside. What is here can be believed to be of its type, not to be
right: that is for the checks.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from fabbbr.certify.counters import TOOLS, Count, Counters, NodeCounters, QdiscCounters, Told, lacking
from fabbbr.job.records import Capture
from fabbbr.testbed import MachineClock

_T = TypeVar("_T")
Side = Literal["client", "server"]


class Answer(Told):
    """One command that was run on one node, and what came of it."""

    argv: tuple[str, ...]
    node: str | None
    exit: int
    stdout: str
    stderr: str


class BurstTold(Told):
    """What came of the packet burst."""

    sent: Count
    refills_from: Count = 0
    """The first sequence number of a refill; a train has none."""
    arrivals: tuple[tuple[Count, Count], ...]
    """Sequence number and nanoseconds."""
    late: tuple[tuple[Count, Count], ...] = ()
    """Of each refill before which the queue had run dry: its first packet, and the first of the next."""
    queues_at_peak: tuple[QdiscCounters, ...]


class Preflight(Told):
    """The probes before the flows."""

    pings: dict[str, Answer]
    burst: BurstTold
    burst_back: BurstTold | None = None
    train: BurstTold | None = None


class FlowRecord(Told):
    """What happened to the two programs of one flow."""

    flow: int
    batch: int | None = None
    """Number of the batch of which it was one; None where the programs were its own."""
    epoch_s: float
    """Zero of the flows' time, on the machine's monotonic clock."""
    started_s: float
    ended_s: float
    timed_out: bool
    client_exit: int
    server_exit: int

    @property
    def stem(self) -> str:
        """How the raw files of its programs begin."""
        return f"flow-{self.flow}" if self.batch is None else f"batch-{self.batch}"


class StepRecord(Told):
    """One change as carried out."""

    at_s: float
    done_s: float
    before: dict[str, Answer] = Field(default_factory=dict)
    """What counters said when it was begun, by the name of the capture."""
    after: dict[str, Answer] = Field(default_factory=dict)
    """And when it was done."""


class TapTold(Told):
    """What one tap saw, as the agent counted it when it wrote the file."""

    file: str
    node: str
    interface: str
    received_packets: Count
    received_bytes: Count
    sent_packets: Count
    sent_bytes: Count
    lost: Count
    """For want of room in its ring, as the kernel counts."""


class CapturesTold(Told):
    """What all taps saw."""

    class _Offset(Told):
        before_s: float
        after_s: float

    realtime_minus_monotonic: _Offset
    """The clock of the stamps against that of the flows' time."""
    taps: tuple[TapTold, ...]

    def tap(self, file: str, node: str, interface: str) -> TapTold:
        """What one tap saw; raise BackendError when it is missing."""
        for tap in self.taps:
            if (tap.file, tap.node, tap.interface) == (file, node, interface):
                return tap
        told = "captures.json"
        raise lacking(told, "the agent", f"{interface} of {file} is missing")


class Iperf3Report(Told):
    """As much of ``iperf3 --json`` as says whether it ran."""

    class _End(Told):
        class _Sum(Told):
            bytes: Count
            seconds: float | None = None

        sum_sent: _Sum | None = None
        sum_received: _Sum | None = None

    error: str | None = None
    end: _End

    @property
    def lasted_s(self) -> float:
        """How long it received, as far as it is known."""
        received = self.end.sum_received
        return (received.seconds or 0.0) if received is not None else 0.0

    def moved_bytes(self, side: Side) -> int | None:
        """What this end says that it sent or received; None when it does not say."""
        total = self.end.sum_sent if side == "client" else self.end.sum_received
        return None if total is None else total.bytes


class TransferReport(Told):
    """As much of what :mod:`fabbbr.agent.transfer` prints, and the agent's other programs for flows."""

    class _Stream(Told):
        bytes: Count
        established_s: float | None
        ended_s: float | None

    class _Datagrams(Told):
        sent: Count = 0
        received: Count = 0

    transfer: Literal[1]
    side: Literal["send", "receive"]
    error: str | None
    streams: tuple[_Stream, ...]
    datagrams: _Datagrams | None = None
    """None of TCP."""

    @property
    def lasted_s(self) -> float:
        """From the first connection to the end of the last, as far as it is known."""
        begun = [stream.established_s for stream in self.streams if stream.established_s is not None]
        ended = [stream.ended_s for stream in self.streams if stream.ended_s is not None]
        return max(ended) - min(begun) if begun and ended else 0.0

    def moved_bytes(self, side: Side) -> int | None:
        """What this end sent or received; None for the other end's document."""
        right = self.side == ("send" if side == "client" else "receive")
        return sum(stream.bytes for stream in self.streams) if right else None


class BatchReport(Told):
    """As much of what :mod:`fabbbr.agent.batch` prints."""

    batch: Literal[1]
    flows: dict[int, TransferReport]


class PingReport(Told):
    """What :mod:`fabbbr.agent.ping` prints."""

    ping: Literal[1]
    error: str | None
    samples: tuple[tuple[float, float | None], ...]
    """When each request was sent, since the flows' zero, and its round trip, in seconds; None unanswered."""


FlowReport = Iperf3Report | TransferReport
_QDISCS = TypeAdapter(tuple[QdiscCounters, ...])
_FLOW_REPORT: TypeAdapter[FlowReport] = TypeAdapter(
    Annotated[TransferReport | Iperf3Report, Field(union_mode="left_to_right")]
)


@dataclass(frozen=True)
class Looks:
    """Samples of the queues of one node; read when they are asked for, since they may be many."""

    path: Path

    def before_the_last(self, least_s: float) -> tuple[float, tuple[QdiscCounters, ...]] | None:
        """The latest that is at least so much older than the last one: by how much, and what it counted.

        None where they reach less far, or are not a line each.
        """
        raw, name = self.path.parent, self.path.name
        times_s = [float(line) for line in _text(raw, f"{self.path.stem}.times", "the agent").split()]
        lines = _bytes(raw, name).splitlines()
        if not times_s or len(lines) != len(times_s):
            return None
        place = bisect_right(times_s, times_s[-1] - least_s) - 1
        if place < 0:
            return None
        try:
            return times_s[-1] - times_s[place], _QDISCS.validate_json(lines[place])
        except ValidationError as error:
            raise lacking(name, TOOLS["qdiscs"], _first_words(error)) from None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The raw files that a certificate is made from."""

    readback: Mapping[str, Answer]
    preflight: Preflight
    before: Counters
    after: Counters
    sockets: Mapping[str, str]
    """Host → ``ss`` text."""
    flows: Mapping[int, FlowRecord]
    reports: Mapping[tuple[int, Side], FlowReport | None]
    """None where the program left nothing that can be read."""
    pings: Mapping[int, PingReport]
    """Of those beside the flows that began."""
    steps: tuple[StepRecord, ...]
    clocks: Mapping[str, MachineClock]
    """Machine → its clock; empty where one machine carried out everything."""
    captures: CapturesTold | None = None
    """None where nothing was captured."""
    looks: Mapping[str, Looks] = field(default_factory=dict)
    """Node → how its queues were looked at while flows ran."""

    def counted_at_steps(self, capture: Capture) -> Iterator[tuple[Counters, Counters]]:
        """What queueing disciplines counted before and after each step that asked, in the order of time."""
        for step in self.steps:
            if capture.name in step.before:
                early, late = (_qdiscs_told(capture, told) for told in (step.before, step.after))
                yield early, late

    @classmethod
    def read(cls, raw: Path) -> Evidence:
        """Load from a cell's ``raw/``; raise BackendError when a tool did not leave what it should."""
        flows = _load(raw, "flows.json", TypeAdapter(tuple[FlowRecord, ...]))
        steps, clocks, captures = raw / "steps.json", raw / "clocks.json", raw / "captures.json"
        sides: tuple[Side, Side] = ("client", "server")
        return cls(
            readback=_load(raw, "readback.json", TypeAdapter(dict[str, Answer])),
            preflight=_load(raw, "preflight.json", TypeAdapter(Preflight)),
            before=_counters(raw, "counters.before.json"),
            after=_counters(raw, "counters.after.json"),
            sockets={
                path.name.removeprefix("sockets.").removesuffix(".txt"): _text(raw, path.name, "ss")
                for path in sorted(raw.glob("sockets.*.txt"))
            },
            flows={record.flow: record for record in flows},
            reports={
                **{
                    (record.flow, side): _report(raw / f"{record.stem}.{side}.json")
                    for record in flows
                    if record.batch is None
                    for side in sides
                },
                **dict(_batched_reports(raw, flows)),
            },
            pings={
                int(path.name.removeprefix("ping-").removesuffix(".json")): _load(
                    raw, path.name, TypeAdapter(PingReport)
                )
                for path in sorted(raw.glob("ping-*.json"))
            },
            steps=_load(raw, steps.name, TypeAdapter(tuple[StepRecord, ...])) if steps.exists() else (),
            clocks=_load(raw, clocks.name, TypeAdapter(dict[str, MachineClock])) if clocks.exists() else {},
            captures=_load(raw, captures.name, TypeAdapter(CapturesTold)) if captures.exists() else None,
            looks={
                path.stem.removeprefix("queues."): Looks(path) for path in sorted(raw.glob("queues.*.json"))
            },
        )


def answer_to(
    capture: Capture, answers: Mapping[str, Answer], file: str, *, exits: tuple[int, ...] = (0,)
) -> Answer:
    """What came of ``capture``; raise BackendError when it is missing, of another command, or failed."""
    tool, answer = capture.command.argv[0], answers.get(capture.name)
    if answer is None:
        raise lacking(file, tool, f"{capture.name} is missing")
    if (answer.argv, answer.node) != (capture.command.argv, capture.command.node):
        raise lacking(file, tool, f"{capture.name} is of another command")
    if answer.exit not in exits:
        said = answer.stderr.strip() or "it said nothing"
        raise lacking(file, tool, f"{capture.name} ended with status {answer.exit}: {said}")
    return answer


def parsed(answer: Answer, kind: TypeAdapter[_T], what: str, *, file: str = "readback.json") -> _T:
    """The standard output of ``answer``, which is JSON; raise BackendError when it is not."""
    try:
        return kind.validate_json(answer.stdout)
    except ValidationError as error:
        said = f"{what}: {_first_words(error)}"
        raise lacking(file, answer.argv[0], said) from None


def _qdiscs_told(capture: Capture, told: Mapping[str, Answer]) -> Counters:
    """The queueing disciplines of one node, and nothing else; the raw file is that of the steps."""
    file, kind = "steps.json", TypeAdapter(tuple[QdiscCounters, ...])
    qdiscs = parsed(answer_to(capture, told, file), kind, capture.name, file=file)
    node = capture.command.node
    assert node is not None, "a wire is a node"
    return Counters(file, {node: NodeCounters(links=(), qdiscs=qdiscs, netstat="")})


def _bytes(raw: Path, name: str) -> bytes:
    try:
        return (raw / name).read_bytes()
    except FileNotFoundError:
        raise lacking(name, "the agent", "the file is missing") from None


def _text(raw: Path, name: str, tool: str) -> str:
    try:
        return _bytes(raw, name).decode()
    except UnicodeDecodeError as error:
        raise lacking(name, tool, f"not UTF-8 at byte {error.start}") from None


def _load(raw: Path, name: str, kind: TypeAdapter[_T]) -> _T:
    try:
        return kind.validate_json(_bytes(raw, name))
    except ValidationError as error:
        place = error.errors(include_url=False, include_input=False)[0]["loc"]
        tool = next((TOOLS[part] for part in place if part in TOOLS), "the agent")
        raise lacking(name, tool, _first_words(error)) from None


def _counters(raw: Path, name: str) -> Counters:
    return Counters(name, _load(raw, name, TypeAdapter(dict[str, NodeCounters])))


def _batched_reports(
    raw: Path, flows: Sequence[FlowRecord]
) -> Iterator[tuple[tuple[int, Side], FlowReport | None]]:
    """Of flows that shared their programs; None where these left none."""
    stems = {record.flow: record.stem for record in flows if record.batch is not None}
    for side in ("client", "server"):
        left = {stem: _batch(raw / f"{stem}.{side}.json") for stem in dict.fromkeys(stems.values())}
        for flow, stem in stems.items():
            yield (flow, side), left[stem].get(flow)


def _batch(path: Path) -> Mapping[int, TransferReport]:
    try:
        return BatchReport.model_validate_json(path.read_bytes()).flows
    except (FileNotFoundError, ValidationError):
        return {}


def _report(path: Path) -> FlowReport | None:
    """iperf3 may print words after its document, or the document twice: the first is read."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return _FLOW_REPORT.validate_json(text)
    except ValidationError:
        try:
            first, _ = json.JSONDecoder().raw_decode(text.decode().strip())
            return _FLOW_REPORT.validate_json(json.dumps(first))
        except (ValueError, RecursionError):
            return None


def _first_words(error: ValidationError) -> str:
    first: Any = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])

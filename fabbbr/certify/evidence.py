"""What the tools printed while a cell ran, read once and typed: all that the certificate is made from.

Whatever a tool left out, cut short or printed otherwise is one BackendError that names the file, the
tool and the place; such a cell is put aside. What is here can be believed to be of its type, not to be
right: that is for the checks.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fabbbr.errors import BackendError
from fabbbr.job.records import Capture
from fabbbr.testbed import MachineClock

_Count = Annotated[int, Field(ge=0)]
_T = TypeVar("_T")
Side = Literal["client", "server"]

_TOOLS = {
    "links": "ip -s -j link",
    "qdiscs": "tc -s -j qdisc show",
    "queues_at_peak": "tc -s -j qdisc show",
    "filters": "tc -s -j filter show",
    "netstat": "/proc/net/netstat",
    "gates": "the gate",
    "pings": "ping",
    "arrivals": "the burst",
}
"""What wrote that part of a file; the rest is the agent's."""


class Told(BaseModel):
    """Strict about types; what no check reads is ignored."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class Answer(Told):
    """One command that was run on one node, and what came of it."""

    argv: tuple[str, ...]
    node: str | None
    exit: int
    stdout: str
    stderr: str


class LinkCounters(Told):
    """Of one interface, as ip counts."""

    class _Both(Told):
        class _Received(Told):
            packets: _Count
            bytes: _Count
            dropped: _Count

        class _Sent(Told):
            packets: _Count
            bytes: _Count

        rx: _Received
        tx: _Sent

    ifname: str
    stats64: _Both


class QdiscCounters(Told):
    """Of one queueing discipline, as tc counts."""

    kind: str
    handle: str
    dev: str
    root: bool = False
    packets: _Count
    bytes: _Count
    """Sent, in frames."""
    drops: _Count
    backlog: _Count
    """Bytes."""
    qlen: _Count
    """Packets."""


class GateCounters(QdiscCounters):
    """Of a queue that delivers by a trace, as its gate counts."""

    limit_bytes: _Count
    trace_opportunities: _Count
    trace_ms: _Count
    followed_s: float | None
    """How long it has followed the trace; None while opportunities come evenly."""
    offered: _Count
    """Opportunities since it follows the trace."""
    used: _Count
    late_s: float
    """The most that it was late for an opportunity that it used."""
    unheard: _Count
    """Frames that came and that it could not take in."""


class FilterCounters(Told):
    """Of one filter, as tc counts; of those that are no matchall nothing is of interest."""

    class _Options(Told):
        class _Action(Told):
            class _Stats(Told):
                packets: _Count

            stats: _Stats

        rule_hit: _Count | None = None
        actions: tuple[_Action, ...] = ()

    kind: str
    chain: _Count
    options: _Options | None = None
    """tc lists each kind once more, without."""


class Counted(NamedTuple):
    """What a matchall filter has seen."""

    packets: int
    """Super-packets, where segmentation offloads are on."""
    segments: int


class NodeCounters(Told):
    """Of one node."""

    links: tuple[LinkCounters, ...]
    qdiscs: tuple[QdiscCounters, ...]
    netstat: str
    gates: tuple[GateCounters, ...] = ()
    filters: dict[str, tuple[FilterCounters, ...]] = Field(default_factory=dict)
    """By the name of the capture; only where segmentation offloads are on."""


@dataclass(frozen=True)
class Counters:
    """All counters of one instant; raise BackendError for what was not counted."""

    file: str
    nodes: Mapping[str, NodeCounters]

    def link(self, node: str, device: str) -> LinkCounters:
        """The counters of an interface."""
        found = (link for link in self._of(node).links if link.ifname == device)
        return self._first(found, "links", node, device)

    def root(self, node: str, device: str) -> QdiscCounters:
        """The counters of an interface's root queueing discipline."""
        found = (qdisc for qdisc in self._of(node).qdiscs if qdisc.dev == device and qdisc.root)
        return self._first(found, "qdiscs", node, f"{device} root")

    def qdisc(self, node: str, device: str, handle: str) -> QdiscCounters:
        """The counters of one of the queueing disciplines of an interface."""
        found = (qdisc for qdisc in self._of(node).qdiscs if (qdisc.dev, qdisc.handle) == (device, handle))
        return self._first(found, "qdiscs", node, f"{device} {handle}")

    def gates(self, node: str) -> tuple[GateCounters, ...]:
        """The counters of the gates of a node."""
        return self._of(node).gates

    def gate(self, node: str, device: str) -> GateCounters:
        """The counters of the gate that queues for ``device``."""
        found = (gate for gate in self.gates(node) if gate.dev == device)
        return self._first(found, "gates", node, device)

    def filtered(self, node: str, captured: str, chain: int = 0) -> Counted:
        """What the matchall filter of one chain counted."""
        found = (
            Counted(each.options.rule_hit, each.options.actions[0].stats.packets)
            for each in self._of(node).filters.get(captured, ())
            if (each.kind, each.chain) == ("matchall", chain)
            and each.options is not None
            and each.options.rule_hit is not None
            and each.options.actions
        )
        return self._first(found, "filters", node, f"{captured} chain {chain}")

    def tcp(self, node: str, name: str) -> int:
        """One of TcpExt of /proc/net/netstat: a line of names, then a line of values."""
        lines = [
            line.split()[1:] for line in self._of(node).netstat.splitlines() if line.startswith("TcpExt:")
        ]
        names, values = lines if len(lines) == 2 else ([], [])
        found = (
            int(value)
            for key, value in zip(names, values, strict=False)
            if key == name and value.isascii() and value.isdigit()
        )
        return self._first(found, "netstat", node, f"TcpExt {name}")

    def _of(self, node: str) -> NodeCounters:
        if node not in self.nodes:
            raise _lacking(self.file, "the agent", f"{node} is missing")
        return self.nodes[node]

    def _first(self, found: Iterator[_T], part: str, node: str, what: str) -> _T:
        for one in found:
            return one
        raise _lacking(self.file, _TOOLS[part], f"{what} of {node} is missing")


class BurstTold(Told):
    """What came of the packet burst."""

    sent: _Count
    arrivals: tuple[tuple[_Count, _Count], ...]
    """Sequence number and nanoseconds."""
    late: tuple[tuple[_Count, _Count], ...] = ()
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
    epoch_s: float
    """Zero of the flows' time, on the machine's monotonic clock."""
    started_s: float
    ended_s: float
    timed_out: bool
    client_exit: int
    server_exit: int


class StepRecord(Told):
    """One change as carried out."""

    at_s: float
    done_s: float


class TapTold(Told):
    """What one tap saw, as the agent counted it when it wrote the file."""

    file: str
    node: str
    interface: str
    received_packets: _Count
    received_bytes: _Count
    sent_packets: _Count
    sent_bytes: _Count
    lost: _Count
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
        raise _lacking(told, "the agent", f"{interface} of {file} is missing")


class Iperf3Report(Told):
    """As much of ``iperf3 --json`` as says whether it ran."""

    class _End(Told):
        class _Sum(Told):
            bytes: _Count
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
        bytes: _Count
        established_s: float | None
        ended_s: float | None

    class _Datagrams(Told):
        sent: _Count = 0
        received: _Count = 0

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
            raise _lacking(name, _TOOLS["qdiscs"], _first_words(error)) from None


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
                (record.flow, side): _report(raw / f"flow-{record.flow}.{side}.json")
                for record in flows
                for side in sides
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
        raise _lacking(file, tool, f"{capture.name} is missing")
    if (answer.argv, answer.node) != (capture.command.argv, capture.command.node):
        raise _lacking(file, tool, f"{capture.name} is of another command")
    if answer.exit not in exits:
        said = answer.stderr.strip() or "it said nothing"
        raise _lacking(file, tool, f"{capture.name} ended with status {answer.exit}: {said}")
    return answer


def parsed(answer: Answer, kind: TypeAdapter[_T], what: str) -> _T:
    """The standard output of ``answer``, which is JSON; raise BackendError when it is not."""
    try:
        return kind.validate_json(answer.stdout)
    except ValidationError as error:
        file, said = "readback.json", f"{what}: {_first_words(error)}"
        raise _lacking(file, answer.argv[0], said) from None


def _lacking(file: str, tool: str, what: str) -> BackendError:
    return BackendError(f"raw/{file}, from {tool}: {what}; see raw/console.log, and run the cell again")


def _bytes(raw: Path, name: str) -> bytes:
    try:
        return (raw / name).read_bytes()
    except FileNotFoundError:
        raise _lacking(name, "the agent", "the file is missing") from None


def _text(raw: Path, name: str, tool: str) -> str:
    try:
        return _bytes(raw, name).decode()
    except UnicodeDecodeError as error:
        raise _lacking(name, tool, f"not UTF-8 at byte {error.start}") from None


def _load(raw: Path, name: str, kind: TypeAdapter[_T]) -> _T:
    try:
        return kind.validate_json(_bytes(raw, name))
    except ValidationError as error:
        place = error.errors(include_url=False, include_input=False)[0]["loc"]
        tool = next((_TOOLS[part] for part in place if part in _TOOLS), "the agent")
        raise _lacking(name, tool, _first_words(error)) from None


def _counters(raw: Path, name: str) -> Counters:
    return Counters(name, _load(raw, name, TypeAdapter(dict[str, NodeCounters])))


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

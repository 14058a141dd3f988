"""What a job is made of: frozen, validated, and JSON on disk. The agent reads it and computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from fabbbr.model import JOB_VERSION
from fabbbr.record import Record
from fabbbr.testbed import Testbed


class Command(Record):
    """One argv on one node; ``node`` None is the machine (or guest) itself."""

    argv: tuple[str, ...]
    node: str | None = None
    stdin: str | None = None
    timeout_s: float = 20.0
    may_fail: bool = False


class Capture(Record):
    """A command whose standard output is kept as raw file ``name``."""

    name: str
    command: Command


class Interface(Record):
    """One end of a cable, in the name space of ``node``."""

    name: str
    node: str
    peer_node: str
    mac: str
    link: str
    """Name of the cell link that this cable is part of."""


class Cable(Record):
    """A pair of interfaces joined by a veth (or, on a testbed, by the network)."""

    a: Interface
    b: Interface


class Node(Record):
    """A name space of the emulation: an end host, a software switch or a wire that only delays and drops."""

    name: str
    kind: Literal["host", "switch", "wire"]
    address: str | None = None
    """IPv4 address with prefix length; hosts only."""


def placed(nodes: Sequence[Node], cables: Sequence[Cable], testbed: Testbed) -> dict[str, str]:
    """Node → machine. A wire that the testbed does not place stands beside its switch."""
    kinds = {node.name: node.kind for node in nodes}
    beside: dict[str, str] = {}
    for cable in cables:
        for here, there in ((cable.a.node, cable.b.node), (cable.b.node, cable.a.node)):
            if kinds[here] == "wire" and kinds[there] == "switch":
                beside.setdefault(here, there)
    return {name: testbed.machine_of(_standing(name, beside, testbed)) for name in kinds}


def _standing(name: str, beside: dict[str, str], testbed: Testbed) -> str:
    return name if name in testbed.placement else beside.get(name, name)


class Requirement(Record):
    """A congestion control that a node must offer before anything is set up."""

    node: str
    name: str
    """In the kernel."""
    version: str | None = None
    """What ``/sys/module/tcp_<name>/version`` must say; empty: there must be none, as
    in mainline; None: anything."""
    remedy: str
    """What to do when it does not."""


class TwoEnds(Record):
    """What the agent runs with a program at either end: server first, then the client at its instant."""

    index: int
    client_node: str
    server_node: str
    client_argv: tuple[str, ...]
    server_argv: tuple[str, ...]
    start_ns: int
    expected_end_ns: int
    """The earliest instant at which the client can be done."""
    deadline_ns: int
    """When a client that still runs is interrupted."""


class FlowTask(TwoEnds):
    """One flow."""


class BatchedFlow(Record):
    """One flow of given bytes, which a program sends with others."""

    index: int
    port: int
    """Of its receiver."""
    cport: int
    """The sender's, of the first stream."""
    parallel: int
    """Streams."""
    bytes: int
    """Of all streams together."""
    start_ns: int
    deadline_ns: int
    """When it is given up."""


class BatchTask(TwoEnds):
    """Many flows: the agent tells both programs of them, and the sender's when the flows' time began."""

    flows: tuple[BatchedFlow, ...]
    """In the order of their starts."""


class PingTask(Record):
    """How the agent pings beside the flows; it tells the program when the flows' time began."""

    index: int
    node: str
    argv: tuple[str, ...]
    start_ns: int
    patience_ns: int
    """How long after the last request the program may wait for answers."""


class StepTask(Record):
    """Commands to carry out at one instant."""

    at_ns: int
    commands: tuple[Command, ...]
    counted: tuple[Capture, ...] = ()
    """What prints counters as JSON: asked right before the commands and right after them."""


class GateTask(Record):
    """A link that delivers by the opportunities of a trace: see :mod:`fabbbr.agent.gate`."""

    node: str
    """The wire of the link, which takes frames in at ``into`` and puts them out at ``out``."""
    into: str
    out: str
    queue_node: str
    """The switch at the head of the link, for which the gate queues."""
    interface: str
    """Of that switch, towards the link."""
    limit_bytes: int
    every_ns: float
    """From one opportunity to the next until the flows begin."""
    gaps_ms: str
    """As in :class:`fabbbr.model.LinkTrace`."""


class Tap(Record):
    """Where packets are kept: a packet socket whose ring holds all of them until the flows are over.

    Without ``arrivals_for`` it keeps what comes in and goes out at ``interface``; with it what goes out there
    and what comes in at any interface of the node for one of these hosts.
    """

    node: str
    interface: str
    arrivals_for: tuple[str, ...] = ()
    """IPv4 addresses."""
    keeps_bytes: int
    """Of a frame."""
    slots: int
    slot_bytes: int

    @property
    def ring_bytes(self) -> int:
        """What it takes of the kernel's memory."""
        return self.slots * self.slot_bytes


class CaptureTask(Record):
    """A pcapng file, made of what one or more taps kept."""

    file: str
    taps: tuple[Tap, ...]


class Burst(Record):
    """Pre-flight probe: ``packets`` UDP datagrams at one instant, received with kernel time stamps.

    Then ``refills`` times ``refill_packets`` more, one every ``refill_every_ns`` from that instant on.
    """

    sender: str
    receiver: str
    receiver_address: str
    packets: int
    refills: int
    refill_packets: int
    refill_every_ns: int
    spare_ns: int
    """How late a refill may come before the queue has run dry; where the clock is real, that happens."""
    payload_bytes: int
    source_port: int
    port: int
    watch_node: str
    """The node whose queues are read while the burst stands in them."""
    watch_ns: int
    """How long after the sending the whole burst stands in the queue."""
    drain_ns: int


class Job(Record):
    """Everything the agent does for one cell, decided beforehand: it computes nothing itself."""

    format_version: int = JOB_VERSION
    nodes: tuple[Node, ...]
    cables: tuple[Cable, ...]
    mtu_bytes: int
    bottleneck_bps: int
    window_bytes: int
    """Socket buffer limit of the hosts: decides how much memory the emulation needs."""
    reports_bytes: int = 0
    """What iperf3 keeps in memory until it prints its reports, both ends of all flows."""
    requires: tuple[Requirement, ...] = ()
    configure: tuple[Command, ...]
    aqms: tuple[Command, ...] = ()
    """Queueing disciplines that are put in when the bursts have measured the rates."""
    readback: tuple[Capture, ...]
    """Asked after that."""
    pings: tuple[Capture, ...]
    burst: Burst | None
    burst_back: Burst | None = None
    """Through a way back with a rate of its own."""
    train: Burst | None = None
    """Small packets one by one, where some of the data comes late: of refills of one packet each."""
    delay_tables: dict[str, str] = Field(default_factory=dict)
    """Name → what tc reads where netem's delay has a distribution of that name."""
    settle_ns: int
    flows_at_ns: int | None = None
    """Instant of the machine's monotonic clock from which on nothing depends on what was before: the flows'
    time begins there. None where the clock is not ours to choose: they begin when all is ready."""
    anew: tuple[Command, ...] = ()
    """What to set again at that instant, so that it starts from fresh randomness."""
    modules: tuple[str, ...] = ()
    """Digests of the sources of congestion controls that the commands load: the place has them built."""
    flows: tuple[FlowTask, ...]
    batches: tuple[BatchTask, ...] = ()
    """Of flows that are not among ``flows``."""
    pinging: tuple[PingTask, ...] = ()
    """Beside the flows; over when these are."""
    steps: tuple[StepTask, ...]
    gates: tuple[GateTask, ...] = ()
    captures: tuple[CaptureTask, ...] = ()
    counted: tuple[Capture, ...] = ()
    """What prints further counters as JSON: asked when those of interfaces and queues are, before the flows
    and after them."""
    socket_nodes: tuple[str, ...]
    queue_nodes: tuple[str, ...]
    sample_period_ns: int
    end_ns: int
    """When the last flow must be over, counted from the first start."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Added to the environment of iperf3."""

    @property
    def ring_bytes(self) -> int:
        """What the rings of all taps take of the kernel's memory."""
        return sum(tap.ring_bytes for task in self.captures for tap in task.taps)

"""The place as a record: what a backend says of itself before any job is made.

A cell has nothing of a machine in it but, where it asks for one, the name of a kernel. Whatever differs
between a guest, a host with Mininet and a slice of several machines is here, as data: ``job`` and ``certify``
read it and never ask which backend it is.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from fabbbr.record import Record

ClockKind = Literal["virtual", "real"]


class Kernel(Record):
    """Of one machine."""

    release: str
    timer_hz: int
    """Ticks per second: the token bucket of a shaper must hold what is sent in one of them."""
    config_sha256: str | None = None
    sha256: str | None = None
    """Of the kernel's own file, where it is known."""
    source: str | None = None
    """What it was built of, where that is known: a package or a tree with its version, and patches."""


class Machine(Record):
    """One machine: a guest, a host, a node of a slice."""

    kernel: Kernel
    tools: dict[str, str] = Field(default_factory=dict)
    """Tool name → version line: iperf3, ss, tc, mininet, python."""
    image_sha256: str | None = None
    """Of a guest: the digest of kernel and root file system together."""


class Tolerances(Record):
    """How far what is measured may be from what was asked."""

    rtt_s: float
    """Of a ping, beyond its own serialisation."""
    rate: float
    """Relative, of the rate behind the bottleneck."""
    look_s: float
    """How much later than asked the full queue may have been looked at."""
    fills_buffer: bool
    """Whether the burst surely fills the buffer; where it does not, the limit that was read back must do."""
    network_loss: float = 0.0
    """Share of the packets that a cable of the network may lose; it is reported as the network's."""
    held_up: float = 0.0
    """Share of single packets that other work of the machine may hold up."""
    clock_s: float = 1e-3
    """How far apart the clocks of two machines may be beyond what was measured: bounds and drift together."""


VIRTUAL_TIME = Tolerances(rtt_s=10e-6, rate=0.002, look_s=10e-6, fills_buffer=True)
"""Exact but for what tools print: ping has microseconds."""
REAL_TIME = Tolerances(rtt_s=2e-3, rate=0.02, look_s=0.02, fills_buffer=False, held_up=0.02)
"""Between asking and doing stand a scheduler, other processes, and starts of programs."""


class ClockOffset(Record):
    """What a machine's monotonic clock shows more than that of the coordinator."""

    offset_s: FiniteFloat
    bound_s: Annotated[FiniteFloat, Field(ge=0)]
    """The truth is at most so far away: half of the shortest round trip."""


class MachineClock(Record):
    """The clock of one of several machines during one cell."""

    measured: dict[str, ClockOffset]
    """Stage → the offset just before it began; ``after``: when everything was over."""
    flows_s: FiniteFloat
    """The instant, on its own clock, that the stage of the flows began with; the same on all machines."""

    @property
    def uncertain_s(self) -> float | None:
        """How far an instant of the flows may be off: bounds before and after, and the drift between.

        None where one of the two was not measured.
        """
        first, last = self.measured.get("flows"), self.measured.get("after")
        if first is None or last is None:
            return None
        return first.bound_s + last.bound_s + abs(last.offset_s - first.offset_s)


class Pace(Record):
    """What a cell costs, roughly: an expectation to decide by."""

    packets_per_s: float
    """What one core forwards, acknowledgements and all."""
    overhead_s: float
    """Wall seconds of a cell that nothing below accounts for."""
    handled_per_s: float = 14e3
    """Packets in the agent's hands: behind a link that delivers by a trace."""
    sized_per_s: float = 220e3
    """Packets of flows with a size, whose payload the agent writes and reads."""
    datagrams_per_s: float = 7e3
    """Of UDP, each of which the agent sends at its instant and takes in."""
    samples_per_s: float = 6.5e3
    """Readings of a queue or of a socket."""
    whole_per_s: float = 3e6
    """Segments of super-packets that pass whole: with offloads, where no rate limit cuts them."""
    node_s: float = 0.25
    """To set up a node and to take it away."""
    flow_s: float = 0.14
    """To start a flow's programs and to end them."""
    batched_s: float = 2e-3
    """For a flow that shares its programs with others."""


ONE_CORE = Pace(packets_per_s=400e3, overhead_s=0.0)
"""Of a guest, one cell on each of two slow cores: measured over all cells of a scoreboard."""


class Testbed(Record):
    """The place where a cell runs: one machine or several, on whose clock, and how exact it can be."""

    __test__ = False
    """Not a test class, whatever pytest makes of the name."""

    backend: str
    clock: ClockKind
    tolerances: Tolerances
    pace: Pace = ONE_CORE
    machines: dict[str, Machine]
    """Never empty; nodes that are not placed stand on the first."""
    placement: dict[str, str] = Field(default_factory=dict)
    """Node (host, switch or wire) → machine. A wire that is not placed stands on the machine of the switch
    beside it, where that switch's network card is."""
    interfaces: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Link → host or switch at its end → MAC address of the interface that carries the link there, for
    interfaces that are there already. Where none is named the agent makes a veth pair."""
    network_rtt_s: dict[str, float] = Field(default_factory=dict)
    """Link → round trip in seconds that the network itself has on it, as measured."""
    emulates_rtt: bool = True
    """Whether netem adds what the network's round trip lacks. Where not, cells must ask for what is there."""

    def machine_of(self, node: str) -> str:
        """The name of the machine on which ``node`` stands."""
        return self.placement.get(node, next(iter(self.machines)))

    @property
    def kernel_releases(self) -> tuple[str, ...]:
        """Of all machines, each once."""
        return tuple(dict.fromkeys(machine.kernel.release for machine in self.machines.values()))

    @property
    def least_timer_hz(self) -> int:
        """Of all machines: it makes the largest bursts."""
        return min(machine.kernel.timer_hz for machine in self.machines.values())

    def kernel_of(self, node: str) -> Kernel:
        """The kernel under ``node``."""
        return self.machines[self.machine_of(node)].kernel

    def tool_of(self, node: str, tool: str) -> str | None:
        """What ``tool`` says of its version on ``node``; None where it is not known."""
        return self.machines[self.machine_of(node)].tools.get(tool)

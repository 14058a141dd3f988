"""What is put on an emulated path, and what came of it: the same for the guest and for its rivals."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from fabbbr.units import Duration, Rate


@dataclass(frozen=True, kw_only=True)
class Load:
    """Bulk flows of one congestion control through one bottleneck."""

    rate: Rate
    rtt: Duration
    seconds: float
    """Of the flows, on the clock of the path."""
    cca: str = "cubic"
    mtu_bytes: int = 1500
    flows: int = 1
    buffer: str = "1 BDP"

    @property
    def name(self) -> str:
        """For tables: what differs between loads, without the congestion control."""
        flows = "1 flow" if self.flows == 1 else f"{self.flows} flows"
        return f"{self.rate}, {self.rtt}, MTU {self.mtu_bytes}, {flows}"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One repetition. None: this path cannot tell."""

    packets: int
    """Data packets that left the bottleneck."""
    cpu_s: float
    wall_s: float
    """Of the whole, starting and stopping included."""
    flow_s: float
    """Seconds that the flows ran, on the clock of the path."""
    goodput_bps: float
    """What receivers got, over the whole run, slow start included."""
    retransmits: int | None = None
    acks: int | None = None
    digest: str | None = None
    """Of everything the flows' tools printed: equal digests, equal runs."""

    @property
    def packets_per_cpu_s(self) -> float:
        """Nothing is subtracted: starting and stopping count."""
        return self.packets / self.cpu_s

    @property
    def wall_per_clock_s(self) -> float:
        """Wall seconds per second on the clock of the path; 1 is real time."""
        return self.wall_s / self.flow_s


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Median and range of repetitions."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Of at least one value."""
        return cls(middle=median(values), low=min(values), high=max(values))

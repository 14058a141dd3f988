"""What a bottleneck can carry when: at a rate that steps change, or at the opportunities of a trace."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Protocol

from fabbbr.model import Cell, LinkTrace, LinkWay
from fabbbr.units import ETHERNET_HEADER_BYTES, NANOSECONDS_PER_SECOND, Duration, Rate

OPPORTUNITY_BYTES = 1500
"""What passes at one opportunity of a link trace, of IP packets."""
TRACE_BIN = Duration(100_000_000)
"""Where tc holds the queue a trace is a rate for each: several round trips of a cellular path, and 15 kB at
1.2 Mbit/s."""


def opportunity_s(rate: Rate) -> float:
    """Seconds from one opportunity to the next where they are even and make up ``rate``.

    >>> opportunity_s(Rate.parse("12 Mbit/s"))
    0.001
    """
    return OPPORTUNITY_BYTES * 8 / rate.bps


_NS_PER_MS = 1_000_000
_BIN_S = 1.0
"""As flows are reported."""
_LITTLE = 1e-6
"""Of a bin: one that is shorter is none."""


class Capacity(Protocol):
    """Of one way through a bottleneck; seconds from the start of the first flow."""

    @property
    def changes(self) -> bool:
        """Whether it is another at another time."""

    def bits(self, start_s: float, end_s: float) -> float:
        """The most bits of Ethernet frames that pass between two instants."""

    def curve(self, end_s: float) -> tuple[list[float], list[float]]:
        """Instants until ``end_s``, and the rate from each on [bit/s]; of what comes singly, by seconds."""


@dataclass(frozen=True, kw_only=True)
class RateOverTime:
    """The rate of a bottleneck as its steps change it; seconds from the start of the first flow."""

    since_s: tuple[float, ...]
    """From when on each rate holds; the first from 0."""
    bps: tuple[int, ...]

    @classmethod
    def of(cls, cell: Cell, link: str, *, reverse: bool = False) -> RateOverTime:
        """That of one of the cell's bottlenecks, or of its way back; one of its own has no steps."""
        back = cell.bottlenecks[link].reverse
        if reverse and back is not None:
            return cls(since_s=(0.0,), bps=(back.rate.bps,))
        changes = {
            step.at.seconds: step.rate.bps
            for step in sorted(cell.steps, key=lambda step: step.at)
            if step.link == link and step.rate is not None
        }
        return cls(since_s=(0.0, *changes), bps=(cell.bottlenecks[link].rate.bps, *changes.values()))

    @property
    def changes(self) -> bool:
        """Whether a step sets another."""
        return len(self.bps) > 1

    def at(self, t_s: float) -> int:
        """Bit/s from ``t_s`` on."""
        return self.bps[max(bisect_right(self.since_s, t_s) - 1, 0)]

    def most(self, start_s: float, end_s: float) -> int:
        """The highest rate [bit/s] between two instants."""
        return max(self.during(start_s, end_s))

    def during(self, start_s: float, end_s: float) -> tuple[int, ...]:
        """All rates [bit/s] between two instants, in order."""
        first, last = bisect_right(self.since_s, start_s) - 1, bisect_right(self.since_s, end_s)
        return self.bps[max(first, 0) : max(last, 1)]

    def bits(self, start_s: float, end_s: float) -> float:
        """What it can serve between two instants."""
        edges = [start_s, *(at_s for at_s in self.since_s if start_s < at_s < end_s), max(end_s, start_s)]
        return sum((end - start) * self.at(start) for start, end in pairwise(edges))

    def curve(self, end_s: float) -> tuple[list[float], list[float]]:
        """As :class:`Capacity` has it: a step at each change, however short."""
        held = self.during(0.0, end_s)
        return [*self.since_s[: len(held)], end_s], [float(bps) for bps in (*held, held[-1])]


@dataclass(frozen=True, kw_only=True)
class Opportunities:
    """A trace, from the start of the first flow on, over and over."""

    times_ms: tuple[int, ...]
    """Of one pass; the last is its length."""
    bits_each: float
    """What passes at each, in bits of Ethernet frames."""

    @classmethod
    def of(cls, trace: LinkTrace, *, mtu_bytes: int = OPPORTUNITY_BYTES) -> Opportunities:
        """Those of a bottleneck that delivers by ``trace``, which counts IP packets: here full ones."""
        frames = (mtu_bytes + ETHERNET_HEADER_BYTES) / mtu_bytes
        return cls(times_ms=_times_ms(trace.gaps_ms), bits_each=8 * OPPORTUNITY_BYTES * frames)

    @property
    def changes(self) -> bool:
        """Always: between two opportunities nothing passes."""
        return True

    def by(self, t_s: float) -> int:
        """How many there are up to and at ``t_s``."""
        return opportunities_by(round(max(t_s, 0.0) * NANOSECONDS_PER_SECOND), self.times_ms)

    def at(self, number: int) -> float:
        """When that one comes [s]; the first is 1."""
        passes, before = divmod(number - 1, len(self.times_ms))
        return (passes * self.times_ms[-1] + self.times_ms[before]) / 1e3

    def longest_s(self, count: int) -> float:
        """How long so many take to come at the most, whenever one begins to wait [s]."""
        length, there = self.times_ms[-1], len(self.times_ms)
        passes, more = divmod(count, there)
        last_ms = (*self.times_ms, *(length + time for time in self.times_ms[:more]))
        longest_ms = max(last_ms[place + more] - time for place, time in enumerate(self.times_ms))
        return (passes * length + longest_ms) / 1e3

    def bits(self, start_s: float, end_s: float) -> float:
        """What it can serve after ``start_s``, up to and at ``end_s``."""
        return self.bits_each * (self.by(end_s) - self.by(start_s))

    def curve(self, end_s: float) -> tuple[list[float], list[float]]:
        """As :class:`Capacity` has it: the mean of each second."""
        end_s = end_s if end_s > 0 else _BIN_S
        edges = [*(number * _BIN_S for number in range(max(math.ceil(end_s / _BIN_S - _LITTLE), 1))), end_s]
        means = [self.bits(*each) / (each[1] - each[0]) for each in pairwise(edges)]
        return edges, [*means, means[-1]]


def opportunities_by(time_ns: int, times_ms: Sequence[int]) -> int:
    """How many a trace has up to and at ``time_ns``, over as many passes as it takes.

    ``times_ms`` are those of one pass, not decreasing; the last is its length.
    """
    passes, rest_ns = divmod(time_ns, times_ms[-1] * _NS_PER_MS)
    return passes * len(times_ms) + bisect_right(times_ms, rest_ns // _NS_PER_MS)


@lru_cache(maxsize=4)
def _times_ms(gaps_ms: str) -> tuple[int, ...]:
    gaps = (word.partition("x") for word in gaps_ms.split())
    return tuple(accumulate(int(gap) for gap, _, count in gaps for _ in range(int(count or 1))))


def filled_anew_s(cell: Cell, link: str) -> frozenset[float]:
    """When a token bucket of the link is full again, for a step changes its rate or its buffer [s]."""
    return frozenset(
        step.at.seconds
        for step in cell.steps
        if step.link == link and (step.rate is not None or step.buffer_bytes is not None)
    )


def capacity_of(cell: Cell, link: str, *, reverse: bool = False) -> Capacity:
    """Of one of the cell's bottlenecks, or of its way back."""
    trace = way_of(cell, link, reverse=reverse).trace
    if trace is None:
        return RateOverTime.of(cell, link, reverse=reverse)
    return Opportunities.of(trace, mtu_bytes=cell.mtu_bytes)


def way_of(cell: Cell, link: str, *, reverse: bool = False) -> LinkWay:
    """How one of the cell's bottlenecks serves what goes there, or back: as there, where it says no other."""
    queue = cell.bottlenecks[link]
    return queue.reverse if reverse and queue.reverse is not None else queue

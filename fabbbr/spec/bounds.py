"""How large and how small each quantity may be, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from fabbbr.spec.document import Loc, Mistake
from fabbbr.units import NANOSECONDS_PER_SECOND, UDP_IPV4_HEADER_BYTES, Duration, Frequency, Rate, Ratio, Size

SLOWEST_RATE = Rate(8_000)
"""A 1500-byte frame takes 1.5 s at 8 kbit/s; TCP gives up below."""

FASTEST_RATE = Rate(10**12)
LONGEST_RTT = Duration(60 * NANOSECONDS_PER_SECOND)
"""A lost packet is not sent again before a round trip; TCP's own timers end at two minutes."""

SHORTEST_WAIT = Duration(10_000)
"""That an AQM is told: the kernel keeps it in steps of 1024 ns, and tc in microseconds."""

LONGEST_AGGREGATION = Duration(NANOSECONDS_PER_SECOND)
"""Far beyond any link layer; what waits longer than TCP's least retransmission
timeout of 200 ms is sent again."""

LARGEST_BURST_BYTES = 16_000_000
"""Twice as much is sent at once before the flows, to measure the bucket."""

LONGEST_BURST = Duration(60 * NANOSECONDS_PER_SECOND)
"""In which a bucket fills, before the flows too; tc keeps it as time, to 274 s."""

WINDOW_OF_HANDSHAKE_BYTES = 65_535

MOST_REORDERED = Ratio.parse("50 %")
"""Where more come late, the others are early."""

REORDERED_STEP = Ratio.parse("0.01 %")
"""netem draws a delay evenly from a table of at most 16 384 numbers (NETEM_DIST_MAX)."""

LATEST = Duration(NANOSECONDS_PER_SECOND)
"""A jitter of netem has 31 bits, of nanoseconds; what is later than TCP's timeout is sent again by it."""

LONGEST_RUN = Duration(86_400 * NANOSECONDS_PER_SECOND)
"""What ``iperf3 -t`` takes at most."""

FASTEST_MAXRATE = Rate(8 * (2**32 - 2))
"""fq keeps it in bytes per second, in 32 bits, of which the largest number means none."""

LARGEST_TRANSFER = Size(10**15)
RAREST_ARRIVALS = Frequency(1)
MOST_ARRIVALS = Frequency(10_000 * 10**6)
"""In the shortest duration, a second, more than a cell can have."""

SMALLEST_DATAGRAM = Size(UDP_IPV4_HEADER_BYTES + 16)
"""iperf3 puts time and number of each into its first 16 bytes."""

SHORTEST_CHUNK = Duration(10_000_000)
"""At the slowest rate that is 10 bytes."""

SHORTEST_PING = Duration(1_000_000)
"""0.8 Mbit/s of requests, and what a program in Python can still send evenly."""

SHORTEST_SAMPLE_PERIOD = Duration(1_000_000)


_Quantity = TypeVar("_Quantity", Rate, Duration, Size, Frequency, Ratio)


def within(loc: Loc, value: _Quantity | None, least: _Quantity, most: _Quantity) -> Iterator[Mistake]:
    """That ``value``, where there is one, is not between ``least`` and ``most``."""
    if value is not None and not least <= value <= most:
        yield loc, f"{value} is out of range; give {least} to {most}"


def rate_within(loc: Loc, rate: Rate | None) -> Iterator[Mistake]:
    """That ``rate`` is none of a bottleneck."""
    yield from within(loc, rate, SLOWEST_RATE, FASTEST_RATE)


def rtt_within(loc: Loc, rtt: Duration | None) -> Iterator[Mistake]:
    """That ``rtt`` is none of a path, or cannot be halved."""
    yield from within(loc, rtt, Duration(2), LONGEST_RTT)
    if rtt is not None and rtt.ns % 2:
        yield loc, f"{rtt} is an odd number of nanoseconds, and half of it goes each way; make it even"

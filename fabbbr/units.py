"""Exact quantities: rate, duration, size, ratio, and the size of a queue.

Each is a frozen integer in its base unit; parsing refuses what is ambiguous (``Mbps`` is megabits to
people and megabytes to ``tc``) and what does not come out whole, and ``parse(str(x)) == x`` always.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from fabbbr import limits
from fabbbr.counts import counted
from fabbbr.errors import UnitError
from fabbbr.foreign import shown

if TYPE_CHECKING:
    from typing_extensions import Self

_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*(\S.*?)?\s*")

NANOSECONDS_PER_SECOND = 1_000_000_000


def _split(text: str, kind: str) -> tuple[Fraction, str]:
    if len(text) > limits.QUANTITY_CHARACTERS:
        message = f"{shown(text)} is not a {kind}: at most {limits.QUANTITY_CHARACTERS} characters are read"
        raise UnitError(message)
    match = _NUMBER.fullmatch(text)
    if match is None:
        message = f"{text!r} is not a {kind}: expected a number and a unit"
        raise UnitError(message)
    return Fraction(match[1]), match[2] or ""


def _decimal(value: Fraction) -> str | None:
    """The finite decimal form of ``value``, or None when there is none of at most 12 places."""
    scaled = value * 10**12
    if scaled.denominator != 1:
        return None
    whole, part = divmod(abs(scaled.numerator), 10**12)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}" + (f".{part:012d}".rstrip("0") if part else "")


@dataclass(frozen=True, order=True)
class _Quantity:
    """An integer number of base units."""

    base: int

    kind: ClassVar[str]
    example: ClassVar[str]
    units: ClassVar[dict[str, Fraction]]
    canonical: ClassVar[tuple[str, ...]]
    refused: ClassVar[dict[str, str]] = {}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``text`` such as ``"100 Mbit/s"``; raise UnitError naming what is allowed."""
        number, unit = _split(text, cls.kind)
        if unit in cls.refused:
            message = f"{text!r}: {cls.refused[unit]}"
            raise UnitError(message)
        if unit not in cls.units:
            said = f"unknown unit {unit!r}" if unit else "no unit"
            message = (
                f"{text!r} is not a {cls.kind}: {said}; write it as in {cls.example!r} "
                f"(units: {', '.join(u for u in cls.units if u)})"
            )
            raise UnitError(message)
        return cls._exact(number * cls.units[unit], text)

    @classmethod
    def _exact(cls, value: Fraction, text: str) -> Self:
        if value.denominator != 1:
            message = f"{text!r} is not a whole number of {cls.canonical[-1]}; nothing is rounded"
            raise UnitError(message)
        if value < 0:
            message = f"{text!r}: a {cls.kind} cannot be negative"
            raise UnitError(message)
        return cls(int(value))

    def __str__(self) -> str:
        """The shortest exact form, readable by :meth:`parse`."""
        for unit in self.canonical:
            scaled = Fraction(self.base) / self.units[unit]
            decimal = _decimal(scaled)
            if decimal is not None and (scaled >= 1 or unit == self.canonical[-1]):
                return f"{decimal} {unit}"
        return f"{self.base} {self.canonical[-1]}"


def _si(suffix: str, *prefixes: str) -> dict[str, Fraction]:
    powers = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12}
    return {prefix + suffix: Fraction(10 ** powers[prefix]) for prefix in prefixes}


class Rate(_Quantity):
    """A link or pacing rate; ``base`` is bit/s.

    >>> str(Rate.parse("10 Gbit/s")), Rate.parse("0.5 kbit/s").base
    ('10 Gbit/s', 500)
    """

    kind = "rate"
    example = "100 Mbit/s"
    units = _si("bit/s", "", "k", "M", "G", "T")
    canonical = ("Tbit/s", "Gbit/s", "Mbit/s", "kbit/s", "bit/s")
    refused = {
        u: f"{u} means bits to people and bytes to tc; write {u[0]}bit/s (bits per second)"
        for u in ("kbps", "Mbps", "Gbps", "mbps", "gbps", "Kbps")
    }

    @property
    def bps(self) -> int:
        """Bits per second."""
        return self.base


class Duration(_Quantity):
    """A span of time; ``base`` is nanoseconds.

    >>> Duration.parse("2 min").seconds, str(Duration.parse("0.1 s"))
    (120.0, '100 ms')
    """

    kind = "duration"
    example = "100 ms"
    units = {
        "ns": Fraction(1),
        "us": Fraction(1_000),
        "µs": Fraction(1_000),
        "ms": Fraction(1_000_000),
        "s": Fraction(NANOSECONDS_PER_SECOND),
        "min": Fraction(60 * NANOSECONDS_PER_SECOND),
        "h": Fraction(3600 * NANOSECONDS_PER_SECOND),
    }
    canonical = ("s", "ms", "us", "ns")

    @property
    def ns(self) -> int:
        """Nanoseconds."""
        return self.base

    @property
    def seconds(self) -> float:
        """Seconds, as a float: for display and arithmetic that tolerates rounding."""
        return self.base / NANOSECONDS_PER_SECOND


class Size(_Quantity):
    """An amount of data; ``base`` is bytes. kB is 1000 bytes, KiB is 1024.

    >>> Size.parse("2.5 MB").bytes, Size.parse("2.5 MiB").bytes
    (2500000, 2621440)
    """

    kind = "size"
    example = "250 kB"
    units = _si("B", "", "k", "M", "G", "T") | {
        f"{p}iB": Fraction(1024**i) for i, p in enumerate("KMGT", start=1)
    }
    canonical = ("TB", "GB", "MB", "kB", "B")
    refused = {
        "KB": "KB is read as 1000 and as 1024 bytes; write kB (1000) or KiB (1024)",
        "K": "write kB (1000 bytes) or KiB (1024 bytes)",
        "M": "write MB (10^6 bytes) or MiB (2^20 bytes)",
    }

    @property
    def bytes(self) -> int:
        """Bytes."""
        return self.base


class Frequency(_Quantity):
    """How often something happens; ``base`` is times in a million seconds.

    >>> str(Frequency.parse("2.5 /s")), Frequency.parse("0.1 /s").per_s
    ('2.5 /s', 0.1)
    """

    kind = "frequency"
    example = "5 /s"
    units = {"/s": Fraction(10**6)}
    canonical = ("/s",)

    @classmethod
    def _exact(cls, value: Fraction, text: str) -> Self:
        if value.denominator != 1:
            message = f"{text!r} is finer than a millionth per second; nothing is rounded"
            raise UnitError(message)
        return super()._exact(value, text)

    @property
    def per_s(self) -> float:
        """Times in a second."""
        return self.base / 10**6


class Ratio(_Quantity):
    """A dimensionless share such as a loss rate; ``base`` counts parts in 10^12.

    >>> str(Ratio.parse("0.001 %")), Ratio.parse("1e-4").value
    ('0.001 %', 0.0001)
    """

    kind = "ratio"
    example = "0.1 %"
    units = {
        "%": Fraction(10**10),
        "": Fraction(10**12),
        "ppm": Fraction(10**6),
        "ppb": Fraction(10**3),
    }
    canonical = ("%",)

    @classmethod
    def _exact(cls, value: Fraction, text: str) -> Self:
        if value == 10**12 and _split(text, cls.kind)[1] == "":
            message = f"{text!r} may mean 1 % or all of it; write '1 %' or '100 %'"
            raise UnitError(message)
        if value > 10**12:
            message = f"{text!r}: a ratio cannot exceed 100 %"
            raise UnitError(message)
        if value.denominator != 1:
            message = f"{text!r} is finer than one part in 10^12; nothing is rounded"
            raise UnitError(message)
        return super()._exact(value, text)

    @property
    def value(self) -> float:
        """The share as a float between 0 and 1."""
        return self.base / 10**12


@dataclass(frozen=True)
class QueueSize:
    """Of a buffer or token bucket, as asked: exactly one of bytes, packets, BDP (its multiple) and time."""

    size: Size | None = None
    packets: int | None = None
    bdp: Fraction | None = None
    time: Duration | None = None
    """That a full queue takes to drain at the rate of its link: the delay that it can add. In which a bucket
    fills."""

    @classmethod
    def parse(cls, text: str) -> QueueSize:
        """Read ``"250 kB"``, ``"100 packets"``, ``"0.5 BDP"`` or ``"200 ms"``."""
        number, unit = _split(text, "size")
        if number <= 0:
            message = f"{text!r} holds nothing; give it room for a packet at least"
            raise UnitError(message)
        if unit in ("BDP", "bdp"):
            return cls(bdp=number)
        if unit in ("packet", "packets"):
            if number.denominator != 1:
                message = f"{text!r}: packets are whole"
                raise UnitError(message)
            return cls(packets=int(number))
        if unit in Size.units or unit in Size.refused:
            return cls(size=Size.parse(text))
        if unit in Duration.units:
            return cls(time=Duration.parse(text))
        message = f"{text!r} is no size of a queue; write '250 kB', '100 packets', '0.5 BDP' or '200 ms'"
        raise UnitError(message)

    def bytes(self, *, rate: Rate, rtt: Duration, mtu_bytes: int) -> int:
        """Resolve to bytes.

        BDP is rate × rtt / 8, a packet is MTU + 14 bytes of Ethernet header, a time is rate × time / 8.
        Fractions of a byte are cut, never rounded up: a queue holds whole bytes.
        """
        if self.size is not None:
            return self.size.bytes
        if self.packets is not None:
            return self.packets * (mtu_bytes + ETHERNET_HEADER_BYTES)
        if self.time is not None:
            return int(bdp_bytes(rate, self.time))
        assert self.bdp is not None
        return int(self.bdp * bdp_bytes(rate, rtt))

    def __str__(self) -> str:
        """The form :meth:`parse` reads."""
        if self.size is not None:
            return str(self.size)
        if self.packets is not None:
            return counted(self.packets, "packet")
        if self.time is not None:
            return str(self.time)
        assert self.bdp is not None
        decimal = _decimal(self.bdp)
        return f"{decimal if decimal is not None else float(self.bdp)} BDP"


ETHERNET_HEADER_BYTES = 14
TCP_IPV4_HEADER_BYTES = 52
"""IPv4 (20) + TCP (20) + timestamps option (12): what Linux sends by default."""

LARGEST_SUPER_PACKET_BYTES = (1 << 16) - 1
"""Of an IPv4 packet, and so of a super-packet of IPv4."""

UDP_IPV4_HEADER_BYTES = 28
"""IPv4 (20) + UDP (8)."""


def bdp_bytes(rate: Rate, rtt: Duration) -> Fraction:
    """Bandwidth-delay product in bytes: rate [bit/s] × rtt [s] / 8.

    >>> int(bdp_bytes(Rate.parse("1 Gbit/s"), Duration.parse("20 ms")))
    2500000
    """
    return Fraction(rate.bps * rtt.ns, 8 * NANOSECONDS_PER_SECOND)


def goodput_ceiling(mtu_bytes: int) -> float:
    """The share of a tc rate that TCP payload can fill: (MTU - 52) / (MTU + 14).

    >>> round(goodput_ceiling(1500), 4), round(goodput_ceiling(9000), 4)
    (0.9564, 0.9927)
    """
    return (mtu_bytes - TCP_IPV4_HEADER_BYTES) / (mtu_bytes + ETHERNET_HEADER_BYTES)

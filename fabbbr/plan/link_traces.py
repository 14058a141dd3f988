"""Mahimahi link traces: a link that delivers now and then.

A trace has one whole number of milliseconds per line, each an opportunity to deliver 1500 bytes; it repeats
when it ends, its last line being its length. Where a queue of tc is asked for (an AQM, shaping both ways, a
buffer that changes), which cannot follow single opportunities, a trace becomes rates over bins; that keeps
the bytes of a bin and loses what is shorter than it.
"""

from __future__ import annotations

import io
import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

from fabbbr.capacity import OPPORTUNITY_BYTES, TRACE_BIN, opportunities_by
from fabbbr.errors import SpecError
from fabbbr.foreign import shown
from fabbbr.model import LinkTrace
from fabbbr.units import NANOSECONDS_PER_SECOND, Duration, Rate

STANDSTILL = Rate(8_000)
"""The rate of a bin without opportunities: about the least at which tc still sends a packet in seconds."""

_NS_PER_MS = 1_000_000
_MOST_DIGITS = 12
"""Thirty years of milliseconds."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Delivery opportunities in milliseconds from the start, not decreasing; the last is the length."""

    opportunities_ms: tuple[int, ...]
    start: Duration | None = None
    """How far in the file it begins; None: where the file does."""

    def begun(self, start: Duration) -> Trace:
        """As a run has it that begins at ``start``: right after the last opportunity until then.

        A pass is as long as before, with as many opportunities.
        """
        length = self.opportunities_ms[-1]
        since = start.ns // _NS_PER_MS % length
        passed = bisect_right(self.opportunities_ms, since) if since else 0
        begins = self.opportunities_ms[passed - 1] if passed else 0
        later = (time - begins for time in self.opportunities_ms[passed:])
        again = (length + time - begins for time in self.opportunities_ms[:passed])
        return Trace(opportunities_ms=(*later, *again), start=start)

    def instant(self, seed: str) -> Duration:
        """One of it that is drawn from ``seed``, all equally likely."""
        length = self.opportunities_ms[-1]
        return Duration(int(random.Random(seed).random() * length) * _NS_PER_MS)  # noqa: S311 - no secret

    @property
    def mean_rate(self) -> Rate:
        """Over one pass, in whole bit/s; a remainder is cut, as a link cannot send part of a bit."""
        bits = len(self.opportunities_ms) * OPPORTUNITY_BYTES * 8
        return Rate(bits * 1000 // self.opportunities_ms[-1])

    def link(self, name: str) -> LinkTrace:
        """The trace as a link has it."""
        return LinkTrace(
            name=name,
            opportunities=len(self.opportunities_ms),
            length_ms=self.opportunities_ms[-1],
            most_at_once=self._most_at_once,
            gaps_ms=self._gaps_ms,
        )

    @cached_property
    def _gaps_ms(self) -> str:
        return " ".join(self._gaps())

    def _gaps(self) -> Iterator[str]:
        """Milliseconds from each opportunity to the next, ``x`` and a count where several are alike."""
        gaps = (later - earlier for earlier, later in pairwise((0, *self.opportunities_ms)))
        for gap, alike in groupby(gaps):
            count = sum(1 for _ in alike)
            yield f"{gap}x{count}" if count > 1 else f"{gap}"

    @cached_property
    def _most_at_once(self) -> int:
        """Over any second, also one that goes on into the next pass."""
        length = self.opportunities_ms[-1]
        again = -(-1000 // length)
        times = [number * length + time for number in range(again + 1) for time in self.opportunities_ms]
        first, most = 0, 0
        for number, time in enumerate(times):
            while time - times[first] >= 1000:
                first += 1
            most = max(most, number - first + 1)
        return most

    def rates(self, *, until: Duration, bin_: Duration = TRACE_BIN) -> tuple[tuple[Duration, Rate], ...]:
        """When the rate changes and to what, from 0 to ``until``; equal neighbours are joined.

        An opportunity at the border of two bins counts to the earlier one.
        """
        changes: list[tuple[Duration, Rate]] = []
        for start in range(0, until.ns, bin_.ns):
            count = opportunities_by(start + bin_.ns, self.opportunities_ms) - opportunities_by(
                start, self.opportunities_ms
            )
            bits_per_s = count * OPPORTUNITY_BYTES * 8 * NANOSECONDS_PER_SECOND // bin_.ns
            rate = max(Rate(bits_per_s), STANDSTILL)
            if not changes or changes[-1][1] != rate:
                changes.append((Duration(start), rate))
        return tuple(changes)


def parse(text: str, *, source: str) -> Trace:
    """Read a trace; raise SpecError with the line that is none."""
    times: list[int] = []
    for number, line in enumerate(io.StringIO(text), start=1):
        word = line.strip()
        if not word.isascii() or not word.isdecimal() or len(word) > _MOST_DIGITS:
            message = f"{source}:{number}: {shown(line.rstrip())} is not a whole number of milliseconds"
            raise SpecError(message)
        if times and int(word) < times[-1]:
            message = f"{source}:{number}: {word} goes back in time (after {times[-1]}); sort the trace"
            raise SpecError(message)
        times.append(int(word))
    if not times or times[-1] == 0:
        message = f"{source}: a trace needs an opportunity after 0 ms; record a longer one"
        raise SpecError(message)
    return Trace(opportunities_ms=tuple(times))

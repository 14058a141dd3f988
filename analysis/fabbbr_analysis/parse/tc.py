"""``tc -s -j qdisc show`` → one record per qdisc of a sample.

The same fields for every kind (tbf, netem, codel, fq_codel, cake, red, pie, fq_pie, fq, htb, prio, ...):
iproute2 prints the generic statistics alike, and only the name under which it counts ECN marks differs.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from fabbbr.errors import ParseError
from fabbbr_analysis.parse.concatenated import values

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Tin(msgspec.Struct, frozen=True):
    ecn_mark: _Count | None = None


class Qdisc(msgspec.Struct, frozen=True, kw_only=True):
    """One qdisc as iproute2 prints it; absent fields are None."""

    kind: str
    dev: str | None = None
    handle: str | None = None
    parent: str | None = None
    """None for a root qdisc."""
    bytes: _Count | None = None
    packets: _Count | None = None
    drops: _Count | None = None
    overlimits: _Count | None = None
    requeues: _Count | None = None
    backlog: _Count | None = None
    """Bytes."""
    qlen: _Count | None = None
    """Packets."""
    ecn_mark: _Count | None = None
    """Of codel, fq_codel, pie, fq_pie."""
    marked: _Count | None = None
    """Of red, choke."""
    ce_mark: _Count | None = None
    """Of fq; of codel and fq_codel those that had waited longer than ``ce_threshold``."""
    tins: tuple[_Tin, ...] = ()
    """Of cake, which counts marks per tin."""

    @property
    def ecn_marks(self) -> int | None:
        """Packets marked instead of dropped; None when the kind does not count them.

        CoDel counts in two places, and in both what it marks anyhow and has waited longer than the threshold.
        It marks nothing before 5 ms: with a threshold up to that ``ce_mark`` is of all, and the larger of
        the two is never too many.
        """
        counted = [marks for marks in (self.ecn_mark, self.marked, self.ce_mark) if marks is not None]
        if counted:
            return max(counted)
        per_tin = [tin.ecn_mark for tin in self.tins if tin.ecn_mark is not None]
        return sum(per_tin) if per_tin else None


_DECODER = msgspec.json.Decoder(list[Qdisc])


def parse_tc(text: bytes, *, source: str) -> list[list[Qdisc]]:
    """Read the samples in order: JSON arrays, a line each or one right after the other.

    Raises ParseError naming ``source`` and the line or the sample.
    """
    samples: list[list[Qdisc]] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            samples.append(_DECODER.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _parse_concatenated(text, source, number)
    return samples


def _parse_concatenated(text: bytes, source: str, first_bad_line: int) -> list[list[Qdisc]]:
    """Read arrays that lines do not separate, at a tenth of the speed."""
    samples: list[list[Qdisc]] = []
    try:
        for value in values(text.decode("utf-8", errors="replace")):
            samples.append(msgspec.convert(value, list[Qdisc]))  # noqa: PERF401 - an error says how many were read
    except (ValueError, RecursionError) as error:
        message = (
            f"{source}, near line {first_bad_line}, sample {len(samples) + 1}: not a JSON array of qdiscs as "
            f"'tc -s -j qdisc' prints it ({error}); run the cell again"
        )
        raise ParseError(message) from None
    return samples

"""What will not do what its words say, told before anything is run. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fabbbr.counts import counted
from fabbbr.model import Cell
from fabbbr.physics import IdleAqm, acts_after_in_words, deep_buckets, idle_aqms, without_marks
from fabbbr.units import Size


def doubts_in_words(cells: Sequence[Cell]) -> list[str]:
    """AQMs that never act, DCTCP without marks, buckets deeper than their path; empty without any."""
    of = len({cell.condition for cell in cells})
    idle = [_idle(aqm, list(where.values()), of) for aqm, where in sorted(idle_aqms(cells).items())]
    return [*idle, *_without_marks(cells, of), *_deep_buckets(cells, of)]


def _where(conditions: int, of: int) -> str:
    return f"in {conditions} of {counted(of, 'condition')} " if of > 1 else ""


def _idle(aqm: str, idle: Sequence[IdleAqm], of: int) -> str:
    drained_s = [each.full_s for each in idle]
    ends = dict.fromkeys(f"{1e3 * end:.3g}" for end in (min(drained_s), max(drained_s)))
    return (
        f"{_where(len(idle), of)}{aqm} drops as taildrop does: it acts on packets that have waited for "
        f"{acts_after_in_words(idle)}, and a full buffer drains in {' to '.join(ends)} ms; "
        "a deeper buffer lets it act"
    )


def _without_marks(cells: Sequence[Cell], of: int) -> list[str]:
    found = without_marks(cells)
    if not found:
        return []
    said = f"{_where(len(found), of)}dctcp does what reno does, for nothing marks its packets"
    return [f"{said}; ecn: true and an AQM let it answer marks"]


def _deep_buckets(cells: Sequence[Cell], of: int) -> list[str]:
    found = deep_buckets(cells)
    if not found:
        return []
    bucket, path = (Size(bytes_) for bytes_ in max(found.values()))
    return [
        _where(len(found), of)
        + f"the token bucket holds a millisecond of the rate, up to {bucket}, and the path no more ({path}): "
        "so much passes at once after a pause; burst: 2 packets keeps to the rate"
    ]

"""AQMs that never act, said before anything is run. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fabbbr.counts import counted
from fabbbr.model import Cell
from fabbbr.physics import IdleAqm, acts_after_in_words, idle_aqms


def idle_in_words(cells: Sequence[Cell]) -> list[str]:
    """Say of each AQM in which conditions its buffer is full before it acts; empty where each may."""
    of = len({cell.condition for cell in cells})
    return [_said(aqm, list(where.values()), of) for aqm, where in sorted(idle_aqms(cells).items())]


def _said(aqm: str, idle: Sequence[IdleAqm], of: int) -> str:
    drained_s = [each.full_s for each in idle]
    ends = dict.fromkeys(f"{1e3 * end:.3g}" for end in (min(drained_s), max(drained_s)))
    where = f"in {len(idle)} of {counted(of, 'condition')} " if of > 1 else ""
    return (
        f"{where}{aqm} drops as taildrop does: it acts on packets that have waited for "
        f"{acts_after_in_words(idle)}, and a full buffer drains in {' to '.join(ends)} ms; "
        "a deeper buffer lets it act"
    )

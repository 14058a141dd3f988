"""The fidelity gate as a table: one row per quantity of a check, one column per profile of our BBR."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabbbr_analysis.wording import distinct, interval

if TYPE_CHECKING:
    from fabbbr_analysis.claims import Verdict

_CHECK = re.compile(r"G([A-Z])\.(\w+)")


@dataclass(frozen=True, kw_only=True)
class GateCell:
    """What one profile measured."""

    value: str
    verdict: str


@dataclass(frozen=True, kw_only=True)
class GateRow:
    """One quantity of one check."""

    check: str
    """Its letter."""
    promise: str
    """What the drafts or the papers promise."""
    quantity: str
    band: str
    cells: tuple[GateCell | None, ...]
    """One per profile, in the order of the gate; None where the check has no such profile."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The whole table; false when nothing of it was run."""

    profiles: tuple[str, ...]
    rows: tuple[GateRow, ...]

    def __bool__(self) -> bool:
        return bool(self.rows)


def gate(verdicts: Sequence[Verdict]) -> Gate:
    """Arrange the gate's verdicts, packet by packet; checks of which nothing was run are left out."""
    found = [
        (match, verdict)
        for verdict in verdicts
        if verdict.losses != "super-packets" and (match := _CHECK.fullmatch(verdict.id))
    ]
    profiles = tuple(distinct(match[2] for match, _ in found))
    rows: list[GateRow] = []
    for check in distinct(match[1] for match, _ in found):
        own = {match[2]: verdict for match, verdict in found if match[1] == check}
        if any(verdict.verdict != "not run" for verdict in own.values()):
            rows += _rows(check, own, profiles)
    return Gate(profiles=profiles, rows=tuple(rows))


def _rows(check: str, own: dict[str, Verdict], profiles: Sequence[str]) -> Iterator[GateRow]:
    parts = {profile: list(_parts(verdict)) for profile, verdict in own.items()}
    for number, (quantity, band, _) in enumerate(next(iter(parts.values()))):
        yield GateRow(
            check=check,
            promise=next(iter(own.values())).predicate.split(": ", 1)[-1],
            quantity=quantity,
            band=band,
            cells=tuple(parts[profile][number][2] if profile in parts else None for profile in profiles),
        )


def _parts(verdict: Verdict) -> Iterator[tuple[str, str, GateCell]]:
    for part in verdict.details or (verdict,):
        value = interval(part.value, part.low, part.high)
        yield part.quantity, str(part.band), GateCell(value=value, verdict=part.verdict)

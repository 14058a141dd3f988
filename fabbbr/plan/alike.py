"""Conditions that are one and the same but for their names, as where an axis changes nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fabbbr.counts import counted
from fabbbr.model import Cell

_NAMES = {"id", "condition", "axes", "repetition", "seed"}


def alike(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """Each set of conditions that are set up alike, in the order of ``cells``."""
    first = {cell.condition: cell for cell in reversed(cells)}
    names: dict[str, list[str]] = {}
    for condition in dict.fromkeys(cell.condition for cell in cells):
        names.setdefault(first[condition].model_dump_json(exclude=_NAMES), []).append(condition)
    return [tuple(each) for each in names.values() if len(each) > 1]


def alike_in_words(cells: Sequence[Cell]) -> str:
    """What is run under several names, with the remedy; empty where nothing is."""
    found = alike(cells)
    if not found:
        return ""
    more, of = sum(len(each) - 1 for each in found), len({cell.condition for cell in cells})
    one, other, *_ = found[0]
    said, them = ("is another", "it") if more == 1 else ("are others", "them")
    return (
        f"{more} of {counted(of, 'condition')} {said} under a second name ({other} is {one}); "
        f"except leaves {them} out"
    )

"""Where words stand above a figure, each at its mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Placing(NamedTuple):
    """Where words stand above a figure."""

    level: int
    """From the lowest, 0, upwards."""
    ends: bool
    """Whether they end at their mark, and do not begin there."""


def levels(texts: Sequence[tuple[float, str]], *, letter: float, begin: float, end: float) -> list[Placing]:
    """Places for words at marks, none of which stands on another.

    A mark is a place of the horizontal axis, from ``begin`` to ``end``, of which a letter takes so much.
    Words that do not fit behind their mark stand before it, where there is more room.
    """
    taken: list[list[tuple[float, float]]] = []
    places = []
    for at, text in texts:
        width = (len(text) + 2) * letter
        ends = at + width > end and at - begin > end - at
        own = (at - width, at) if ends else (at, at + width)
        free = (number for number, spans in enumerate(taken) if not any(_meet(own, each) for each in spans))
        level = next(free, len(taken))
        if level == len(taken):
            taken.append([])
        taken[level].append(own)
        places.append(Placing(level, ends))
    return places


def _meet(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1]

"""What the author probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_WORD = 40
"""Comparing takes the square of the length, and nobody mistypes more."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'rate'?"``, or nothing when no known word is near.

    >>> did_you_mean("rtte", ["rate", "rtt"]), did_you_mean("zzz", ["rate"])
    ("; did you mean 'rtt'?", '')
    """
    if len(word) > _LONGEST_WORD:
        return ""
    near = difflib.get_close_matches(word, [name for name in known if len(name) <= _LONGEST_WORD], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""

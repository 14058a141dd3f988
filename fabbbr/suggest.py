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
    >>> did_you_mean("--outt", ["--out", "--full"]), did_you_mean("--list", ["--width"])
    ("; did you mean '--out'?", '')
    """
    if len(word) > _LONGEST_WORD:
        return ""
    # The dashes of options make none of them alike.
    names = {name.lstrip("-"): name for name in known if len(name) <= _LONGEST_WORD}
    near = difflib.get_close_matches(word.lstrip("-"), names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""

"""What the author probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'rate'?"``, or nothing when no known word is near.

    >>> did_you_mean("rtte", ["rate", "rtt"]), did_you_mean("zzz", ["rate"])
    ("; did you mean 'rtt'?", '')
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""

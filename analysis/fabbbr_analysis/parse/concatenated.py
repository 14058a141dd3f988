"""JSON values that stand one after the other, with blanks or nothing between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_BLANKS = re.compile(r"\s*")


def values(text: str) -> Iterator[Any]:
    """Yield the values in order; raise ValueError or RecursionError at the first that is no JSON.

    Time grows with the length of the text: it is read in place, for copying what is left after each of a
    million small values would take minutes.
    """
    decoder = json.JSONDecoder()
    position = _after_blanks(text, 0)
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        yield value
        position = _after_blanks(text, position)


def _after_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return position if blanks is None else blanks.end()

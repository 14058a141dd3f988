"""Text that came from a user, a file or a tool, on its way into a message or to a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f"  # C0 and C1: ESC, BEL, line breaks
    r"\u2028\u2029"  # line breaks of Unicode
    r"\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of what stands beside them
    r"\ud800-\udfff]"  # bytes of a file name that are not UTF-8
)
"""What moves a cursor, changes colours, hides text or cannot be encoded."""

_NAMES_SHOWN = 30
_CHARACTERS_SHOWN = 60


def visible(text: str, *, keep: str = "\n\t") -> str:
    r"""``text`` with every control character but those of ``keep`` spelt out: shown, and not obeyed.

    >>> visible("a\x1b[31mb"), visible("two\nlines"), visible("two\nlines", keep="")
    ('a\\x1b[31mb', 'two\nlines', 'two\\nlines')
    """
    return CONTROL.sub(lambda match: match[0] if match[0] in keep else repr(match[0])[1:-1], text)


def inline(text: str) -> str:
    """``text`` within a line, as :func:`visible` but with line breaks spelt out too."""
    return visible(text, keep="")


def shown(value: object) -> str:
    """A value as an error quotes it: cut when long, control characters spelt out.

    >>> shown("10 ms"), shown("x" * 1000)[-23:]
    ("'10 ms'", "xxx…' (1000 characters)")
    """
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= _CHARACTERS_SHOWN:
        return repr(value)
    return f"{text[:_CHARACTERS_SHOWN] + '…'!r} ({len(text)} characters)"


def listed(names: Iterable[object], *, most: int = _NAMES_SHOWN, separator: str = ", ") -> str:
    """The names, or the first ``most`` and how many more there are.

    >>> listed("abc"), listed("abcde", most=2), listed("")
    ('a, b, c', 'a, b and 3 more', '')
    """
    rest = iter(names)
    first = separator.join(str(name) for name in islice(rest, most))
    more = sum(1 for _ in rest)
    return f"{first} and {more} more" if more else first

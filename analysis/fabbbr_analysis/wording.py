"""Numbers and lists as a person reads them: no more digits than the interval supports, absence as a dash."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import pandas as pd

ABSENT = "–"
SAME = "(in all runs)"
_T = TypeVar("_T", bound=Hashable)
_THIN_SPACE = "\u202f"
MOST_DECIMALS = 6
_LOPSIDED = 10
_LEAST_SHOWN = 1e-6


def article(word: str) -> str:
    """The indefinite article before a word, by its sound; letters of an abbreviation are said one by one.

    >>> article("buffer"), article("AQM"), article("RTT"), article("arrival rate")
    ('a', 'an', 'an', 'an')
    """
    spelt = word[:2].isupper()
    return "an" if word[:1] in ("AEFHILMNORSX" if spelt else "aeioAEIO") else "a"


def capital(text: str) -> str:
    """Begin a sentence; what is not empty.

    >>> capital("over the whole run"), capital("BDP")
    ('Over the whole run', 'BDP')
    """
    return text[0].upper() + text[1:]


def number(value: float | None, *, significant: int = 3, finest: int = MOST_DECIMALS) -> str:
    """Write ``value`` to so many significant digits, in ``finest`` decimals at most and no powers of ten.

    >>> number(91.123), number(0.01234), number(1257232), number(0.9997), number(None)
    ('91.1', '0.0123', '1\u202f257\u202f232', '1.00', '–')
    """
    if value is None or pd.isna(value):
        return ABSENT
    # What is rounded up to a power of ten has a digit more before the point.
    rounded = round(float(value), _decimals(float(value), significant))
    return _fixed(float(value), min(finest, _decimals(rounded, significant)))


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """Write a value and its interval in one line.

    >>> interval(91.1234, 90.81, 91.42), interval(5.0, None, None)
    ('91.12 [90.81, 91.42]', '5.00 (no interval)')
    """
    if value is None or pd.isna(value):
        return ABSENT
    return f"{mean(value, low, high)} {limits(value, low, high)}"


def interval_of(value: float, low: float | None, high: float | None, unit: str) -> str:
    """Write a value and its interval with their unit; what is said of it instead of an interval comes last.

    >>> interval_of(91.1234, 90.81, 91.42, "ms"), interval_of(5.0, 5.0, 5.0, "ms")
    ('91.12 [90.81, 91.42] ms', '5.00 ms (in all runs)')
    """
    sure = limits(value, low, high)
    told = f"{mean(value, low, high)} {unit} {sure}"
    return f"{interval(value, low, high)} {unit}" if sure.startswith("[") else told


def estimate(value: float, low: float | None, high: float | None, *, finest: int = MOST_DECIMALS) -> str:
    """Write a value with its interval, or alone where it has none or is the same in all runs.

    >>> estimate(91.1234, 90.81, 91.42), estimate(5.0, None, None), estimate(5.0, 5.0, 5.0)
    ('91.12 [90.81, 91.42]', '5.00', '5.00')
    """
    if low is None or high is None or _is_one(low, high, finest):
        return number(value, finest=finest)
    return f"{mean(value, low, high, finest=finest)} {limits(value, low, high, finest=finest)}"


def mean(value: float, low: float | None, high: float | None, *, finest: int = MOST_DECIMALS) -> str:
    """Write a value to the digits its interval supports: two of the half width, at most four of the value.

    They are more where the ends of the interval would look the same. Of an interval that reaches ten times as
    far to one side as to the other it is the nearer end that counts: 0.25 within 0.002 and 27 is not 0. More
    decimals than ``finest`` they never are: no interval makes a clock tick faster.

    >>> mean(22.8504, 22.8495, 22.8513), mean(0.2548, 0.0024, 27.13), mean(8.00142, 8.001, 8.002, finest=3)
    ('22.8504', '0.25', '8.001')
    """
    return _fixed(value, min(finest, _supported(value, low, high)))


def limits(value: float, low: float | None, high: float | None, *, finest: int = MOST_DECIMALS) -> str:
    """Write the ends of an interval to the digits of its value; one run has none.

    Of a value that is the same in all runs an interval without width would say how sure it is, which nobody
    knows: it may be a count, or a clock's tick.

    >>> limits(0.5, 0.4, 0.6), limits(0.5, 0.5, 0.5), limits(0.5, None, None)
    ('[0.40, 0.60]', '(in all runs)', '(no interval)')
    >>> limits(8.0, 7.9999, 8.0001, finest=3)
    '(in all runs)'
    """
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return "(no interval)"
    if _is_one(low, high, finest):
        return SAME
    decimals = min(finest, _supported(value, low, high))
    return f"[{_fixed(low, decimals)}, {_fixed(high, decimals)}]"


def shows_nothing(*values: float | None) -> bool:
    """Whether each of these that is known is nearer to 0 than is ever shown.

    >>> shows_nothing(1e-9, None, None), shows_nothing(0.0, -2.1, 2.1)
    (True, False)
    """
    return all(value is None or abs(value) < _LEAST_SHOWN for value in values)


def _is_one(low: float, high: float, finest: int = MOST_DECIMALS) -> bool:
    """Whether the ends look the same: within a millionth, that of themselves, or the last decimal."""
    near = high - low < _LEAST_SHOWN * max(1.0, abs(low), abs(high))
    return near or round(low, finest) == round(high, finest)


def _supported(value: float, low: float | None, high: float | None) -> int:
    if low is None or high is None or pd.isna(low) or pd.isna(high) or _is_one(low, high):
        return _decimals(value, 3)
    near, far = sorted((value - low, high - value))
    half = near if 0 < _LOPSIDED * near <= far else (high - low) / 2
    return min(_decimals(half, 2), max(_decimals(half, 1), _decimals(max(abs(low), abs(high)), 4)))


def tie(text: str) -> str:
    """Keep each number on one line with its unit.

    >>> tie("at 10 % of 100 Mbit/s") == "at 10\u00a0% of 100\u00a0Mbit/s"
    True
    """
    return re.sub(
        r"(?<=[\d\]]) (?=(?:%|ns|us|ms|s|[kMGT]?bit/s|[kMGT]?i?B|BDP|bytes)(?![\w]))", "\u00a0", text
    )


def _decimals(value: float, significant: int) -> int:
    if value == 0:
        return 0
    return min(MOST_DECIMALS, max(0, significant - 1 - math.floor(math.log10(abs(value)))))


def _fixed(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}".replace(",", _THIN_SPACE)
    return "0" if float(value) == 0 else text.replace("-", "−")


def listing(words: Sequence[str], last: str = "and") -> str:
    """Join words as in prose; ``last`` stands before the last of several.

    >>> listing(["cubic", "reno", "htcp"]), listing(["4", "16"], "or")
    ('cubic, reno and htcp', '4 or 16')
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def distinct(values: Iterable[_T]) -> list[_T]:
    """Return the values without repeats, in the order in which they first come."""
    return list(dict.fromkeys(values))

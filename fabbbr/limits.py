"""How much of everything one experiment may have: far more than any study needs, and less than what stops a machine.

Beyond a limit an experiment is refused before anything is expanded. What physics, TCP or the tools bound (rates, round trips,
durations) stands in :mod:`fabbbr.sanity`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

FILE_BYTES = 1_000_000
"""Of an experiment file; the longest that is bundled has 3 kB."""

NESTING = 20
"""Lists and mappings inside one another; an experiment needs six."""

LIST_ITEMS = 10_000
"""Values of an axis, steps, flows: whatever stands in one list."""

TABLE_KEYS = 1000
"""Of one mapping: ``links`` may name every link of the largest slice."""

TEXT_CHARACTERS = 1000
"""Of a single value."""

CONDITIONS = 10_000
CELLS = 100_000
EXCEPTIONS = 1000
VALUES = 1_000_000
"""Conditions × values that each of them has in the file."""

FLOWS = 512
"""Of a cell; as many have 64 ports each to send from, see :mod:`fabbbr.model`."""

NODES = 2048
"""Hosts and switches of a slice: each is a name space of the emulation."""

STEPS = 100_000
"""Of a cell, those of a trace included: almost three hours of a trace that changes every 100 ms."""

PARTS = 2_000_000
"""Hosts, switches, links, flows and steps of all cells together: ``run.json`` holds each of them."""

TRACE_BYTES = 64_000_000
"""Of all traces of an experiment: 10 million opportunities, a gigabit per second for two minutes."""

MISTAKES_LOOKED_FOR = 1000
MISTAKES_SHOWN = 50
NAMES_SHOWN = 30


def listed(names: Iterable[object], *, most: int = NAMES_SHOWN, separator: str = ", ") -> str:
    """The names, or the first ``most`` and how many more there are.

    >>> listed("abc"), listed("abcde", most=2), listed("")
    ('a, b, c', 'a, b and 3 more', '')
    """
    rest = iter(names)
    shown = separator.join(str(name) for name in islice(rest, most))
    more = sum(1 for _ in rest)
    return f"{shown} and {more} more" if more else shown


def shown(value: object, *, most: int = 60) -> str:
    """A value from a file as an error quotes it: cut when long, control characters spelt out.

    >>> shown("10 ms"), shown("x" * 1000, most=5)
    ("'10 ms'", "'xxxxx…' (1000 characters)")
    """
    text = value if isinstance(value, str) else repr(value)
    if len(text) > most:
        return f"{text[:most] + '…'!r} ({len(text)} characters)"
    return repr(value)

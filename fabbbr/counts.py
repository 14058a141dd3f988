"""A count with its noun."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Write them.

    >>> counted(1, "cell"), counted(80, "cell")
    ('1 cell', '80 cells')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

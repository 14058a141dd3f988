"""Tables that draw themselves: as HTML where a notebook asks, as text everywhere else.

What is in them came from files and tools, so nothing in them is taken for HTML or steers a terminal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape

import pandas as pd

from fabbbr.foreign import inline

_MOST_ROWS = 60
"""Shown; the whole is in the table itself."""


class Drawn(ABC):
    """What has a table and lines to say above it. Subclasses give :meth:`drawn`."""

    @abstractmethod
    def drawn(self) -> tuple[Sequence[str], pd.DataFrame]:
        """Return the lines above the table, and the table."""

    def __repr__(self) -> str:
        """Return lines and table as plain text."""
        lines, table = self.drawn()
        return as_text(lines, table)

    def _repr_html_(self) -> str:
        lines, table = self.drawn()
        return as_html(lines, table)


def as_text(lines: Sequence[str], table: pd.DataFrame) -> str:
    """Set lines and table as plain text.

    >>> print(as_text(["one cell"], pd.DataFrame({"cell": ["r1"], "Goodput (Mbit/s)": [9.5]})))
    one cell
    cell  Goodput (Mbit/s)
    r1    9.5
    """
    shown = _visible(table.head(_MOST_ROWS))
    body = [] if shown.empty else _columns(shown)
    return "\n".join([*map(inline, lines), *body, *_rest(table)])


def as_html(lines: Sequence[str], table: pd.DataFrame) -> str:
    """Set lines and table as HTML; the first line is the strong one.

    >>> as_html(["<b>"], pd.DataFrame())
    '<p><strong>&lt;b&gt;</strong></p>'
    """
    said = [escape(inline(line)) for line in lines]
    first = [f"<p><strong>{line}</strong></p>" for line in said[:1]]
    more = [f"<p>{line}</p>" for line in said[1:]]
    shown = _visible(table.head(_MOST_ROWS))
    body = [] if shown.empty else [shown.to_html(index=False, na_rep="–", border=0)]
    return "\n".join([*first, *more, *body, *(f"<p>{line}</p>" for line in _rest(table))])


def _columns(table: pd.DataFrame) -> list[str]:
    """Lines with every column at its left, as wide as it has to be."""
    columns = [
        [str(name), *("–" if pd.isna(value) else str(value) for value in table.iloc[:, place])]
        for place, name in enumerate(table.columns)
    ]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


def _visible(table: pd.DataFrame) -> pd.DataFrame:
    safe = table.astype(object).map(lambda value: inline(value) if isinstance(value, str) else value)
    return safe.rename(columns=lambda name: inline(str(name)))


def _rest(table: pd.DataFrame) -> list[str]:
    more = len(table) - _MOST_ROWS
    return [f"and {more} more rows"] if more > 0 else []

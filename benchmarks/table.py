"""A table for a terminal or for Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text below a head."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """One more row, as wide as the head."""
        if len(cells) != len(self.head):
            message = f"{self.title}: a row of {len(cells)} cells below a head of {len(self.head)}"
            raise ValueError(message)
        self.rows.append(cells)

    def markdown(self) -> str:
        """The title in bold, then a pipe table."""
        rule = tuple("---" for _ in self.head)
        lines = ["| " + " | ".join(row) + " |" for row in (self.head, rule, *self.rows)]
        return "\n".join((f"**{self.title}**", "", *lines))

    def plain(self) -> str:
        """Columns lined up."""
        widths = [
            max(len(row[column]) for row in (self.head, *self.rows)) for column in range(len(self.head))
        ]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.head, *self.rows)
        ]
        return "\n".join((self.title, *lines))

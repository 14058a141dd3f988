"""The room that prints for people.

What is printed came from users, files and tools: a title may hold ``[/s]``, a path escape sequences. So a
string is text here and nothing else, and styles are given beside the text that they are for.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from fabbbr.foreign import visible


class Terminal(Console):
    """A rich console without markup, emoji codes and highlighting: nothing printed steers the terminal."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)

    @property
    def is_terminal(self) -> bool:
        """Whether a line can be drawn anew.

        Rich also says so where FORCE_COLOR is set, as Jupyter does for what a cell runs: all pictures of a
        progress line would be kept there.
        """
        return not self.file.closed and self.file.isatty()

    def say(self, *pieces: str | tuple[str, str], end: str = "\n") -> None:
        """One line, of texts, plain or with their style: ``say(("failed", "red"), f" {cell}: {reason}")``."""
        safe = (visible(one) if isinstance(one, str) else (visible(one[0]), one[1]) for one in pieces)
        self.print(Text.assemble(*safe), soft_wrap=True, end=end)

    def render_str(self, text: str, **how: object) -> Text:
        """A string in a table or rule; rich would drop some control characters in silence."""
        return super().render_str(visible(text), **how)  # type: ignore[arg-type]

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Everything that is printed comes by here, colours and cursor movements of rich's own apart."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def tell(line: object) -> None:
    """One line of standard output for people and scripts alike, a path for example."""
    print(visible(str(line)))

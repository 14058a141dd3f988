"""How far a run is, where somebody watches: one line that changes, in a notebook or at a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from html import escape
from typing import TYPE_CHECKING

from fabbbr.commands.display import Display, Pace, Shown, minutes
from fabbbr.commands.terminal import Terminal
from fabbbr.execute import Event
from fabbbr.foreign import inline
from fabbbr.model import Cell
from fabbbr.plan.estimate import estimate
from fabbbr.store import RunFolder
from fabbbr.testbed import Testbed

if TYPE_CHECKING:
    from typing_extensions import Self

_LEAST_S = 0.25
"""Between two pictures: a browser draws them all."""
_NAMED = 5
"""Cells that did not come out well are named up to here, and counted beyond."""


def for_whoever_watches() -> Shown | None:
    """The display of a notebook or a terminal; None where a file or nobody reads."""
    if in_notebook():
        return NotebookDisplay()
    if sys.stderr.isatty():
        return Display(Terminal(stderr=True))
    return None


def in_notebook() -> bool:
    """Whether the kernel of a notebook runs this."""
    prompt = sys.modules.get("IPython")
    shell = prompt.get_ipython() if prompt is not None else None
    return getattr(shell, "kernel", None) is not None


class NotebookDisplay:
    """One line of HTML, which is replaced as cells finish; rich's own would need a package of widgets."""

    def __init__(self, show: Callable[[str], Callable[[str], object]] | None = None) -> None:
        self._show = show or _shown_by_ipython
        self._update: Callable[[str], object] | None = None
        self._lock = threading.Lock()
        self._drawn_at = 0.0
        self._title = self._now = ""
        self._pace = Pace({})
        self._wrong: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._update is not None:
            self._now = ""
            self._update(self._html())

    def waiting(self) -> AbstractContextManager[object]:
        """While the last tables are made there is nothing more to say."""
        return nullcontext()

    def announce(self, folder: RunFolder, cells: Sequence[Cell], jobs: int, testbed: Testbed) -> None:
        missing = [cell for cell in cells if not folder.has(cell.id)]
        self._title = str(folder.manifest.experiment.get("title", folder.manifest.source_name))
        self._pace = Pace({cell.id: estimate([cell], testbed).wall_s / jobs for cell in missing})
        if missing:
            self._update = self._show(self._html())

    def listen(self, event: Event) -> None:
        with self._lock:
            if event.kind in ("started", "progress"):
                self._now = f"{event.cell.id}: {event.clock_s:.0f} s"
                self._draw(at_once=False)
                return
            self._pace.finished(event.cell.id)
            if event.kind != "certified":
                self._wrong.append(f"{event.kind} {event.cell.id}: {event.reason}")
            self._draw(at_once=self._pace.done == self._pace.total)

    def _draw(self, *, at_once: bool) -> None:
        now = time.monotonic()
        if self._update is not None and (at_once or now - self._drawn_at >= _LEAST_S):
            self._drawn_at = now
            self._update(self._html())

    def _html(self) -> str:
        pace = self._pace
        left = f", about {minutes(pace.left_s)} left" if pace.done < pace.total else ""
        said = escape(inline(f"{self._title}: {pace.done} of {pace.total} cells{left}"))
        now = f' <span style="opacity: 0.6">{escape(inline(self._now))}</span>' if self._now else ""
        wrong = [escape(inline(line)) for line in self._wrong[:_NAMED]]
        if len(self._wrong) > _NAMED:
            wrong.append(f"and {len(self._wrong) - _NAMED} more")
        bar = f'<progress max="{pace.total}" value="{pace.done}"></progress>'
        return f"<div>{bar} {said}{now}{''.join(f'<br>{line}' for line in wrong)}</div>"


def _shown_by_ipython(html: str) -> Callable[[str], object]:
    """Show ``html``; what is returned replaces it."""
    from IPython.display import HTML, display

    handle = display(HTML(html), display_id=True)  # type: ignore[no-untyped-call]
    return lambda more: handle.update(HTML(more))  # type: ignore[no-untyped-call]

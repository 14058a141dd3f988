"""Tables of finished cells, made while others run by another process: measuring never imports analysing."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from fabbbr.execute import Event
from fabbbr.store import RunFolder
from fabbbr.testbed import Testbed

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

_FOLLOW = """
import sys
sys.path[:] = filter(None, sys.path)  # nothing is imported from where the user happens to stand
from fabbbr_analysis.tables.follow import main
main()
"""
_FEWEST_CELLS = 32
"""Starting the process costs as much CPU as the tables of so many cells."""
_PATIENCE_S = 10.0
"""How long a run that is over waits for the cells that were named: whoever opens it makes the others."""


class TablesBeside:
    """Names finished cells to a process that makes their tables; without it they are made at the end.

    Not in real time, where a busy machine changes what is measured. ``waiting`` is entered while the end of
    the run waits for that process.
    """

    def __init__(self, waiting: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting = waiting

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait a while for what was named; where something went wrong, leave the process to end by itself."""
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        if kind is None:
            self._end(self._process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """It gives way to every other process, so on a busy machine it may be far behind."""
        try:
            with self._waiting(), contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE_S)
        finally:
            process.kill()
            process.wait()

    def start(self, folder: RunFolder, missing: int, testbed: Testbed) -> None:
        """Start the process where ``missing``, the number of cells to run, makes it worth while."""
        if missing < _FEWEST_CELLS or testbed.clock == "real":
            return
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-c", _FOLLOW, str(folder.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for the run: half of a cell's tables is never left
            )
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)

    def listen(self, event: Event) -> None:
        """Name a cell that is whole; a process that is gone, or does not listen, is not waited for."""
        if event.kind not in ("certified", "uncertified") or self._process is None:
            return
        with contextlib.suppress(OSError, ValueError):
            os.write(self._process.stdin.fileno(), f"{event.cell.id}\n".encode())  # type: ignore[union-attr]

"""What every backend offers: it carries out one whole job and leaves raw files.

A job and not a conversation, because a guest in virtual time cannot wait for its host: whenever it has
nothing to do its clock jumps ahead. Everything is therefore decided before the network comes up
(docs/decisions/0001-jobs-not-conversations.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Protocol

from fabbbr.errors import EnvironmentUnfitError, UsageError
from fabbbr.job.records import Job
from fabbbr.model import Cell, Module
from fabbbr.sources import Sources
from fabbbr.testbed import Testbed

HEARTBEAT = "heartbeat"
OUTCOME = "outcome.json"
JOB = "job.json"


class CancelledError(Exception):
    """The user interrupted the run; nothing of the cell is kept."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One job to carry out in ``work``, which has an empty ``raw/``."""

    job: Job
    kernel: str | None = None
    """Of the guest, by its name; None for that of its image."""
    work: Path
    seed: int
    wall_limit_s: float
    cancelled: threading.Event
    progress: Callable[[float], None]
    """Called with seconds on the experiment's clock."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """How a task ended; the raw files are in its work folder."""

    wall_s: float
    clock_s: float
    """Seconds that the job took on the experiment's clock."""
    options: dict[str, Any] = field(default_factory=dict)
    """What else decided the bytes: goes into the provenance."""


@dataclass(frozen=True, kw_only=True)
class OwnControl:
    """A congestion control of the user's own that cells will run."""

    sources: Sources
    uses: tuple[Module, ...]
    """How the cells run it: under which name, with which parameters."""
    kernel: str | None = None
    """The kernel that they run it in, as in a task."""
    senders: tuple[str, ...] = ()
    """The hosts that run it."""


class Backend(Protocol):
    """A place that is open for a run: whoever made it has raised EnvironmentUnfitError if it is unfit."""

    @property
    def testbed(self) -> Testbed:
        """The place as a record."""

    def with_kernel(self, kernel: str | None, /) -> Testbed:
        """The place as cells find it that name a kernel; None: the one that the place has of itself.

        Raises EnvironmentUnfitError with the remedy where there is none of that name.
        """

    def cells_at_once(self, asked: int | None, cells: Sequence[Cell], /) -> int:
        """How many of ``cells`` run at a time: as many as ``asked``, or as do not disturb one another.

        Raises UsageError for more than the place can take.
        """

    def take_in(self, controls: Sequence[OwnControl], tell: Callable[[str], None], /) -> None:
        """Have the user's own congestion controls ready, before any cell.

        ``tell`` hears what takes long. Raises ModuleUnfitError with place and remedy for what does not build
        here or is not fit to run, and where the place takes none.
        """

    def execute(self, task: Task) -> Report:
        """Carry out the job; raise BackendError when the tools broke, CancelledError when interrupted."""

    def close(self) -> None:
        """Leave nothing behind."""


def refuse_kernel(kernel: str, where: str) -> NoReturn:
    """Raise EnvironmentUnfitError: ``where`` is a kernel that runs already."""
    message = (
        f"kernel {kernel}: {where} runs already, and only a guest boots another: leave --backend out, or "
        "remove the key kernel"
    )
    raise EnvironmentUnfitError(message)


def require_jobs(jobs: int | None) -> None:
    """Raise UsageError for a number of cells at a time that makes no sense; None leaves it open."""
    if jobs is not None and jobs < 1:
        message = f"--jobs {jobs}: at least one at a time"
        raise UsageError(message)


def heartbeat_s(work: Path) -> float | None:
    """How far the agent is on its clock, in seconds; None while it has not said."""
    try:
        return float((work / HEARTBEAT).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None

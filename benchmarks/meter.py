"""CPU seconds of a piece of work and of every process it leaves behind.

A guest is a tree of processes, and those that outlive their parent are charged to whoever reaps
them. So the work runs in a process of its own that adopts orphans (prctl(2),
PR_SET_CHILD_SUBREAPER) and waits for all of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

_PR_SET_CHILD_SUBREAPER = 36
_Result = TypeVar("_Result")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What something took."""

    cpu_s: float
    """User and system time of the processes that were started, not of the Python process that started
    them."""
    wall_s: float


class Meter:
    """Runs from :meth:`start` to :meth:`stop`; only one at a time in a process."""

    def start(self) -> None:
        """From now on it counts."""
        self._wall, self._cpu = time.monotonic(), _children_cpu_s()

    def stop(self) -> Cost:
        """Wait for all descendants, adopted ones too, and add them up.

        Everything must have been asked to end.
        """
        wall_s = time.monotonic() - self._wall
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        return Cost(cpu_s=_children_cpu_s() - self._cpu, wall_s=wall_s)


def in_own_process(work: Callable[[Meter], _Result]) -> _Result:
    """What ``work`` returns (it must pickle); raise what it raises."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_carry_out, args=(work, there))
    process.start()
    there.close()
    try:
        outcome: _Outcome[_Result] = here.recv()
    finally:
        process.join()
    if outcome.error is not None:
        raise outcome.error
    assert outcome.result is not None
    return outcome.result


@dataclass(frozen=True)
class _Outcome(Generic[_Result]):
    result: _Result | None = None
    error: Exception | None = None


def _carry_out(work: Callable[[Meter], _Result], answer: Connection) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        outcome = _Outcome(result=work(Meter()))
    except Exception as error:  # noqa: BLE001 - handed to the parent, which raises it
        outcome = _Outcome(error=error)
    answer.send(outcome)


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime

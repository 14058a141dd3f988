"""The errors that fabbbr raises on purpose, and the exit status of each class.

Every message names the thing, the place and the remedy. Only :func:`fabbbr.cli.main` catches
:class:`FabbbrError`; a flow that fails inside a run is data, not an error.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Mapping
from typing import ClassVar

_ROOMS = ("fabbbr", "fabbbr_analysis")


class FabbbrError(Exception):
    """Base of all deliberate errors; ``exit_status`` is what the command line returns."""

    exit_status: ClassVar[int] = 1

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks show instead of a stack of our insides: whose call it was, and why.

        A plain Python shows the whole stack, and so does ``%debug`` in a notebook.
        """
        calls = traceback.walk_tb(self.__traceback__)
        inside = (number for number, (frame, _) in enumerate(calls) if _is_ours(frame.f_globals))
        first = next(inside, None)
        stack = traceback.extract_tb(self.__traceback__, limit=first)
        where = [f"{stack[-1].line}  (line {stack[-1].lineno})"] if first and stack[-1].line else []
        return [*where, f"{type(self).__name__}: {self}"]


def _is_ours(names: Mapping[str, object]) -> bool:
    return str(names.get("__name__", "")).partition(".")[0] in _ROOMS


class UsageError(FabbbrError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_status = 2


class UntrustedError(UsageError):
    """A slice file of the user's own would run, and nobody has said that it may."""


class SpecError(FabbbrError):
    """An experiment file, a quantity in it or a slice definition cannot be understood."""

    exit_status = 3


class UnitError(SpecError):
    """A quantity has no unit, an unknown unit, or does not come out exact."""


class PlanError(FabbbrError):
    """The experiment is well formed but cannot be carried out on its topology."""

    exit_status = 4


class EnvironmentUnfitError(FabbbrError):
    """This machine lacks what the chosen backend needs; the message says what and the remedy."""

    exit_status = 5


class KernelBuildError(EnvironmentUnfitError):
    """The guest kernel could not be fetched, configured or compiled."""


class ModuleUnfitError(SpecError):
    """A congestion control of the user's own does not build for the kernel of the place, or breaks it."""


class BackendError(FabbbrError):
    """A backend's own tool broke (not a flow inside the experiment)."""

    exit_status = 6


class GuestError(BackendError):
    """The guest died, hung, or let its clock run away."""


class PlaceLostError(BackendError):
    """The place where cells run is out of reach: no other cell would fare better there."""


class StoreError(FabbbrError):
    """A run folder is damaged, belongs to another experiment, or cannot be written."""

    exit_status = 7


class OutputError(FabbbrError):
    """Standard output cannot be written."""

    exit_status = 7


class ParseError(FabbbrError):
    """Raw output cannot be read; names the source and the line or offset."""

    exit_status = 8


class AnalysisError(FabbbrError):
    """Tables, metrics or a report cannot be made from what the run folder holds."""

    exit_status = 9


class CellsFailedError(FabbbrError):
    """The run ended, but some cells failed or were not certified."""

    exit_status = 10


class RegressionError(FabbbrError):
    """A run is worse than the base that it was compared with."""

    exit_status = 11


_REMEDIES: dict[int, tuple[type[FabbbrError], str]] = {
    errno.EMFILE: (EnvironmentUnfitError, "raise ulimit -n, or lower --jobs"),
    errno.ENFILE: (EnvironmentUnfitError, "end programs that hold many files open"),
    errno.EAGAIN: (
        EnvironmentUnfitError,
        "no more processes may be started: raise ulimit -u, or lower --jobs",
    ),
    errno.ENOMEM: (EnvironmentUnfitError, "end other programs, or lower --jobs"),
    errno.ENOSPC: (StoreError, "free some space, or choose another --out"),
    errno.EDQUOT: (StoreError, "free some space, or choose another --out"),
    errno.EROFS: (StoreError, "choose another --out"),
    errno.ENOLCK: (StoreError, "choose an --out on a file system that has locks"),
    errno.EIO: (StoreError, "the disk or its driver is at fault: see the system's log, and run again"),
}


def refusal(error: OSError | MemoryError, what: str) -> FabbbrError | None:
    """What the system refused while doing ``what``, and the remedy; None when resources are not the cause."""
    number = error.errno if isinstance(error, OSError) else errno.ENOMEM
    if number not in _REMEDIES:
        return None
    kind, remedy = _REMEDIES[number]
    place = f" ({error.filename})" if isinstance(error, OSError) and error.filename is not None else ""
    return kind(f"{what}: {os.strerror(number)}{place}; {remedy}")


def unloadable(error: ImportError) -> FabbbrError | None:
    """What of others cannot be loaded here, and the remedy; None where the name is one of our own."""
    if (error.name or "").partition(".")[0] in _ROOMS:
        return None
    first: BaseException = error
    while (
        first.__cause__ is not None
    ):  # numpy's and scipy's own words are a page, and end with what was amiss
        first = first.__cause__
    remedy = (
        f"install all that fabbbr needs: {sys.executable} -m pip install fabbbr"
        if isinstance(first, ModuleNotFoundError)
        else "install what it names by the system's packages (libstdc++.so.6 is in libstdc++6)"
    )
    return EnvironmentUnfitError(f"a library that fabbbr needs cannot be loaded: {first}; {remedy}")

"""All backends by name, each with the clocks that it offers: the one place that knows them.

A new backend is a module of its own and a line here. Its libraries are imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabbbr.errors import UsageError

if TYPE_CHECKING:
    # The command line reads the names of backends at every start: nothing heavy is imported for them.
    from fabbbr.backends.base import Backend
    from fabbbr.testbed import ClockKind, Testbed

DEFAULT = "guest"


@dataclass(frozen=True, kw_only=True)
class Place:
    """One backend before it is opened."""

    clocks: tuple[ClockKind, ...]
    """The first is the one without a choice."""
    testbed: Callable[[ClockKind], Testbed]
    """What cells would run on, also where the place is not fit yet: for a plan."""
    open: Callable[[ClockKind], Backend]
    """Raises EnvironmentUnfitError with the remedy when the place cannot run jobs."""


def _guest(clock: ClockKind) -> Backend:
    from fabbbr.backends.guest import GuestBackend

    return GuestBackend(clock)


def _guest_testbed(clock: ClockKind) -> Testbed:
    from fabbbr.backends.guest import describe

    return describe(clock)


def _mininet(_: ClockKind) -> Backend:
    from fabbbr.backends.mininet import MininetBackend

    return MininetBackend()


def _mininet_testbed(_: ClockKind) -> Testbed:
    from fabbbr.backends.mininet import describe

    return describe()


BACKENDS: dict[str, Place] = {
    "guest": Place(clocks=("virtual", "real"), testbed=_guest_testbed, open=_guest),
    "mininet": Place(clocks=("real",), testbed=_mininet_testbed, open=_mininet),
}
CLOCKS = tuple(dict.fromkeys(clock for place in BACKENDS.values() for clock in place.clocks))


def clock_of(backend: str, asked: ClockKind | None) -> ClockKind:
    """The clock that cells get; raise UsageError for an unknown backend, or a clock that it does not have."""
    if backend not in BACKENDS:
        message = f"there is no backend {backend!r}; choose one of {', '.join(BACKENDS)}"
        raise UsageError(message)
    clocks = BACKENDS[backend].clocks
    if asked is not None and asked not in clocks:
        message = (
            f"--clock {asked}: backend {backend} has {' and '.join(clocks)} time only; leave --clock out"
        )
        raise UsageError(message)
    return asked or clocks[0]


def described(backend: str, asked: ClockKind | None) -> Testbed:
    """The place as cells would find it, for a plan."""
    return BACKENDS[backend].testbed(clock_of(backend, asked))


def open_backend(backend: str, asked: ClockKind | None) -> Backend:
    """Open the place; raise EnvironmentUnfitError with the remedy when this machine is not one."""
    clock = clock_of(backend, asked)
    return BACKENDS[backend].open(clock)

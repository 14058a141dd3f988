"""A slice that is there: found again by its name, or opened to work on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime

from fabbbr.backends.provider import Provider, ProviderError
from fabbbr.backends.providers import open_provider
from fabbbr.errors import UsageError
from fabbbr.foreign import listed
from fabbbr.reserve.records import LiveSlice, Reservation
from fabbbr.slice import state
from fabbbr.slice.state import SliceState
from fabbbr.suggest import did_you_mean

SOON_S = 2 * 3600.0
"""A slice that ends within it is about to."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A slice as it is remembered, as it is, and who knows."""

    name: str
    known: SliceState | None
    """None: only the testbed knows it."""
    live: LiveSlice | None
    """None: only we do."""
    provider: Provider


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A slice that can be worked on."""

    reservation: Reservation
    live: LiveSlice
    provider: Provider
    known: SliceState


@contextmanager
def found(name: str, *, backend: str | None = None, options: dict[str, str] | None = None) -> Iterator[Found]:
    """The slice of this name, for as long as the block lasts.

    ``backend`` and ``options`` say where to look when nothing is remembered. Raises UsageError when there is
    no such slice, and when nobody knows where to look.
    """
    known = state.load(name)
    if known is None and backend is None:
        hint = did_you_mean(name, state.names())
        there_are = listed(state.names()) or "none"
        message = (
            f"no slice {name} is remembered{hint} (there are: {there_are}); to look for it on a testbed, "
            "give --backend"
        )
        raise UsageError(message)
    where, how = (known.wish.backend, known.wish.options) if known else (backend or "", options or {})
    with closing(open_provider(where, how)) as provider:
        live = provider.find(name)
        if known is None and live is None:
            message = f"there is no slice {name} on {where}; 'fabbbr slice create {name}' makes one"
            raise UsageError(message)
        yield Found(name=name, known=known, live=live, provider=provider)


@contextmanager
def load(name: str) -> Iterator[Opened]:
    """A slice that was made and measured, for as long as the block lasts.

    Raises UsageError when there is none or it was not made to the end, ProviderError when it is not usable.
    """
    with found(name) as there:
        if there.known is None or there.known.phase != "measured":
            message = f"slice {name} was not made to the end; repeat its 'fabbbr slice create {name}'"
            raise UsageError(message)
        if there.live is None or there.live.state != "ok":
            said = there.live.said or there.live.state if there.live else "it is gone, as after its lease"
            message = f"slice {name}: {said}; see 'fabbbr slice show {name}'"
            raise ProviderError(message)
        yield Opened(
            reservation=there.known.reservation, live=there.live, provider=there.provider, known=there.known
        )


def backend_of(name: str) -> str:
    """The testbed of a slice that is remembered; raise UsageError when there is none of that name."""
    known = state.load(name)
    if known is None:
        hint = did_you_mean(name, state.names())
        message = f"no slice {name} is remembered{hint}; 'fabbbr slice create {name}' makes one"
        raise UsageError(message)
    return known.wish.backend


def lease_end_of(name: str) -> datetime | None:
    """When the lease of a slice ends, as the testbed said last."""
    known = state.load(name)
    return None if known is None else known.lease_end


def lease_warning(name: str, lease_end: datetime | None, now: datetime, needed_s: float = 0.0) -> str:
    """What to say of a lease that ends soon, or before ``needed_s`` are over; empty when it does not."""
    if lease_end is None:
        return ""
    left_s = (lease_end - now).total_seconds()
    if left_s >= max(SOON_S, needed_s):
        return ""
    when = f"{lease_end:%Y-%m-%d %H:%M} UTC"
    if left_s <= 0:
        return f"the lease of slice {name} ended at {when}"
    needed = f", and {needed_s / 3600:.1f} h are needed" if needed_s > left_s else ""
    return (
        f"slice {name} ends in {left_s / 3600:.1f} h, at {when}{needed}; "
        f"'fabbbr slice renew {name} --for 24h' moves that"
    )

"""A slice that is there is given more time, or given back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from fabbbr.backends.provider import Provider, ProviderError
from fabbbr.errors import BackendError, UsageError
from fabbbr.reserve.records import LiveSlice
from fabbbr.slice import state
from fabbbr.slice.clock import Clock
from fabbbr.slice.opening import Found

GONE_S = 900.0
"""A testbed takes minutes to take everything back."""
_POLL_S = 5.0


def renew(there: Found, until: datetime, clock: Clock) -> datetime:
    """Move the end of its lease; return what the testbed says that it is now.

    Raises UsageError for an instant that is not in the future or not later than the lease already lasts.
    """
    if there.live is None:
        message = f"slice {there.name} is gone, as after its lease; 'fabbbr slice create' makes it anew"
        raise ProviderError(message)
    end = there.live.lease_end
    if until <= clock.now():
        message = f"{until:%Y-%m-%d %H:%M %Z} is over; name a later time"
        raise UsageError(message)
    if end is not None and until <= end:
        message = f"slice {there.name} lasts until {end:%Y-%m-%d %H:%M} UTC already; name a later time"
        raise UsageError(message)
    with state.only_worker(there.name):
        moved = there.provider.renew(there.live, until)
        if there.known is not None:
            state.save(there.known.model_copy(update={"lease_end": moved}))
    return moved


def fell_short(asked: datetime, got: datetime) -> bool:
    """Whether a renewal is shorter than asked by more than a minute, which is how testbeds write times."""
    return got < asked - timedelta(minutes=1)


def tear_down(there: Found, clock: Clock, tell: Callable[[str], None]) -> None:
    """Give everything back, wait until it is gone, and forget it.

    Raise ProviderError when it is not gone in time; nothing is forgotten then.
    """
    with state.only_worker(there.name):
        if there.live is not None:
            _await_gone(there.live, there.provider, clock, tell)
        state.forget(there.name)


def _await_gone(live: LiveSlice, provider: Provider, clock: Clock, tell: Callable[[str], None]) -> None:
    """A testbed may refuse to take back what it is still making: it is asked again."""
    until = clock.monotonic() + GONE_S
    refused = ""
    while True:
        try:
            if live.state != "closing":
                provider.delete(live)
            live = provider.refresh(live)
            refused = ""
        except BackendError as error:
            refused = str(error)
        if live.state == "gone":
            return
        if clock.monotonic() > until:
            message = (
                f"slice {live.name} is not gone after {GONE_S / 60:g} minutes "
                f"({refused or live.said or live.state}); the same command tries again"
            )
            raise ProviderError(message)
        tell(refused or live.said or f"the testbed says: {live.state}")
        clock.sleep(_POLL_S)

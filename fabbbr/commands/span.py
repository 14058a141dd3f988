"""Times on the command line: ``24h``, ``90 min``."""

from __future__ import annotations

from fabbbr.errors import UnitError, UsageError
from fabbbr.units import Duration


def span(option: str, text: str) -> float:
    """Seconds, more than none; UsageError names the option."""
    try:
        seconds = Duration.parse(text).seconds
    except UnitError as error:
        message = f"{option}: {error}"
        raise UsageError(message) from error
    if seconds <= 0:
        message = f"{option} {text}: give a time that is longer than nothing"
        raise UsageError(message)
    return seconds

"""The virtual clock of a running guest, read from outside: it moves unless something inside spins."""

from __future__ import annotations

import re
from pathlib import Path

_VARIABLE = re.compile(r"^([0-9a-f]+) \w time_travel_time$", re.MULTILINE)
_BYTES = 8


def address_of_clock(symbols: str) -> int | None:
    """Where a kernel keeps its clock, by its System.map; None for one whose clock is not virtual."""
    found = _VARIABLE.search(symbols)
    return int(found[1], 16) if found else None


def read_clock(pid: int, address: int) -> int | None:
    """Nanoseconds on the clock of the guest ``pid``; None when it is over, or we may not look."""
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            said = memory.read(_BYTES)
    except OSError:
        return None
    return int.from_bytes(said, "little") if len(said) == _BYTES else None

"""How a slice that is there differs from one that is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from fabbbr.foreign import listed
from fabbbr.reserve.records import LiveMachine, LiveSlice, MachineWish, Reservation


def unlike(asked: Reservation, live: LiveSlice) -> Iterator[str]:
    """What of the slice that is there was asked otherwise, as far as it can be seen from outside."""
    if live.state != "ok" or not live.machines:
        return
    there = {machine.name: machine for machine in live.machines}
    wanted = {machine.name: machine for machine in asked.machines}
    for name in dict.fromkeys((*there, *wanted)):
        if name not in there or name not in wanted:
            yield f"machine {name}: {'nothing' if name not in there else 'one'} there"
        else:
            yield from _unlike_machine(there[name], wanted[name], asked)


def _unlike_machine(there: LiveMachine, wanted: MachineWish, asked: Reservation) -> Iterator[str]:
    if there.site != wanted.site:
        yield f"machine {there.name}: at {there.site} there, {wanted.site} asked"
    links = {one.link for one in asked.cables if there.name in (one.a_machine, one.b_machine)}
    if set(there.interfaces) != links:
        have, want = listed(sorted(there.interfaces)) or "none", listed(sorted(links)) or "none"
        yield f"machine {there.name}: links {have} there, {want} asked"

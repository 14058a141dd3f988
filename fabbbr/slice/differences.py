"""How a slice that is there differs from one that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from fabbbr.foreign import listed
from fabbbr.reserve.records import LiveMachine, LiveSlice, MachineWish, Reservation


def differences(there: Reservation, asked: Reservation) -> Iterator[str]:
    """What of the two is not the same, each with both values."""
    yield from _compared("", there.model_dump(mode="json"), asked.model_dump(mode="json"))


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


def _compared(where: str, there: Any, asked: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(there, dict) and isinstance(asked, dict):
        for key in dict.fromkeys((*there, *asked)):
            yield from _compared(f"{where} {key}".strip(), there.get(key), asked.get(key))
    elif isinstance(there, list) and isinstance(asked, list):
        for one, other in zip_longest(there, asked):
            yield from _compared(f"{where} {_named(one) or _named(other)}".strip(), one, other)
    elif there != asked:
        yield f"{where}: {_said(there)} there, {_said(asked)} asked"


def _named(item: Any) -> str:  # noqa: ANN401 - any JSON
    """What a list's item is called, if it is a record with a name."""
    return str(item.get("name", item.get("link", ""))) if isinstance(item, dict) else ""


def _said(value: Any) -> str:  # noqa: ANN401 - any JSON
    return "nothing" if value is None else (_named(value) or str(value))

"""What machines are that stand already, measured before any cell: kernels, tools, the round trips between."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pydantic import ValidationError

from fabbbr import testbed
from fabbbr.backends.channel import Channel, ChannelError
from fabbbr.backends.clearing import clear
from fabbbr.backends.machine import agent_on, python
from fabbbr.backends.paths import End, Paths, Standing, standing
from fabbbr.errors import BackendError, EnvironmentUnfitError
from fabbbr.reserve.records import CableWish, LiveSlice, Reservation
from fabbbr.testbed import Testbed, Tolerances

_TOOLS = ("iperf3", "ss", "tc", "ethtool", "ping")
_FACTS_S = 120.0
_PINGS = 10
_PING_EVERY_S = 0.2
_PING_LIMIT_S = 60.0
_FIRST_ADDRESS = "10.78.0.0"
_FASTEST = re.compile(r"= ([0-9.]+)/")
"""Of what ping says at its end."""
_LEAST_RTT_S = 2e-3
_RTT = 0.05
"""Of the longest round trip, where that is more: no site is exactly as far as those of a paper."""
_NETWORK_LOSS = 1e-3
_CLOCKS_S = 0.05
"""Clocks are compared through a connection, perhaps around the world; the bound itself is on record."""


def survey(
    backend: str,
    reservation: Reservation,
    live: LiveSlice,
    channels: Mapping[str, Channel],
    *,
    emulates_rtt: bool,
    tell: Callable[[str], None],
) -> Testbed:
    """The machines of ``live`` as a place for cells; ``channels`` is machine → the way there.

    What a run left on them that was killed is ended and removed; ``tell`` hears of it when that takes long.
    Raises EnvironmentUnfitError when a machine lacks a tool, BackendError, which names machine or link, when
    one cannot be reached, carries out a cell of a run that lives, or a cable carries nothing.
    """
    with ThreadPoolExecutor(max_workers=len(channels)) as at_once:
        told = at_once.map(partial(_reached, live.name, tell), channels, channels.values())
        machines = dict(zip(channels, told, strict=True))
    rtts_s = _round_trips(reservation, live, channels)
    return Testbed(
        backend=backend,
        clock="real",
        tolerances=_tolerances(rtts_s.values()),
        machines=machines,
        placement=reservation.placement,
        interfaces=_interfaces(reservation, live),
        network_rtt_s=rtts_s,
        emulates_rtt=emulates_rtt,
    )


def _tolerances(rtts_s: Iterable[float]) -> Tolerances:
    return testbed.REAL_TIME.model_copy(
        update={
            "rtt_s": max(_LEAST_RTT_S, _RTT * max(rtts_s, default=0.0)),
            "network_loss": _NETWORK_LOSS,
            "clock_s": _CLOCKS_S,
        }
    )


def _reached(slice_name: str, tell: Callable[[str], None], name: str, channel: Channel) -> testbed.Machine:
    try:
        with agent_on(channel, "facts") as path:
            clear(name, channel, path, tell)
            return _facts(name, channel, path)
    except ChannelError as error:
        message = f"machine {name}: {error}; see whether it runs: fabbbr slice show {slice_name}"
        raise ChannelError(message) from error
    except BackendError as error:
        message = f"machine {name}: {error}"
        raise BackendError(message) from error


def _facts(name: str, channel: Channel, path: str) -> testbed.Machine:
    """What a machine says of itself."""
    done = channel.run(python(path, "agent.facts"), timeout_s=_FACTS_S)
    if done.returncode != 0:
        raise BackendError(done.stderr.decode(errors="replace").strip())
    try:
        machine = testbed.Machine.model_validate_json(done.stdout)
    except ValidationError as error:
        message = f"it does not say what it is: {error.errors()[0]['msg']}"
        raise BackendError(message) from None
    missing = [tool for tool in _TOOLS if tool not in machine.tools]
    if missing:
        message = f"machine {name} has no {', '.join(missing)}; prepare it: run 'fabbbr slice create' again"
        raise EnvironmentUnfitError(message)
    return machine


def _interfaces(reservation: Reservation, live: LiveSlice) -> dict[str, dict[str, str]]:
    there = {machine.name: machine.interfaces for machine in live.machines}
    return {
        cable.link: {
            cable.a: there[cable.a_machine][cable.link],
            cable.b: there[cable.b_machine][cable.link],
        }
        for cable in reservation.cables
    }


# Round trips


def _round_trips(
    reservation: Reservation, live: LiveSlice, channels: Mapping[str, Channel]
) -> dict[str, float]:
    """Link → the least round trip of its cable, in seconds, with nothing emulated on it."""
    macs = _interfaces(reservation, live)
    asked: dict[str, Standing] = {}
    for machine in channels:
        ends = list(_ends(reservation.cables, machine, macs))
        asked[machine] = Standing(
            nodes={end.node: _address(end.node, reservation) for end in ends}, sides=tuple(ends)
        )
    with standing(asked, channels) as paths:
        return {cable.link: _pinged(paths, cable, reservation) for cable in reservation.cables}


def _ends(cables: Iterable[CableWish], machine: str, macs: Mapping[str, Mapping[str, str]]) -> Iterator[End]:
    for cable in cables:
        for side, at, node in (("a", cable.a_machine, cable.a), ("b", cable.b_machine, cable.b)):
            if at == machine:
                yield End(node=f"{cable.link}-{side}", name="end", mac=macs[cable.link][node])


def _address(node: str, reservation: Reservation) -> str:
    """Each cable is a network of its own, of two addresses."""
    link, _, side = node.rpartition("-")
    number = [cable.link for cable in reservation.cables].index(link)
    first = ipaddress.IPv4Address(_FIRST_ADDRESS) + 4 * number
    return f"{first + (1 if side == 'a' else 2)}/30"


def _pinged(paths: Paths, cable: CableWish, reservation: Reservation) -> float:
    there = _address(f"{cable.link}-b", reservation).partition("/")[0]
    ping = ("ping", "-n", "-c", str(_PINGS), "-i", str(_PING_EVERY_S), "-W", "5", there)
    answer = paths.run(f"{cable.link}-a", ping, timeout_s=_PING_LIMIT_S)
    found = _FASTEST.search(answer.stdout)
    if found is None:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        message = (
            f"link {cable.link} from {cable.a_machine} to {cable.b_machine} carries nothing "
            f"({said[-1] if said else 'ping says nothing'}); see 'fabbbr slice show', or make the slice again"
        )
        raise BackendError(message)
    return float(found[1]) / 1e3

"""Whether every machine of a slice can be worked on: it runs commands as root, and has its interfaces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from fabbbr.backends.channel import Channel
from fabbbr.errors import BackendError
from fabbbr.foreign import listed
from fabbbr.reserve.records import LiveMachine, LiveSlice
from fabbbr.slice.clock import Clock

PER_MACHINE_S = 900.0
"""A machine opens SSH minutes after the testbed says that it is there."""
_TRY_S = 30.0
_PAUSE_S = 5.0
_AT_ONCE = 16
_ASK = "id -u; cat /sys/class/net/*/address 2>/dev/null; :"


def reach(
    live: LiveSlice,
    channels: Mapping[str, Channel],
    clock: Clock,
    tell: Callable[[str], None],
    *,
    deadline_s: float = PER_MACHINE_S,
) -> None:
    """Return when every machine answered; raise BackendError with all that did not before their deadline."""
    left = threading.Event()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = {
            pool.submit(_reached, machine, channels[machine.name], clock, deadline_s, left): machine.name
            for machine in live.machines
        }
        try:
            failed = _gathered(waiting, tell)
        finally:
            left.set()
    if failed:
        message = f"{listed(failed, separator='; ')}; the same command tries again"
        raise BackendError(message)


def _gathered(waiting: dict[Future[str], str], tell: Callable[[str], None]) -> list[str]:
    failed = []
    pending = set(waiting)
    while pending:
        tell(f"waiting for {listed(sorted(waiting[one] for one in pending))} to answer")
        done, pending = wait(pending, return_when=FIRST_COMPLETED)
        failed += [f"machine {waiting[one]}: {one.result()}" for one in done if one.result()]
    return sorted(failed)


def _reached(
    machine: LiveMachine, channel: Channel, clock: Clock, deadline_s: float, left: threading.Event
) -> str:
    """Empty when it answered, else the last reason why not."""
    until = clock.monotonic() + deadline_s
    why = _against(machine, channel)
    while why and clock.monotonic() < until and not left.is_set():
        clock.sleep(_PAUSE_S)
        why = _against(machine, channel)
    return why and f"not usable within {deadline_s:g} s: {why}"


def _against(machine: LiveMachine, channel: Channel) -> str:
    """What is wrong with the machine now."""
    try:
        done = channel.run(("sh", "-c", _ASK), timeout_s=_TRY_S)
    except BackendError as error:
        return str(error)
    if done.returncode != 0:
        return done.stderr.decode(errors="replace").strip() or f"it answered with {done.returncode}"
    user, *addresses = done.stdout.decode(errors="replace").split()
    if user != "0":
        return "commands do not run as root there; the user needs sudo without a password"
    missing = [f"{link} ({mac})" for link, mac in machine.interfaces.items() if mac.lower() not in addresses]
    return f"it has no interface for {listed(missing)}" if missing else ""

"""``fabbbr slice``: create, show, list, renew, ssh, teardown."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import yaml
from rich import box
from rich.status import Status
from rich.table import Table

from fabbbr.backends.guest.image.found import found_image
from fabbbr.backends.providers import INVENTORY, open_provider
from fabbbr.commands.guest import build
from fabbbr.commands.question import agreed, attended, trust_of
from fabbbr.commands.span import span
from fabbbr.commands.terminal import Terminal, tell
from fabbbr.errors import UsageError
from fabbbr.foreign import listed, shown
from fabbbr.reserve.records import LiveMachine, NicKind, Reservation
from fabbbr.reserve.refusals import require_name
from fabbbr.slice import life, state
from fabbbr.slice.asking import Decision
from fabbbr.slice.clock import WallClock
from fabbbr.slice.ending import fell_short, renew, tear_down
from fabbbr.slice.opening import Found, found, lease_warning
from fabbbr.slice.prepare import prepare
from fabbbr.slice.state import MeasuredPair, Phase, SliceState, Wish
from fabbbr.spec.experiment import SliceChoice
from fabbbr.suggest import did_you_mean
from fabbbr.units import Rate

if TYPE_CHECKING:
    from typing_extensions import Self


def main(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    if arguments.action != "list":
        require_name(arguments.name)
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "create": _create,
        "show": _show,
        "list": _list,
        "renew": _renew,
        "ssh": _ssh,
        "teardown": _teardown,
    }
    return actions[arguments.action](arguments)


def wish_of(arguments: argparse.Namespace) -> Wish:
    """The command line as a wish; raise UsageError for what cannot be understood."""
    kinds = get_args(NicKind)
    if arguments.nic not in kinds:
        message = (
            f"--nic {shown(arguments.nic)}{did_you_mean(arguments.nic, kinds)}: give one of {listed(kinds)}"
        )
        raise UsageError(message)
    return Wish(
        backend=arguments.backend,
        options=_options(arguments),
        definition=SliceChoice(
            name=_definition(arguments.definition),
            parameters=dict(_pair("--param", text) for text in arguments.parameters),
        ),
        sites=_words(arguments.sites),
        rtt_s=None if arguments.rtt is None else span("--rtt", arguments.rtt),
        avoid=_words(arguments.avoid),
        seed=arguments.seed,
        nic=arguments.nic,
        wide=arguments.network,
        size=arguments.size,
        image=arguments.image,
        lease_s=span("--lease", arguments.lease),
    )


def _definition(name: str) -> str:
    """A file of the user's is remembered by its place, wherever the next command is given."""
    return str(Path(name).absolute()) if "/" in name or name.endswith(".py") else name


def _options(arguments: argparse.Namespace) -> dict[str, str]:
    return {INVENTORY: str(arguments.inventory.absolute())} if arguments.inventory else {}


def _variables(arguments: argparse.Namespace) -> dict[str, object]:
    """What is said for variables of the playbook, each value as YAML has it."""
    said = dict(_pair("--prepare-with", text) for text in arguments.prepare_with)
    try:
        return {name: yaml.safe_load(value) for name, value in said.items()}
    except yaml.YAMLError as error:
        message = f"--prepare-with: not YAML: {' '.join(str(error).split())}"
        raise UsageError(message) from error


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word for word in (text or "").split(",") if word)


def _pair(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        message = f"{option} {shown(text)}: give KEY=VALUE"
        raise UsageError(message)
    return key, value


def _create(arguments: argparse.Namespace) -> int:
    wish, console = wish_of(arguments), Terminal(stderr=arguments.json)
    if wish.backend == "guest" and found_image() is None:
        build(console)
    with closing(open_provider(wish.backend, wish.options)) as provider, _Progress(console) as progress:
        way = life.Way(
            clock=WallClock(),
            tell=progress.tell,
            agree=lambda reservation: (
                arguments.yes
                or not attended(arguments)
                or progress.paused(lambda: _agreed(console, reservation))
            ),
            prepare=None if arguments.skip_prepare else partial(prepare, variables=_variables(arguments)),
        )
        decision = Decision(arguments.name, wish, provider, trust_of(arguments))
        made = life.create(arguments.name, wish, decision, provider, way)
    if arguments.json:
        print(made.model_dump_json())
        return 0
    console.say(("slice ", ""), (arguments.name, "bold"), " is ready")
    _print_pairs(console, made.pairs)
    _warn(console, arguments.name, made.lease_end)
    return 0


def _agreed(console: Terminal, reservation: Reservation) -> bool:
    for machine in reservation.machines:
        size = machine.size
        console.say(
            f"  {machine.name} at {machine.site}: {size.cores} cores, {size.ram_gb} GB of memory, "
            f"{size.disk_gb} GB of disk, {machine.image}"
        )
    for cable in reservation.cables:
        console.say(f"  {cable.link}: {cable.kind} from {cable.a_machine} to {cable.b_machine}, {cable.nic}")
    return agreed(console, f"Reserve slice {reservation.name} for {reservation.lease_s / 3600:g} h?")


def _show(arguments: argparse.Namespace) -> int:
    with _found(arguments) as there:
        if arguments.json:
            print(json.dumps(_as_json(there)))
            return 0
        console = Terminal()
        _print_found(console, there)
        if there.live is not None:
            _warn(console, there.name, there.live.lease_end)
    return 0


def _found(arguments: argparse.Namespace) -> AbstractContextManager[Found]:
    return found(arguments.name, backend=arguments.backend, options=_options(arguments))


def _as_json(there: Found) -> dict[str, Any]:
    return {
        "name": there.name,
        "remembered": None if there.known is None else there.known.model_dump(mode="json"),
        "live": None if there.live is None else there.live.model_dump(mode="json"),
    }


def _print_found(console: Terminal, there: Found) -> None:
    live, known = there.live, there.known
    states = f"{live.state}{f' ({live.said})' if live.said else ''}" if live else "gone, as after its lease"
    console.say(("slice ", ""), (there.name, "bold"), f": {states}")
    if known is not None:
        console.say(_asked(known))
    else:
        console.say(
            "nothing is remembered of it here; 'fabbbr slice create' with what it was made with goes on"
        )
    if live is not None and live.lease_end is not None:
        console.say(f"lease until {live.lease_end:%Y-%m-%d %H:%M} UTC")
    if live is not None and live.machines:
        table = Table(box=box.SIMPLE_HEAD)
        for column in ("machine", "site", "carries", "address", "user", "links"):
            table.add_column(column)
        carries = {one.name: one.nodes for one in known.reservation.machines} if known else {}
        for machine in live.machines:
            nodes = ", ".join(carries.get(machine.name, ()))
            links = ", ".join(machine.interfaces)
            table.add_row(machine.name, machine.site, nodes, machine.address, machine.user, links)
        console.print(table)
    if known is not None:
        _print_pairs(console, known.pairs)


def _asked(known: SliceState) -> str:
    definition = known.reservation.definition
    done = "made and measured" if known.phase == "measured" else f"made as far as: {known.phase}"
    unprepared = "" if known.prepared or not known.reached("prepared") else ", not prepared"
    return f"{definition.name} on {known.wish.backend}, {done}{unprepared}"


def _print_pairs(console: Terminal, pairs: Sequence[MeasuredPair]) -> None:
    if not pairs:
        return
    table = Table(box=box.SIMPLE_HEAD, title="measured, with nothing emulated", title_justify="left")
    table.add_column("from")
    table.add_column("to")
    for column in ("round trip", "pings lost", "rate"):
        table.add_column(column, justify="right")
    table.add_column("")
    for pair in pairs:
        table.add_row(
            pair.sender,
            pair.receiver,
            "–" if pair.rtt_s is None else f"{pair.rtt_s * 1e3:.3f} ms",
            f"{pair.lost:.0%}",
            "–" if pair.rate_bps is None else str(Rate.parse(f"{pair.rate_bps / 1e6:.4g} Mbit/s")),
            pair.said,
        )
    console.print(table)


def _warn(console: Terminal, name: str, lease_end: datetime | None) -> None:
    warning = lease_warning(name, lease_end, WallClock().now())
    if warning:
        console.say(("warning: ", "yellow"), warning)


SLICE_HEADS = ("slice", "definition", "on", "sites", "made", "lease until (UTC)")


def row_of(one: SliceState) -> dict[str, str]:
    """A slice that is remembered, as people read it, by the heads of the table."""
    reservation = one.reservation
    texts = (
        reservation.name,
        reservation.definition.name,
        one.wish.backend,
        listed(dict.fromkeys(machine.site for machine in reservation.machines)),
        one.phase,
        "" if one.lease_end is None else f"{one.lease_end:%Y-%m-%d %H:%M}",
    )
    return dict(zip(SLICE_HEADS, texts, strict=True))


def remembered() -> list[SliceState]:
    """Every slice that is remembered; no testbed is asked."""
    return [one for name in state.names() if (one := state.load(name)) is not None]


def _list(arguments: argparse.Namespace) -> int:
    """What is remembered; no testbed is asked."""
    known = remembered()
    if arguments.json:
        print(json.dumps([one.model_dump(mode="json") for one in known]))
        return 0
    console = Terminal()
    if not known:
        console.say("no slice is remembered; 'fabbbr slice create' makes one")
        return 0
    table = Table(*SLICE_HEADS, box=box.SIMPLE_HEAD)
    for one in known:
        table.add_row(*row_of(one).values())
    console.print(table)
    for one in known:
        _warn(console, one.reservation.name, one.lease_end)
    return 0


def _renew(arguments: argparse.Namespace) -> int:
    until = _instant(arguments)
    with _found(arguments) as there:
        end = renew(there, until, WallClock())
    if arguments.json:
        print(json.dumps({"name": arguments.name, "asked": until.isoformat(), "lease_end": end.isoformat()}))
        return 0
    console = Terminal()
    console.say(f"slice {arguments.name} lasts until {end:%Y-%m-%d %H:%M} UTC")
    if fell_short(until, end):
        console.say(("warning: ", "yellow"), f"that is earlier than the {until:%Y-%m-%d %H:%M %Z} asked for")
    return 0


def _instant(arguments: argparse.Namespace) -> datetime:
    if arguments.span is not None:
        return WallClock().now() + timedelta(seconds=span("--for", arguments.span))
    try:
        return datetime.fromisoformat(arguments.until).astimezone()
    except (ValueError, OverflowError) as error:
        message = f"--until {shown(arguments.until)}: give a time as 2026-11-25T12:00"
        raise UsageError(message) from error


def _ssh(arguments: argparse.Namespace) -> int:
    with _found(arguments) as there:
        machine = _machine(there, arguments.machine)
        if arguments.words:
            with there.provider.channel(machine).conversation(arguments.words) as process:
                return _copied(process)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the shell there
        try:
            return subprocess.run(there.provider.shell(machine), check=False).returncode
        finally:
            signal.signal(signal.SIGINT, before)


def _copied(process: subprocess.Popen[bytes]) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    while chunk := process.stdout.read1(65536):  # type: ignore[attr-defined]
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    return process.wait()


def _machine(there: Found, name: str | None) -> LiveMachine:
    machines = {machine.name: machine for machine in (there.live.machines if there.live else ())}
    if name is None and len(machines) == 1:
        name = next(iter(machines))
    if name not in machines:
        hint = did_you_mean(name, machines) if name else ""
        said = f"no machine {name} that is up{hint}" if name else "name a machine"
        message = f"slice {there.name}: {said} (there are: {listed(machines) or 'none'})"
        raise UsageError(message)
    return machines[name]


def _teardown(arguments: argparse.Namespace) -> int:
    console = Terminal(stderr=True)
    with _found(arguments) as there:
        if not arguments.yes:
            _require_yes(arguments, console, there)
        with _Progress(console) as progress:
            tear_down(there, WallClock(), progress.say)
    if arguments.json:
        print(json.dumps({"name": arguments.name, "gone": True}))
    else:
        tell(f"slice {arguments.name} is gone")
    return 0


def _require_yes(arguments: argparse.Namespace, console: Terminal, there: Found) -> None:
    if not attended(arguments):
        message = f"slice {there.name} would be given back with all that is on it; give --yes"
        raise UsageError(message)
    _print_found(console, there)
    if not agreed(console, f"Give slice {there.name} back, with all that is on its machines?"):
        message = f"slice {there.name} is kept, as you said"
        raise UsageError(message)


_DOING: dict[Phase, str] = {
    "asked": "checking",
    "submitted": "submitting",
    "up": "coming up",
    "reached": "reaching",
    "prepared": "preparing",
    "measured": "measuring",
}


class _Progress:
    """A line that says what is waited for; where there is no terminal, a line for each new thing."""

    def __init__(self, console: Terminal) -> None:
        self._console = console
        self._status: Status | None = None
        self._said = ""
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def tell(self, phase: Phase, text: str) -> None:
        """Of a phase."""
        self.say(f"{_DOING[phase]}: {text}")

    def say(self, text: str) -> None:
        """One thing that is waited for."""
        if text == self._said:
            return
        self._said = text
        seconds = time.monotonic() - self._started
        if self._status is not None:
            self._status.update(f"{text}")
        else:
            self._console.say(f"{seconds:6.1f} s  {text}")

    def paused(self, ask: Callable[[], bool]) -> bool:
        """Ask with the line out of the way."""
        if self._status is not None:
            self._status.stop()
        try:
            return ask()
        finally:
            if self._status is not None:
                self._status.start()

"""A slice of network name spaces on this machine, one for each machine: what needs no testbed to be tried.

They stay when the command ends, until they are torn down or this machine is started again. Their cables are
veth pairs: a site is a label, and nothing is far away. Files and the kernel are this machine's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from fabbbr.backends.channel import Channel, NamespaceChannel
from fabbbr.backends.provider import ProviderError
from fabbbr.backends.tools import NODE_PYTHON, WAY_INTO_NAME_SPACES, search_path
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.files import read_own, write_atomically
from fabbbr.record import Record
from fabbbr.reserve.records import LiveMachine, LiveSlice, Offer, Reservation

KEPT = Path("/var/lib/fabbbr/namespaces")
_NAMED = Path("/run/netns")
"""Where iproute2 keeps name spaces; gone after a restart of the machine."""
_LARGEST_BYTES = 8 << 20
_TIMEOUT_S = 20.0
_PREFIX = "fabbbr-"
_APART = "+"
"""Not in the name of a slice, so that no two name spaces are called alike."""


class _Kept(Record):
    """The file of one slice."""

    reservation: Reservation
    whole: bool
    """False while its name spaces are being made."""


class NamespaceProvider:
    """Slices of this machine; ``kept`` (default: below /var/lib) has a file and a folder for each."""

    def __init__(self, kept: Path | None = None) -> None:
        if os.geteuid() != 0:
            message = "name spaces as machines need root: run as root (sudo), or use --backend guest"
            raise EnvironmentUnfitError(message)
        self._kept = kept or KEPT

    def offer(self) -> Offer:
        """Any site, without permissions."""
        return Offer(sites={}, any_site=True)

    def find(self, name: str) -> LiveSlice | None:
        """The slice of that name, whoever made it."""
        kept = self._read(name)
        return None if kept is None else self._live(kept)

    def submit(self, reservation: Reservation) -> LiveSlice:
        """Make its name spaces and cables; what was left half made is made anew."""
        kept = self._read(reservation.name)
        if kept is not None and kept.whole:
            return self._live(kept)
        making = _Kept(reservation=reservation, whole=False)
        self._write(making)
        _remove(making.reservation)
        for machine in reservation.machines:
            _ip("netns", "add", _space(reservation, machine.name))
        self._require_a_way_in(reservation)
        _ip("-batch", "-", stdin="\n".join(_lines(reservation)) + "\n")
        made = making.model_copy(update={"whole": True})
        self._write(made)
        return self._live(made)

    def refresh(self, live: LiveSlice) -> LiveSlice:
        """How it is now."""
        return self.find(live.name) or live.model_copy(update={"state": "gone", "machines": ()})

    def renew(self, live: LiveSlice, until: datetime) -> datetime:
        """Nothing to move: it ends when it is torn down."""
        message = (
            f"slice {live.name} has no lease to move to {until:%Y-%m-%d %H:%M}: it ends when it is torn down"
        )
        raise ProviderError(message)

    def delete(self, live: LiveSlice) -> None:
        """End what runs there, and take the name spaces and all files away."""
        kept = self._read(live.name)
        if kept is not None:
            self._forget(kept.reservation)

    def _require_a_way_in(self, reservation: Reservation) -> None:
        """Where a name space cannot be entered no machine would ever answer: say so, and leave nothing."""
        try:
            _ip("netns", "exec", _space(reservation, reservation.machines[0].name), "true")
        except ProviderError as error:
            self._forget(reservation)
            message = f"name spaces can be made here and not entered: {error}; {WAY_INTO_NAME_SPACES}"
            raise EnvironmentUnfitError(message) from error

    def _forget(self, reservation: Reservation) -> None:
        _remove(reservation)
        shutil.rmtree(self._kept / reservation.name, ignore_errors=True)
        self._file(reservation.name).unlink(missing_ok=True)
        for folder in (self._kept, self._kept.parent):
            with contextlib.suppress(OSError):  # others are kept there
                folder.rmdir()

    def channel(self, machine: LiveMachine) -> Channel:
        """Into its name space."""
        name = machine.address.removeprefix(_PREFIX).partition(_APART)[0]
        return NamespaceChannel(machine.address, str(self._kept / name / machine.name))

    def ansible(self, machine: LiveMachine) -> Mapping[str, object]:
        """By the connection plugin of the playbooks. Programs, modules and files are this machine's."""
        return {
            "fabbbr_ccas": [],
            "tcp_host_iperf3_minimum": "",
            "tcp_host_persistent": False,
            "tcp_host_tolerate_missing": True,
            "ansible_connection": "fabbbr_namespace",
            "fabbbr_namespace": machine.address,
            "ansible_python_interpreter": NODE_PYTHON,
        }

    def shell(self, machine: LiveMachine) -> tuple[str, ...]:
        """A shell of root's."""
        return ("ip", "netns", "exec", machine.address, os.environ.get("SHELL", "/bin/sh"))

    def close(self) -> None:
        """Nothing is held."""

    def _live(self, kept: _Kept) -> LiveSlice:
        reservation = kept.reservation
        missing = [
            one.name for one in reservation.machines if not (_NAMED / _space(reservation, one.name)).exists()
        ]
        live = LiveSlice(name=reservation.name, id=_digest(reservation.name), state="ok")
        if not kept.whole:
            return live.model_copy(update={"state": "configuring", "said": "was left half made"})
        if missing:
            said = f"the name spaces of {', '.join(missing)} are gone, as after a restart of this machine"
            return live.model_copy(update={"state": "failed", "said": said})
        machines = tuple(_live_machine(reservation, one.name) for one in reservation.machines)
        return live.model_copy(update={"machines": machines})

    def _file(self, name: str) -> Path:
        return self._kept / f"{name}.json"

    def _read(self, name: str) -> _Kept | None:
        file = self._file(name)
        if not file.exists():
            return None
        try:
            return _Kept.model_validate_json(read_own(file, limit=_LARGEST_BYTES))
        except ValidationError as error:
            message = f"{file} is damaged: {error.errors()[0]['msg']}; remove it, and name spaces of {name}"
            raise ProviderError(message) from None

    def _write(self, kept: _Kept) -> None:
        self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(
            self._file(kept.reservation.name), kept.model_dump_json(), mode=0o600, remedy="free some space"
        )


def _space(reservation: Reservation, machine: str) -> str:
    return f"{_PREFIX}{reservation.name}{_APART}{machine}"


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def _mac(reservation: Reservation, link: str, machine: str) -> str:
    """Of its own for each end: locally administered."""
    digits = _digest(reservation.name, link, machine)
    return ":".join(("02", *(digits[at : at + 2] for at in range(0, 10, 2))))


def _live_machine(reservation: Reservation, name: str) -> LiveMachine:
    (wish,) = (one for one in reservation.machines if one.name == name)
    return LiveMachine(
        name=name,
        site=wish.site,
        address=_space(reservation, name),
        user="root",
        interfaces={
            cable.link: _mac(reservation, cable.link, name)
            for cable in reservation.cables
            if name in (cable.a_machine, cable.b_machine)
        },
    )


def _lines(reservation: Reservation) -> list[str]:
    """For ``ip -batch``: every cable, with an end in each of two name spaces, down."""
    lines = []
    for cable in reservation.cables:
        ends = [
            f"name d-{cable.link} address {_mac(reservation, cable.link, machine)} "
            f"netns {_space(reservation, machine)}"
            for machine in (cable.a_machine, cable.b_machine)
        ]
        lines.append(f"link add {ends[0]} type veth peer {ends[1]}")
    return lines


def _remove(reservation: Reservation) -> None:
    """What runs in its name spaces ends; then they go, and their cables with them."""
    for machine in reservation.machines:
        space = _space(reservation, machine.name)
        if not (_NAMED / space).exists():
            continue
        for pid in _ip("netns", "pids", space).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _ip("netns", "delete", space)


def _ip(*words: str, stdin: str = "") -> str:
    environment = os.environ | {"PATH": search_path()}
    try:
        done = subprocess.run(
            ("ip", *words),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"ip {' '.join(words)}: {error}; install iproute2"
        raise ProviderError(message) from error
    if done.returncode != 0:
        message = f"ip {' '.join(words)}: {done.stderr.strip()}"
        raise ProviderError(message)
    return done.stdout

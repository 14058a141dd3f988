"""Hosts that somebody has anyway as a testbed: nothing is reserved, and a note on each says who uses it.

So what is known of a slice can be found on its machines, and no two slices take the same ones.
"""

from __future__ import annotations

import hashlib
import posixpath
import shlex
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from fabbbr.backends.channel import Channel
from fabbbr.backends.provider import ProviderError
from fabbbr.backends.ssh.channel import SshChannel
from fabbbr.backends.ssh.config import config_text
from fabbbr.backends.ssh.lab import Lab, LabMachine, is_mac
from fabbbr.backends.ssh.own_folder import OwnFolder
from fabbbr.record import Record
from fabbbr.reserve.records import LiveMachine, LiveSlice, Offer, Reservation

_FOLDER = "/var/lib/fabbbr"
_TAKE = 'mkdir -p "${0%/*}" && set -C && cat >"$0"'
"""Without overwriting: whoever is second is told."""
_ROOT = "root"


class _Note(Record):
    """On each machine of a slice."""

    reservation: Reservation


class SshProvider:
    """The machines of an inventory file."""

    def __init__(self, lab: Lab, *, folder: str = _FOLDER) -> None:
        self._lab = lab
        self._folder = folder
        self._own = OwnFolder("fabbbr-lab-")
        self._config = self._own.path / "config"
        known = Path.home() / ".ssh" / "known_hosts"
        self._config.write_text(config_text(lab.ways(), known_hosts=known), encoding="utf-8")
        self._channels: dict[str, SshChannel] = {}

    def offer(self) -> Offer:
        """The sites are what the inventory calls them; there is room for what it says."""
        return Offer(sites={}, any_site=True)

    def find(self, name: str) -> LiveSlice | None:
        """The slice of that name, by the notes on its machines; half of them do."""
        notes = {machine: self._note(machine) for machine in self._lab.machines}
        reservations = [note.reservation for note in notes.values() if note and note.reservation.name == name]
        if not reservations:
            return None
        reservation = reservations[0]
        noted = {machine for machine, note in notes.items() if note and note.reservation == reservation}
        if noted >= {machine.name for machine in reservation.machines}:
            return self._live(reservation)
        return LiveSlice(name=name, id=_id(reservation), state="configuring", said="was left half made")

    def submit(self, reservation: Reservation) -> LiveSlice:
        """Leave the note on each of its machines."""
        unknown = [one.name for one in reservation.machines if one.name not in self._lab.machines]
        if unknown:
            message = f"the inventory has no machine {', '.join(unknown)}; add it, or its node to another"
            raise ProviderError(message)
        text = _Note(reservation=reservation).model_dump_json().encode()
        for machine in reservation.machines:
            self._take(machine.name, reservation, text)
        return self._live(reservation)

    def refresh(self, live: LiveSlice) -> LiveSlice:
        """How it is now."""
        return self.find(live.name) or live.model_copy(update={"state": "gone", "machines": ()})

    def renew(self, live: LiveSlice, until: datetime) -> datetime:
        """Nothing to move: the machines are there anyway."""
        message = (
            f"slice {live.name} has no lease to move to {until:%Y-%m-%d %H:%M}: its machines are not leased"
        )
        raise ProviderError(message)

    def delete(self, live: LiveSlice) -> None:
        """Take the note and the folders of jobs away; the machines stay as they were prepared."""
        for machine in self._lab.machines:
            note = self._note(machine)
            if note is not None and note.reservation.name == live.name:
                self._done(machine, "rm", "-rf", "--", f"{self._folder}/parts")
                self._done(machine, "rm", "-f", "--", self._note_path)
                # What else is there is not ours.
                self._channel(machine).run(("rmdir", "--", self._folder))

    def channel(self, machine: LiveMachine) -> Channel:
        """By ssh, with sudo for those who are not root."""
        return self._channel(machine.name)

    def ansible(self, machine: LiveMachine) -> Mapping[str, str]:
        """By ssh with our configuration, which has address, port, key and the way."""
        return {
            "ansible_connection": "ssh",
            "ansible_host": machine.name,
            "ansible_user": machine.user,
            "ansible_ssh_common_args": f"-F {shlex.quote(str(self._config))}",
        }

    def shell(self, machine: LiveMachine) -> tuple[str, ...]:
        """Of the user that the inventory names."""
        return ("ssh", "-F", str(self._config), "-o", "BatchMode=no", machine.name)

    def close(self) -> None:
        """End connections."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        self._own.close()

    @property
    def _note_path(self) -> str:
        return posixpath.join(self._folder, "slice.json")

    def _channel(self, name: str) -> SshChannel:
        if name not in self._channels:
            sudo = self._lab.machines[name].user != _ROOT
            self._channels[name] = SshChannel(self._config, name, folder=f"{self._folder}/parts", sudo=sudo)
        return self._channels[name]

    def _note(self, machine: str) -> _Note | None:
        done = self._channel(machine).run(("cat", self._note_path))
        if done.returncode != 0:
            return None
        try:
            return _Note.model_validate_json(done.stdout)
        except ValidationError:
            message = f"machine {machine}: {self._note_path} is no note of fabbbr's; remove it there"
            raise ProviderError(message) from None

    def _take(self, machine: str, reservation: Reservation, text: bytes) -> None:
        done = self._channel(machine).run(("sh", "-c", _TAKE, self._note_path), stdin=text)
        if done.returncode == 0:
            return
        note = self._note(machine)
        if note is None:
            message = f"machine {machine}: {done.stderr.decode(errors='replace').strip()}"
            raise ProviderError(message)
        if note.reservation != reservation:
            message = f"machine {machine} is used by slice {note.reservation.name}; tear that down first"
            raise ProviderError(message)

    def _live(self, reservation: Reservation) -> LiveSlice:
        return LiveSlice(
            name=reservation.name,
            id=_id(reservation),
            state="ok",
            machines=tuple(self._live_machine(one.name, reservation) for one in reservation.machines),
        )

    def _live_machine(self, name: str, reservation: Reservation) -> LiveMachine:
        lab = self._lab.machines[name]
        needed = [one.link for one in reservation.cables if name in (one.a_machine, one.b_machine)]
        return LiveMachine(
            name=name,
            site=lab.site,
            address=lab.address,
            user=lab.user,
            interfaces={link: self._mac(name, lab, link) for link in needed},
        )

    def _mac(self, name: str, lab: LabMachine, link: str) -> str:
        if link not in lab.links:
            message = f"machine {name}: the inventory does not say which interface carries link {link}"
            raise ProviderError(message)
        interface = lab.links[link]
        if is_mac(interface):
            return interface.lower()
        return self._done(name, "cat", f"/sys/class/net/{interface}/address").strip()

    def _done(self, machine: str, *argv: str) -> str:
        done = self._channel(machine).run(argv)
        if done.returncode != 0:
            message = f"machine {machine}: {done.stderr.decode(errors='replace').strip()}"
            raise ProviderError(message)
        return done.stdout.decode()


def _id(reservation: Reservation) -> str:
    return hashlib.sha256(reservation.model_dump_json().encode()).hexdigest()[:16]

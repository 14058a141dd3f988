"""The way to FABRIC's machines: ssh through the bastion, by a configuration file of ours for each machine.

fablib's own file names the production bastion whatever was configured, and counts only with the user's.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path

from fabbbr.backends.fabric.answers import Settings
from fabbbr.backends.ssh.config import Way, config_text
from fabbbr.errors import StoreError
from fabbbr.files import STATE_REMEDY, write_atomically
from fabbbr.foreign import inline
from fabbbr.reserve.records import LiveMachine

_BASTION = "bastion"
_CONFIG, _KNOWN = ".ssh_config", ".known_hosts"


class Reach:
    """Files for ssh in ``folder``."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings

    def config(self, machine: LiveMachine) -> tuple[Path, str]:
        """The configuration file for a machine, written now, and the machine's name in it.

        Raise StoreError when it cannot be written.
        """
        name = alias(machine)
        settings = self._settings
        path = self._folder / f"{name}{_CONFIG}"
        bastion = Way(
            name=_BASTION,
            address=settings.bastion_host,
            user=settings.bastion_user,
            key=settings.bastion_key,
        )
        way = Way(
            name=name, address=machine.address, user=machine.user, key=settings.slice_key, jump=_BASTION
        )
        text = config_text((bastion, way), known_hosts=self._folder / f"{name}{_KNOWN}")
        # ProxyJump starts another ssh, which reads this very file; it needs no more than the words here.
        self._make_folder()
        write_atomically(path, text, mode=0o600, remedy=STATE_REMEDY)
        return path, name

    def ansible(self, machine: LiveMachine) -> dict[str, str]:
        """Variables with which Ansible reaches a machine."""
        path, name = self.config(machine)
        return {
            "ansible_host": name,
            "ansible_user": machine.user,
            "ansible_ssh_common_args": f"-F {shlex.quote(str(path))}",
        }

    def shell(self, machine: LiveMachine) -> tuple[str, ...]:
        """The command that opens a shell on a machine."""
        path, name = self.config(machine)
        return ("ssh", "-F", str(path), name)

    def forget(self, machine: LiveMachine) -> None:
        """Remove the files for a machine that is no more."""
        name = alias(machine)
        for end in (_CONFIG, _KNOWN):
            (self._folder / f"{name}{end}").unlink(missing_ok=True)

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            message = f"{inline(str(self._folder))} cannot be made: {error.strerror}; {STATE_REMEDY}"
            raise StoreError(message) from error
        if self._folder.stat().st_uid != os.geteuid():
            message = f"{inline(str(self._folder))} belongs to somebody else; {STATE_REMEDY}"
            raise StoreError(message)


def alias(machine: LiveMachine) -> str:
    """A name that no other machine has had: addresses come again with the next slice and other host keys."""
    identity = "\n".join((machine.address, *sorted(machine.interfaces.values())))
    return f"{machine.name}.{hashlib.sha256(identity.encode()).hexdigest()[:8]}"

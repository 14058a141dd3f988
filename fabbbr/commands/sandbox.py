"""``fabbbr sandbox``: any command beside a double of FABRIC, without an account."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from fabbbr.backends.guest.command import Outside, run_in_guest
from fabbbr.errors import UsageError
from fabbbr.sandbox import outside, settings
from fabbbr.sandbox.settings import Settings

_KEPT = ("LANG", "LC_ALL", "TERM", "COLUMNS", "PYTHONPATH", "VIRTUAL_ENV")


def main(arguments: argparse.Namespace) -> int:
    """Does not return from a sandbox on this host: the command's exit status is ours."""
    wanted, command = settings.from_arguments(arguments), tuple(arguments.argv)
    if arguments.on == "guest":
        return _in_guest(wanted, command)
    return outside.enter(wanted, command or (os.environ.get("SHELL", "/bin/sh"),))


def _in_guest(wanted: Settings, command: tuple[str, ...]) -> int:
    if not command:
        message = (
            "sandbox: where waiting takes no time nobody can type: give a command after --, "
            "or have a shell on this host, as root: --on host"
        )
        raise UsageError(message)
    outside.require_programs()
    if wanted.log is not None:
        wanted.log.mkdir(parents=True, exist_ok=True)  # what is not there cannot be mounted
    kept = {name: value for name in _KEPT if (value := os.environ.get(name)) is not None}
    return run_in_guest(
        outside.first_program(wanted, command),
        Outside(
            folder=Path.cwd(),
            environment={**kept, "PATH": f"{Path(sys.executable).parent}:{outside.PATH}"},
            mounts=() if wanted.log is None else (wanted.log,),
        ),
    )

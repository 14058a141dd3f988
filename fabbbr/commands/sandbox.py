"""``fabbbr sandbox``: any command beside a double of FABRIC, without an account."""

from __future__ import annotations

import argparse
import os

from fabbbr.errors import EnvironmentUnfitError
from fabbbr.sandbox import outside, settings


def main(arguments: argparse.Namespace) -> int:
    """Does not return from a sandbox on this host: the command's exit status is ours."""
    wanted = settings.from_arguments(arguments)
    command = tuple(arguments.argv) or (os.environ.get("SHELL", "/bin/sh"),)
    if arguments.on == "guest":
        message = "sandbox: there is no sandbox in a guest yet; use --on host, as root"
        raise EnvironmentUnfitError(message)
    outside.enter(wanted, command)

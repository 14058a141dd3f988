"""The way into a sandbox on this host: what it needs, and the private world around its first program."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from typing import NoReturn

from fabbbr.errors import EnvironmentUnfitError
from fabbbr.sandbox.settings import Settings
from fabbbr.version import GET_FABRIC

_TOOLS = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "pivot_root": "util-linux",
    "mount": "mount",
    "ip": "iproute2",
    "tc": "iproute2",
    "sysctl": "procps",
    "ssh": "openssh-client",
    "sudo": "sudo",
    "/usr/sbin/sshd": "openssh-server",
}
"""Programs, and the packages of Debian and Ubuntu that have them."""

PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/bin", "/bin"))
"""With the folders of system tools, which Debian leaves out for ordinary users."""

_MODULES = ("fabrictestbed_extensions", "fim", "werkzeug", "cryptography")


def require_root() -> None:
    """Raise EnvironmentUnfitError, with the remedy, unless this kernel lets us make nodes."""
    if os.geteuid() != 0:
        message = (
            "sandbox: name spaces with nodes of their own need root here; run it by sudo, "
            "or without root in a guest: fabbbr sandbox --on guest"
        )
        raise EnvironmentUnfitError(message)


def require_programs() -> None:
    """Raise EnvironmentUnfitError, with the remedy, unless all is installed that a sandbox is made of."""
    found = {tool: shutil.which(tool, path=PATH) for tool in _TOOLS}
    missing = sorted({package for tool, package in _TOOLS.items() if found[tool] is None})
    if missing:
        message = f"sandbox: programs are missing; install them: apt-get install {' '.join(missing)}"
        raise EnvironmentUnfitError(message)
    unknown = [module for module in _MODULES if importlib.util.find_spec(module) is None]
    if unknown:
        message = f"sandbox: no Python package {unknown[0]}; install it: {GET_FABRIC}"
        raise EnvironmentUnfitError(message)


def enter(settings: Settings, command: tuple[str, ...]) -> NoReturn:
    """Become a sandbox that runs ``command``. Whoever ends this process ends everything in it."""
    require_root()
    require_programs()
    sys.stdout.flush()
    sys.stderr.flush()
    # In place of this process, so that its end, however it comes, is the end of the world within.
    os.execvp("unshare", _argv(settings, command))  # noqa: S606


def _argv(settings: Settings, command: tuple[str, ...]) -> tuple[str, ...]:
    return (
        *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
        *first_program(settings, command),
    )


def first_program(settings: Settings, command: tuple[str, ...]) -> tuple[str, ...]:
    """What to run in a world that is private already."""
    return (sys.executable, "-m", "fabbbr.sandbox.inside", *settings.arguments(), "--", *command)

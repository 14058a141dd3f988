"""The system's own tools, called with argument lists; what they refuse is a BackendError with their words."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

from fabbbr.errors import BackendError


def run(*argv: str, text: str | None = None) -> str:
    """Standard output of a command that has to succeed."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        message = f"sandbox: {' '.join(argv)} failed ({done.returncode}): {said}"
        raise BackendError(message)
    return done.stdout


def succeeds(*argv: str) -> bool:
    """Whether the system does this; for questions about what a kernel can."""
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def ip(namespace: str | None, lines: Iterable[str]) -> None:
    """Commands of ip(8) in one batch, which stops at the first that fails."""
    inside = () if namespace is None else ("-n", namespace)
    text = "\n".join(lines) + "\n"
    try:
        run("ip", *inside, "-batch", "-", text=text)
    except BackendError as error:
        message = f"{error}\nof the batch:\n{text}"
        raise BackendError(message) from error


def tc(namespace: str, *words: str) -> None:
    """One command of tc(8) in a name space."""
    run("tc", "-n", namespace, *words)


def write_sysctls(namespace: str, settings: dict[str, str]) -> None:
    """Write below /proc/sys as seen in a name space; the kernel's refusal of one is an error."""
    words = [f"{key}={value}" for key, value in settings.items()]
    run("ip", "netns", "exec", namespace, "sysctl", "-qw", *words)

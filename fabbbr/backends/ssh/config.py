"""How ssh finds its machines: the text of a configuration file of ours, so that none of the user's counts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from fabbbr.record import Record

HostKeys = Literal["accept-new", "no", "yes"]
"""Of a host that is not known yet: take its key once, take whatever comes, or refuse."""


class Way(Record):
    """To one machine."""

    name: str
    """What it is called on the command line of ssh."""
    address: str
    user: str
    port: int = 22
    key: str | None = None
    """File of the private key; None: what the agent or ssh itself offers."""
    jump: str | None = None
    """The name of the machine on the way to it."""


def config_text(ways: Iterable[Way], *, known_hosts: Path, host_keys: HostKeys = "accept-new") -> str:
    """The configuration file for these machines; connecting gives up after ten seconds, asking nobody."""
    general = (
        "Host *",
        "  BatchMode yes",
        "  ConnectTimeout 10",
        "  ServerAliveInterval 5",
        "  ServerAliveCountMax 3",
        f"  StrictHostKeyChecking {host_keys}",
        f"  UserKnownHostsFile {_quoted(str(known_hosts))}",
        "  LogLevel ERROR",
    )
    return "\n".join((*(line for way in ways for line in _host(way)), *general, ""))


def _host(way: Way) -> tuple[str, ...]:
    lines = [
        f"Host {way.name}",
        f"  HostName {way.address.replace('%', '%%')}",
        f"  User {way.user}",
        f"  Port {way.port}",
    ]
    if way.key is not None:
        # Without the second line every key of the agent would be tried first, and sshd counts.
        lines += [f"  IdentityFile {_quoted(way.key)}", "  IdentitiesOnly yes"]
    if way.jump is not None:
        lines.append(f"  ProxyJump {way.jump}")
    return (*lines, "")


def _quoted(path: str) -> str:
    return '"' + path.replace("%", "%%") + '"'

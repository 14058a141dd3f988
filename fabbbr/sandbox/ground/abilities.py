"""What this kernel can do for links: tried in a name space that is thrown away, not guessed."""

from __future__ import annotations

from fabbbr.record import Record
from fabbbr.sandbox.ground import tools

_TRIAL = "trial"


class Abilities(Record):
    """Missing ones are told in the journal: a link is then without delay, or a card without tags."""

    delay: bool
    rate: bool
    vlan: bool


def probe() -> Abilities:
    """Ask the kernel; needs the right to make name spaces."""
    tools.run("ip", "netns", "add", _TRIAL)
    try:
        tools.ip(_TRIAL, ["link add one0 type veth peer name two0", "link set one0 up"])
        return Abilities(
            delay=_accepts(
                "tc", "-n", _TRIAL, "qdisc", "replace", "dev", "one0", "root", "netem", "delay", "1ms"
            ),
            rate=_accepts(
                *("tc", "-n", _TRIAL, "qdisc", "replace", "dev", "two0", "root"),
                *("tbf", "rate", "1gbit", "burst", "1mb", "latency", "10ms"),
            ),
            vlan=_accepts(
                "ip", "-n", _TRIAL, "link", "add", "link", "one0", "name", "one0.5", "type", "vlan", "id", "5"
            ),
        )
    finally:
        tools.run("ip", "netns", "del", _TRIAL)


def _accepts(*argv: str) -> bool:
    return tools.succeeds(*argv)

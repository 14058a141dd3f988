"""Did the hosts get out of the way? Read from ss: a path is only measured when no host limits its flows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fabbbr.model import DATA_PORT, Cell, Check

LIMITED_SHARE = 0.02
LIMITED_ROUNDS = 10
"""A flow may be limited by its receive window or send buffer for 2 % of its busy time or for ten round trips,
whichever is longer: in slow start the window that the receiver offers grows no faster than the sender's."""

_SOCKET_DROPS = re.compile(r"skmem:\([^)]*,d(\d+)\)")
_LIMITS = re.compile(r" busy:(\d+)ms(?: rwnd_limited:(\d+)ms)?(?:\([^)]*\))?(?: sndbuf_limited:(\d+)ms)?")


def unlimited(cell: Cell, sockets: Mapping[str, str]) -> Iterator[Check]:
    """From the last sample in which each data connection was seen."""
    worst = {"receive window": (-1.0, "no flow"), "send buffer": (-1.0, "no flow")}
    allowed_s = LIMITED_ROUNDS * max(flow.rtt.seconds for flow in cell.flows)
    for host in dict.fromkeys(flow.sender for flow in cell.flows):
        last: dict[str, re.Match[str]] = {}
        for line in sockets.get(host, "").splitlines():
            match = _LIMITS.search(line)
            if match is not None and int(match[1]) > 0 and _is_data(line):
                last[line.split()[3]] = match
        for local, match in last.items():
            busy_s = int(match[1]) / 1e3
            for name, group in (("receive window", 2), ("send buffer", 3)):
                limited_s = int(match[group] or 0) / 1e3
                beyond = limited_s / max(busy_s * LIMITED_SHARE, allowed_s)
                worst[name] = max(worst[name], (beyond, f"{local}: {limited_s:g} of {busy_s:g} s"))
    for name, (beyond, told) in worst.items():
        yield Check(
            name=f"not limited by the {name}",
            passed=beyond <= 1,
            asked=f"at most {LIMITED_SHARE:.0%} of the time or {allowed_s:g} s",
            measured=told,
        )


def kept_by_receivers(cell: Cell, sockets: Mapping[str, str]) -> Check:
    """A receiver short of memory drops what the path has delivered: loss that nobody injected."""
    dropped: dict[str, int] = {}
    for host in dict.fromkeys(flow.receiver for flow in cell.flows):
        for line in sockets.get(host, "").splitlines():
            match = _SOCKET_DROPS.search(line)
            if match is not None and _is_data(line, end=4):
                dropped[f"{host} {line.split()[4]}"] = int(match[1])
    worst = max(dropped, key=lambda name: dropped[name], default="no socket")
    return Check(
        name="nothing dropped by receivers",
        passed=not any(dropped.values()),
        asked="0 packets",
        measured=f"{dropped.get(worst, 0)} packets ({worst})",
    )


def _is_data(line: str, end: int = 3) -> bool:
    """Whether column ``end`` of an ss line, 3 for the local and 4 for the peer address, is a client's data port."""
    return int(line.split()[end].rsplit(":", 1)[1]) >= DATA_PORT

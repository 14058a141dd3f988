"""Did the hosts get out of the way? Read from ss and the kernel's counters: a path is only measured when no host limits its flows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fabbbr.model import DATA_PORT, Cell, Check

LIMITED_SHARE = 0.02
LIMITED_ROUNDS = 10
"""A flow may be limited by its receive window or send buffer for 2 % of its busy time or for ten round trips,
whichever is longer: in slow start the window that the receiver offers grows no faster than the sender's."""

_SHORT_OF_MEMORY = ("RcvPruned", "OfoPruned", "TCPRcvQDrop", "TCPBacklogDrop", "TCPMemoryPressures")
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


def kept_by_receivers(cell: Cell, before: Mapping[str, Any], after: Mapping[str, Any]) -> Check:
    """A receiver short of memory drops what the path has delivered: loss that nobody injected.

    From the kernel's own counters. (The drop count of a socket in ss also has duplicates, which are no loss.)
    """
    grown: dict[str, int] = {}
    for host in dict.fromkeys(flow.receiver for flow in cell.flows):
        early, late = (_tcp_counters(counters[host]["netstat"]) for counters in (before, after))
        for name in _SHORT_OF_MEMORY:
            grown[f"{host} {name}"] = late.get(name, 0) - early.get(name, 0)
    told = [f"{name} {count}" for name, count in grown.items() if count]
    return Check(
        name="nothing dropped by receivers",
        passed=not told,
        asked="no packet for want of memory",
        measured=", ".join(told) or "0 packets",
    )


def _tcp_counters(netstat: str) -> dict[str, int]:
    """TcpExt of /proc/net/netstat: a line of names, then a line of values."""
    names, values = (line.split()[1:] for line in netstat.splitlines() if line.startswith("TcpExt:"))
    return dict(zip(names, map(int, values), strict=True))


def _is_data(line: str) -> bool:
    return int(line.split()[3].rsplit(":", 1)[1]) >= DATA_PORT

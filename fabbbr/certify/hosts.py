"""Did the hosts get out of the way? A path is only measured when no host limits its flows.

Read from ss and the kernel's counters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fabbbr.certify.counters import Counters
from fabbbr.certify.evidence import Evidence, TransferReport
from fabbbr.errors import BackendError
from fabbbr.manifest import Check
from fabbbr.model import Cell, Flow
from fabbbr.ports import DATA_PORT, first_data_port

LIMITED_SHARE = 0.02
LIMITED_ROUNDS = 10
"""A flow may be limited by its receive window or send buffer for 2 % of its busy time or for ten round trips,
whichever is longer: in slow start the window that the receiver offers grows no faster than the sender's."""

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "receive window": (
        "tcp_rmem", "tcp_moderate_rcvbuf", "tcp_rcvbuf_low_rtt", "tcp_window_scaling", "tcp_shrink_window",
    ),
    "send buffer": ("tcp_wmem", "tcp_notsent_lowat"),
}  # fmt: skip
"""What limits a flow → the settings by which an experiment may ask for it."""
_ACKED_OF_HANDSHAKE = 1
"""Byte that stands for the SYN in what ss calls acknowledged."""
_SEEN_PERIODS = 3
"""A flow that sends for this many sample periods stands in a sample, busy."""
_SHORT_OF_MEMORY = ("RcvPruned", "OfoPruned", "TCPRcvQDrop", "TCPBacklogDrop", "TCPMemoryPressures")
_LIMITS = re.compile(r" busy:(\d+)ms(?: rwnd_limited:(\d+)ms)?(?:\([^)]*\))?(?: sndbuf_limited:(\d+)ms)?")
_ACKED = re.compile(r" bytes_acked:(\d+)")


def unlimited(cell: Cell, evidence: Evidence) -> Iterator[Check]:
    """From the last sample in which each data connection was seen."""
    worst = {"receive window": (-1.0, "no flow"), "send buffer": (-1.0, "no flow")}
    allowed_s = LIMITED_ROUNDS * max(flow.rtt.seconds for flow in cell.flows)
    seen = {
        host: _Seen.read(host, evidence.sockets)
        for host in dict.fromkeys(name for flow in cell.flows for name in (flow.sender, flow.receiver))
    }
    for host in dict.fromkeys(flow.sender for flow in cell.flows):
        for local, limits in seen[host].busy.items():
            busy_s = limits.busy_ms / 1e3
            for name, limited_ms in (
                ("receive window", limits.receive_ms),
                ("send buffer", limits.send_ms),
            ):
                limited_s = limited_ms / 1e3
                beyond = limited_s / max(busy_s * LIMITED_SHARE, allowed_s)
                worst[name] = max(worst[name], (beyond, f"{local}: {limited_s:g} of {busy_s:g} s"))
    saw = {host: _Ports.of(one) for host, one in seen.items()}
    unseen = [
        flow.index
        for flow in cell.flows
        if _must_be_seen(cell, flow, evidence) and not _both_saw(flow, saw, flows=len(cell.flows))
    ]
    for name, (beyond, told) in worst.items():
        wanted = _wanted(cell, name)
        yield Check(
            name=f"time limited by the {name}" if wanted else f"not limited by the {name}",
            passed=(bool(wanted) or beyond <= 1) and not unseen,
            asked=wanted or f"at most {LIMITED_SHARE:.0%} of the time or {allowed_s:g} s",
            measured=f"ss did not see flow {', '.join(map(str, unseen))}" if unseen else told,
        )


def _wanted(cell: Cell, what: str) -> str:
    """The settings with which the experiment itself limits its flows so; empty when there is none."""
    said = ", ".join(f"{name} {cell.sysctls[name]}" for name in SETTINGS[what] if name in cell.sysctls)
    return said and f"as the experiment sets {said}"


class _Limits(NamedTuple):
    """How long a connection had data to send, and how much of it its hosts did not let it."""

    busy_ms: int
    receive_ms: int
    send_ms: int

    @classmethod
    def of(cls, line: str) -> _Limits | None:
        """As ss says of one socket; None unless it was busy."""
        match = _LIMITS.search(line)
        return None if match is None else cls(*(int(number or 0) for number in match.groups()))


class _Seen(NamedTuple):
    """What ss said of the sockets of one host."""

    busy: dict[str, _Limits]
    """Address of each data connection that sent → its limits, as they were said last.

    Without the receive window of the handshake: it is 65 535 bytes at most (RFC 7323, 2.2), whatever the host
    would give. Ten packets of 9000 bytes do not fit, and when all of the first are lost the flow waits for
    their timeout with that window closed. It ends with the first acknowledgement of data.
    """
    peers: set[int]
    """Ports at the other ends."""

    @classmethod
    def read(cls, host: str, told: Mapping[str, str]) -> _Seen:
        if host not in told:
            message = f"raw/sockets.{host}.txt, from ss: the file is missing; run the cell again"
            raise BackendError(message)
        busy: dict[str, _Limits] = {}
        handshake_ms: dict[str, int] = {}
        unanswered: set[str] = set()
        peers: set[int] = set()
        for number, line in enumerate(told[host].splitlines(), start=1):
            state, _, _, local, peer, *_ = (*line.split(maxsplit=5), *[""] * 5)
            port, peer_port = (address.rpartition(":")[2] for address in (local, peer))
            # Closed while the kernel was asked: it has given its port back.
            if (state, port) == ("UNCONN", "*"):
                continue
            if not (port.isdecimal() and peer_port.isdecimal()):
                message = (
                    f"raw/sockets.{host}.txt, from ss: line {number} is not a socket: "
                    f"{line[:60]!r}; run the cell again"
                )
                raise BackendError(message)
            peers.add(int(peer_port))
            limits = _Limits.of(line) if int(port) >= DATA_PORT else None
            if limits is None or not limits.busy_ms:
                continue
            acked = _ACKED.search(line)
            if acked is None or int(acked[1]) <= _ACKED_OF_HANDSHAKE:
                unanswered.add(local)
                handshake_ms[local] = limits.receive_ms
            elif local in unanswered:
                unanswered.remove(local)
                handshake_ms[local] = limits.receive_ms
            without = limits.receive_ms - handshake_ms.get(local, 0)
            busy[local] = limits._replace(receive_ms=without)
        return cls(busy, peers)


class _Ports(NamedTuple):
    """Those that ss has seen at one host."""

    busy: set[int]
    """Of its own connections that sent."""
    peers: set[int]

    @classmethod
    def of(cls, seen: _Seen) -> _Ports:
        return cls({int(address.rpartition(":")[2]) for address in seen.busy}, seen.peers)


def _both_saw(flow: Flow, saw: Mapping[str, _Ports], *, flows: int) -> bool:
    """Whether ss has seen the flow busy at its sender, and at all at its receiver."""
    first = first_data_port(flow.index, flows=flows)
    ports = set(range(first, first + flow.streams))
    return not ports.isdisjoint(saw[flow.sender].busy) and not ports.isdisjoint(saw[flow.receiver].peers)


def _must_be_seen(cell: Cell, flow: Flow, evidence: Evidence) -> bool:
    """Whether some sample fell into the time in which the flow sent; not so where it says that it failed."""
    report = evidence.reports[flow.index, "client"]
    if flow.udp is not None:  # ss is asked about TCP
        return False
    if report is None or report.error is not None:
        return False
    lasted_s = flow.duration.seconds if flow.duration is not None else 0.0
    if isinstance(report, TransferReport):
        lasted_s = report.lasted_s
    return lasted_s >= _SEEN_PERIODS * cell.sample_period.seconds


def kept_by_receivers(cell: Cell, before: Counters, after: Counters) -> Check:
    """A receiver short of memory drops what the path has delivered: loss that nobody injected.

    From the kernel's own counters. (The drop count of a socket in ss also has duplicates, which are no loss.)
    Where the experiment itself sets that memory, it is asked for.
    """
    grown = {
        f"{host} {name}": after.tcp(host, name) - before.tcp(host, name)
        for host in dict.fromkeys(flow.receiver for flow in cell.flows)
        for name in _SHORT_OF_MEMORY
    }
    told = [f"{name} {count}" for name, count in grown.items() if count]
    wanted = _wanted(cell, "receive window")
    return Check(
        name="drops by receivers" if wanted else "nothing dropped by receivers",
        passed=bool(wanted) or not told,
        asked=wanted or "no packet for want of memory",
        measured=", ".join(told) or "0 packets",
    )

"""Cell → the programs that ping beside its flows. Pure."""

from __future__ import annotations

from fabbbr.job.cabling import Cabling
from fabbbr.job.headroom import longest_answer_ns
from fabbbr.job.records import PingTask
from fabbbr.model import Cell, Ping

_FIRST_IDENTIFIER = 0x4000
"""Any will do: what marks data is its source port, and there a request has its type and code."""


def ping_tasks(cell: Cell, cabling: Cabling) -> tuple[PingTask, ...]:
    """One for each ping of ``cell``."""
    return tuple(_task(cell, cabling, ping) for ping in cell.pings)


def _task(cell: Cell, cabling: Cabling, ping: Ping) -> PingTask:
    lasts = ("--duration-ns", str(ping.duration.ns)) if ping.duration is not None else ()
    patience_ns = longest_answer_ns(cell, ping.rtt)
    return PingTask(
        index=ping.index,
        node=ping.sender,
        argv=(
            "forked", "ping", "--address", cabling.address(ping.receiver),
            "--identifier", str(_FIRST_IDENTIFIER + ping.index), "--interval-ns", str(ping.interval.ns),
            *lasts, "--patience-ns", str(patience_ns),
        ),
        start_ns=ping.start.ns,
        patience_ns=patience_ns,
    )  # fmt: skip

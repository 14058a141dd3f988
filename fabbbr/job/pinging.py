"""Cell → the programs that ping beside its flows. Pure."""

from __future__ import annotations

from fabbbr.job.cabling import Cabling
from fabbbr.job.records import PingTask
from fabbbr.model import Cell, Ping
from fabbbr.units import NANOSECONDS_PER_SECOND

_FIRST_IDENTIFIER = 0x4000
"""Any will do: what marks data is its source port, and there a request has its type and code."""


def ping_tasks(cell: Cell, cabling: Cabling) -> tuple[PingTask, ...]:
    """One for each ping of ``cell``."""
    return tuple(_task(cell, cabling, ping) for ping in cell.pings)


def _task(cell: Cell, cabling: Cabling, ping: Ping) -> PingTask:
    lasts = ("--duration-ns", str(ping.duration.ns)) if ping.duration is not None else ()
    patience_ns = longest_answer_ns(cell, ping)
    return PingTask(
        index=ping.index,
        node=ping.sender,
        argv=(
            "python3", "-S", "-m", "agent.ping", "--address", cabling.address(ping.receiver),
            "--identifier", str(_FIRST_IDENTIFIER + ping.index), "--interval-ns", str(ping.interval.ns),
            *lasts, "--patience-ns", str(patience_ns),
        ),
        start_ns=ping.start.ns,
        patience_ns=patience_ns,
    )  # fmt: skip


def longest_answer_ns(cell: Cell, ping: Ping) -> int:
    """How long an answer can take that comes at all, and a second: behind full queues, both ways.

    Rates and buffers are those that the steps leave at the worst.
    """
    rates, buffers, round_trips = {}, {}, [ping.rtt.ns]
    for name, queue in cell.bottlenecks.items():
        rates[name], buffers[name] = queue.rate.bps, queue.buffer_bytes
    for step in cell.steps:
        if step.rate is not None:
            rates[step.link] = min(rates[step.link], step.rate.bps)
        if step.buffer_bytes is not None:
            buffers[step.link] = max(buffers[step.link], step.buffer_bytes)
        if step.rtt is not None:
            round_trips.append(ping.rtt.ns + step.rtt.ns)
    drained_ns = sum(buffers[name] * 8 * NANOSECONDS_PER_SECOND // rates[name] for name in rates)
    held = (link.ack_aggregation.most.ns for link in cell.links if link.ack_aggregation is not None)
    return max(round_trips) + 2 * drained_ns + sum(held) + NANOSECONDS_PER_SECOND

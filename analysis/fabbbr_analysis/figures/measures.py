"""How the columns of the tables are shown to a person: title, unit, and the factor from base unit to it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fabbbr_analysis.wording import MOST_DECIMALS


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A column of a table, in the unit in which it is drawn."""

    column: str
    slug: str
    """Short name: the first half of a figure's name, such as ``goodput`` in ``goodput_by_loss``."""
    title: str
    unit: str
    """As printed; empty for a pure number."""
    factor: float = 1.0
    """Shown value = factor × value in the base unit of the column."""
    rare: bool = False
    """Whether it is shown only where some run has more than nothing of it."""
    may_be_brief: bool = False
    """Whether it is told in milliseconds where all of it is shorter than a second."""
    log_by_nature: bool = False
    """Whether equal ratios, not equal differences, are what a reader compares."""
    explanation: str = ""

    @property
    def label(self) -> str:
        """Title and unit, as on an axis or in the head of a table."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def finest(self) -> int:
        """Decimals to which it is told at most: kernels and pings tell times in microseconds."""
        return 3 if self.unit == "ms" else MOST_DECIMALS

    def suited(self, values: Iterable[float]) -> Measure:
        """In the unit that suits all that is told together, in the base unit; what is unknown has no say."""
        longest = max((value for value in values if not math.isnan(value)), default=math.inf)
        return replace(self, unit="ms", factor=1e3) if self.may_be_brief and longest < 1 else self


def in_a_sentence(title: str) -> str:
    """Write a title with a small letter, unless it starts with an abbreviation or somebody's name.

    >>> in_a_sentence("Random loss"), in_a_sentence("RTT of the path"), in_a_sentence("Jain's index")
    ('random loss', 'RTT of the path', "Jain's index")
    """
    as_written = title[:2].isupper() or title.partition(" ")[0].endswith("'s")
    return title if as_written else title[0].lower() + title[1:]


def _rate(column: str, slug: str, title: str, explanation: str) -> Measure:
    return Measure(column=column, slug=slug, title=title, unit="Mbit/s", factor=1e-6, explanation=explanation)


def _milliseconds(column: str, slug: str, title: str, explanation: str) -> Measure:
    return Measure(column=column, slug=slug, title=title, unit="ms", factor=1e3, explanation=explanation)


def _percent(column: str, slug: str, title: str, explanation: str, *, rare: bool = False) -> Measure:
    return Measure(
        column=column, slug=slug, title=title, unit="%", factor=100, rare=rare, explanation=explanation
    )


def _seconds(column: str, slug: str, title: str, explanation: str, *, may_be_brief: bool = False) -> Measure:
    return Measure(
        column=column, slug=slug, title=title, unit="s", may_be_brief=may_be_brief, explanation=explanation
    )


MEASURES: tuple[Measure, ...] = (
    _rate("goodput_bps", "goodput", "Goodput", "What the receivers got, over the whole run."),
    _rate("goodput_steady_bps", "steady_goodput", "Goodput, steady state", "As goodput, from warm-up on."),
    _rate(
        "throughput_bps", "throughput", "Throughput", "What the senders handed to TCP, over the whole run."
    ),
    _rate(
        "link_rate_bps", "link_rate", "Link rate", "What left the bottleneck queue, before the injected loss."
    ),
    _percent(
        "utilisation",
        "utilisation",
        "Utilisation",
        "Goodput over the highest goodput that the bottleneck's rate allows.",
    ),
    Measure(
        column="retransmits",
        slug="retransmits",
        title="Retransmissions",
        unit="segments",
        log_by_nature=True,
        explanation="Segments sent again, all flows, over the whole run.",
    ),
    _percent(
        "retransmit_ratio",
        "retransmit_ratio",
        "Retransmission ratio",
        "Share of the bytes sent that were sent again.",
    ),
    _percent(
        "spurious_ratio",
        "spurious",
        "Spurious retransmissions",
        "Share of the segments sent that the receivers had already, as they say (DSACK).",
        rare=True,
    ),
    _milliseconds("rtt_median_s", "rtt", "Median RTT", "Smoothed RTT of the senders' sockets."),
    _milliseconds("rtt_p95_s", "rtt_p95", "95th-percentile RTT", "Smoothed RTT of the senders' sockets."),
    _milliseconds(
        "queue_delay_median_s",
        "queue_delay",
        "Median queueing delay",
        "Smoothed RTT less the propagation RTT.",
    ),
    *(
        _milliseconds(
            f"queue_delay_p{percent}_s",
            f"queue_delay_p{percent}",
            f"{name} of the queueing delay",
            "Time of each data packet in the bottleneck's queue, from its arrival to its last bit's leaving.",
        )
        for percent, name in ((50, "Median"), (95, "95th percentile"), (99, "99th percentile"))
    ),
    *(
        _milliseconds(
            f"ping_{column}_s",
            f"ping_{column}",
            f"Ping, {name}",
            "Round trips of echo requests beside the flows: what a small packet waits.",
        )
        for column, name in (
            ("idle_median", "median before the load"),
            ("median", "median under load"),
            ("p95", "95th percentile under load"),
            ("p99", "99th percentile under load"),
        )
    ),
    _percent(
        "ping_loss_ratio",
        "ping_loss",
        "Pings without an answer",
        "Of the echo requests beside the flows; their round trips are of the others.",
    ),
    _percent(
        "datagram_loss_ratio", "datagram_loss", "Datagrams lost", "Of those that the flows of UDP sent."
    ),
    _percent(
        "datagram_reordered_ratio",
        "datagram_reordered",
        "Datagrams overtaken",
        "Of those that came: before them came one that was sent after them.",
        rare=True,
    ),
    _milliseconds(
        "jitter_s",
        "jitter",
        "Jitter of the datagrams",
        "Mean change of transit from one to the next that came; the mean of all flows of UDP.",
    ),
    _milliseconds(
        "pdv_p95_s",
        "datagram_wait",
        "Wait of the datagrams, 95th percentile",
        "How much longer than the quickest they took, the PDV of RFC 5481; the mean of all flows of UDP.",
    ),
    _seconds("video_startup_s", "video_startup", "Start-up of the video", "Until the first chunk was whole."),
    _seconds(
        "video_stalled_s",
        "video_stalled",
        "Video stood still for",
        "After the first chunk, because the next one was not whole.",
    ),
    _seconds(
        "chunk_median_s",
        "chunk",
        "Chunk of the video, median",
        "From asking for it to its last byte, of those that came whole.",
        may_be_brief=True,
    ),
    _seconds(
        "chunk_p95_s",
        "chunk_p95",
        "Chunk of the video, 95th percentile",
        "As the median.",
        may_be_brief=True,
    ),
    *(
        _rate(
            f"goodput_{way}_bps",
            f"goodput_{way}",
            f"Goodput, {way}",
            "What the receivers of that direction got, over the time in which its flows ran.",
        )
        for way in ("forward", "reverse")
    ),
    Measure(
        column="queue_median_bdp",
        slug="queue",
        title="Median queue at the bottleneck",
        unit="BDP",
        explanation="Backlog in multiples of the bandwidth-delay product.",
    ),
    Measure(
        column="queue_reverse_median_bytes",
        slug="queue_back",
        title="Median queue of the way back",
        unit="kB",
        factor=1e-3,
        explanation="Backlog of what goes against the direction of the data, at the first bottleneck.",
    ),
    _percent(
        "queue_median_fill", "queue_fill", "Median fill of the buffer", "Backlog over the size of the buffer."
    ),
    Measure(
        column="jain_flows",
        slug="jain",
        title="Jain's index over flows",
        unit="",
        explanation="1 is an equal share for every flow, 1/n is everything for one of n.",
    ),
    Measure(
        column="jain_groups",
        slug="jain_groups",
        title="Jain's index over groups",
        unit="",
        explanation="As Jain's index, over the sum of each group of flows.",
    ),
    _seconds("convergence_s", "convergence", "Convergence time", "Until Jain's index stays at 0.9 for 5 s."),
    _seconds(
        "completion_mean_s",
        "completion",
        "Mean flow completion time",
        "Of flows that send a given number of bytes.",
        may_be_brief=True,
    ),
)
"""What a figure or a column of results can show, in the order in which they are offered."""

_COMPARED_ONLY = Measure(
    column="queue_median_bytes",
    slug="queue_bytes",
    title="Median queue at the bottleneck",
    unit="kB",
    factor=1e-3,
    explanation="Backlog in bytes: what is compared where the bandwidth-delay product changes.",
)

BY_COLUMN = {measure.column: measure for measure in (*MEASURES, _COMPARED_ONLY)}

OF_GROUPS = frozenset({"goodput_bps", "throughput_bps", "retransmits"})
"""Columns of which each group of flows has its own, from table ``flows``."""


@dataclass(frozen=True, kw_only=True)
class ConditionColumn:
    """A numeric condition: a column of table ``runs`` that an experiment can vary."""

    column: str
    slug: str
    title: str
    unit: str
    factor: float
    log: bool
    """Whether its axis is logarithmic when all its values are positive."""


CONDITIONS: tuple[ConditionColumn, ...] = (
    ConditionColumn(column="loss_ratio", slug="loss", title="Random loss", unit="%", factor=100, log=True),
    ConditionColumn(
        column="loss_burst_packets", slug="burst", title="Burst length", unit="packets", factor=1, log=True
    ),
    ConditionColumn(
        column="reordered_ratio",
        slug="reordered",
        title="Reordering",
        unit="%",
        factor=100,
        log=True,
    ),
    ConditionColumn(column="late_s", slug="late", title="Lateness", unit="ms", factor=1e3, log=True),
    ConditionColumn(column="rtt_s", slug="rtt", title="Propagation RTT", unit="ms", factor=1e3, log=False),
    ConditionColumn(column="buffer_bdp", slug="buffer", title="Buffer", unit="BDP", factor=1, log=True),
    ConditionColumn(column="buffer_bytes", slug="buffer", title="Buffer", unit="kB", factor=1e-3, log=True),
    ConditionColumn(
        column="burst_bytes", slug="bucket", title="Token bucket", unit="kB", factor=1e-3, log=True
    ),
    ConditionColumn(
        column="ack_aggregation_s", slug="acks", title="ACK aggregation", unit="ms", factor=1e3, log=True
    ),
    ConditionColumn(
        column="rate_bps", slug="rate", title="Bottleneck rate", unit="Mbit/s", factor=1e-6, log=True
    ),
    ConditionColumn(
        column="rate_reverse_bps",
        slug="back",
        title="Rate of the way back",
        unit="Mbit/s",
        factor=1e-6,
        log=True,
    ),
    ConditionColumn(
        column="buffer_reverse_bytes",
        slug="back_buffer",
        title="Buffer of the way back",
        unit="kB",
        factor=1e-3,
        log=True,
    ),
    ConditionColumn(column="n_flows", slug="flows", title="Flows", unit="", factor=1, log=False),
    ConditionColumn(column="mtu_bytes", slug="mtu", title="MTU", unit="bytes", factor=1, log=False),
    ConditionColumn(column="duration_s", slug="duration", title="Duration", unit="s", factor=1, log=False),
)

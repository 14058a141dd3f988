"""Lines of tc for the queueing disciplines of a cell; ``configure`` says to whom and when. Pure."""

from __future__ import annotations

import hashlib
from fractions import Fraction

from fabbbr.job.cabling import LinkEnds
from fabbbr.job.headroom import Extremes
from fabbbr.job.records import Interface
from fabbbr.model import AckAggregation, Bottleneck, Cell, CellLink, LinkWay, Loss, Reordering
from fabbbr.physics import bucket_bytes, chain_of, loses
from fabbbr.testbed import Testbed
from fabbbr.units import Duration, Rate, Ratio

_ONE_JITTER = 8192
"""What a number of netem's table of delays is to be so that it adds the whole jitter (NETEM_DIST_SCALE)."""
_RED_PACKET_BYTES = 1000
"""On average, as in tc's own examples."""
_LEAST_THRESHOLD = 1.2
"""Packets in the lower threshold from which on a burst that is rounded down is large enough."""


def tbf_burst_bytes(
    interface: Interface, cell: Cell, testbed: Testbed, queue: LinkWay, *, fastest: Rate
) -> int:
    """Of a TBF at ``interface`` that has had ``fastest``: as asked, or what its kernel needs."""
    hz = testbed.kernel_of(interface.node).timer_hz
    return bucket_bytes(queue, fastest, timer_hz=hz, frame_bytes=cell.frame_bytes)


def tbf_line(
    verb: str, interface: Interface, cell: Cell, testbed: Testbed, queue: Bottleneck, *, fastest: Rate
) -> str:
    """The bottleneck's rate, and its buffer where no AQM holds the queue; ``verb`` is add or change.

    ``fastest`` is the highest rate that it has had. When super-packets come, TBF cuts those larger than its
    burst; one that is in the queue while the burst falls below its size would stay there for ever.
    """
    of_burst = fastest if cell.offloads else queue.rate
    burst = tbf_burst_bytes(interface, cell, testbed, queue, fastest=of_burst)
    return (
        f"qdisc {verb} dev {interface.name} root handle 1: tbf "
        f"rate {queue.rate.bps}bit burst {burst} limit {queue.buffer_bytes}"
    )


def aqm_lines(verb: str, cell: Cell, interface: Interface, queue: Bottleneck) -> list[str]:
    """What stands below TBF, and holds the buffer there; nothing where the queue drops at its tail."""
    if queue.aqm == "taildrop":
        return []
    packets = max(queue.buffer_bytes // cell.frame_bytes, 1)
    told = "".join(f" {word} {_microseconds(time)}" for word, time in aqm_times(queue).items())
    ecn = ("ecn" if queue.ecn else "noecn") + told
    # It counts kernel memory (truesize), so bytes are kept by counting full frames instead.
    memory = f"memory_limit {4 * queue.buffer_bytes + (1 << 20)}"
    options = {
        "codel": f"codel limit {packets} {ecn}",
        "fq_codel": f"fq_codel limit {packets} {memory} {ecn}",
        "pie": f"pie limit {packets} {ecn}",
        "fq_pie": f"fq_pie limit {packets} {memory} {ecn}",
        "red": (
            f"red limit {queue.buffer_bytes} avpkt {_red_packet_bytes(queue.buffer_bytes)} "
            f"bandwidth {queue.rate.bps}bit adaptive" + (" ecn" if queue.ecn else "")
        ),
        "cake": f"cake unlimited besteffort memlimit {queue.buffer_bytes}{told}",
    }[queue.aqm]
    return [f"qdisc {verb} dev {interface.name} parent 1:1 handle 2: {options}"]


def aqm_times(queue: LinkWay) -> dict[str, Duration]:
    """What its AQM is told of times, by tc's words."""
    told = {
        "target": queue.aqm_target,
        "rtt" if queue.aqm == "cake" else "interval": queue.aqm_interval,
        "ce_threshold": queue.ce_threshold,
    }
    return {word: time for word, time in told.items() if time is not None}


def _red_packet_bytes(limit_bytes: int) -> int:
    """The packet that RED's average is made of, in bytes; in a small queue as large as its lower threshold.

    tc takes a quarter of the limit and a third of that for thresholds, (2 min + max) / 3 packets for a burst,
    and refuses where no weight lets such a burst pass: it needs one packet in the lower threshold, and
    burst + 1 - min / packet >= 1.
    """
    lower = limit_bytes // 4 // 3
    return lower if lower < _LEAST_THRESHOLD * _RED_PACKET_BYTES else _RED_PACKET_BYTES


def netem_lines(verb: str, most: Extremes, ends: LinkEnds, link: CellLink) -> list[str]:
    """Delay, loss, reordering and aggregation of a link, on its wire; ``verb`` is add or change.

    Empty without a wire. What falls on data alone has a band of its own, which the source port chooses.
    """
    if ends.wire_forward is None or ends.wire_backward is None:
        return []
    limit = most.netem_limit(link)
    delay = f"delay {_microseconds(link.delay)}" if link.delay is not None and link.delay.ns else ""
    forward, backward = ends.wire_forward.name, ends.wire_backward.name
    slots = _slot_words(link.ack_aggregation)
    lines = [f"qdisc {verb} dev {backward} root handle 1: netem limit {limit} {delay} {slots}".rstrip()]
    if link.loss is None and link.reordering is None:
        lines.append(f"qdisc {verb} dev {forward} root handle 1: netem limit {limit} {delay}")
    else:
        if verb == "add":
            priomap = " ".join(["1"] * 16)
            lines.append(f"qdisc add dev {forward} root handle 1: prio bands 2 priomap {priomap}")
        of_data = [
            f"netem limit {limit}",
            delay if link.reordering is None else _late_words(link.delay, link.reordering),
            *([_loss_words(link.loss)] if link.loss is not None and loses(link.loss) else []),
        ]
        lines.append(f"qdisc {verb} dev {forward} parent 1:1 handle 10: {' '.join(of_data)}")
        lines.append(f"qdisc {verb} dev {forward} parent 1:2 handle 20: netem limit {limit} {delay}")
        if verb == "add":
            lines.append(
                f"filter add dev {forward} parent 1: protocol ip prio 1 "
                "u32 match ip sport 0x8000 0x8000 flowid 1:1"
            )
    return lines


def netem_seed(cell: Cell, line: str) -> int:
    """For a line of :func:`netem_lines`: by the cell's seed and the place of the qdisc."""
    place, _, _ = line.partition(" netem ")
    return int.from_bytes(hashlib.sha256(f"{cell.seed}\n{place}".encode()).digest()[:8], "big")


def _slot_words(aggregation: AckAggregation | None) -> str:
    if aggregation is None:
        return ""
    return f"slot {_microseconds(aggregation.least)} {_microseconds(aggregation.most)}"


def delay_tables(cell: Cell) -> dict[str, str]:
    """Name → the numbers that netem draws from, as tc reads them: of every kind of lateness in the cell."""
    found = (link.reordering for link in cell.links if link.reordering is not None)
    return {_table_name(reordering): _late_numbers(_share(reordering)) for reordering in found}


def _late_words(delay: Duration | None, reordering: Reordering) -> str:
    """A jitter that is drawn whole or not at all.

    tc takes no distribution where there is no delay: then it is a microsecond, the least that every tc reads.
    """
    least = _microseconds(delay if delay is not None and delay.ns else Duration(1000))
    return f"delay {least} {_microseconds(reordering.late)} distribution {_table_name(reordering)}"


def _table_name(reordering: Reordering) -> str:
    share = _share(reordering)
    return f"late{share.numerator}of{share.denominator}"


def _share(reordering: Reordering) -> Fraction:
    return Fraction(reordering.rate.base, Ratio.parse("100 %").base)


def _late_numbers(share: Fraction) -> str:
    numbers = [_ONE_JITTER] * share.numerator + [0] * (share.denominator - share.numerator)
    return "".join(f"{number}\n" for number in numbers)


def _loss_words(loss: Loss) -> str:
    chain = chain_of(loss)
    if chain is None:
        return f"loss random {str(loss.rate).replace(' ', '')}"
    # More digits than the 32 bits in which netem keeps a chance.
    return "loss gemodel " + " ".join(f"{100 * chance:.12g}%" for chance in chain)


def _microseconds(duration: Duration) -> str:
    """The finest unit that every tc reads."""
    whole, rest = divmod(duration.ns, 1000)
    return f"{whole}.{rest:03d}us" if rest else f"{whole}us"

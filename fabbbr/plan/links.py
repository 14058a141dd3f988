"""What every link of a cell does: queue, loss, reordering, delay, aggregation of acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fabbbr import limits
from fabbbr.foreign import listed, shown
from fabbbr.model import (
    AQM_INTERVALS,
    AQM_TARGETS,
    THRESHOLD_AQMS,
    AckAggregation,
    Aqm,
    Bottleneck,
    CellLink,
    LinkTrace,
    LinkWay,
    Loss,
    Reordering,
)
from fabbbr.physics import loses
from fabbbr.plan.ground import Ground, aqm_of, delivers, follows_there, reverse_of
from fabbbr.plan.misfits import Complaints, MisfitError
from fabbbr.spec.bounds import FASTEST_RATE, LARGEST_BURST_BYTES, LONGEST_BURST, SLOWEST_RATE
from fabbbr.spec.contradictions import NO_RATE_BACK
from fabbbr.spec.document import Loc
from fabbbr.spec.experiment import ReverseSetup
from fabbbr.topology import Link
from fabbbr.units import Duration, QueueSize, Rate, Ratio, bdp_bytes

LARGEST_QUEUE_BYTES = 2**32 - 1
"""The limit of a queue is a 32-bit number in the kernel's interface (struct tc_tbf_qopt)."""


def _losses(ground: Ground) -> dict[str, Loss]:
    loss = ground.setup.path.loss
    losses: dict[str, Loss] = {}
    if loss is not None and loss.position == "after_bottleneck":
        losses = dict.fromkeys(ground.bottlenecks, loss)
    elif loss is not None:
        losses = {
            ground.access(flow, ("path", "loss"), "loss before the bottleneck"): loss
            for flow in ground.assigned
        }
    losses |= {name: link.loss for name, link in ground.setup.links.items() if link.loss is not None}
    lossless = dict.fromkeys(ground.losses_stepped, Loss(rate=Ratio(0)))
    return lossless | {name: loss for name, loss in losses.items() if loses(loss)}


def _reordering(ground: Ground, link: str) -> Reordering | None:
    """Its own, or that of the path on every bottleneck; None when nothing comes late."""
    own = ground.setup.links.get(link)
    asked = ground.setup.path.reordering if link in ground.bottlenecks else None
    if own is not None and own.reordering is not None:
        asked = own.reordering
    return asked if asked is not None and asked.rate.base and asked.late.ns else None


def _aggregation(ground: Ground, link: str) -> AckAggregation | None:
    """That of the path, on every bottleneck; None when it holds nothing."""
    asked = ground.setup.path.ack_aggregation
    holds = asked is not None and asked.most.ns > 0
    return asked if holds and link in ground.bottlenecks else None


def buffer_bytes(
    ground: Ground, loc: Loc, buffer: QueueSize, rate: Rate, rtt: Duration, *, of: str = ""
) -> int:
    """What a queue holds; raise MisfitError for less than a packet, or more than tc can count."""
    size = buffer.bytes(rate=rate, rtt=rtt, mtu_bytes=ground.setup.path.mtu)
    if size < ground.frame_bytes:
        message = (
            f"{of}a buffer of {buffer} is {size} bytes at {rate} and {rtt}, less than one packet "
            f"({ground.frame_bytes} bytes); enlarge it"
        )
        raise MisfitError.of((loc, message))
    if size > LARGEST_QUEUE_BYTES:
        message = (
            f"{of}a buffer of {buffer} is {size} bytes at {rate} and {rtt}, and tc counts to "
            f"{LARGEST_QUEUE_BYTES}; lower the buffer or the rate"
        )
        raise MisfitError.of((loc, message))
    return size


def _burst_bytes(
    ground: Ground, loc: Loc, burst: QueueSize, rate: Rate, rtt: Duration, *, of: str = ""
) -> int:
    """What a token bucket holds; raise MisfitError for less than a packet, or more than can be measured."""
    size = burst.bytes(rate=rate, rtt=rtt, mtu_bytes=ground.setup.path.mtu)
    most = min(LARGEST_BURST_BYTES, int(bdp_bytes(rate, LONGEST_BURST)))
    if not ground.frame_bytes <= size <= most:
        message = (
            f"{of}a burst of {burst} is {size} bytes at {rate} and {rtt}; give {ground.frame_bytes} B, a "
            f"packet, to {most} B, which is {_bounded_by(rate)}"
        )
        raise MisfitError.of((loc, message))
    return size


def _bounded_by(rate: Rate) -> str:
    by_time = bdp_bytes(rate, LONGEST_BURST) < LARGEST_BURST_BYTES
    return (
        f"what {rate} brings in {LONGEST_BURST}" if by_time else "the most that is measured before the flows"
    )


def links_of(
    ground: Ground,
    delays: dict[str, Duration],
    rates: dict[str, Rate],
    complaints: Complaints,
) -> Iterator[CellLink]:
    """Every link of the slice, in its order; one that does not fit is only complained of."""
    losses = _losses(ground)
    for link in ground.topology.links:
        with complaints.noted():
            yield _link(ground, link, losses.get(link.name), delays, rates)


def _link(
    ground: Ground,
    link: Link,
    loss: Loss | None,
    delays: dict[str, Duration],
    rates: dict[str, Rate],
) -> CellLink:
    reordering, aggregation = _reordering(ground, link.name), _aggregation(ground, link.name)
    if link.name in ground.backwards:
        _check_backwards(ground, link, loss, reordering, aggregation)
    return CellLink(
        name=link.name,
        a=link.a,
        b=link.b,
        delay=delays.get(link.name),
        loss=loss,
        reordering=reordering,
        ack_aggregation=aggregation,
        bottleneck=_bottleneck(ground, link.name, delays, rates[link.name]) if link.name in rates else None,
    )


def _check_backwards(
    ground: Ground,
    link: Link,
    loss: Loss | None,
    reordering: Reordering | None,
    aggregation: AckAggregation | None,
) -> None:
    """What falls on one direction alone needs all data to go that way."""
    for key, asked in (("loss", loss), ("reordering", reordering)):
        if asked is not None:
            own = ground.setup.links.get(link.name)
            loc: Loc = ("links", link.name, key) if own is not None and getattr(own, key) else ("path", key)
            if key == "loss" and link.name in ground.losses_stepped:
                loc = ground.losses_stepped[link.name]
            message = (
                f"{key} on link {link.name} would fall on the acknowledgements of the flows that "
                f"send from {link.b} to {link.a}; {key} needs all data to go from {link.a} to {link.b}"
            )
            raise MisfitError.of((loc, message))
    if aggregation is not None:
        message = (
            f"aggregation on link {link.name} would hold the data of the flows that "
            f"send from {link.b} to {link.a}; it needs all data to go from {link.a} to {link.b}"
        )
        raise MisfitError.of((("path", "ack_aggregation"), message))


def _queue(ground: Ground, aqm: Aqm) -> dict[str, Any]:
    """The fields of a way that say what holds its queue, and what that is told."""
    path = ground.setup.path
    marks = path.ecn and aqm != "taildrop"
    after = path.ce_threshold if marks and aqm in THRESHOLD_AQMS else None
    return {
        "aqm": aqm,
        "ecn": marks,
        "ce_threshold": after if after is not None and after.ns else None,
        "aqm_target": path.aqm_target if aqm in AQM_TARGETS else None,
        "aqm_interval": path.aqm_interval if aqm in AQM_INTERVALS else None,
    }


def _bottleneck(ground: Ground, link: str, delays: dict[str, Duration], rate: Rate) -> Bottleneck:
    buffer, loc = _buffer_asked(ground, link)
    aqm = aqm_of(ground, link)
    rtt = ground.longest_rtt(link, delays)
    return Bottleneck(
        rate=rate,
        buffer_bytes=buffer_bytes(ground, loc, buffer, rate, rtt, of=f"link {link}: "),
        buffer_asked=str(buffer),
        bdp_bytes=int(bdp_bytes(rate, rtt)),
        **_queue(ground, aqm),
        both_directions=link in ground.backwards,
        **_bucket(ground, _burst_asked(ground, link), rate, rtt, of=f"link {link}: "),
        reverse=_way_back(ground, link, rtt, aqm),
        trace=_followed(ground, link),
        binned_trace=ground.setup.path.trace
        if follows_there(ground, link) and not delivers(ground, link)
        else None,
        **_trace_begins(ground, link),
    )


def _buffer_asked(ground: Ground, link: str) -> tuple[QueueSize, Loc]:
    """Of the way there, and where it is said."""
    own = ground.setup.links.get(link)
    if own is not None and own.buffer is not None:
        return own.buffer, ("links", link, "buffer")
    return ground.setup.path.buffer, ("path", "buffer")


def _burst_asked(ground: Ground, link: str) -> tuple[QueueSize | None, Loc]:
    """Of the way there, and where it is said."""
    own = ground.setup.links.get(link)
    if own is not None and own.burst is not None:
        return own.burst, ("links", link, "burst")
    return ground.setup.path.burst, ("path", "burst")


def _bucket(
    ground: Ground, asked: tuple[QueueSize | None, Loc], rate: Rate, rtt: Duration, *, of: str
) -> dict[str, Any]:
    """The fields of a way that say it; none where nothing is asked."""
    burst, loc = asked
    if burst is None:
        return {}
    size = _burst_bytes(ground, loc, burst, rate, rtt, of=of)
    return {"burst_bytes": size, "burst_asked": str(burst)}


def _way_back(ground: Ground, link: str, rtt: Duration, aqm: Aqm) -> LinkWay | None:
    asked = reverse_of(ground, link)
    if asked is None:
        return None
    reverse, loc = asked
    _check_one_queue(ground, link, loc)
    buffer, place = _buffer_asked(ground, link)
    if reverse.buffer is not None:
        buffer, place = reverse.buffer, (*loc, "buffer")
    burst = _burst_asked(ground, link) if reverse.burst is None else (reverse.burst, (*loc, "burst"))
    of, own_aqm = f"way back of link {link}: ", reverse.aqm or aqm
    trace = _followed_back(ground, reverse, loc, own_aqm)
    rate = rate_back(ground, reverse, loc)
    return LinkWay(
        rate=rate,
        buffer_bytes=buffer_bytes(ground, place, buffer, rate, rtt, of=of),
        buffer_asked=str(buffer),
        bdp_bytes=int(bdp_bytes(rate, rtt)),
        **({} if trace else _bucket(ground, burst, rate, rtt, of=of)),
        **_queue(ground, own_aqm),
        trace=trace,
    )


def rate_back(ground: Ground, reverse: ReverseSetup, loc: Loc) -> Rate:
    """Of a way back; with a trace, its mean."""
    if reverse.rate is not None:
        return reverse.rate
    if reverse.trace is None:
        raise MisfitError.of((loc, NO_RATE_BACK))
    return mean_rate(ground, reverse.trace, (*loc, "trace"))


def mean_rate(ground: Ground, name: str, loc: Loc) -> Rate:
    """Of a trace; raise MisfitError where nobody could set it."""
    rate = ground.trace_named(name, loc).mean_rate
    if not SLOWEST_RATE <= rate <= FASTEST_RATE:
        message = f"{shown(name)} has a mean rate of {rate}; record one of {SLOWEST_RATE} to {FASTEST_RATE}"
        raise MisfitError.of((loc, message))
    return rate


def _followed_back(ground: Ground, reverse: ReverseSetup, loc: Loc, aqm: Aqm) -> LinkTrace | None:
    if reverse.trace is None:
        return None
    if aqm != "taildrop":
        message = (
            f"is followed packet by packet, by a queue that drops at its tail, and aqm is {aqm}; "
            "add aqm: taildrop to reverse, or give it a rate"
        )
        raise MisfitError.of(((*loc, "trace"), message))
    return _link_trace(ground, reverse.trace, (*loc, "trace"))


def _check_one_queue(ground: Ground, name: str, loc: Loc) -> None:
    """A host does not shape what it sends: the switch does, at its other port, which must be the only one."""
    links = ground.topology.links
    link = next(each for each in links if each.name == name)
    if link.b in {switch.name for switch in ground.topology.switches}:
        return
    others = [each.name for each in links if each.name != name and link.a in (each.a, each.b)]
    if len(others) > 1:
        message = (
            f"{link.b} at the far end of link {name} is a host, and what it sends leaves {link.a} over "
            f"{listed(others)}, so there is no one queue for its way back; use a slice with a switch at both "
            "ends of that link, such as dumbbell"
        )
        raise MisfitError.of((loc, message))


def _trace_begins(ground: Ground, link: str) -> dict[str, Any]:
    """Of a link that follows a trace, one way or the other: where in it a run begins."""
    path, back = ground.setup.path, reverse_of(ground, link)
    name = path.trace if follows_there(ground, link) else None if back is None else back[0].trace
    if name is None:
        return {}
    # All traces of a setup begin at one instant.
    return {"trace_start": ground.traces[name].start, "trace_start_drawn": path.trace_start == "random"}


def _followed(ground: Ground, link: str) -> LinkTrace | None:
    """The trace, where the way there of this link delivers by it."""
    name = ground.setup.path.trace
    return _link_trace(ground, name, ("path", "trace")) if name and delivers(ground, link) else None


def _link_trace(ground: Ground, name: str, loc: Loc) -> LinkTrace:
    trace = ground.trace_named(name, loc)
    if len(trace.opportunities_ms) > limits.OPPORTUNITIES:
        message = (
            f"{shown(name)} has {len(trace.opportunities_ms)} opportunities; "
            f"at most {limits.OPPORTUNITIES}, cut it"
        )
        raise MisfitError.of((loc, message))
    return trace.link(name)

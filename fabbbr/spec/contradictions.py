"""What a setup says that cannot be meant: mistakes between keys that are each well formed.

Each check yields the location of a key and a message with the remedy. What changes nothing is
looked for in :mod:`fabbbr.spec.in_vain`; checks that need the hosts and links of a slice are made in
:mod:`fabbbr.plan.expand`.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabbbr.model import AQM_INTERVALS, AQM_TARGETS, AckAggregation, Loss, Reordering
from fabbbr.spec.bounds import (
    LATEST,
    LONGEST_AGGREGATION,
    LONGEST_RTT,
    LONGEST_RUN,
    MOST_REORDERED,
    REORDERED_STEP,
    SHORTEST_SAMPLE_PERIOD,
    SHORTEST_WAIT,
    rate_within,
    rtt_within,
    within,
)
from fabbbr.spec.document import Loc, Mistake, spell
from fabbbr.spec.experiment import LinkSetup, PathSetup, ReverseSetup, Setup, StepSetup
from fabbbr.spec.flow_contradictions import flow_mistakes
from fabbbr.units import ETHERNET_HEADER_BYTES, Duration, QueueSize, Ratio

NO_RATE = "needs a rate, e.g. rate: 100 Mbit/s"
NO_RATE_BACK = "needs a rate, e.g. rate: 5 Mbit/s"
NO_BUCKET = "a trace says when packets leave, and no token bucket does; remove burst, or give a rate"


def mistakes(setup: Setup) -> Iterator[Mistake]:
    """All of them."""
    yield from _path(setup.path)
    yield from _intervals(setup)
    yield from _traces(setup)
    for name, link in setup.links.items():
        yield from _link(("links", name), link, setup.path.mtu)
    yield from flow_mistakes(setup)
    yield from _steps(setup)
    yield from _times(setup)
    yield from _captures(setup)


def _captures(setup: Setup) -> Iterator[Mistake]:
    first: set[str] = set()
    for index, capture in enumerate(setup.capture):
        if capture.link in first:
            yield ("capture", index), f"link {capture.link} is captured already; name it once"
        first.add(capture.link)
        if capture.bytes == "full" and setup.path.offloads:
            said = "a super-packet has up to 64 kB; take headers, or leave offloads off"
            yield ("capture", index, "bytes"), said
    if setup.queue_delay == "packets" and setup.path.offloads:
        said = (
            "a super-packet may be cut inside the queue, and its segments have no arrival of their own; "
            "leave offloads off"
        )
        yield ("queue_delay",), said


def _traces(setup: Setup) -> Iterator[Mistake]:
    path = setup.path
    if not setup.traces:
        if path.trace_start is not None:
            yield ("path", "trace_start"), "begins in no trace; add one, e.g. trace: lte.down, or remove it"
        return
    if path.offloads:
        yield ("path", "offloads"), "a trace delivers packets of 1500 bytes one by one, so leave offloads off"
    if path.trace is not None and path.burst is not None:
        yield ("path", "burst"), NO_BUCKET


def _rate_or_trace(loc: Loc, asked: PathSetup | ReverseSetup, neither: str) -> Iterator[Mistake]:
    if asked.rate is None and asked.trace is None:
        yield loc, neither
    if asked.rate is not None and asked.trace is not None:
        yield loc, "give a rate or a trace, not both"
    yield from rate_within((*loc, "rate"), asked.rate)


def _path(path: PathSetup) -> Iterator[Mistake]:
    yield from _rate_or_trace(("path",), path, NO_RATE)
    if isinstance(path.rtt, dict):
        if not path.rtt:
            yield ("path", "rtt"), "names no sender, e.g. {h1: 61 ms, h2: 113 ms}"
        for sender, rtt in path.rtt.items():
            yield from rtt_within(("path", "rtt", sender), rtt)
    else:
        yield from rtt_within(("path", "rtt"), path.rtt)
    yield from _holds_a_packet(("path", "buffer"), path.buffer, path.mtu)
    yield from _holds_a_packet(("path", "burst"), path.burst, path.mtu)
    yield from _reverse(("path", "reverse"), path.reverse, path.mtu)
    yield from _loss(("path", "loss"), path.loss)
    yield from _reordering(("path", "reordering"), path.reordering)
    yield from _aggregation(("path", "ack_aggregation"), path.ack_aggregation)
    if path.ce_threshold != Duration(0):
        yield from within(("path", "ce_threshold"), path.ce_threshold, SHORTEST_WAIT, LONGEST_RTT)
    for key in ("aqm_target", "aqm_interval"):
        yield from within(("path", key), getattr(path, key), SHORTEST_WAIT, LONGEST_RTT)


def _intervals(setup: Setup) -> Iterator[Mistake]:
    """CoDel waits an interval before it drops what waited longer than the target."""
    path = setup.path
    for loc, aqm in setup.aqms.items():
        if aqm in AQM_TARGETS and aqm in AQM_INTERVALS:
            target = path.aqm_target or AQM_TARGETS[aqm]
            interval = path.aqm_interval or AQM_INTERVALS[aqm]
            if interval <= target:
                at: Loc = ("path", "aqm_target" if path.aqm_target is not None else "aqm_interval")
                said = (
                    f"{aqm} ({spell(loc)}) has a target of {target} and an interval of {interval}, which "
                    "must be longer; give a shorter aqm_target or a longer aqm_interval"
                )
                yield at, said
                return


def _link(loc: Loc, link: LinkSetup, mtu: int) -> Iterator[Mistake]:
    if link == LinkSetup():
        said = (
            "changes nothing; give rate, rtt, buffer, burst, reverse, loss, reordering or aqm, or remove it"
        )
        yield loc, said
    yield from rate_within((*loc, "rate"), link.rate)
    if link.rtt != Duration(0):
        yield from rtt_within((*loc, "rtt"), link.rtt)
    yield from _holds_a_packet((*loc, "buffer"), link.buffer, mtu)
    yield from _holds_a_packet((*loc, "burst"), link.burst, mtu)
    yield from _reverse((*loc, "reverse"), link.reverse, mtu)
    yield from _loss((*loc, "loss"), link.loss)
    yield from _reordering((*loc, "reordering"), link.reordering)


def _holds_a_packet(loc: Loc, asked: QueueSize | None, mtu: int) -> Iterator[Mistake]:
    if asked is not None and asked.size is not None and asked.size.bytes < mtu + ETHERNET_HEADER_BYTES:
        packet = mtu + ETHERNET_HEADER_BYTES
        yield loc, f"{asked} does not hold one packet of {packet} bytes; give at least {packet} B"


def _reverse(loc: Loc, reverse: ReverseSetup | None, mtu: int) -> Iterator[Mistake]:
    if reverse is not None:
        yield from _rate_or_trace(loc, reverse, NO_RATE_BACK)
        if reverse.trace is not None and reverse.burst is not None:
            yield (*loc, "burst"), NO_BUCKET
        yield from _holds_a_packet((*loc, "buffer"), reverse.buffer, mtu)
        yield from _holds_a_packet((*loc, "burst"), reverse.burst, mtu)


def _loss(loc: Loc, loss: Loss | None) -> Iterator[Mistake]:
    if loss is None:
        return
    if loss.model == "gilbert_elliott" and loss.recovery is None:
        yield (*loc, "recovery"), "is missing: gilbert_elliott needs it, e.g. recovery: 10 %"
    if loss.model == "bursts" and loss.burst is None:
        yield (*loc, "burst"), "is missing: bursts need it, e.g. burst: 10"
    most = loss.burst / (loss.burst + 1) if loss.burst is not None else 1.0
    if loss.model == "bursts" and loss.rate.value > most:
        # Between two bursts there is a packet.
        said = f"{loss.rate} cannot be lost {loss.burst} in a row; give {100 * most:.4g} % at most"
        yield (*loc, "rate"), said
    for key, model in _OF_MODEL.items():
        if loss.model != model and getattr(loss, key) is not None:
            said = _CALLED.get(loss.model, loss.model)
            yield (*loc, key), f"means nothing for {said}; add model: {model} or remove it"


_OF_MODEL = {
    "burst": "bursts",
    "recovery": "gilbert_elliott",
    "loss_in_bad": "gilbert_elliott",
    "loss_in_good": "gilbert_elliott",
}
_CALLED = {"random": "random loss"}


def _reordering(loc: Loc, reordering: Reordering | None) -> Iterator[Mistake]:
    if reordering is None:
        return
    yield from within((*loc, "rate"), reordering.rate, Ratio(0), MOST_REORDERED)
    if reordering.rate.base % REORDERED_STEP.base:
        said = f"{reordering.rate} is no whole number of hundredths of a percent, in which netem draws"
        yield (*loc, "rate"), said
    yield from within((*loc, "late"), reordering.late, Duration(0), LATEST)
    if reordering.late.ns % 1000:
        said = (
            f"{reordering.late} is no whole number of microseconds, which are the finest that every tc reads"
        )
        yield (*loc, "late"), said


def _aggregation(loc: Loc, aggregation: AckAggregation | None) -> Iterator[Mistake]:
    if aggregation is None:
        return
    yield from within((*loc, "most"), aggregation.most, Duration(0), LONGEST_AGGREGATION)
    if not Duration(0) <= aggregation.least <= aggregation.most:
        yield (*loc, "least"), f"{aggregation.least} is not between 0 s and most, {aggregation.most}"


def _steps(setup: Setup) -> Iterator[Mistake]:
    end = setup.end
    for index, step in enumerate(setup.own_steps):
        loc: Loc = ("steps", index)
        if end is not None and step.at >= end:
            yield (
                (*loc, "at"),
                f"{step.at} is not before the end of the flows at {end}; move it or lengthen them",
            )
        yield from (((*loc, *key), message) for key, message in step_mistakes(step, setup))


def step_mistakes(step: StepSetup, setup: Setup) -> Iterator[Mistake]:
    """All of one step, each with the place in it."""
    if step.rate is None and step.rtt is None and step.buffer is None and step.loss is None:
        yield (), "changes nothing; give rate, rtt, buffer or loss"
    if step.rate is not None and step.link is None and setup.path.trace is not None:
        yield ("rate",), "path.trace already sets the rate of the bottleneck; use one of the two"
    yield from within(("at",), step.at, Duration(0), LONGEST_RUN)
    yield from rate_within(("rate",), step.rate)
    yield from rtt_within(("rtt",), step.rtt)
    yield from _holds_a_packet(("buffer",), step.buffer, setup.path.mtu)
    yield from _step_of_loss(step, setup)


def _step_of_loss(step: StepSetup, setup: Setup) -> Iterator[Mistake]:
    if step.loss is None:
        return
    yield from _loss(("loss",), step.loss)
    if step.loss.position != "after_bottleneck":
        said = "a step's loss is of its link, behind the queue; remove it, or name another link"
        yield ("loss", "position"), said
    if setup.path.offloads:
        said = (
            "with offloads nobody can tell how many of a super-packet's segments met which loss; "
            "leave offloads off"
        )
        yield ("loss",), said


def _times(setup: Setup) -> Iterator[Mistake]:
    end = setup.end
    yield from within(("sample_period",), setup.sample_period, SHORTEST_SAMPLE_PERIOD, end or LONGEST_RUN)
    if setup.warm_up is not None and end is not None and setup.warm_up >= end:
        yield ("warm_up",), f"{setup.warm_up} leaves nothing of a run of {end}; shorten it"
    elif setup.warm_up is not None:
        yield from within(("warm_up",), setup.warm_up, Duration(0), LONGEST_RUN)

"""Are the settings in force? What the running network says, against what was configured.

One check for the hosts together, one for every bottleneck queue and one for every direction of a wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, TypeAdapter

from fabbbr.certify.evidence import Answer, Told, answer_to, parsed
from fabbbr.job.cabling import Cabling, LinkEnds
from fabbbr.job.configure import expected_offloads, expected_sysctls, netem_limit, readback_captures
from fabbbr.job.records import Interface
from fabbbr.model import AckAggregation, Cell, Check

_TOLD_DELAY_STEP_S = 1.5e-6
"""tc says a delay in whole microseconds, cut off; the pings measure it finer."""
_TICK_S = 64e-9
"""tc keeps a TBF's burst as time, in ticks of 64 ns."""
_NETEM_STEP = 2.0**-31
"""netem keeps probabilities in 32 bits."""

Slots = tuple[float, float]
"""How many seconds the first of an aggregate waits, at least and at most; zeros
where nothing is aggregated."""


class _Delay(Told):
    delay: float


class _Slot(Told):
    least_s: Annotated[float, Field(alias="min-delay")]
    most_s: Annotated[float, Field(alias="max-delay")]


class _RandomLoss(Told):
    loss: float


class _GilbertElliott(Told):
    p: float


class _Options(Told):
    """Of tbf and netem; those of other kinds are of no interest."""

    rate: int | None = None
    """Bytes per second."""
    limit: int | None = None
    burst: int | None = None
    delay: _Delay | None = None
    slot: _Slot | None = None
    random: Annotated[_RandomLoss | None, Field(alias="loss-random")] = None
    gemodel: Annotated[_GilbertElliott | None, Field(alias="loss-gemodel")] = None

    @property
    def delay_s(self) -> float:
        return self.delay.delay if self.delay is not None else 0.0

    @property
    def slots_s(self) -> Slots:
        return (self.slot.least_s, self.slot.most_s) if self.slot is not None else (0.0, 0.0)

    @property
    def loss(self) -> float:
        """Its first parameter, per packet."""
        if self.random is not None:
            return self.random.loss
        return self.gemodel.p if self.gemodel is not None else 0.0


class _Shaper(Told):
    kind: str
    dev: str
    options: _Options


class _Other(Told):
    kind: str
    dev: str


_SHAPERS = TypeAdapter(list[_Shaper | _Other])


class _Answers:
    """What was captured, each as the answer to what was asked."""

    def __init__(self, cell: Cell, cabling: Cabling, told: Mapping[str, Answer]) -> None:
        self._asked = {capture.name: capture for capture in readback_captures(cell, cabling)}
        self._told = told

    def text(self, name: str) -> str:
        return self._of(name).stdout

    def qdiscs(self, interface: Interface) -> list[_Shaper | _Other]:
        name = f"qdisc.{interface.node}"
        return [qdisc for qdisc in parsed(self._of(name), _SHAPERS, name) if qdisc.dev == interface.name]

    def options(self, interface: Interface, kind: str) -> list[_Options]:
        return [
            qdisc.options
            for qdisc in self.qdiscs(interface)
            if isinstance(qdisc, _Shaper) and qdisc.kind == kind
        ]

    def _of(self, name: str) -> Answer:
        return answer_to(self._asked[name], self._told, "readback.json")


def settings(cell: Cell, cabling: Cabling, readback: Mapping[str, Answer]) -> Iterator[Check]:
    """The checks, from the captures that :func:`fabbbr.job.configure.readback_captures` asked for."""
    answers = _Answers(cell, cabling, readback)
    wrong = sorted(_wrong_host_settings(cell, cabling, answers))
    yield Check(
        name="host settings",
        passed=not wrong,
        asked="windows, ports, ECN and offloads as configured",
        measured="all in force" if not wrong else "; ".join(wrong),
    )
    for ends in cabling.ends:
        yield from _queue_settings(ends, answers)
        yield from _wire_settings(cell, ends, answers)


def _wrong_host_settings(cell: Cell, cabling: Cabling, answers: _Answers) -> Iterator[str]:
    for node in cabling.nodes:
        if node.kind == "host":
            told = dict(
                line.split(" = ", 1)
                for line in answers.text(f"sysctl.{node.name}").splitlines()
                if " = " in line
            )
            for key, asked in expected_sysctls(cell).items():
                if told.get(key, "").split() != asked.split():
                    yield f"{node.name}: {key} is {told.get(key)!r}, not {asked!r}"
        for interface in cabling.interfaces(node.name):
            features = answers.text(f"offloads.{interface.name}")
            for feature in expected_offloads(cell, node.kind):
                state = re.search(rf"^{_ETHTOOL_NAMES[feature]}: (\w+)", features, re.MULTILINE)
                if state is None or state[1] != "off":
                    yield f"{interface.name}: {feature} is {state[1] if state is not None else 'not told'}"


_ETHTOOL_NAMES = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
}


def _queue_settings(ends: LinkEnds, answers: _Answers) -> Iterator[Check]:
    link = ends.link
    if link.rate is None:
        return
    assert link.burst_bytes is not None
    for interface in (ends.queue, *ends.reverse_queues):
        kinds = [qdisc.kind for qdisc in answers.qdiscs(interface)]
        tbf = next(iter(answers.options(interface, "tbf")), _Options())
        slack = link.rate.bps / 8 * _TICK_S * 2 + 1
        right = (
            tbf.rate == link.rate.bps // 8
            and tbf.limit == link.buffer_bytes
            and abs((tbf.burst or 0) - link.burst_bytes) <= max(slack, link.burst_bytes * 0.002)
            and (link.aqm == "taildrop" or link.aqm in kinds)
        )
        yield Check(
            name=f"bottleneck {link.name} at {interface.name}",
            passed=right,
            asked=f"{link.rate}, limit {link.buffer_bytes} B, burst {link.burst_bytes} B, {link.aqm}",
            measured=(
                f"{(tbf.rate or 0) * 8} bit/s, limit {tbf.limit} B, burst {tbf.burst} B, " + "+".join(kinds)
            ),
        )


def _wire_settings(cell: Cell, ends: LinkEnds, answers: _Answers) -> Iterator[Check]:
    for interface in (ends.wire_forward, ends.wire_backward):
        if interface is None:
            continue
        netems = answers.options(interface, "netem")
        delay_s = ends.link.delay.seconds if ends.link.delay is not None else 0.0
        told = [netem.delay_s for netem in netems]
        lossy = ends.link.loss is not None and interface == ends.wire_forward
        asked_loss = ends.link.loss.rate.value if ends.link.loss is not None and lossy else 0.0
        told_loss = sum(netem.loss for netem in netems)
        backward = interface == ends.wire_backward
        asked_slots = slots_s(ends.link.ack_aggregation if backward else None)
        told_slots = [netem.slots_s for netem in netems]
        yield Check(
            name=f"wire of {ends.link.name} at {interface.name}",
            # Data and the rest each have a netem of their own where data is lost.
            passed=len(told) == (2 if lossy else 1)
            and all(netem.limit == netem_limit(cell, ends.link) for netem in netems)
            and all(abs(value - delay_s) < _TOLD_DELAY_STEP_S for value in told)
            and all(_same_slots(slots, asked_slots) for slots in told_slots)
            and abs(told_loss - asked_loss) <= _NETEM_STEP,
            asked=f"delay {delay_s * 1e3:g} ms, loss {asked_loss:.9g}{_in_words(asked_slots)}",
            measured=(
                f"delay {' and '.join(f'{v * 1e3:g} ms' for v in told)}, loss {told_loss:.9g}"
                + "".join(_in_words(slots) for slots in told_slots)
            ),
        )


def slots_s(aggregation: AckAggregation | None) -> Slots:
    """In seconds."""
    return (aggregation.least.seconds, aggregation.most.seconds) if aggregation is not None else (0.0, 0.0)


def _same_slots(told: Slots, asked: Slots) -> bool:
    return all(abs(one - other) < _TOLD_DELAY_STEP_S for one, other in zip(told, asked, strict=True))


def _in_words(slots: Slots) -> str:
    return f", aggregates of {slots[0] * 1e3:g} to {slots[1] * 1e3:g} ms" if any(slots) else ""

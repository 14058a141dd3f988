"""Are the settings in force? What the running network says, against what was configured.

One check for the hosts together, one for every bottleneck queue and one for every direction of a wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field, TypeAdapter

from fabbbr.certify.counters import Told
from fabbbr.certify.evidence import Answer, answer_to, parsed
from fabbbr.job.expected import Expected, HostPacing, InitialWindow, Prepared, Queue, Slots, Wire
from fabbbr.job.records import Capture
from fabbbr.manifest import Check
from fabbbr.model import Loss
from fabbbr.physics import chain_of, loses

_TOLD_DELAY_STEP_S = 1.5e-6
"""tc says a delay in whole microseconds, cut off; the pings measure it finer."""
_TICK_S = 64e-9
"""tc keeps a TBF's burst as time, in ticks of 64 ns."""
_AQM_STEP_S = 2.1e-6
"""CoDel keeps times in steps of 1024 ns, and tells them in whole microseconds."""
_NETEM_STEP = 2.0**-31
"""netem keeps probabilities in 32 bits."""
_TOLD_CHANCE = 5.1e-6
"""tc says them to six digits; what was lost is counted."""


class _Delay(Told):
    delay: float
    jitter: float = 0.0


class _Slot(Told):
    least_s: Annotated[float, Field(alias="min-delay")]
    most_s: Annotated[float, Field(alias="max-delay")]


class _RandomLoss(Told):
    loss: float


class _GilbertElliott(Told):
    p: float
    r: float
    in_bad: Annotated[float, Field(alias="1-h")]
    in_good: Annotated[float, Field(alias="1-k")]


class _Options(Told):
    """Of tbf, netem, AQMs and fq; those of other kinds are of no interest."""

    rate: int | None = None
    """Bytes per second."""
    limit: int | None = None
    burst: int | None = None
    target: int | None = None
    """Microseconds, as the next three."""
    interval: int | None = None
    rtt: int | None = None
    ce_threshold: int | None = None
    maxrate: int | None = None
    """Bytes per second."""
    delay: _Delay | None = None
    slot: _Slot | None = None
    random: Annotated[_RandomLoss | None, Field(alias="loss-random")] = None
    gemodel: Annotated[_GilbertElliott | None, Field(alias="loss-gemodel")] = None

    @property
    def delay_s(self) -> float:
        return self.delay.delay if self.delay is not None else 0.0

    @property
    def jitter_s(self) -> float:
        return self.delay.jitter if self.delay is not None else 0.0

    @property
    def slots_s(self) -> Slots:
        return (self.slot.least_s, self.slot.most_s) if self.slot is not None else (0.0, 0.0)

    @property
    def loss(self) -> tuple[float, ...]:
        """Chances per packet: of a loss; or of going bad, of recovering, and of a loss in either state."""
        if self.random is not None:
            return (self.random.loss,)
        chain = self.gemodel
        return () if chain is None else (chain.p, chain.r, chain.in_bad, chain.in_good)


class _Shaper(Told):
    kind: str
    dev: str
    options: _Options


class _Other(Told):
    kind: str
    dev: str


_SHAPERS = TypeAdapter(list[_Shaper | _Other])


class _Metrics(Told):
    initcwnd: int | None = None


class _Route(Told):
    dst: str
    metrics: tuple[_Metrics, ...] = ()


_ROUTES = TypeAdapter(list[_Route])


class _Answers:
    """What was captured, each as the answer to what was asked."""

    def __init__(self, asked: Sequence[Capture], told: Mapping[str, Answer]) -> None:
        self._asked = {capture.name: capture for capture in asked}
        self._told = told

    def text(self, name: str) -> str:
        return self._of(name).stdout

    def qdiscs(self, at: Queue | Wire | HostPacing) -> list[_Shaper | _Other]:
        told = parsed(self._of(at.captured), _SHAPERS, at.captured)
        return [qdisc for qdisc in told if qdisc.dev == at.interface.name]

    def options(self, at: Queue | Wire | HostPacing, kind: str) -> list[_Options]:
        return [
            qdisc.options for qdisc in self.qdiscs(at) if isinstance(qdisc, _Shaper) and qdisc.kind == kind
        ]

    def metrics(self, of: InitialWindow) -> list[_Metrics]:
        routes = parsed(self._of(of.captured), _ROUTES, of.captured)
        return [metrics for route in routes if route.dst == of.address for metrics in route.metrics]

    def _of(self, name: str) -> Answer:
        return answer_to(self._asked[name], self._told, "readback.json")


def settings(prepared: Prepared, readback: Mapping[str, Answer]) -> Iterator[Check]:
    """The checks, from what the job's read-back captured."""
    answers = _Answers(prepared.job.readback, readback)
    wrong = sorted(_wrong_host_settings(prepared.expected, answers))
    yield Check(
        name="host settings",
        passed=not wrong,
        asked="windows, ports, ECN and offloads as configured",
        measured="all in force" if not wrong else "; ".join(wrong),
    )
    queues = (queue for queue in prepared.expected.queues if queue.trace is None)
    yield from (_queue_settings(queue, answers) for queue in queues)
    yield from (_pacing_settings(pacing, answers) for pacing in prepared.expected.pacings)
    yield from (_wire_settings(wire, answers) for wire in prepared.expected.wires)
    yield from (_initial_window(window, answers) for window in prepared.expected.initial_windows)


def _wrong_host_settings(expected: Expected, answers: _Answers) -> Iterator[str]:
    for host in expected.hosts:
        lines = answers.text(host.captured).splitlines()
        told = dict(line.split(" = ", 1) for line in lines if " = " in line)
        for key, asked in host.sysctls.items():
            if told.get(key, "").split() != asked.split():
                yield f"{host.node}: {key} is {told.get(key)!r}, not {asked!r}"
    for at in expected.offloads:
        features = answers.text(at.captured)
        for feature, wanted in (*((each, "off") for each in at.off), *((each, "on") for each in at.on)):
            state = re.search(rf"^{_ETHTOOL_NAMES[feature]}: (\w+)", features, re.MULTILINE)
            if state is None or state[1] != wanted:
                found = state[1] if state is not None else "not told"
                yield f"{at.interface.name}: {feature} is {found}, not {wanted}"


_ETHTOOL_NAMES = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
}


def _queue_settings(queue: Queue, answers: _Answers) -> Check:
    kinds = [qdisc.kind for qdisc in answers.qdiscs(queue)]
    tbf = next(iter(answers.options(queue, "tbf")), _Options())
    slack = queue.rate.bps / 8 * _TICK_S * 2 + 1
    told_s = _told_times_s(queue, answers.options(queue, queue.aqm))
    right = (
        tbf.rate == queue.rate.bps // 8
        and tbf.limit == queue.buffer_bytes
        and abs((tbf.burst or 0) - queue.burst_bytes) <= max(slack, queue.burst_bytes * 0.002)
        and (queue.aqm == "taildrop" or queue.aqm in kinds)
        and _same_times(told_s, queue.aqm_times_s)
    )
    return Check(
        name=f"bottleneck {queue.link} at {queue.interface.name}",
        passed=right,
        asked=f"{queue.rate}, limit {queue.buffer_bytes} B, burst {queue.burst_bytes} B, {queue.aqm}"
        + _times_in_words(queue.aqm_times_s),
        measured=(
            f"{(tbf.rate or 0) * 8} bit/s, limit {tbf.limit} B, burst {tbf.burst} B, "
            + "+".join(kinds)
            + _times_in_words(told_s)
        ),
    )


def _told_times_s(queue: Queue, aqms: Sequence[_Options]) -> dict[str, float]:
    """Of those that were asked, and a threshold in any case: nothing has one by itself."""
    told = next(iter(aqms), _Options())
    found = {word: getattr(told, word) for word in (*queue.aqm_times_s, "ce_threshold")}
    return {word: time / 1e6 for word, time in found.items() if time is not None}


def _same_times(told_s: Mapping[str, float], asked_s: Mapping[str, float]) -> bool:
    return told_s.keys() == asked_s.keys() and all(
        abs(told_s[word] - asked_s[word]) < _AQM_STEP_S for word in asked_s
    )


def _times_in_words(times_s: Mapping[str, float]) -> str:
    words = {"ce_threshold": "marks after"}
    return "".join(f", {words.get(word, word)} {time * 1e6:g} us" for word, time in times_s.items())


def _pacing_settings(pacing: HostPacing, answers: _Answers) -> Check:
    told = [fq.maxrate for fq in answers.options(pacing, "fq")]
    return Check(
        name=f"fq at {pacing.interface.name}",
        passed=told == [pacing.maxrate.bps // 8],
        asked=f"maxrate {pacing.maxrate}",
        measured=" and ".join(f"maxrate {(rate or 0) * 8} bit/s" for rate in told) or "no fq",
    )


def _initial_window(window: InitialWindow, answers: _Answers) -> Check:
    told = [metric.initcwnd for metric in answers.metrics(window)]
    return Check(
        name=f"initial window {window.node}–{window.receiver}",
        passed=told == [window.segments],
        asked=f"{window.segments} segments",
        measured=" and ".join(f"{segments or 'no'} segments" for segments in told) or "no route of its own",
    )


def _wire_settings(wire: Wire, answers: _Answers) -> Check:
    netems = answers.options(wire, "netem")
    told = [netem.delay_s for netem in netems]
    asked_loss = _chances(wire.loss)
    # That of the acknowledgements has none.
    told_loss = tuple(chance for netem in netems for chance in netem.loss)
    told_slots = [netem.slots_s for netem in netems]
    told_late_s = sum(netem.jitter_s for netem in netems)
    return Check(
        name=f"wire of {wire.link} at {wire.interface.name}",
        # Data and the rest each have a netem of their own where data is lost or late.
        passed=len(told) == (2 if wire.loss is not None or wire.late_s else 1)
        and all(netem.limit == wire.limit_packets for netem in netems)
        and all(abs(value - wire.delay_s) < _TOLD_DELAY_STEP_S for value in told)
        and abs(told_late_s - wire.late_s) < _TOLD_DELAY_STEP_S
        and all(_same_slots(slots, wire.slots_s) for slots in told_slots)
        and len(told_loss) == len(asked_loss)
        and all(map(_same_chance, told_loss, asked_loss)),
        asked=(
            f"delay {wire.delay_s * 1e3:g} ms, loss {_listed(asked_loss)}"
            f"{_late_in_words(wire.late_s)}{_in_words(wire.slots_s)}"
        ),
        measured=(
            f"delay {' and '.join(f'{v * 1e3:g} ms' for v in told)}, loss {_listed(told_loss)}"
            + _late_in_words(told_late_s)
            + "".join(_in_words(slots) for slots in told_slots)
        ),
    )


def _same_chance(told: float, asked: float) -> bool:
    return abs(told - asked) <= max(_NETEM_STEP, asked * _TOLD_CHANCE)


def _chances(loss: Loss | None) -> tuple[float, ...]:
    """As netem tells them: no loss at all it does not."""
    if loss is None or not loses(loss):
        return ()
    return chain_of(loss) or (loss.rate.value,)


def _listed(chances: Sequence[float]) -> str:
    return ", ".join(f"{chance:.9g}" for chance in chances) or "0"


def _same_slots(told: Slots, asked: Slots) -> bool:
    return all(abs(one - other) < _TOLD_DELAY_STEP_S for one, other in zip(told, asked, strict=True))


def _late_in_words(late_s: float) -> str:
    return f", some {late_s * 1e3:g} ms late" if late_s else ""


def _in_words(slots: Slots) -> str:
    return f", aggregates of {slots[0] * 1e3:g} to {slots[1] * 1e3:g} ms" if any(slots) else ""

"""Are the settings in force? What the running network told, against what was configured.

One check for the hosts together, one for every bottleneck queue and one for every direction of a wire.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fabbbr.cabling import Cabling, LinkEnds
from fabbbr.configure import expected_offloads, expected_sysctls
from fabbbr.model import AckAggregation, Cell, Check

_TOLD_DELAY_STEP_S = 1.5e-6
"""tc tells a delay in whole microseconds, cut off; the pings measure it finer."""
_TICK_S = 64e-9
"""tc keeps a TBF's burst as time, in ticks of 64 ns."""
_NETEM_STEP = 2.0**-31
"""netem keeps probabilities in 32 bits."""

Raw = Mapping[str, Any]
Slots = tuple[float, float]
"""How many seconds the first of an aggregate waits, at least and at most; zeros where nothing is aggregated."""


def settings(cell: Cell, cabling: Cabling, readback: Raw) -> Iterator[Check]:
    """The checks, from the captures that :func:`fabbbr.configure.readback_captures` asked for."""
    wrong = sorted(_wrong_host_settings(cell, cabling, readback))
    yield Check(
        name="host settings",
        passed=not wrong,
        asked="windows, ports, ECN and offloads as configured",
        measured="all in force" if not wrong else "; ".join(wrong),
    )
    for ends in cabling.ends:
        yield from _queue_settings(ends, readback)
        yield from _wire_settings(ends, readback)


def _wrong_host_settings(cell: Cell, cabling: Cabling, readback: Raw) -> Iterator[str]:
    for node in cabling.nodes:
        if node.kind == "host":
            told = dict(
                re.split(r"\s*=\s*", line, maxsplit=1)
                for line in readback[f"sysctl.{node.name}"]["stdout"].splitlines()
            )
            for key, asked in expected_sysctls(cell).items():
                if told.get(key, "").split() != asked.split():
                    yield f"{node.name}: {key} is {told.get(key)!r}, not {asked!r}"
        for interface in cabling.interfaces(node.name):
            features = readback[f"offloads.{interface.name}"]["stdout"]
            for feature in expected_offloads(cell, node.kind):
                state = re.search(rf"^{_ETHTOOL_NAMES[feature]}: (\w+)", features, re.MULTILINE)
                if state is not None and state[1] != "off":
                    yield f"{interface.name}: {feature} is {state[1]}"


_ETHTOOL_NAMES = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
}


def _qdiscs(readback: Raw, node: str, interface: str) -> list[dict[str, Any]]:
    told = json.loads(readback[f"qdisc.{node}"]["stdout"] or "[]")
    return [qdisc for qdisc in told if qdisc.get("dev") == interface]


def _queue_settings(ends: LinkEnds, readback: Raw) -> Iterator[Check]:
    link = ends.link
    if link.rate is None:
        return
    assert link.burst_bytes is not None
    for interface in (ends.queue, *ends.reverse_queues):
        qdiscs = _qdiscs(readback, interface.node, interface.name)
        tbf: dict[str, int] = next((q["options"] for q in qdiscs if q["kind"] == "tbf"), {})
        slack = link.rate.bps / 8 * _TICK_S * 2 + 1
        right = (
            tbf.get("rate") == link.rate.bps // 8
            and tbf.get("limit") == link.buffer_bytes
            and abs(tbf.get("burst", 0) - link.burst_bytes) <= max(slack, link.burst_bytes * 0.002)
            and (link.aqm == "taildrop" or any(q["kind"] == link.aqm for q in qdiscs))
        )
        yield Check(
            name=f"bottleneck {link.name} at {interface.name}",
            passed=right,
            asked=f"{link.rate}, limit {link.buffer_bytes} B, burst {link.burst_bytes} B, {link.aqm}",
            measured=(
                f"{tbf.get('rate', 0) * 8} bit/s, limit {tbf.get('limit')} B, burst {tbf.get('burst')} B, "
                + "+".join(q["kind"] for q in qdiscs)
            ),
        )


def _wire_settings(ends: LinkEnds, readback: Raw) -> Iterator[Check]:
    for interface in (ends.wire_forward, ends.wire_backward):
        if interface is None:
            continue
        netems = [
            q["options"] for q in _qdiscs(readback, interface.node, interface.name) if q["kind"] == "netem"
        ]
        delay_s = ends.link.delay.seconds if ends.link.delay is not None else 0.0
        told = [netem.get("delay", {}).get("delay", 0.0) for netem in netems]
        asked_loss = ends.link.loss.rate.value if ends.link.loss and interface == ends.wire_forward else 0.0
        told_loss = sum(_told_loss(netem) for netem in netems)
        backward = interface == ends.wire_backward
        asked_slots = slots_s(ends.link.ack_aggregation if backward else None)
        told_slots = [_told_slots_s(netem) for netem in netems]
        yield Check(
            name=f"wire of {ends.link.name} at {interface.name}",
            passed=bool(told)
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


def _told_slots_s(netem: Raw) -> Slots:
    slot = netem.get("slot", {})
    return float(slot.get("min-delay", 0.0)), float(slot.get("max-delay", 0.0))


def _same_slots(told: Slots, asked: Slots) -> bool:
    return all(abs(one - other) < _TOLD_DELAY_STEP_S for one, other in zip(told, asked, strict=True))


def _in_words(slots: Slots) -> str:
    return f", aggregates of {slots[0] * 1e3:g} to {slots[1] * 1e3:g} ms" if any(slots) else ""


def _told_loss(netem: Raw) -> float:
    if "loss-random" in netem:
        return float(netem["loss-random"]["loss"])
    return float(netem.get("loss-gemodel", {}).get("p", 0.0))

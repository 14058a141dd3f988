"""Did the receivers get more than the bottleneck carries? Goodput against its rate less headers.

A flow counts its own seconds, and all flows through a bottleneck the time from the first one's start to the
last one's end. More than that can only be a clock, a program or a queue that is not what it was taken for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fabbbr.capacity import RateOverTime, filled_anew_s
from fabbbr.certify.evidence import Evidence
from fabbbr.job.expected import Prepared, Queue
from fabbbr.manifest import Check
from fabbbr.model import Cell, Flow
from fabbbr.physics import payload_share
from fabbbr.ways import crossed

_FIRST_WINDOW_FRAMES = 10
"""What a sender may have on its way before the receiver's program has begun to count."""
_STEP_LATE_S = 0.1
"""How much later than asked a step may be carried out."""


class _Got(NamedTuple):
    """What was received, and the most that could have been."""

    who: str
    bytes: int
    seconds: float
    most_bytes: float


def checks(prepared: Prepared, evidence: Evidence) -> Iterator[Check]:
    """One for each bottleneck with a rate; gates of traces count what they deliver themselves."""
    for queue in prepared.expected.queues:
        through = [flow for flow in prepared.cell.flows if _goes_through(prepared.cell, flow, queue)]
        if queue.trace is None and through:
            ceiling_bps = queue.rate.bps * _payload_share(prepared.cell, through)
            got = list(_of_queue(prepared, queue, through, evidence))
            yield _check(prepared.cell, queue, ceiling_bps, got)


def _check(cell: Cell, queue: Queue, ceiling_bps: float, got: Sequence[_Got]) -> Check:
    worst = max(got, key=lambda each: each.bytes - each.most_bytes, default=None)
    return Check(
        name=f"goodput through {queue.link} at {queue.interface.name}",
        passed=worst is None or worst.bytes <= worst.most_bytes,
        asked=f"at most {ceiling_bps / 1e6:.6g} Mbit/s of payload" + (" before steps" if cell.steps else ""),
        measured=_said(worst) if worst is not None else "no flow through it said what it received",
        detail="over a flow's own time, and over that of all flows together",
    )


def _said(got: _Got) -> str:
    rate = f", {8 * got.bytes / got.seconds / 1e6:.4g} Mbit/s" if got.seconds > 0 else ""
    return f"{got.who}: {got.bytes} of at most {int(got.most_bytes)} B{rate}"


def _of_queue(
    prepared: Prepared, queue: Queue, through: Sequence[Flow], evidence: Evidence
) -> Iterator[_Got]:
    cell = prepared.cell
    rate, beyond = RateOverTime.of(cell, queue.link, reverse=queue.reverse), _beyond_bytes(prepared, queue)
    share = _payload_share(cell, through) * (1 + prepared.testbed.tolerances.rate) / 8
    late_s = _STEP_LATE_S if cell.steps else 0.0
    received = _received(through, evidence)
    for index, (count, seconds) in received.items():
        start_s = evidence.flows[index].started_s
        most_bps = rate.most(start_s - late_s, start_s + seconds + late_s)
        yield _Got(f"flow {index}", count, seconds, most_bps * seconds * share + beyond)
    if received:
        start_s = min(evidence.flows[index].started_s for index in received)
        end_s = max(evidence.flows[index].ended_s for index in received)
        bits = rate.bits(start_s, end_s) + late_s * rate.most(start_s, end_s)
        total = sum(count for count, _ in received.values())
        yield _Got("all flows", total, end_s - start_s, bits * share + beyond)


def _received(flows: Sequence[Flow], evidence: Evidence) -> dict[int, tuple[int, float]]:
    """Flow → bytes and seconds, as its receiver says; a flow that does not say is left out."""
    found: dict[int, tuple[int, float]] = {}
    for flow in flows:
        report = evidence.reports.get((flow.index, "server"))
        count = None if report is None else report.moved_bytes("server")
        if report is not None and count is not None and report.lasted_s > 0:
            found[flow.index] = (count, report.lasted_s)
    return found


def _goes_through(cell: Cell, flow: Flow, queue: Queue) -> bool:
    forward = crossed(cell.links, flow.sender, flow.receiver).get(queue.link)
    return forward is not None and forward != queue.reverse


def _payload_share(cell: Cell, flows: Sequence[Flow]) -> float:
    """The most of the rate. A super-packet may be counted with the header of one packet, or almost none."""
    return 1.0 if cell.offloads else max(payload_share(flow, cell.mtu_bytes) for flow in flows)


def _beyond_bytes(prepared: Prepared, queue: Queue) -> float:
    """What passes at once on stored tokens or before anybody counts, and while somebody is late to count.

    A bucket is full again after each step that changes its rate or its buffer.
    """
    late = queue.rate.bps / 8 * prepared.testbed.tolerances.look_s
    fills = 1 + (len(filled_anew_s(prepared.cell, queue.link)) if queue.burst_is_asked else 0)
    return fills * queue.burst_bytes + _FIRST_WINDOW_FRAMES * prepared.cell.frame_bytes + late

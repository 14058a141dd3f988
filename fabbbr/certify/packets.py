"""Of cells without segmentation offloads: what became of every packet, and was the loss as asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fabbbr.certify import gates, losses
from fabbbr.certify.counters import Counters
from fabbbr.certify.evidence import Evidence
from fabbbr.job.expected import Prepared, Queue
from fabbbr.job.records import Cable, Interface, Job
from fabbbr.manifest import Check
from fabbbr.testbed import Tolerances


def checks(prepared: Prepared, evidence: Evidence, *, lossy_links: int) -> Iterator[Check]:
    """Conservation at every node and on every cable, drops of queues, and injected loss."""
    yield from _conservation(prepared, evidence)
    yield from _loss(prepared, evidence, lossy_links)


class Grown(NamedTuple):
    """What the counters of one interface grew by, in packets."""

    entered: int
    left: int
    dropped: int
    """By the root queueing discipline, like what stands in it."""
    standing: int


def grown(evidence: Evidence, interface: Interface) -> Grown:
    """What ``interface`` and its root queueing discipline counted between the two readings."""
    node, device = interface.node, interface.name
    early, late = (_counted(counters, node, device) for counters in (evidence.before, evidence.after))
    return Grown(*(last - first for first, last in zip(early, late, strict=True)))


def _counted(counters: Counters, node: str, device: str) -> Grown:
    link, root = counters.link(node, device).stats64, counters.root(node, device)
    return Grown(link.rx.packets + link.rx.dropped, link.tx.packets, root.drops, root.qlen)


def interfaces_of(job: Job) -> Mapping[str, Sequence[Interface]]:
    """Node → its interfaces, in order."""
    of: dict[str, list[Interface]] = defaultdict(list)
    for cable in job.cables:
        for side in (cable.a, cable.b):
            of[side.node].append(side)
    return of


def _conservation(prepared: Prepared, evidence: Evidence) -> Iterator[Check]:
    job, network = prepared.job, prepared.expected.network_cables
    there = interfaces_of(job)
    for node in job.nodes:
        if node.kind != "host":
            yield _conserved(node.name, there[node.name], evidence)
    lost = [
        f"{way}: {sent - received}"
        for cable in job.cables
        if cable not in network
        for way, sent, received in _both_ways(evidence, cable)
        if sent != received
    ]
    yield Check(
        name="packets on cables",
        passed=not lost,
        asked="received = sent",
        measured="; ".join(lost) if lost else "equal on every cable",
    )
    for cable in network:
        yield carried_by_network(cable, evidence, prepared.testbed.tolerances)


def _conserved(node: str, interfaces: Sequence[Interface], evidence: Evidence) -> Check:
    each = [grown(evidence, interface) for interface in interfaces]
    each += [Grown(0, 0, *of_gate) for of_gate in gates.held(node, evidence)]
    entered, left, dropped, standing = map(sum, zip(*each, strict=True))
    unexplained = entered - left - dropped - standing
    return Check(
        name=f"packets of {node}",
        passed=unexplained == 0,
        asked="entered = left + dropped + standing",
        measured=f"{entered} = {left} + {dropped} + {standing}"
        + (f", {unexplained} unexplained" if unexplained else ""),
    )


def carried_by_network(cable: Cable, evidence: Evidence, allowed: Tolerances) -> Check:
    """What a cable that is not ours lost is the network's; it must not make packets, nor lose too many."""
    ways = list(_both_ways(evidence, cable))
    return Check(
        name=f"network between {cable.a.name} and {cable.b.name}",
        passed=all(0 <= sent - received <= allowed.network_loss * sent for _, sent, received in ways),
        asked=f"at most {allowed.network_loss:.6%} lost each way",
        measured="; ".join(f"{way}: {sent - received} of {sent} lost" for way, sent, received in ways),
    )


def _both_ways(evidence: Evidence, cable: Cable) -> Iterator[tuple[str, int, int]]:
    """Which way, and how many packets were sent and received."""
    one, other = grown(evidence, cable.a), grown(evidence, cable.b)
    yield f"{cable.a.name}→{cable.b.name}", one.left, other.entered
    yield f"{cable.b.name}→{cable.a.name}", other.left, one.entered


def _loss(prepared: Prepared, evidence: Evidence, lossy_links: int) -> Iterator[Check]:
    for queue in prepared.expected.queues:
        if not queue.reverse:
            yield Check(
                name=f"congestion drops at {queue.interface.name}",
                passed=True,
                asked="counted apart from injected loss",
                measured=f"{_congestion_drops(queue, evidence)} packets",
            )
    for wire in prepared.expected.wires:
        if wire.loss is not None:
            yield from losses.injected(wire, wire.loss, evidence, lossy_links)


def _congestion_drops(queue: Queue, evidence: Evidence) -> int:
    if queue.gate_node is None:
        return grown(evidence, queue.interface).dropped
    return gates.dropped(queue.gate_node, queue.interface.name, evidence)

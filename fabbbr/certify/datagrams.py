"""What became of every datagram of UDP: nothing but the path may lose one."""

from __future__ import annotations

from collections.abc import Iterator

from fabbbr.certify import gates
from fabbbr.certify.evidence import Evidence, TransferReport
from fabbbr.certify.packets import grown, interfaces_of
from fabbbr.job.expected import Prepared
from fabbbr.manifest import Check
from fabbbr.model import Flow


def checks(prepared: Prepared, evidence: Evidence) -> Iterator[Check]:
    """What senders sent and receivers did not get, against what was dropped anywhere between them.

    A receiver that is short of memory, or closes too early, is found so. Only of flows of which both ends
    report: what others lack is said elsewhere.
    """
    counts = [count for flow in prepared.cell.flows for count in _counts(flow, evidence)]
    if not counts:
        return
    due, sent, got = (sum(column) for column in zip(*counts, strict=True))
    dropped = _dropped(prepared, evidence)
    yield Check(
        name="datagrams",
        passed=sent == due and 0 <= sent - got <= dropped,
        asked=f"{due} sent, each received unless the path dropped it",
        measured=f"{sent} sent, {got} received, {sent - got} missing",
        detail=f"{dropped} packets of all kinds were dropped, or stood, between the hosts",
    )


def _counts(flow: Flow, evidence: Evidence) -> Iterator[tuple[int, int, int]]:
    """Datagrams that were to be sent, that the sender sent, and that the receiver got."""
    client, server = evidence.reports[flow.index, "client"], evidence.reports[flow.index, "server"]
    if not (isinstance(client, TransferReport) and isinstance(server, TransferReport)):
        return
    whole = client.error is None and server.error is None
    if whole and flow.udp and flow.duration and client.datagrams and server.datagrams:
        yield flow.udp.count_in(flow.duration), client.datagrams.sent, server.datagrams.received


def _dropped(prepared: Prepared, evidence: Evidence) -> int:
    """Packets that no host dropped, with those that still stand in a queue."""
    total = 0
    there = interfaces_of(prepared.job)
    for node in prepared.job.nodes:
        if node.kind != "host":
            counted = [grown(evidence, interface) for interface in there[node.name]]
            total += sum(each.dropped + each.standing for each in counted)
            total += sum(dropped + standing for dropped, standing in gates.held(node.name, evidence))
    return total

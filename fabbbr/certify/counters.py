"""What the kernel of each node had counted at one instant: interfaces, queues, filters and TCP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from fabbbr.errors import BackendError

Count = Annotated[int, Field(ge=0)]
_T = TypeVar("_T")

TOOLS = {
    "links": "ip -s -j link",
    "qdiscs": "tc -s -j qdisc show",
    "queues_at_peak": "tc -s -j qdisc show",
    "filters": "tc -s -j filter show",
    "netstat": "/proc/net/netstat",
    "gates": "the gate",
    "pings": "ping",
    "arrivals": "the burst",
}
"""What wrote that part of a file; the rest is the agent's."""


class Told(BaseModel):
    """Strict about types; what no check reads is ignored."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class LinkCounters(Told):
    """Of one interface, as ip counts."""

    class _Both(Told):
        class _Received(Told):
            packets: Count
            bytes: Count
            dropped: Count

        class _Sent(Told):
            packets: Count
            bytes: Count

        rx: _Received
        tx: _Sent

    ifname: str
    stats64: _Both


class QdiscCounters(Told):
    """Of one queueing discipline, as tc counts."""

    kind: str
    handle: str
    dev: str
    root: bool = False
    packets: Count
    bytes: Count
    """Sent, in frames."""
    drops: Count
    backlog: Count
    """Bytes."""
    qlen: Count
    """Packets."""


class GateCounters(QdiscCounters):
    """Of a queue that delivers by a trace, as its gate counts."""

    limit_bytes: Count
    trace_opportunities: Count
    trace_ms: Count
    followed_s: float | None
    """How long it has followed the trace; None while opportunities come evenly."""
    offered: Count
    """Opportunities since it follows the trace."""
    used: Count
    late_s: float
    """The most that it was late for an opportunity that it used."""
    unheard: Count
    """Frames that came and that it could not take in."""


class FilterCounters(Told):
    """Of one filter, as tc counts; of those that are no matchall nothing is of interest."""

    class _Options(Told):
        class _Action(Told):
            class _Stats(Told):
                packets: Count

            stats: _Stats

        rule_hit: Count | None = None
        actions: tuple[_Action, ...] = ()

    kind: str
    chain: Count
    options: _Options | None = None
    """tc lists each kind once more, without."""


class Counted(NamedTuple):
    """What a matchall filter has seen."""

    packets: int
    """Super-packets, where segmentation offloads are on."""
    segments: int


class NodeCounters(Told):
    """Of one node."""

    links: tuple[LinkCounters, ...]
    qdiscs: tuple[QdiscCounters, ...]
    netstat: str
    gates: tuple[GateCounters, ...] = ()
    filters: dict[str, tuple[FilterCounters, ...]] = Field(default_factory=dict)
    """By the name of the capture; only where segmentation offloads are on."""


@dataclass(frozen=True)
class Counters:
    """All counters of one instant; raise BackendError for what was not counted."""

    file: str
    nodes: Mapping[str, NodeCounters]

    def link(self, node: str, device: str) -> LinkCounters:
        """The counters of an interface."""
        found = (link for link in self._of(node).links if link.ifname == device)
        return self._first(found, "links", node, device)

    def root(self, node: str, device: str) -> QdiscCounters:
        """The counters of an interface's root queueing discipline."""
        found = (qdisc for qdisc in self._of(node).qdiscs if qdisc.dev == device and qdisc.root)
        return self._first(found, "qdiscs", node, f"{device} root")

    def qdisc(self, node: str, device: str, handle: str) -> QdiscCounters:
        """The counters of one of the queueing disciplines of an interface."""
        found = (qdisc for qdisc in self._of(node).qdiscs if (qdisc.dev, qdisc.handle) == (device, handle))
        return self._first(found, "qdiscs", node, f"{device} {handle}")

    def gates(self, node: str) -> tuple[GateCounters, ...]:
        """The counters of the gates of a node."""
        return self._of(node).gates

    def gate(self, node: str, device: str) -> GateCounters:
        """The counters of the gate that queues for ``device``."""
        found = (gate for gate in self.gates(node) if gate.dev == device)
        return self._first(found, "gates", node, device)

    def filtered(self, node: str, captured: str, chain: int = 0) -> Counted:
        """What the matchall filter of one chain counted."""
        found = (
            Counted(each.options.rule_hit, each.options.actions[0].stats.packets)
            for each in self._of(node).filters.get(captured, ())
            if (each.kind, each.chain) == ("matchall", chain)
            and each.options is not None
            and each.options.rule_hit is not None
            and each.options.actions
        )
        return self._first(found, "filters", node, f"{captured} chain {chain}")

    def tcp(self, node: str, name: str) -> int:
        """One of TcpExt of /proc/net/netstat: a line of names, then a line of values."""
        lines = [
            line.split()[1:] for line in self._of(node).netstat.splitlines() if line.startswith("TcpExt:")
        ]
        names, values = lines if len(lines) == 2 else ([], [])
        found = (
            int(value)
            for key, value in zip(names, values, strict=False)
            if key == name and value.isascii() and value.isdigit()
        )
        return self._first(found, "netstat", node, f"TcpExt {name}")

    def _of(self, node: str) -> NodeCounters:
        if node not in self.nodes:
            raise lacking(self.file, "the agent", f"{node} is missing")
        return self.nodes[node]

    def _first(self, found: Iterator[_T], part: str, node: str, what: str) -> _T:
        for one in found:
            return one
        raise lacking(self.file, TOOLS[part], f"{what} of {node} is missing")


def lacking(file: str, tool: str, what: str) -> BackendError:
    """The error for what a file lacks, and the tool that should have written it."""
    return BackendError(f"raw/{file}, from {tool}: {what}; see raw/console.log, and run the cell again")

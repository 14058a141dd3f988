"""What tc saw of the qdiscs, and what each is for → table ``queues``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from fabbbr.errors import ParseError
from fabbbr.model import Bottleneck
from fabbbr.store import StoredCell
from fabbbr_analysis.parse.tc import Qdisc, parse_tc
from fabbbr_analysis.parse.times import parse_times
from fabbbr_analysis.tables.raw import read_raw, samples_of, source_of

SCHEMA = pa.schema(
    [
        ("cell_id", pa.string()),
        ("node", pa.string()),
        ("interface", pa.string()),
        ("kind", pa.string()),
        ("handle", pa.string()),
        ("parent", pa.string()),
        ("t_s", pa.float64()),
        ("backlog_bytes", pa.int64()),
        ("backlog_packets", pa.int64()),
        ("sent_bytes", pa.int64()),
        ("sent_packets", pa.int64()),
        ("drops", pa.int64()),
        ("overlimits", pa.int64()),
        ("requeues", pa.int64()),
        ("ecn_marks", pa.int64()),
        ("role", pa.string()),
        ("link", pa.string()),
    ]
)


def read(stored: StoredCell) -> pa.Table:
    """Read one row per qdisc and sample; raise ParseError naming a file that cannot be read."""
    rows: list[dict[str, Any]] = []
    for path in samples_of(stored, "queues", ".json"):
        rows += _of_node(stored, path)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _of_node(stored: StoredCell, path: Path) -> list[dict[str, Any]]:
    # A gate's queue, ``queues.s1.gate.json``, is one of the switch at the head of its link.
    node = path.name.removeprefix("queues.").removesuffix(".json").removesuffix(".gate")
    times_name = path.with_suffix(".times").name
    text = read_raw(stored, times_name).decode("utf-8", errors="replace")
    times = parse_times(text, counted=False, source=source_of(stored, times_name))
    samples = parse_tc(path.read_bytes(), source=source_of(stored, path.name))
    if len(samples) != len(times.t_s):
        message = (
            f"{source_of(stored, path.name)} holds {len(samples)} samples, but {times_name} speaks of "
            f"{len(times.t_s)}; run the cell again"
        )
        raise ParseError(message)
    roles = _Roles.of(stored, samples)
    return [
        _row(stored.id, node, t_s, qdisc, roles)
        for t_s, sample in zip(times.t_s, samples, strict=True)
        for qdisc in sample
    ]


class _InterfaceRole(msgspec.Struct, frozen=True):
    """What the emulator says of an interface, in the manifest."""

    link: str
    role: str


@dataclass(frozen=True, kw_only=True)
class _Roles:
    """What the qdiscs of each interface are for."""

    interfaces: dict[str, _InterfaceRole]
    deciding_kind: dict[str, str]
    """Interface → the kind of its one qdisc that carries the role."""

    @classmethod
    def of(cls, stored: StoredCell, samples: list[list[Qdisc]]) -> _Roles:
        """Read the roles; none when the emulator noted none."""
        noted = stored.manifest.provenance.options.get("interfaces", {})
        try:
            interfaces = msgspec.convert(noted, dict[str, _InterfaceRole])
        except msgspec.ValidationError as error:
            message = f"{source_of(stored, 'manifest.json')}, provenance.options.interfaces: {error}"
            raise ParseError(message) from None
        bottlenecks = stored.manifest.cell.bottlenecks
        kinds: dict[str, set[str]] = {}
        for qdisc in (qdisc for sample in samples for qdisc in sample):
            kinds.setdefault(qdisc.dev or "", set()).add(qdisc.kind)
        deciding = {
            name: _deciding_kind(known.role, bottlenecks.get(known.link), kinds.get(name, set()))
            for name, known in interfaces.items()
        }
        return cls(interfaces=interfaces, deciding_kind=deciding)

    def role_of(self, qdisc: Qdisc) -> _InterfaceRole | None:
        """Return the role of this qdisc, None when it has none."""
        name = qdisc.dev or ""
        return self.interfaces.get(name) if self.deciding_kind.get(name) == qdisc.kind else None


def _deciding_kind(role: str, queue: Bottleneck | None, kinds: set[str]) -> str:
    """Pick the qdisc that holds the packets: an AQM stands below the TBF that shapes and has the backlog."""
    if not role.startswith("bottleneck"):
        return "netem"
    if queue is None:
        return "tbf"
    way = (queue.own_way_back or queue) if role.endswith("reverse") else queue
    if way.trace is not None:
        return "opportunities"
    return way.aqm if way.aqm in kinds else "tbf"


def _row(cell_id: str, node: str, t_s: float, qdisc: Qdisc, roles: _Roles) -> dict[str, Any]:
    known = roles.role_of(qdisc)
    return {
        "cell_id": cell_id,
        "node": node,
        "interface": qdisc.dev,
        "kind": qdisc.kind,
        "handle": qdisc.handle,
        "parent": qdisc.parent,
        "t_s": t_s,
        "backlog_bytes": qdisc.backlog,
        "backlog_packets": qdisc.qlen,
        "sent_bytes": qdisc.bytes,
        "sent_packets": qdisc.packets,
        "drops": qdisc.drops,
        "overlimits": qdisc.overlimits,
        "requeues": qdisc.requeues,
        "ecn_marks": qdisc.ecn_marks,
        "role": known.role if known else None,
        "link": known.link if known else None,
    }

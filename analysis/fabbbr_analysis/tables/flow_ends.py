"""The raw files of one flow → what its two ends said."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pyarrow as pa

from fabbbr.errors import ParseError
from fabbbr.model import Flow
from fabbbr.store import StoredCell
from fabbbr_analysis.parse.iperf3 import EndReport, Transferred, parse_iperf3
from fabbbr_analysis.parse.transfer import CHUNKS, DatagramCounts, Ends, parse_transfer
from fabbbr_analysis.tables.raw import read_raw, source_of


@dataclass(frozen=True, kw_only=True)
class FlowEnds:
    """What both ends of a flow said."""

    flow: Flow
    started_s: float | None
    """On the cell's clock."""
    client: EndReport
    server: EndReport
    datagrams: DatagramCounts | None
    chunks: pa.Table
    words: str | None
    """What the sender said on standard error."""

    @classmethod
    def read(cls, stored: StoredCell, flow: Flow) -> FlowEnds:
        """Read the flow's raw files; raise ParseError naming the one that is damaged."""
        ends = (_timed if flow.of_iperf3 else _of_the_agent)(stored, flow)
        said = read_raw(stored, f"flow-{flow.index}.client.err").decode("utf-8", errors="replace").strip()
        return cls(
            flow=flow,
            started_s=_started_s(stored, flow, ends.sender),
            client=ends.sender,
            server=ends.receiver,
            datagrams=ends.datagrams,
            chunks=ends.chunks,
            words=said or None,
        )

    @property
    def received(self) -> Transferred | None:
        """What the receiver got: its own count, else what it said to the sender at the end."""
        return self.server.received or self.client.received

    @property
    def completion_s(self) -> float | None:
        """Seconds until the receiver had all that was asked for; None without a size, or lacking a byte."""
        received = self.received
        if self.flow.size is None or received is None or received.bytes != self.flow.size.bytes:
            return None
        return received.seconds

    @property
    def error(self) -> str | None:
        """The client's words, else those of the server, if the flow did not complete."""
        if self.client.outcome == "completed":
            return None
        return self.client.error or self.words or self.server.error


def _timed(stored: StoredCell, flow: Flow) -> Ends:
    client, server = (
        parse_iperf3(read_raw(stored, name), source=source_of(stored, name)) for name in _names(flow)
    )
    if server.outcome == "no_output" and client.server is not None:
        server = client.server
    return Ends(sender=client, receiver=server, chunks=CHUNKS.empty_table())


def _of_the_agent(stored: StoredCell, flow: Flow) -> Ends:
    sender, receiver = _names(flow)
    return parse_transfer(
        read_raw(stored, sender),
        read_raw(stored, receiver),
        sources=(source_of(stored, sender), source_of(stored, receiver)),
        receiver_ahead_s=_receiver_ahead_s(stored, flow),
    )


def _names(flow: Flow) -> tuple[str, str]:
    return f"flow-{flow.index}.client.json", f"flow-{flow.index}.server.json"


class _Record(msgspec.Struct, frozen=True):
    """One entry of ``flows.json``."""

    flow: int
    started_s: float | None = None
    epoch_s: float | None = None
    """Zero of the cell's clock, on the clock that the sender of a sized flow reads."""
    server_epoch_s: float | None = None
    """The same on the receiver's clock, where that is another machine's."""


def _started_s(stored: StoredCell, flow: Flow, client: EndReport) -> float | None:
    """When the flow began, else when its client was started."""
    record = _record(stored, flow)
    if record is None:
        return None
    if client.start_clock_s is None or record.epoch_s is None:
        return record.started_s
    return client.start_clock_s - record.epoch_s


def _receiver_ahead_s(stored: StoredCell, flow: Flow) -> float:
    """What the receiver's clock shows more than the sender's: nothing on one machine."""
    record = _record(stored, flow)
    if record is None or record.epoch_s is None or record.server_epoch_s is None:
        return 0.0
    return record.server_epoch_s - record.epoch_s


def _record(stored: StoredCell, flow: Flow) -> _Record | None:
    text = read_raw(stored, "flows.json")
    if not text:
        return None
    try:
        records = msgspec.json.decode(text, type=list[_Record])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = f"{source_of(stored, 'flows.json')}: {error}; run the cell again"
        raise ParseError(message) from None
    return next((record for record in records if record.flow == flow.index), None)

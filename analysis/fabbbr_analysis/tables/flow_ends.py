"""The raw files of the flows of a cell → what the two ends of each said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec
import pyarrow as pa

from fabbbr.errors import ParseError
from fabbbr.model import Flow
from fabbbr.store import StoredCell
from fabbbr_analysis.parse.datagrams import DatagramFates
from fabbbr_analysis.parse.iperf3 import EndReport, Transferred, parse_iperf3
from fabbbr_analysis.parse.transfer import CHUNKS, Ends, parse_transfer
from fabbbr_analysis.tables.raw import read_raw, source_of

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class FlowEnds:
    """What both ends of a flow said."""

    flow: Flow
    started_s: float | None
    """On the cell's clock."""
    client: EndReport
    server: EndReport
    datagrams: DatagramFates | None
    chunks: pa.Table
    words: str | None
    """What the sender said on standard error."""

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


class _Record(msgspec.Struct, frozen=True):
    """One entry of ``flows.json``."""

    flow: int
    batch: int | None = None
    """Number of the batch whose programs sent and received it; None where it had programs of its own."""
    started_s: float | None = None
    epoch_s: float | None = None
    """Zero of the cell's clock, on the clock that the sender of a sized flow reads."""
    server_epoch_s: float | None = None
    """The same on the receiver's clock, where that is another machine's."""

    @property
    def receiver_ahead_s(self) -> float:
        """What the receiver's clock shows more than the sender's: nothing on one machine."""
        if self.epoch_s is None or self.server_epoch_s is None:
            return 0.0
        return self.server_epoch_s - self.epoch_s


class _Batch(msgspec.Struct, frozen=True):
    """What one program printed of all its flows."""

    batch: Literal[1]
    flows: dict[int, msgspec.Raw]


class RawFlows:
    """The raw files of the flows of one cell; what holds many flows is read once."""

    def __init__(self, stored: StoredCell) -> None:
        """Read ``flows.json``; raise ParseError when it is damaged."""
        self._stored = stored
        self._records = {record.flow: record for record in _records(stored)}
        self._batches: dict[str, dict[int, msgspec.Raw]] = {}

    def ends_of(self, flow: Flow) -> FlowEnds:
        """What both ends of ``flow`` said; raise ParseError naming the file that is damaged."""
        record = self._records.get(flow.index, _Record(flow=flow.index))
        ends = (self._timed if flow.of_iperf3 else self._of_the_agent)(record)
        said = read_raw(self._stored, f"{_stem(record)}.client.err").decode("utf-8", errors="replace").strip()
        return FlowEnds(
            flow=flow,
            started_s=_started_s(record, ends.sender),
            client=ends.sender,
            server=ends.receiver,
            datagrams=ends.datagrams,
            chunks=ends.chunks,
            words=said or None,
        )

    def _timed(self, record: _Record) -> Ends:
        client, server = (
            parse_iperf3(read_raw(self._stored, name), source=source_of(self._stored, name))
            for name in _names(record)
        )
        if server.outcome == "no_output" and client.server is not None:
            server = client.server
        return Ends(sender=client, receiver=server, chunks=CHUNKS.empty_table())

    def _of_the_agent(self, record: _Record) -> Ends:
        sender, receiver = _names(record)
        return parse_transfer(
            self._document(record, sender),
            self._document(record, receiver),
            sources=(source_of(self._stored, sender), source_of(self._stored, receiver)),
            receiver_ahead_s=record.receiver_ahead_s,
        )

    def _document(self, record: _Record, name: str) -> bytes:
        if record.batch is None:
            return read_raw(self._stored, name)
        if name not in self._batches:
            self._batches[name] = _batch(self._stored, name)
        return bytes(self._batches[name].get(record.flow, b""))


def _names(record: _Record) -> tuple[str, str]:
    return f"{_stem(record)}.client.json", f"{_stem(record)}.server.json"


def _stem(record: _Record) -> str:
    return f"flow-{record.flow}" if record.batch is None else f"batch-{record.batch}"


def _started_s(record: _Record, client: EndReport) -> float | None:
    """When the flow began, else when its client was started."""
    if client.start_clock_s is None or record.epoch_s is None:
        return record.started_s
    return client.start_clock_s - record.epoch_s


def _records(stored: StoredCell) -> list[_Record]:
    return _decoded(stored, "flows.json", list[_Record], [])


def _batch(stored: StoredCell, name: str) -> dict[int, msgspec.Raw]:
    return _decoded(stored, name, _Batch, _Batch(batch=1, flows={})).flows


def _decoded(stored: StoredCell, name: str, kind: type[_T], absent: _T) -> _T:
    """The content of a raw file of JSON; ``absent`` where it says nothing."""
    text = read_raw(stored, name)
    if not text:
        return absent
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"{source_of(stored, name)}: {error}; run the cell again"
        raise ParseError(message) from None

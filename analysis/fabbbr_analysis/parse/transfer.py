"""The two documents of a flow that iperf3 does not send → what each of its ends reports.

They are printed by ``fabbbr.agent.transfer``, and of UDP and videos by ``datagrams`` and ``video`` beside it.
Both ends tell instants of one clock, so the flow's own start, the sender's first SYN, is the origin of all
times here, the receiver's included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import pyarrow as pa

from fabbbr.errors import ParseError
from fabbbr_analysis.parse.datagrams import DatagramFates, Told, datagrams_of
from fabbbr_analysis.parse.iperf3 import INTERVALS, EndReport, Side, Transferred

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Sample(msgspec.Struct, frozen=True):
    at_s: float
    bytes: _Count
    """So far."""
    retransmits: _Count | None = None
    """Segments so far."""
    cwnd_bytes: _Count | None = None
    rtt_us: _Count | None = None


class _Stream(msgspec.Struct, frozen=True):
    port: int
    bytes: _Count
    ended_s: float | None = None
    samples: list[_Sample] = []


class _Chunk(msgspec.Struct, frozen=True):
    asked_s: float
    level_s: float
    bytes: _Count
    stalled_s: float
    first_s: float | None = None
    whole_s: float | None = None


class _Document(msgspec.Struct, frozen=True):
    transfer: Literal[1]
    side: Literal["send", "receive"]
    started_s: float | None = None
    error: str | None = None
    streams: list[_Stream] = []
    datagrams: Told | None = None
    chunks: list[_Chunk] = []


CHUNKS = pa.schema(
    [
        ("chunk", pa.int64()),
        ("asked_s", pa.float64()),
        ("first_s", pa.float64()),
        ("whole_s", pa.float64()),
        ("bytes", pa.int64()),
        ("download_bps", pa.float64()),
        ("level_s", pa.float64()),
        ("stalled_s", pa.float64()),
    ]
)
"""Of a video: instants from the flow's own start."""


@dataclass(frozen=True, kw_only=True)
class Ends:
    """What the two ends of a flow say."""

    sender: EndReport
    receiver: EndReport
    datagrams: DatagramFates | None = None
    """None of TCP, and where an end did not finish."""
    chunks: pa.Table
    """Of :data:`CHUNKS`; empty of what is no video."""


def parse_transfer(
    sender: bytes, receiver: bytes, *, sources: tuple[str, str], receiver_ahead_s: float = 0.0
) -> Ends:
    """Read both documents; raise ParseError naming that of ``sources`` which cannot be read.

    ``receiver_ahead_s`` is what the receiver's clock shows more than the sender's, on two machines.

    An end that said nothing is data, outcome ``no_output``. Without the sender's document the flow's start is
    unknown, and with it every time.
    """
    sent, received = _document(sender, "send", sources[0]), _document(receiver, "receive", sources[1])
    start_s = sent.started_s if sent is not None else None
    there_s = None if start_s is None else start_s + receiver_ahead_s
    return Ends(
        sender=_report(sent, start_s, "sender", sources[0]),
        receiver=_report(received, there_s, "receiver", sources[1]),
        datagrams=_datagrams(sent, received, sources[1]),
        chunks=_chunks(received, there_s),
    )


def _datagrams(sent: _Document | None, received: _Document | None, source: str) -> DatagramFates | None:
    if sent is None or received is None or sent.datagrams is None or received.datagrams is None:
        return None
    if sent.error is not None or received.error is not None:
        return None
    return datagrams_of(sent.datagrams, received.datagrams, source=source)


def _chunks(received: _Document | None, start_s: float | None) -> pa.Table:
    def since(instant: float | None) -> float | None:
        return None if instant is None or start_s is None else instant - start_s

    rows = [
        {
            "chunk": number,
            "asked_s": since(chunk.asked_s),
            "first_s": since(chunk.first_s),
            "whole_s": since(chunk.whole_s),
            "bytes": chunk.bytes,
            "download_bps": _download_bps(chunk),
            "level_s": chunk.level_s,
            "stalled_s": chunk.stalled_s,
        }
        for number, chunk in enumerate(received.chunks if received is not None else ())
    ]
    return pa.Table.from_pylist(rows, schema=CHUNKS)


def _download_bps(chunk: _Chunk) -> float | None:
    """None of one that is not whole, or was whole at once, as without a delay in virtual time."""
    if chunk.whole_s is None or chunk.whole_s <= chunk.asked_s:
        return None
    return 8 * chunk.bytes / (chunk.whole_s - chunk.asked_s)


def _document(text: bytes, side: str, source: str) -> _Document | None:
    if not text.strip():
        return None
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"{source}: not what a sized flow prints ({error}); run the cell again"
        raise ParseError(message) from None
    if document.side != side:
        message = f"{source}: the other end's document ({document.side!r}); run the cell again"
        raise ParseError(message)
    return document


def _report(document: _Document | None, start_s: float | None, side: Side, source: str) -> EndReport:
    if document is None:
        return EndReport(outcome="no_output", intervals=INTERVALS.empty_table())
    streams = sorted(document.streams, key=lambda stream: stream.port)
    samples = [sample for stream in streams for sample in stream.samples]
    rtts = [sample.rtt_us / 1e6 for sample in samples if sample.rtt_us]
    last = [stream.samples[-1].retransmits for stream in streams if stream.samples]
    retransmits = [count for count in last if count is not None]
    total = (
        _of_datagrams(document, streams) if document.datagrams is not None and side == "receiver" else None
    )
    if total is None and start_s is not None:
        total = _total(streams, start_s)
    moved = total is not None and total.bytes > 0
    return EndReport(
        outcome="completed" if document.error is None else ("interrupted" if moved else "error"),
        start_clock_s=document.started_s,
        error=document.error,
        streams=len(streams) or None,
        sent=total if side == "sender" else None,
        received=total if side == "receiver" else None,
        retransmits=sum(retransmits) if retransmits else None,
        rtt_mean_s=sum(rtts) / len(rtts) if rtts else None,
        rtt_min_s=min(rtts, default=None),
        rtt_max_s=max(rtts, default=None),
        max_cwnd_bytes=max((sample.cwnd_bytes for sample in samples if sample.cwnd_bytes), default=None),
        intervals=_intervals(streams, start_s, side, source),
    )


def _of_datagrams(document: _Document, streams: list[_Stream]) -> Transferred | None:
    """What came at its own rate: n datagrams take n times the mean gap between them, not n - 1 times."""
    counts = document.datagrams
    if counts is None or counts.received < 2 or counts.first_s is None or counts.last_s is None:
        return None
    seconds = (counts.last_s - counts.first_s) * counts.received / (counts.received - 1)
    return Transferred(bytes=sum(stream.bytes for stream in streams), seconds=seconds)


def _total(streams: list[_Stream], start_s: float) -> Transferred | None:
    """Bytes of all streams, and seconds until the last one ended; when interrupted, until the last sample."""
    instants = [
        stream.ended_s if stream.ended_s is not None else max((s.at_s for s in stream.samples), default=None)
        for stream in streams
    ]
    known = [instant for instant in instants if instant is not None]
    if not known:
        return None
    return Transferred(bytes=sum(stream.bytes for stream in streams), seconds=max(known) - start_s)


def _intervals(streams: list[_Stream], start_s: float | None, side: Side, source: str) -> pa.Table:
    """What each stream did from sample to sample, the first since the flow's start."""
    rows = []
    for number, stream in enumerate(streams if start_s is not None else ()):
        before = _Sample(at_s=start_s or 0.0, bytes=0, retransmits=0)
        for sample in stream.samples:
            seconds = sample.at_s - before.at_s
            if seconds < 0 or sample.bytes < before.bytes:
                message = f"{source}, port {stream.port}: samples must not go back; run the cell again"
                raise ParseError(message)
            if seconds > 0:
                rows.append(_interval(before, sample, start_s or 0.0) | {"stream": number, "side": side})
                before = sample
    return pa.Table.from_pylist(rows, schema=INTERVALS)


def _interval(before: _Sample, sample: _Sample, start_s: float) -> dict[str, float | int | bool | None]:
    moved, seconds = sample.bytes - before.bytes, sample.at_s - before.at_s
    again = None if sample.retransmits is None else sample.retransmits - (before.retransmits or 0)
    return {
        "start_s": before.at_s - start_s,
        "end_s": sample.at_s - start_s,
        "bytes": moved,
        "throughput_bps": 8 * moved / seconds,
        "retransmits": again,
        "cwnd_bytes": sample.cwnd_bytes or None,
        "rtt_s": sample.rtt_us / 1e6 if sample.rtt_us else None,
        "omitted": False,
    }

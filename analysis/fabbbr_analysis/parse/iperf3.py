"""``iperf3 --json``, versions 3.7 to 3.22 → what one end of a flow reports.

A flow that failed is data: its outcome and iperf3's own words are kept. Also read, since iperf3 and those who
end it produce them: empty output, output that was cut short (the complete intervals are kept), text after the
document, and the document printed twice.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa

from fabbbr.errors import ParseError
from fabbbr_analysis.parse.concatenated import values

Outcome = Literal["completed", "interrupted", "no_output", "error"]
Side = Literal["sender", "receiver"]

INTERVALS = pa.schema(
    [
        ("stream", pa.int64()),
        ("side", pa.string()),
        ("start_s", pa.float64()),
        ("end_s", pa.float64()),
        ("bytes", pa.int64()),
        ("throughput_bps", pa.float64()),
        ("retransmits", pa.int64()),
        ("cwnd_bytes", pa.int64()),
        ("rtt_s", pa.float64()),
        ("omitted", pa.bool_()),
    ]
)

_Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


# The parts of a document that are read: unknown keys are ignored, and only what no
# version leaves out is mandatory.


class _StreamInterval(msgspec.Struct, frozen=True):
    socket: int
    start: float
    end: float
    bytes: _Int64
    bits_per_second: float | None = None
    retransmits: _Int64 | None = None
    snd_cwnd: _Int64 | None = None
    rtt: _Int64 | None = None
    """Microseconds; 0 where the kernel says none."""
    omitted: bool = False
    sender: bool | None = None


class _Interval(msgspec.Struct, frozen=True):
    streams: list[_StreamInterval]


class _Connected(msgspec.Struct, frozen=True):
    socket: int


class _TestStart(msgspec.Struct, frozen=True):
    num_streams: int | None = None
    omit: float = 0


class _Start(msgspec.Struct, frozen=True):
    version: str | None = None
    connected: list[_Connected] = []
    test_start: _TestStart = _TestStart()


class _Sum(msgspec.Struct, frozen=True):
    bytes: _Int64 | None = None
    seconds: float | None = None
    retransmits: _Int64 | None = None


class _SenderEnd(msgspec.Struct, frozen=True):
    max_snd_cwnd: _Int64 | None = None
    max_rtt: _Int64 | None = None
    min_rtt: _Int64 | None = None
    mean_rtt: _Int64 | None = None


class _EndStream(msgspec.Struct, frozen=True):
    sender: _SenderEnd = _SenderEnd()


class _End(msgspec.Struct, frozen=True):
    streams: list[_EndStream] = []
    sum_sent: _Sum | None = None
    sum_received: _Sum | None = None
    sender_tcp_congestion: str | None = None


class _Document(msgspec.Struct, frozen=True):
    start: _Start = _Start()
    intervals: list[_Interval] = []
    end: _End = _End()
    error: str | None = None
    server_output_json: _Document | None = None
    """Of a client that was given ``--get-server-output``."""


@dataclass(frozen=True, kw_only=True)
class Transferred:
    """Payload bytes of a whole flow, without omitted seconds, and the seconds that they took."""

    bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class EndReport:
    """What one end of a flow says. Receivers know neither retransmissions nor RTT: those are None there."""

    outcome: Outcome
    start_clock_s: float | None = None
    """When the flow began on the sender's own clock, which iperf3 does not give finely enough."""
    error: str | None = None
    """iperf3's own words."""
    version: str | None = None
    streams: int | None = None
    cca: str | None = None
    """Congestion control of the sender, as the kernel names it."""
    sent: Transferred | None = None
    received: Transferred | None = None
    retransmits: int | None = None
    """Segments."""
    rtt_mean_s: float | None = None
    rtt_min_s: float | None = None
    rtt_max_s: float | None = None
    max_cwnd_bytes: int | None = None
    intervals: pa.Table
    """Of :data:`INTERVALS`; times count from the flow's own start, omitted seconds included."""
    server: EndReport | None = None
    """The other end, when the client was asked to fetch its output."""


def parse_iperf3(text: bytes, *, source: str) -> EndReport:
    """Read the standard output of one iperf3; raise ParseError naming ``source`` and the place."""
    if not text.strip():
        return EndReport(outcome="no_output", intervals=INTERVALS.empty_table())
    try:
        document, whole = _read(text)
    except (ValueError, RecursionError) as error:
        words = re.match(rb"\s*(iperf3: .*)", text)
        if words:
            said = words[1].decode("utf-8", errors="replace").strip()
            return EndReport(outcome="error", error=said, intervals=INTERVALS.empty_table())
        message = f"{source}: not the JSON of iperf3 ({error}); run the cell again"
        raise ParseError(message) from None
    return _report(document, whole=whole)


# Text → document


_DECODER = msgspec.json.Decoder(_Document)


def _read(text: bytes) -> tuple[_Document, bool]:
    """Return the document and whether it is whole; raise ValueError when damaged, not just cut short."""
    try:
        return _DECODER.decode(text), True
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        characters = text.decode("utf-8", errors="replace").strip()
        fullest = _fullest(characters)
        if fullest is not None:
            return fullest, True
        if not characters.startswith("{") or not _was_cut(characters, error):
            raise
        return _salvaged(characters), False


def _was_cut(characters: str, error: Exception) -> bool:
    """Whether the text simply stops.

    A text cut inside a number fails otherwise, but does not end in a brace.
    """
    return "truncated" in str(error) or not characters.endswith("}")


def _objects(characters: str) -> Iterator[dict[str, Any]]:
    """The whole objects at the start of a text, whatever comes after them."""
    with contextlib.suppress(ValueError):
        for value in values(characters):
            if not isinstance(value, dict):
                return
            yield value


def _fullest(characters: str) -> _Document | None:
    """Of a document printed more than once, the one with most in it; None when there is no whole one."""
    documents = (msgspec.convert(value, _Document) for value in _objects(characters))
    return max(
        documents,
        key=lambda document: (len(document.end.streams), len(document.intervals)),
        default=None,
    )


def _salvaged(characters: str) -> _Document:
    """Keep what is complete in a text that was cut: the start, and the intervals up to the last whole one."""
    decoder = json.JSONDecoder()
    found: dict[str, Any] = {"intervals": []}
    start = re.search(r'"start"\s*:\s*(?=\{)', characters)
    intervals = re.search(r'"intervals"\s*:\s*\[\s*', characters)
    try:
        if start:
            found["start"], _ = decoder.raw_decode(characters, start.end())
        position = intervals.end() if intervals else len(characters)
        while characters.startswith("{", position):
            interval, position = decoder.raw_decode(characters, position)
            found["intervals"].append(interval)
            position = _after_comma(characters, position)
    except ValueError:
        pass  # here it was cut
    return msgspec.convert(found, _Document)


def _after_comma(characters: str, position: int) -> int:
    comma = re.compile(r"\s*,\s*").match(characters, position)
    return comma.end() if comma else len(characters)


# Document → report


def _report(document: _Document, *, whole: bool) -> EndReport:
    intervals = _intervals(document)
    outcome = _outcome(document, whole=whole)
    sent = _transferred(document.end.sum_sent, intervals, "sender", outcome)
    received = _transferred(document.end.sum_received, intervals, "receiver", outcome)
    ends = [stream.sender for stream in document.end.streams]
    rtts = [end.mean_rtt for end in ends if end.mean_rtt]
    server = document.server_output_json
    return EndReport(
        outcome=outcome,
        error=document.error,
        version=document.start.version,
        streams=document.start.test_start.num_streams,
        cca=document.end.sender_tcp_congestion,
        sent=sent,
        received=received,
        retransmits=_retransmits(document, intervals, outcome),
        rtt_mean_s=sum(rtts) / len(rtts) / 1e6 if rtts else None,
        rtt_min_s=_seconds(min((end.min_rtt for end in ends if end.min_rtt), default=None)),
        rtt_max_s=_seconds(max((end.max_rtt for end in ends if end.max_rtt), default=None)),
        max_cwnd_bytes=max((end.max_snd_cwnd for end in ends if end.max_snd_cwnd), default=None),
        intervals=intervals,
        server=None
        if server is None
        else _report(msgspec.structs.replace(server, server_output_json=None), whole=True),
    )


def _outcome(document: _Document, *, whole: bool) -> Outcome:
    """Say ``error`` only when nothing was measured: the wording of iperf3 differs from version to version."""
    if whole and document.error is None and document.end.streams:
        return "completed"
    if document.intervals or document.error is None:
        return "interrupted"
    return "error"


def _transferred(total: _Sum | None, intervals: pa.Table, side: Side, outcome: Outcome) -> Transferred | None:
    """Take iperf3's sum of a completed flow, else add up its intervals.

    The sums of an interrupted flow are not used: its receiver counts bytes up to the interruption but seconds
    only up to the last interval, and its sender, which never learns what arrived, says 0.
    """
    if outcome == "completed":
        if total is None or total.bytes is None or total.seconds is None:
            return None
        # A 0 about the other end may stand for "never learned"; a 0 about this end is one.
        own = total.bytes > 0 or side in intervals["side"].to_pylist()
        return Transferred(bytes=total.bytes, seconds=total.seconds) if own else None
    rows = [row for row in intervals.to_pylist() if row["side"] == side and not row["omitted"]]
    if not rows:
        return None
    first, last = min(row["start_s"] for row in rows), max(row["end_s"] for row in rows)
    return Transferred(bytes=sum(row["bytes"] for row in rows), seconds=last - first)


def _retransmits(document: _Document, intervals: pa.Table, outcome: Outcome) -> int | None:
    if outcome == "completed":
        return document.end.sum_sent.retransmits if document.end.sum_sent else None
    counts = [count for count in intervals["retransmits"].to_pylist() if count is not None]
    return sum(counts) if counts else None


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6


def _intervals(document: _Document) -> pa.Table:
    intervals = document.intervals
    if len(intervals) > 1 and intervals[-1].streams == intervals[-2].streams:
        intervals = intervals[:-1]  # An interrupted server prints its last interval again.
    rows = [row for interval in intervals for row in interval.streams]
    sockets = dict.fromkeys(connected.socket for connected in document.start.connected)
    sockets.update(dict.fromkeys(row.socket for row in rows))
    stream_of = {socket: stream for stream, socket in enumerate(sockets)}
    # iperf3 starts its clock again after the omitted seconds.
    omit = document.start.test_start.omit if any(row.omitted for row in rows) else 0.0
    shifts = [0.0 if row.omitted else omit for row in rows]
    columns = {
        "stream": [stream_of[row.socket] for row in rows],
        "side": [_side(row) for row in rows],
        "start_s": [row.start + shift for row, shift in zip(rows, shifts, strict=True)],
        "end_s": [row.end + shift for row, shift in zip(rows, shifts, strict=True)],
        "bytes": [row.bytes for row in rows],
        "throughput_bps": [row.bits_per_second for row in rows],
        "retransmits": [row.retransmits for row in rows],
        "cwnd_bytes": [row.snd_cwnd or None for row in rows],
        "rtt_s": [row.rtt / 1e6 if row.rtt else None for row in rows],
        "omitted": [row.omitted for row in rows],
    }
    return pa.table(columns, schema=INTERVALS)


def _side(row: _StreamInterval) -> Side:
    """Which end this is; before version 3.7 only the congestion window tells."""
    sends = row.snd_cwnd is not None if row.sender is None else row.sender
    return "sender" if sends else "receiver"

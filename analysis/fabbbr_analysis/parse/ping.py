"""What ``fabbbr.agent.ping`` prints → a row for each request."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import pyarrow as pa

from fabbbr.errors import ParseError

SAMPLES = pa.schema([("t_s", pa.float64()), ("rtt_s", pa.float64())])
"""``t_s`` is when the request was sent, from the flows' zero; ``rtt_s`` is null where no answer came."""


class _Document(msgspec.Struct, frozen=True):
    ping: Literal[1]
    samples: list[tuple[float, float | None]]
    error: str | None = None


def parse_ping(text: bytes, *, source: str) -> pa.Table:
    """Read a document; raise ParseError naming ``source`` when it is none or a round trip not positive."""
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"{source}: not what a ping prints ({error}); run the cell again"
        raise ParseError(message) from None
    sent = [sent_s for sent_s, _ in document.samples]
    trips = [trip_s for _, trip_s in document.samples]
    if not all(math.isfinite(each) for each in sent) or sorted(sent) != sent:
        message = f"{source}: the times of requests must be finite and never go back; run the cell again"
        raise ParseError(message)
    if not all(trip is None or (math.isfinite(trip) and trip > 0) for trip in trips):
        message = f"{source}: a round trip is not positive; run the cell again"
        raise ParseError(message)
    return pa.table([pa.array(sent, pa.float64()), pa.array(trips, pa.float64())], schema=SAMPLES)

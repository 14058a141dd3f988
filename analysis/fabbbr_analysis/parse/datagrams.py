"""What the two ends of a flow of UDP tell of its datagrams → which came, and how long each waited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fabbbr.errors import ParseError
from fabbbr_analysis.waits import within_95

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Transit = Annotated[int, msgspec.Meta(ge=-(1 << 61), le=1 << 61)]


class Told(msgspec.Struct, frozen=True):
    """``sent`` and ``gap_ns`` are the sender's, the rest the receiver's."""

    sent: _Count = 0
    gap_ns: float | None = None
    received: _Count = 0
    numbers: list[_Count] = []
    """Of those that came, in the order in which they did."""
    transits_ns: list[_Transit] = []
    """How long they were on their way, by the two ends' clocks."""
    first_s: float | None = None
    last_s: float | None = None
    reordered: _Count = 0
    jitter_mean_s: float | None = None
    pdv_p95_s: float | None = None
    """These three are of an older fabbbr, which summed up; a still older told a jitter that forgot."""


EACH = pa.schema([("number", pa.int64()), ("sent_s", pa.float64()), ("pdv_s", pa.float64())])
"""``sent_s`` is from the flow's own start, ``pdv_s`` null where it never came."""


@dataclass(frozen=True, kw_only=True)
class DatagramFates:
    """What became of the datagrams of a flow of UDP, by what both ends tell."""

    sent: int
    lost: int
    reordered: int
    """That came after one with a higher number."""
    jitter_s: float | None
    """The mean change of transit times from one to the next that came."""
    pdv_p95_s: float | None
    """What 95 % of those that came waited at most."""
    each: pa.Table
    """Of :data:`EACH`; empty where an older fabbbr noted none singly."""


def datagrams_of(sender: Told, receiver: Told, *, source: str) -> DatagramFates:
    """Put both together; raise ParseError naming ``source``, the receiver's, when it tells of others."""
    if not receiver.numbers:
        return DatagramFates(
            sent=sender.sent,
            lost=sender.sent - receiver.received,
            reordered=receiver.reordered,
            jitter_s=receiver.jitter_mean_s,
            pdv_p95_s=receiver.pdv_p95_s,
            each=_each(sender, np.full(0 if receiver.received else sender.sent, np.nan)),
        )
    if len(receiver.numbers) != len(receiver.transits_ns) or max(receiver.numbers) >= sender.sent:
        message = f"{source}: datagrams came that nobody sent, or without a transit; run the cell again"
        raise ParseError(message)
    numbers = np.array(receiver.numbers, dtype=np.int64)
    transits_ns = np.array(receiver.transits_ns, dtype=np.int64)
    came, first = np.unique(numbers, return_index=True)  # of one that comes twice the first counts
    waits_s = np.full(sender.sent, np.nan)
    waits_s[came] = (transits_ns[first] - transits_ns.min()) * 1e-9
    changes_ns = np.abs(np.diff(transits_ns))
    return DatagramFates(
        sent=sender.sent,
        lost=sender.sent - len(came),
        reordered=int((numbers[1:] < np.maximum.accumulate(numbers)[:-1]).sum()),
        jitter_s=float(changes_ns.mean() * 1e-9) if len(changes_ns) else None,
        pdv_p95_s=within_95(waits_s[came]),
        each=_each(sender, waits_s),
    )


def _each(sender: Told, waits_s: NDArray[np.float64]) -> pa.Table:
    if sender.gap_ns is None:
        return EACH.empty_table()
    numbers = np.arange(len(waits_s))
    sent_s = numbers * sender.gap_ns * 1e-9
    return pa.table([numbers, sent_s, pa.array(waits_s, from_pandas=True)], schema=EACH)

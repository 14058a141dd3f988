"""The pcapng files that the agent writes: one section, and enhanced packet blocks with directions."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabbbr.errors import ParseError

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_MAGIC = 0x1A2B3C4D
_NAME, _RESOLUTION = 2, 9
_NANOSECONDS = b"\x09"
_PACKET_HEAD_BYTES = 28
_HEAD = struct.Struct("<II")
_OPTION = struct.Struct("<HH")


@dataclass(frozen=True, kw_only=True)
class Packets:
    """Packets in the order of the file; all arrays have one entry each."""

    interfaces: tuple[str, ...]
    """Names, by their numbers."""
    interface: npt.NDArray[np.int64]
    """Number of the interface at which it was seen."""
    time_ns: npt.NDArray[np.int64]
    """Since 1970."""
    outgoing: npt.NDArray[np.bool_]
    length: npt.NDArray[np.int64]
    """Bytes on the wire, Ethernet header included."""
    kept: npt.NDArray[np.int64]
    """Bytes in the file."""
    starts: npt.NDArray[np.int64]
    """Where in ``data`` its bytes begin."""
    data: npt.NDArray[np.uint8]
    """The file."""

    def bytes_at(self, first: int, count: int) -> npt.NDArray[np.uint8]:
        """``count`` bytes of every packet from byte ``first`` on, a row each; zeros where none were kept."""
        columns = np.arange(first, first + count)
        places = np.minimum(self.starts[:, None] + columns, len(self.data) - 1)
        return np.where(columns < self.kept[:, None], self.data[places], 0).astype(np.uint8)


def parse_pcapng(content: bytes, *, source: str) -> Packets:
    """Read a file of one little-endian section; raise ParseError naming ``source`` and the place."""
    interfaces: list[str] = []
    found: list[int] = []
    for at, kind, total in _blocks(content, source):
        if kind == _SECTION:
            _require_known(content, at, source)
        elif kind == _INTERFACE:
            interfaces.append(_interface(content, at, total, source))
        elif kind == _PACKET:
            if total < _PACKET_HEAD_BYTES + 4:
                raise _wrong(source, at, f"a packet block of {total} bytes")
            found.append(at)
    words = np.frombuffer(content[: len(content) // 4 * 4], dtype="<u4").astype(np.int64)
    heads = words[np.array(found, dtype=np.int64)[:, None] // 4 + np.arange(7)]
    packets = _packets(tuple(interfaces), np.array(found, dtype=np.int64), heads, words, content)
    beyond = packets.kept + 32 > heads[:, 1]
    if (packets.interface >= len(interfaces)).any() or beyond.any():
        raise _wrong(source, 0, "a packet of an unknown interface, or longer than its block")
    return packets


def _packets(
    interfaces: tuple[str, ...],
    found: npt.NDArray[np.int64],
    heads: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
    content: bytes,
) -> Packets:
    kept = heads[:, 5]
    # The agent writes the direction as the first option: inbound is 1, outbound 2.
    directions = found // 4 + 7 + (kept + 3) // 4 + 1
    return Packets(
        interfaces=interfaces,
        interface=heads[:, 2],
        time_ns=(heads[:, 3] << 32) | heads[:, 4],
        outgoing=words[np.minimum(directions, len(words) - 1)] & 3 == 2,
        length=heads[:, 6],
        kept=kept,
        starts=found + _PACKET_HEAD_BYTES,
        data=np.frombuffer(content, dtype=np.uint8),
    )


def _blocks(content: bytes, source: str) -> Iterator[tuple[int, int, int]]:
    """Where each block begins, its kind and length; the first must begin a section."""
    at, end = 0, len(content)
    while at < end:
        if end - at < 12:
            raise _wrong(source, at, "a block that is cut off")
        kind, total = _HEAD.unpack_from(content, at)
        if at == 0 and kind != _SECTION:
            raise _wrong(source, at, "no section header")
        if total < 12 or total % 4 or total > end - at:
            raise _wrong(source, at, f"a block of {total} bytes, where {end - at} are left")
        yield at, kind, total
        at += total


def _require_known(content: bytes, at: int, source: str) -> None:
    if struct.unpack_from("<I", content, at + 8)[0] != _MAGIC:
        raise _wrong(source, at, "a section of another byte order")


def _interface(content: bytes, at: int, total: int, source: str) -> str:
    options = dict(_options(content, at + 16, at + total - 4))
    if options.get(_RESOLUTION) != _NANOSECONDS:
        raise _wrong(source, at, "an interface whose stamps are no nanoseconds")
    return options.get(_NAME, b"").decode("utf-8", errors="replace")


def _options(content: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    while end - at >= 4:
        code, length = _OPTION.unpack_from(content, at)
        if code == 0:
            return
        yield code, content[at + 4 : min(at + 4 + length, end)]
        at += 4 + (length + 3) // 4 * 4


def _wrong(source: str, at: int, what: str) -> ParseError:
    return ParseError(f"{source}, byte {at}: {what}; run the cell again")

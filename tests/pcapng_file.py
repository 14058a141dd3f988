"""A reader of pcapng of its own, for tests: as the draft says, and as slow as it likes."""

import struct
from typing import NamedTuple

_BLOCK = struct.Struct("<II")


class Packet(NamedTuple):
    """One enhanced packet block."""

    interface: str
    time_ns: int
    outgoing: bool
    length: int
    frame: bytes


def packets_of(path):
    """All packets of a file, in its order; fails where a block is not as the draft says."""
    content, at, interfaces, found = path.read_bytes(), 0, [], []
    while at < len(content):
        kind, total = _BLOCK.unpack_from(content, at)
        assert struct.unpack_from("<I", content, at + total - 4) == (total,), "both lengths of a block agree"
        body = content[at + 8 : at + total - 4]
        if kind == 1:
            told = options(body[8:])
            assert told[9] == b"\x09", "nanoseconds"
            interfaces.append(told[2].decode())
        elif kind == 6:
            number, high, low, kept, length = struct.unpack_from("<IIIII", body)
            told = options(body[20 + (kept + 3) // 4 * 4 :])
            (flags,) = struct.unpack("<I", told[2])
            frame = body[20 : 20 + kept]
            found.append(Packet(interfaces[number], high << 32 | low, flags & 3 == 2, length, frame))
        at += total
    return found


def options(told):
    """Code → value."""
    found, at = {}, 0
    while at + 4 <= len(told):
        code, length = struct.unpack_from("<HH", told, at)
        if code == 0:
            break
        found[code] = told[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


def look(frame):
    """What of a TCP segment is the same all its way: identification, addresses, ports, numbers, stamps."""
    return frame[18:20] + frame[26:62]

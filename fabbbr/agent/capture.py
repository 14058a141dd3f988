"""Packets of a link or of a queue, kept with the instants at which the kernel saw them, as pcapng files.

While flows run nothing happens here. Each tap is a packet socket whose ring of slots (TPACKET_V2) is in the kernel's
memory: the kernel copies the first bytes of a packet into the next slot, with its own time stamp, and there is nobody
to wake. When the flows are over the slots are read and written out. A ring that was too small has lost packets, which
the kernel counts.
"""

import contextlib
import ctypes
import heapq
import json
import mmap
import os
import socket
import struct
import time
from typing import IO, Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

from .namespace import Namespaces

_ETH_P_ALL = 3
_SOL_PACKET = 263
_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 5, 6, 10
_TPACKET_V2 = 1
_SO_ATTACH_FILTER = 26
_BLOCK_BYTES = 1 << 20
_SLOT = struct.Struct("=IIIHHII")
"""struct tpacket2_hdr: status, length of the packet, of what was kept, where it starts, seconds, nanoseconds."""
_ADDRESS = struct.Struct("=iHB")
"""Of the struct sockaddr_ll that follows at byte 32: index of the interface, kind of hardware, kind of packet."""
_ADDRESS_AT = 36
_STATISTICS = struct.Struct("=II")
_REQUEST = struct.Struct("=IIII")

# Instructions of a socket filter (linux/bpf_common.h, linux/filter.h): code, and what they look at.
_LOAD_WORD, _LOAD_HALF = 0x20, 0x28
_IF_EQUAL, _RETURN = 0x15, 0x06
_KIND_OF_PACKET, _INTERFACE_INDEX = 0xFFFFF004, 0xFFFFF008
_ETHER_TYPE_AT, _IPV4_DESTINATION_AT = 12, 30
_IPV4 = 0x0800
_INSTRUCTION = struct.Struct("=HBBI")

_PACKETS_BETWEEN_BREATHS = 20000

_Filter = List[Tuple[int, int, int, int]]


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def filter_of(tap: Dict[str, Any], interface_index: int) -> _Filter:
    """Instructions (code, jump if true, jump if false, operand) that say how much of a packet to keep; 0: not at all.

    >>> len(filter_of({"arrivals_for": [], "keeps_bytes": 94}, 7))
    1
    """
    keep, leave = (_RETURN, 0, 0, tap["keeps_bytes"]), (_RETURN, 0, 0, 0)
    if not tap["arrivals_for"]:
        return [keep]
    found = [
        (_LOAD_WORD, 0, 0, _KIND_OF_PACKET),
        (_IF_EQUAL, 0, 4, socket.PACKET_OUTGOING),
        (_LOAD_WORD, 0, 0, _INTERFACE_INDEX),
        (_IF_EQUAL, 0, 1, interface_index),
        keep,
        leave,
        (_LOAD_HALF, 0, 0, _ETHER_TYPE_AT),
        (_IF_EQUAL, 1, 0, _IPV4),
        leave,
        (_LOAD_WORD, 0, 0, _IPV4_DESTINATION_AT),
    ]
    for address in tap["arrivals_for"]:
        (number,) = struct.unpack("!I", socket.inet_aton(address))
        found += [(_IF_EQUAL, 0, 1, number), keep]
    return found + [leave]


class _Packet(NamedTuple):
    """One packet as one tap saw it."""

    time_ns: int
    """Since 1970, on the clock that the kernel stamps with."""
    interface: int
    """Its number in the file."""
    outgoing: bool
    length: int
    kept: bytes


class Seen:
    """What a tap saw at its own interface, and for a queue what came in for it."""

    def __init__(self) -> None:
        self.received_packets = 0
        self.received_bytes = 0
        self.sent_packets = 0
        self.sent_bytes = 0

    def sent(self, length: int) -> None:
        """Count a packet that went out."""
        self.sent_packets += 1
        self.sent_bytes += length

    def received(self, length: int) -> None:
        """Count a packet that came in."""
        self.received_packets += 1
        self.received_bytes += length


class Tap:
    """One packet socket and its ring."""

    def __init__(self, namespaces: Namespaces, tap: Dict[str, Any]) -> None:
        self.told = tap
        self.seen = Seen()
        self.lost = 0
        self._slot_bytes = tap["slot_bytes"]
        self._in_a_block = _BLOCK_BYTES // self._slot_bytes
        blocks = -(-tap["slots"] // self._in_a_block)
        with namespaces.inside(tap["node"]):
            self.interfaces = dict(socket.if_nameindex())
            index = socket.if_nametoindex(tap["interface"])
            # One that is to hear every interface hears them from now on: what comes before the ring is let go.
            at_every = bool(tap["arrivals_for"])
            protocol = socket.htons(_ETH_P_ALL) if at_every else 0
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, protocol)
            self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
            self._attach(filter_of(tap, index))
            self._ring = self._made_ring(blocks)
            if not at_every:
                self._socket.bind((tap["interface"], _ETH_P_ALL))

    def _made_ring(self, blocks: int) -> mmap.mmap:
        size = blocks * _BLOCK_BYTES
        request = _REQUEST.pack(_BLOCK_BYTES, blocks, self._slot_bytes, blocks * self._in_a_block)
        try:
            self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
            return mmap.mmap(self._socket.fileno(), size)
        except OSError as error:
            said = "no %d MB of memory for the packets of %s (%s): capture fewer links, or headers alone" % (
                size >> 20, self.told["interface"], error.strerror,
            )  # fmt: skip
            raise OSError(error.errno, said) from None

    def _attach(self, instructions: _Filter) -> None:
        packed = b"".join(_INSTRUCTION.pack(*one) for one in instructions)
        program = _Program(len(instructions), packed)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(program))

    def close(self) -> None:
        """Give the memory back."""
        self._ring.close()
        self._socket.close()

    def packets(self, numbers: Dict[int, int]) -> Iterator[_Packet]:
        """What was kept, in the order in which it was seen; ``numbers`` are those of the interfaces in the file."""
        self.lost += _STATISTICS.unpack(self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))[1]
        ring, outgoing_kind = self._ring, socket.PACKET_OUTGOING
        for offset in self._offsets():
            status, length, kept, start, _, seconds, nanoseconds = _SLOT.unpack_from(ring, offset)
            if not status & 1:
                return
            index, _, kind = _ADDRESS.unpack_from(ring, offset + _ADDRESS_AT)
            outgoing = kind == outgoing_kind
            (self.seen.sent if outgoing else self.seen.received)(length)
            begin = offset + start
            yield _Packet(
                seconds * 1000000000 + nanoseconds,
                numbers[index],
                outgoing,
                length,
                ring[begin : begin + kept],
            )

    def _offsets(self) -> Iterator[int]:
        for block in range(0, len(self._ring), _BLOCK_BYTES):
            for slot in range(self._in_a_block):
                yield block + slot * self._slot_bytes


class Captures:
    """All that a job has captured on this machine."""

    def __init__(self, files: "List[Tuple[str, List[Tap]]]") -> None:
        self._files = files
        self._offset_before_s = _offset_s() if files else 0.0

    def write(self, folder: str, breathe: Callable[[], None]) -> None:
        """Write the files, and ``captures.json`` with what was counted; ``breathe`` is called now and then."""
        if not self._files:
            return
        told = []
        for name, taps in self._files:
            with open(os.path.join(folder, name), "wb") as file:
                _write_file(file, taps, breathe)
            told += [
                dict(
                    vars(tap.seen),
                    file=name,
                    node=tap.told["node"],
                    interface=tap.told["interface"],
                    lost=tap.lost,
                )
                for tap in taps
            ]
        clock = {"before_s": self._offset_before_s, "after_s": _offset_s()}
        with open(os.path.join(folder, "captures.json"), "w") as file:
            json.dump({"realtime_minus_monotonic": clock, "taps": told}, file)


@contextlib.contextmanager
def opened(namespaces: Namespaces, job: Dict[str, Any]) -> Iterator[Captures]:
    """In this block packets are kept."""
    with contextlib.ExitStack() as stack:
        files = []
        for task in job.get("captures", []):
            taps = []
            for tap in task["taps"]:
                taps.append(Tap(namespaces, tap))
                stack.callback(taps[-1].close)
            files.append((task["file"], taps))
        yield Captures(files)


def _offset_s() -> float:
    """What the clock of the stamps shows more than that of the flows' time."""
    before = time.clock_gettime(time.CLOCK_MONOTONIC)
    stamped = time.clock_gettime(time.CLOCK_REALTIME)
    after = time.clock_gettime(time.CLOCK_MONOTONIC)
    return stamped - (before + after) / 2


# pcapng: draft-ietf-opsawg-pcapng. All numbers are of this machine's own byte order, which the file says.

_SECTION, _INTERFACE, _PACKET, _COUNTS = 0x0A0D0D0A, 1, 6, 5
_NAME, _DESCRIPTION, _RESOLUTION, _APPLICATION = 2, 3, 9, 4
_RECEIVED, _DROPPED = 4, 5
_ETHERNET = 1
_FLAGS = struct.Struct("=HHII")
_INBOUND, _OUTBOUND = _FLAGS.pack(2, 4, 1, 0), _FLAGS.pack(2, 4, 2, 0)
_PACKET_HEAD = struct.Struct("=IIIIIII")
_LENGTH = struct.Struct("=I")


def _write_file(file: IO[bytes], taps: List[Tap], breathe: Callable[[], None]) -> None:
    file.write(_block(_SECTION, struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1), [(_APPLICATION, b"fabbbr")]))
    first = 0
    streams = []
    for tap in taps:
        shown = _shown(tap)
        for name in shown.values():
            file.write(_interface(tap, name))
        numbers = {index: first + place for place, index in enumerate(shown)}
        streams.append(tap.packets(numbers))
        first += len(shown)
    for count, packet in enumerate(heapq.merge(*streams), start=1):
        file.write(_packet(packet))
        if count % _PACKETS_BETWEEN_BREATHS == 0:
            breathe()
    number = 0
    for tap in taps:
        for _ in _shown(tap):
            file.write(_counts(number, tap))
            number += 1


def _shown(tap: Tap) -> Dict[int, str]:
    """Index → name of the interfaces of a tap: its own, or for a queue all of the node."""
    own = tap.told["interface"]
    every = bool(tap.told["arrivals_for"])
    return {index: name for index, name in tap.interfaces.items() if name == own or (every and name != "lo")}


def _interface(tap: Tap, name: str) -> bytes:
    body = struct.pack("=HHI", _ETHERNET, 0, tap.told["keeps_bytes"])
    described = "%s of %s" % (name, tap.told["node"])
    options = [(_NAME, name.encode()), (_DESCRIPTION, described.encode()), (_RESOLUTION, b"\x09")]
    return _block(_INTERFACE, body, options)


def _packet(packet: _Packet) -> bytes:
    kept = len(packet.kept)
    padding = -kept % 4
    total = 44 + kept + padding
    return b"".join(
        (
            _PACKET_HEAD.pack(
                _PACKET,
                total,
                packet.interface,
                packet.time_ns >> 32,
                packet.time_ns & 0xFFFFFFFF,
                kept,
                packet.length,
            ),
            packet.kept,
            bytes(padding),
            _OUTBOUND if packet.outgoing else _INBOUND,
            _LENGTH.pack(total),
        )
    )


def _counts(number: int, tap: Tap) -> bytes:
    """Of a tap that shows several interfaces what was lost stands at each: nobody knows where it came in."""
    received = tap.seen.received_packets + tap.seen.sent_packets
    options = [(_RECEIVED, struct.pack("=Q", received)), (_DROPPED, struct.pack("=Q", tap.lost))]
    return _block(_COUNTS, struct.pack("=III", number, 0, 0), options)


def _block(kind: int, body: bytes, options: List[Tuple[int, bytes]]) -> bytes:
    told = b"".join(
        struct.pack("=HH", code, len(value)) + value + bytes(-len(value) % 4) for code, value in options
    ) + bytes(4)
    total = 12 + len(body) + len(told)
    return struct.pack("=II", kind, total) + body + told + struct.pack("=I", total)

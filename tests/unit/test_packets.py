"""From the packets that taps kept to a file and back, and to how long each stood in the queue."""

import io
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pcapng_file import packets_of

from fabbbr.agent import capture
from fabbbr.errors import ParseError
from fabbbr.job.records import Tap
from fabbbr_analysis.parse.pcapng import Packets, parse_pcapng
from fabbbr_analysis.tables.sampled.packets import matched

KEEPS_BYTES = 62
OUTGOING, INCOMING = 4, 0


def frame(destination="10.77.0.2", *, ether_type=0x0800, identification=1, size=80, ttl=64, tos=0):
    """An Ethernet frame with an IPv4 header in it."""
    address = bytes(map(int, destination.split(".")))
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, tos, size - 14, identification, 0, ttl, 6, 99, bytes(4), address
    )
    return bytes(12) + struct.pack("!H", ether_type) + header + bytes(size - 34)


def run_filter(instructions, packet, *, kind, interface):
    """What a socket filter returns: as linux/filter.h has it, for the instructions that a tap uses."""
    ancillary = {0xFFFFF004: kind, 0xFFFFF008: interface}
    at = accumulator = 0
    while True:
        code, if_true, if_false, operand = instructions[at]
        at += 1
        if code == 0x06:
            return operand
        if code == 0x15:
            at += if_true if accumulator == operand else if_false
        elif operand in ancillary:
            accumulator = ancillary[operand]
        else:
            accumulator = int.from_bytes(packet[operand : operand + {0x20: 4, 0x28: 2}[code]], "big")


ADDRESSES = [f"10.77.{n // 250}.{n % 250 + 1}" for n in range(600)]


@given(
    behind=st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=600, unique=True),
    destination=st.sampled_from(ADDRESSES),
    kind=st.sampled_from([INCOMING, OUTGOING]),
    interface=st.sampled_from([7, 8]),
    ether_type=st.sampled_from([0x0800, 0x0806]),
)
def test_a_queues_tap_keeps_what_leaves_its_interface_and_what_comes_in_for_a_host_behind_it(
    behind, destination, kind, interface, ether_type
):
    instructions = capture.filter_of({"arrivals_for": behind, "keeps_bytes": KEEPS_BYTES}, 7)
    assert len(instructions) < 4096, "the kernel takes no more"
    assert all(max(one[1], one[2]) < 256 for one in instructions)
    kept = run_filter(instructions, frame(destination, ether_type=ether_type), kind=kind, interface=interface)
    comes_for_the_queue = kind == INCOMING and ether_type == 0x0800 and destination in behind
    leaves_it = kind == OUTGOING and interface == 7
    assert kept == (KEEPS_BYTES if comes_for_the_queue or leaves_it else 0)


def test_a_links_tap_keeps_everything():
    (only,) = capture.filter_of({"arrivals_for": [], "keeps_bytes": 94}, 7)
    assert run_filter([only], frame(), kind=OUTGOING, interface=9) == 94


# The file


class Kept:
    """A tap that saw these packets."""

    def __init__(self, node, interface, packets, arrivals_for=(), lost=0):
        tap = Tap(
            node=node, interface=interface, arrivals_for=arrivals_for, keeps_bytes=94, slots=1, slot_bytes=160
        )
        self.told = tap.model_dump()
        self.interfaces = {1: "lo", 2: f"{node}-eth0", 3: f"{node}-eth1"}
        self.lost = lost
        self.seen = SimpleNamespace(received_packets=len(packets), sent_packets=0)
        self._packets = packets

    def packets(self, numbers):
        for time_ns, index, outgoing, length, kept in self._packets:
            yield capture._Packet(time_ns, numbers[index], outgoing, length, kept)


PACKET = st.tuples(
    st.integers(0, 2**62), st.just(3), st.booleans(), st.integers(0, 65_600), st.binary(max_size=94)
)


@given(one=st.lists(PACKET, max_size=8), other=st.lists(PACKET, max_size=8))
def test_what_two_taps_kept_is_read_again_in_the_order_of_time(one, other, tmp_path_factory):
    taps = [Kept("s1", "s1-eth1", sorted(one)), Kept("h2", "h2-eth1", sorted(other))]
    file = io.BytesIO()
    capture._write_file(file, taps, breathe=lambda: None)
    path = tmp_path_factory.mktemp("made") / "made.pcapng"
    path.write_bytes(file.getvalue())
    by_the_book = packets_of(path)
    assert [packet.time_ns for packet in by_the_book] == sorted(packet[0] for packet in one + other)
    wanted = [
        (f"{node}-eth1", *packet[:1], *packet[2:])
        for node, kept in (("s1", one), ("h2", other))
        for packet in kept
    ]
    assert sorted(by_the_book) == sorted(wanted)
    read = parse_pcapng(file.getvalue(), source="made")
    assert [
        (read.interfaces[number], time_ns, outgoing, length, read.data[at : at + size].tobytes())
        for number, time_ns, outgoing, length, size, at in zip(
            read.interface, read.time_ns, read.outgoing, read.length, read.kept, read.starts, strict=True
        )
    ] == [tuple(packet) for packet in by_the_book]
    padded = [packet.frame.ljust(94, b"\0")[10:40] for packet in by_the_book]
    assert [row.tobytes() for row in read.bytes_at(10, 30)] == padded


def a_file():
    file = io.BytesIO()
    capture._write_file(file, [Kept("s1", "s1-eth1", [(5, 3, True, 80, bytes(62))])], breathe=lambda: None)
    return file.getvalue()


@given(cut=st.integers(1, len(a_file()) - 1))
def test_a_file_that_is_cut_short_is_refused_unless_between_blocks(cut):
    content = a_file()
    ends, at = [], 0
    while at < len(content):
        at += struct.unpack_from("<I", content, at + 4)[0]
        ends.append(at)
    if cut in ends:
        parse_pcapng(content[:cut], source="cut")
    else:
        with pytest.raises(ParseError, match="cut, byte"):
            parse_pcapng(content[:cut], source="cut")


@given(place=st.integers(0, len(a_file()) - 1), new=st.integers(0, 255))
def test_damage_is_refused_or_harmless_and_never_an_error_of_ours(place, new):
    content = bytearray(a_file())
    content[place] = new
    try:
        read = parse_pcapng(bytes(content), source="damaged")
    except ParseError:
        return
    assert len(read.bytes_at(14, 48)) == len(read.time_ns)


# Sojourns


def seen(events):
    """Packets as a file has them, from (time, outgoing, frame)."""
    frames = [one[2] for one in events]
    starts = np.cumsum([0, *map(len, frames)])[:-1] if frames else np.zeros(0, dtype=np.int64)
    lengths = np.array([len(one) for one in frames], dtype=np.int64)
    return Packets(
        interfaces=("s1-eth0", "s1-eth1"),
        interface=np.zeros(len(events), dtype=np.int64),
        time_ns=np.array([one[0] for one in events], dtype=np.int64),
        outgoing=np.array([one[1] for one in events], dtype=np.bool_),
        length=lengths,
        kept=lengths,
        starts=np.asarray(starts, dtype=np.int64),
        data=np.frombuffer(b"".join(frames) or b"\0", dtype=np.uint8),
    )


@settings(max_examples=50)
@given(
    stood=st.lists(st.none() | st.integers(0, 10**9), min_size=1, max_size=60),
    gap_ns=st.integers(0, 10**6),
    marks=st.booleans(),
)
def test_each_packet_is_known_again_however_the_queue_reorders_marks_and_drops(stood, gap_ns, marks):
    events = []
    for number, sojourn_ns in enumerate(stood):
        came_ns = 1_700_000_000 * 10**9 + number * gap_ns
        events.append((came_ns, False, frame(identification=number)))
        if sojourn_ns is not None:
            behind = frame(identification=number, ttl=63, tos=3 * marks)
            events.append((came_ns + sojourn_ns, True, behind))
    events.sort(key=lambda event: (event[0], event[1]))
    found = matched(seen(events), source="made")
    told = [
        None if absent else int(value)
        for value, absent in zip(found["stood_ns"], found["stood_ns"].isna(), strict=True)
    ]
    assert told == stood
    assert list(found["dropped"]) == [sojourn_ns is None for sojourn_ns in stood]


def test_of_packets_that_look_alike_the_first_that_leaves_came_first():
    alike = frame()
    events = [(10, False, alike), (20, False, alike), (30, True, alike), (50, True, alike)]
    assert list(matched(seen(events), source="made")["stood_ns"]) == [20, 30]


def test_nobody_knows_which_of_two_that_look_alike_was_dropped():
    alike, other = frame(), frame(identification=2)
    events = [
        (10, False, alike),
        (20, False, alike),
        (25, False, other),
        (30, True, alike),
        (31, True, other),
    ]
    found = matched(seen(events), source="made")
    assert list(found["stood_ns"].isna()) == [True, True, False]
    assert list(found["dropped"].isna()) == [True, True, False]


def test_a_packet_that_left_and_never_came_is_refused():
    with pytest.raises(ParseError, match="q: 1 packets left the queue that never came to it"):
        matched(seen([(10, True, frame())]), source="q")


def test_a_queue_that_nothing_came_to_has_no_rows():
    assert matched(seen([]), source="made").empty

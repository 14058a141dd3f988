"""Captures show every packet when it passed, and change nothing of what they watch."""

import math
import shutil
import subprocess
from itertools import groupby

import pytest
from guest.cells import experiment, run
from guest.test_physics import dropped, grown
from pcapng_file import look, packets_of

pytestmark = pytest.mark.guest

MICROSECOND_NS = 1000
ETHERNET_BYTES = 14
PLACES = {
    "loss, three flows, and forks of the agent that holds the rings": (
        {
            "path": "rate: 10 Mbit/s, rtt: 20 ms, loss: 0.5 %",
            "flows": "{cca: bbr1, duration: 3 s}, {cca: cubic, duration: 3 s}, "
            "{cca: cubic, size: 200 kB, streams: 2}, "
            "{arrivals: {rate: 4 /s, size: 20 kB}, cca: cubic, duration: 2 s}",
        },
        "capture: [access, trunk]\nqueue_delay: packets",
    ),
    "an AQM that marks, and data both ways": (
        {
            "path": "rate: 10 Mbit/s, rtt: 20 ms, aqm: fq_codel, ecn: true",
            "flows": "{cca: bbr1, duration: 2 s}, {cca: cubic, duration: 2 s, direction: reverse}",
            "slice_": "dumbbell",
        },
        "capture: [trunk, {link: out1, bytes: full}]\nqueue_delay: packets",
    ),
    "a guest with more memory for it": (
        {
            "path": "rate: 50 Mbit/s, rtt: 10 ms, buffer: 60 MB",
            "flows": "{cca: cubic, duration: 3 s}, {cca: bbr3, duration: 2 s}",
        },
        "capture: [{link: trunk, bytes: full}, {link: access, bytes: full}]\nqueue_delay: packets",
    ),
    "super-packets": (
        {"path": "rate: 20 Mbit/s, rtt: 20 ms, offloads: true", "flows": "{cca: cubic, duration: 2 s}"},
        "capture: [access, trunk]",
    ),
    "a trace that is followed": (
        {"path": "trace: t, rtt: 20 ms", "flows": "{cca: cubic, duration: 2 s}"},
        "capture: [trunk]",
    ),
}  # fmt: skip


def raw_files(ran):
    return {file.name: file.read_bytes() for file in (ran.cell().folder / "raw").iterdir()}


@pytest.mark.parametrize("place", PLACES)
def test_every_other_raw_file_is_the_same_to_the_byte(tmp_path, place):
    asked, keys = PLACES[place]
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t").write_text("1\n3\n", encoding="utf-8")
    watched = run(tmp_path / "with", experiment("watched", **asked, more=keys), seed=7)
    alone = run(tmp_path / "without", experiment("watched", **asked), seed=7)
    assert (watched.wrong(), alone.wrong()) == ({}, {})
    seen, unseen = raw_files(watched), raw_files(alone)
    of_captures = {name for name in seen if name.endswith(".pcapng") or name == "captures.json"}
    assert of_captures > {"captures.json"}
    assert {name: seen[name] for name in seen.keys() - of_captures} == unseen


RATE_BPS, ONE_WAY_NS = 20_000_000, 15_000_000
BURST_BYTES = 2500
"""Of the TBF at that rate: what it sends in a tick of the guest's timer, a millisecond."""
FIFO = experiment(
    "fifo",
    path="rate: 20 Mbit/s, rtt: 30 ms, buffer: 20 BDP",
    flows="{cca: cubic, duration: 4 s}",
    more="capture: [access, trunk]\nqueue_delay: packets",
)


@pytest.fixture(scope="module")
def fifo(tmp_path_factory):
    """A queue that never overflows."""
    ran = run(tmp_path_factory.mktemp("fifo"), FIFO, seed=3)
    assert ran.wrong() == {}
    assert dropped(ran, "s1", "s1-eth1", "tbf") == 0
    return ran


def seen_at(ran, file, interface, *, outgoing):
    """Look of a packet → when it passed; each passes once."""
    packets = [
        packet
        for packet in packets_of(ran.cell().raw(file))
        if (packet.interface, packet.outgoing) == (interface, outgoing)
    ]
    found = {look(packet.frame): packet for packet in packets}
    assert len(found) == len(packets)
    return found


def test_a_packets_delay_is_propagation_serialisation_and_queue_to_a_microsecond(fifo):
    """Sent and received are what two captures saw; the queue is computed anew, from arrivals and sizes."""
    sent = seen_at(fifo, "capture.access.pcapng", "h1-eth0", outgoing=True)
    received = seen_at(fifo, "capture.trunk.pcapng", "h2-eth0", outgoing=False)
    assert sent.keys() == received.keys()
    assert len(sent) > 4000
    off = []
    bucket_ns = full_ns = BURST_BYTES * 8e9 / RATE_BPS
    last_ns = start_ns = next(iter(sent.values())).time_ns
    for key, packet in sent.items():
        # A bucket fills at the rate; a packet leaves when its bits are in it, after those before it.
        at_ns = max(packet.time_ns - start_ns, last_ns - start_ns)
        bucket_ns = min(full_ns, bucket_ns + at_ns - (last_ns - start_ns))
        needed_ns = packet.length * 8e9 / RATE_BPS
        leaves_ns = at_ns + max(needed_ns - bucket_ns, 0)
        bucket_ns = max(bucket_ns - needed_ns, 0)
        off.append(received[key].time_ns - start_ns - (leaves_ns + ONE_WAY_NS))
        last_ns = received[key].time_ns - ONE_WAY_NS
    assert max(map(abs, off)) < MICROSECOND_NS
    longest = max(received[key].time_ns - sent[key].time_ns for key in sent) - ONE_WAY_NS
    assert longest > 50e6, "they waited far longer than a serialisation of 0.6 ms"


def test_the_table_of_packets_says_what_captures_at_both_ends_of_the_path_say(fifo):
    sent = seen_at(fifo, "capture.access.pcapng", "h1-eth0", outgoing=True)
    received = seen_at(fifo, "capture.trunk.pcapng", "h2-eth0", outgoing=False)
    table = fifo.set.packets()
    assert list(table["bytes"]) == [packet.length for packet in sent.values()]
    assert not table["dropped"].any()
    took_ns = [received[key].time_ns - packet.time_ns for key, packet in sent.items()]
    off_s = [
        sojourn_s + ONE_WAY_NS * 1e-9 - ns * 1e-9
        for sojourn_s, ns in zip(table["sojourn_s"], took_ns, strict=True)
    ]
    assert max(map(abs, off_s)) < 1e-6
    (row,) = fifo.set.runs.to_dict("records")
    of_data = sorted(table.loc[table["flow"] == 0, "sojourn_s"])
    assert of_data[len(of_data) // 2] == pytest.approx(row["queue_delay_p50_s"], abs=1e-3)


@pytest.mark.parametrize("burst", [1, 7])
def test_packets_are_lost_as_many_in_a_row_as_asked(tmp_path, burst):
    """On a wire nothing else is lost; a geometric number of mean n has the deviation √(n (n - 1))."""
    loss = f"loss: {{rate: 1 %, model: bursts, burst: {burst}}}"
    asked = experiment(
        "in_a_row",
        path=f"rate: 50 Mbit/s, rtt: 10 ms, {loss}",
        flows="{cca: bbr1, duration: 8 s}",
        more="capture: [trunk]",
    )
    ran = run(tmp_path, asked, seed=5)
    assert ran.wrong() == {}
    sent = seen_at(ran, "capture.trunk.pcapng", "s1-eth1", outgoing=True)
    received = seen_at(ran, "capture.trunk.pcapng", "h2-eth0", outgoing=False)
    rows = [
        (lost, len(list(packets)))
        for lost, packets in groupby(sent[key].length > 1000 and key not in received for key in sent)
    ]
    bursts = [length for lost, length in rows if lost]
    assert sum(bursts) == dropped(ran, "w1", "w1-eth1", "netem") > 100
    error = math.sqrt(burst * (burst - 1) / len(bursts))
    assert abs(sum(bursts) / len(bursts) - burst) <= 4 * error


@pytest.mark.skipif(shutil.which("tshark") is None, reason="there is no tshark: apt-get install tshark")
@pytest.mark.parametrize("file", ["capture.access.pcapng", "capture.trunk.pcapng", "queue.s1-eth1.pcapng"])
def test_tshark_reads_every_packet_and_the_same_instants(fifo, file):
    path = fifo.cell().raw(file)
    fields = (
        "frame.interface_name",
        "frame.time_epoch",
        "frame.len",
        "frame.cap_len",
        "ip.id",
        "tcp.seq_raw",
    )
    options = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", *options],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    told = [line.split("\t") for line in done.stdout.splitlines()]
    ours = [
        [
            packet.interface,
            packet.time_ns,
            packet.length,
            len(packet.frame),
            int.from_bytes(packet.frame[18:20], "big"),
            int.from_bytes(packet.frame[38:42], "big"),
        ]
        for packet in packets_of(path)
    ]
    assert [
        [name, round(1e9 * int(s)) + int(ns), int(length), int(kept), int(ip_id, 16), int(number)]
        for name, (s, ns), length, kept, ip_id, number in (
            (one[0], one[1].split("."), *one[2:]) for one in told
        )
    ] == ours


@pytest.mark.parametrize("aqm", ["taildrop", "fq_codel", "cake"])
def test_what_is_dropped_and_sent_is_what_the_queueing_discipline_counts(tmp_path, aqm):
    ran = run(
        tmp_path,
        experiment(
            "drops",
            path=f"rate: 20 Mbit/s, rtt: 40 ms, aqm: {aqm}",
            flows="{cca: cubic, duration: 3 s}, {cca: bbr1, duration: 3 s}",
            more="queue_delay: packets",
        ),
        seed=5,
    )
    assert ran.wrong() == {}
    table = ran.set.packets()
    assert table["dropped"].sum() == dropped(ran, "s1", "s1-eth1", "tbf") > 0
    left = table[~table["dropped"].astype(bool)]
    assert len(left) == grown(ran, "s1", "s1-eth1", "tx")
    assert len(table) == grown(ran, "s1", "s1-eth0", "rx")
    assert left["sojourn_s"].min() >= 0
    busy_s = 8 * left["bytes"].sum() / 20e6
    assert left["sojourn_s"].sum() > busy_s, "what stands in a queue stands there for its own bits at least"

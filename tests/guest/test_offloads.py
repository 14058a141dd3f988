"""Segmentation offloads in a guest: its kernel's counts agree with TCP's own, and with what was asked."""

import json

import pytest
from guest.cells import experiment, run
from guest.links import ceiling_bps
from scipy.stats import binom

pytestmark = pytest.mark.guest

MSS_BYTES = 1448
LOSS = 0.01
SIZE_BYTES = 30_000_000


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    """A flow of given bytes, at a rate whose burst holds every super-packet and at one where it does not."""
    text = experiment(
        "offloads",
        path="rate: $rate, rtt: 10 ms, buffer: 64 kB, loss: 1 %, offloads: true",
        flows=f"{{cca: bbr1, size: {SIZE_BYTES} B}}",
        more="vary: {rate: [100 Mbit/s, 1 Gbit/s]}",
    )
    return run(tmp_path_factory.mktemp("offloads"), text)


RATES = pytest.mark.parametrize("cell_id", ["rate=100Mbit,r1", "rate=1Gbit,r1"])


def grown(ran, cell_id, node, name):
    """Super-packets and segments that the filters of a capture saw during the flows, in all chains."""
    before, after = (
        [
            (each["options"]["rule_hit"], each["options"]["actions"][0]["stats"]["packets"])
            for each in ran.json(f"counters.{when}.json", cell_id)[node]["filters"][name]
            if each["kind"] == "matchall" and "options" in each
        ]
        for when in ("before", "after")
    )
    packets, segments = (sum(column) for column in zip(*after, strict=True))
    packets_before, segments_before = (sum(column) for column in zip(*before, strict=True))
    return packets - packets_before, segments - segments_before


def drops(ran, cell_id, node, device, handle):
    before, after = (
        qdisc["drops"]
        for when in ("before", "after")
        for qdisc in ran.json(f"counters.{when}.json", cell_id)[node]["qdiscs"]
        if (qdisc["dev"], qdisc["handle"]) == (device, handle)
    )
    return after - before


def test_a_link_that_gets_slower_goes_on_with_the_super_packets_that_stand_in_its_queue(tmp_path):
    text = experiment(
        "slower",
        path="rate: 200 Mbit/s, rtt: 10 ms, buffer: 200 ms, aqm: $aqm, offloads: true",
        flows="{cca: cubic, duration: 4 s}",
        more="steps: [{at: 2 s, rate: 50 Mbit/s}]\nwarm_up: 1 s\nvary: {aqm: [taildrop, codel, fq_pie]}",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    after = ran.set.groups.query("phase_name.str.startswith('from 2 s')", engine="python")
    assert after["goodput_bps"].tolist() == pytest.approx([ceiling_bps(50e6)] * 3, rel=0.03)


@RATES
def test_a_cell_with_offloads_is_certified_in_super_packets_and_segments(lossy, cell_id):
    assert lossy.wrong() == {}
    said = {check.name: check for check in lossy.cell(cell_id).manifest.certificate.checks}
    assert "super-packets" in said["injected loss on trunk, in super-packets"].measured
    assert "segments" in said["congestion drops at s1-eth1, in super-packets"].measured


@RATES
def test_as_many_super_packets_are_lost_as_a_coin_for_each_would_lose(lossy, cell_id):
    packets, _ = grown(lossy, cell_id, "w1", "entered.w1-eth0")
    low, high = binom.interval(0.999, packets, LOSS)
    assert low <= drops(lossy, cell_id, "w1", "w1-eth1", "10:") <= high


@RATES
def test_what_tcp_sent_is_what_was_delivered_and_the_segments_of_what_was_dropped(lossy, cell_id):
    """TCP counts its retransmissions in segments."""
    (sender,) = json.loads(lossy.raw("flow-0.client.json", cell_id))["streams"]
    by_tcp = SIZE_BYTES / MSS_BYTES + sender["samples"][-1]["retransmits"]
    _, sent = grown(lossy, cell_id, "s1", "entered.s1-eth0")
    _, delivered = grown(lossy, cell_id, "h2", "entered.h2-eth0")
    # The connection's own few, and the segments that are not full.
    assert by_tcp <= sent <= 1.01 * by_tcp + 20
    queued, wired = (drops(lossy, cell_id, *at) for at in (("s1", "s1-eth1", "1:"), ("w1", "w1-eth1", "10:")))
    assert queued + wired <= sent - delivered <= 46 * (queued + wired)
    assert delivered >= SIZE_BYTES / MSS_BYTES


def test_a_queue_whose_burst_is_too_small_cuts_super_packets_and_one_that_holds_them_does_not(lossy):
    def through(cell_id):
        return grown(lossy, cell_id, "s1", "sizes.s1-eth1"), grown(lossy, cell_id, "w1", "entered.w1-eth0")

    (came, segments), (left, _) = through("rate=1Gbit,r1")
    assert segments > 3 * came
    assert left == came - drops(lossy, "rate=1Gbit,r1", "s1", "s1-eth1", "1:")
    (came, _), (left, _) = through("rate=100Mbit,r1")
    assert left > came


@pytest.mark.parametrize("aqm", ["codel", "fq_codel", "red", "pie", "fq_pie", "cake"])
def test_super_packets_are_conserved_whatever_holds_the_queue(tmp_path, aqm):
    text = experiment(
        f"offloads_{aqm}",
        slice_="dumbbell",
        path=f"rate: 100 Mbit/s, rtt: 20 ms, buffer: 64 kB, aqm: {aqm}, offloads: true",
        flows="{cca: cubic, duration: 2 s}, {cca: bbr1, duration: 2 s, direction: reverse}",
        more="steps: [{at: 1 s, rate: 200 Mbit/s}]",
    )
    assert run(tmp_path, text).wrong() == {}

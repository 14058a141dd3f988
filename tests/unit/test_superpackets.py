"""Cells with segmentation offloads: how their super-packets are counted, and what is not believed.

The evidence is that of a real cell, in ``tests/golden/offloads``.
"""

import copy
import json
import shutil
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from golden_cell import CELL, WITH_OFFLOADS, WITH_OFFLOADS_RAW
from hypothesis import example, given
from hypothesis import strategies as st
from places import GUEST, several

from fabbbr.certify.certificate import certify
from fabbbr.certify.evidence import Evidence
from fabbbr.certify.superpackets import segments_interval
from fabbbr.errors import BackendError
from fabbbr.job.build import prepare
from fabbbr.job.cabling import lay_cables
from fabbbr.job.parts import split
from fabbbr.job.superpackets import at_least, super_packets
from fabbbr.model import Loss
from fabbbr.physics import burst_bytes
from fabbbr.units import Rate, Ratio

PREPARED = prepare(WITH_OFFLOADS, GUEST)
HEADERS_BYTES = 14 + 20 + 32
LARGEST_IP_BYTES = 65_535


def with_trunk(**changes):
    """The cell with another bottleneck."""
    links = tuple(
        link.model_copy(update={"bottleneck": link.bottleneck.model_copy(update=changes)})
        if link.bottleneck is not None
        else link
        for link in WITH_OFFLOADS.links
    )
    return WITH_OFFLOADS.model_copy(update={"links": links})


def sizes_of(cell):
    (sizes,) = prepare(cell, GUEST).expected.super_packets.sizes
    return sizes


# Sorting by size


@given(least=st.integers(0, 65_535))
@example(least=0)
@example(least=65_535)
def test_the_prefixes_cover_what_is_at_least_so_large_and_nothing_else(least):
    covers = list(at_least(least))
    assert len(covers) <= 17
    for number in {0, 1, max(least - 1, 0), least, min(least + 1, 65_535), 40_000, 65_535}:
        assert any(number & mask == value for value, mask in covers) is (number >= least)


RATES_BPS = st.integers(1_000_000, 1_000_000_000)


@given(rate=RATES_BPS, mtu=st.sampled_from([1280, 1500, 9000]), payload=st.integers(1, LARGEST_IP_BYTES - 52))
def test_a_super_packet_is_taken_for_cut_when_it_is_larger_on_the_wire_than_the_burst(rate, mtu, payload):
    """TBF counts a super-packet with the headers of all its segments."""
    cell = with_trunk(rate=Rate(rate // 8 * 8)).model_copy(update={"mtu_bytes": mtu})
    segments = ceil(payload / (mtu - 52))
    burst = burst_bytes(Rate(rate // 8 * 8), timer_hz=1000, frame_bytes=mtu + 14)
    larger = payload + segments * HEADERS_BYTES > burst
    below = 0
    for each in sizes_of(cell).classes:
        if payload + 52 >= each.least_bytes:
            below = each
    assert below.least_segments <= segments <= below.most_segments
    assert below.is_cut is below.may_be_cut is (larger and segments > 1)


def kinds_with_a_step_to(rate):
    step = CELL.steps[0].model_copy(update={"rate": Rate.parse(rate), "link": "trunk"})
    sizes = sizes_of(WITH_OFFLOADS.model_copy(update={"steps": (step,)}))
    return [(each.may_be_cut, each.is_cut) for each in sizes.classes]


def test_where_the_rate_rises_some_sizes_are_cut_at_one_rate_and_not_at_another():
    kinds = kinds_with_a_step_to("200 Mbit/s")
    assert kinds == sorted(kinds)
    assert {(False, False), (True, False), (True, True)} <= set(kinds)


def test_where_the_rate_falls_the_bucket_and_so_what_is_cut_stay():
    assert set(kinds_with_a_step_to("20 Mbit/s")) == {(False, False), (True, True)}


def test_cake_cuts_all_that_can_be_cut():
    sizes = sizes_of(with_trunk(aqm="cake"))
    assert [each.is_cut for each in sizes.classes] == [each.least_segments > 1 for each in sizes.classes]
    assert sizes.whole_segments == 1


def test_nothing_is_cut_where_the_burst_holds_the_largest():
    sizes = sizes_of(with_trunk(rate=Rate.parse("1 Gbit/s")))
    assert not any(each.may_be_cut for each in sizes.classes)
    assert sizes.whole_segments == 46


def test_without_offloads_nothing_is_set_up_to_count_super_packets():
    prepared = prepare(CELL, GUEST)
    assert prepared.expected.super_packets is None
    assert prepared.job.counted == ()
    assert super_packets(CELL, GUEST, lay_cables(CELL, GUEST), prepared.expected.queues) is None


# On several machines

APART = several({"h1": "a", "s1": "b", "w1": "b", "h2": "c"})


def test_what_comes_from_a_network_card_is_put_together_again():
    """A cable of ours carries super-packets as they are."""
    prepared = prepare(WITH_OFFLOADS, APART)
    wanted = {each.interface.name: each.on for each in prepared.expected.offloads}
    assert wanted["h1-eth0"] == wanted["s1-eth0"] == wanted["h2-eth0"] == ("gso", "gro")
    assert wanted["s1-eth1"] == wanted["w1-eth0"] == ("tso", "gso")
    switched = {each.argv[2] for each in prepared.job.configure if each.argv[0] == "ethtool"}
    assert switched == {"h1-eth0", "s1-eth0", "w1-eth1", "h2-eth0"}


def test_each_machine_counts_at_its_own_interfaces():
    job = prepare(WITH_OFFLOADS, APART).job
    machines = {"h1": "a", "s1": "b", "w1": "b", "h2": "c"}
    parts = split(job, machines)
    counted = [capture.name for part in parts.values() for capture in part.counted]
    assert sorted(counted) == sorted(capture.name for capture in job.counted)
    assert {capture.command.node for capture in parts["b"].counted} == {"s1", "w1"}


# What is believed


@given(drops=st.integers(0, 10_000), segments=st.integers(1, 46), cells=st.integers(1, 100))
def test_where_all_are_of_one_size_the_segments_lost_are_as_many_times_the_drops(drops, segments, cells):
    fewest, most = segments_interval(
        Loss(rate=Ratio.parse("1 %")), drops, mean_segments=segments, most_segments=46, lossy_links=cells
    )
    assert fewest <= drops * segments <= most


@given(seed=st.integers(0, 2**32), small=st.integers(1, 20), large=st.integers(21, 46))
def test_what_is_drawn_blindly_is_within_the_interval(seed, small, large):
    """One in 10 000 super-packets, whatever their sizes, would miss an interval of 99.99 %."""
    generator = np.random.default_rng(seed)
    sizes = generator.choice([small, large], size=20_000)
    lost = generator.random(sizes.size) < 0.01
    fewest, most = segments_interval(
        Loss(rate=Ratio.parse("1 %")),
        int(lost.sum()),
        mean_segments=float(sizes.mean()),
        most_segments=46,
        lossy_links=100,
    )
    assert fewest <= sizes[lost].sum() <= most


def test_drops_at_the_edge_of_what_is_allowed_are_believed_in_segments_too():
    """BBRv2 at 1 Gbit/s and 0.1 %: 67 super-packets of 104 089, and of these 2844 of 4 479 444 segments."""
    fewest, most = segments_interval(
        Loss(rate=Ratio.parse("0.1 %")),
        67,
        mean_segments=4_479_444 / 104_089,
        most_segments=46,
        lossy_links=8,
    )
    assert fewest <= 2844 <= most


def told(raw):
    """The checks that fail; a BackendError where there is no certificate at all."""
    certificate = certify(PREPARED, Evidence.read(raw), lossy_links=1)
    return {check.name for check in certificate.checks if not check.passed}


@pytest.fixture
def raw(tmp_path):
    return Path(shutil.copytree(WITH_OFFLOADS_RAW, tmp_path / "raw"))


def test_the_evidence_as_it_was_recorded_is_certified_in_super_packets_and_segments(raw):
    certificate = certify(PREPARED, Evidence.read(raw), lossy_links=1)
    assert certificate.passed
    said = {check.name: check.measured for check in certificate.checks}
    assert "super-packets" in said["injected loss on trunk, in super-packets"]
    assert "segments" in said["injected loss on trunk, in super-packets"]
    assert "super-packets" in said["congestion drops at s1-eth1, in super-packets"]
    assert "segments on average" in said["sizes of super-packets at s1-eth1"]
    assert not [name for name in said if name.startswith("packets")]


@pytest.mark.parametrize(
    ("aqm", "said"),
    [
        ("taildrop", False),
        ("red", False),
        ("pie", True),
        ("fq_codel", True),
        ("codel", True),
        ("fq_pie", True),
    ],
)
def test_a_queue_that_counts_packets_may_hold_more_than_the_buffer_and_says_so(raw, aqm, said):
    certificate = certify(prepare(with_trunk(aqm=aqm), GUEST), Evidence.read(raw), lossy_links=1)
    (drops,) = (check for check in certificate.checks if check.name.startswith("congestion drops"))
    assert ("may hold more than 64000 B" in drops.detail) is said


AFTER = json.loads((WITH_OFFLOADS_RAW / "counters.after.json").read_text(encoding="utf-8"))


def the(items, **known):
    """The one of ``items`` that has these values."""
    (found,) = (each for each in items if all(each.get(key) == value for key, value in known.items()))
    return found


def link(after, node, device, way, counter="packets"):
    return the(after[node]["links"], ifname=device)["stats64"][way], counter


def qdisc(after, node, device, handle, counter):
    return the(after[node]["qdiscs"], dev=device, handle=handle), counter


def hits(after, node, captured, chain=0):
    listed = [each for each in after[node]["filters"][captured] if "options" in each]
    return the(listed, kind="matchall", chain=chain)["options"], "rule_hit"


def segments(after, node, captured, chain=0):
    return hits(after, node, captured, chain)[0]["actions"][0]["stats"], "packets"


ALTERED = {
    "dropped by the queue": (qdisc, ("s1", "s1-eth1", "1:", "drops"), "super-packets of s1"),
    "standing in the queue": (qdisc, ("s1", "s1-eth1", "1:", "qlen"), "super-packets of s1"),
    "segments out of the queue": (qdisc, ("s1", "s1-eth1", "1:", "packets"), "super-packets on cables"),
    "dropped by netem": (
        qdisc,
        ("w1", "w1-eth1", "10:", "drops"),
        "injected loss on trunk, in super-packets",
    ),
    "segments through netem": (
        qdisc,
        ("w1", "w1-eth1", "10:", "packets"),
        "injected loss on trunk, in super-packets",
    ),
    "segments beside netem": (
        qdisc,
        ("w1", "w1-eth1", "20:", "packets"),
        "injected loss on trunk, in super-packets",
    ),
    "dropped on the wire": (qdisc, ("w1", "w1-eth1", "1:", "drops"), "super-packets of w1"),
    "sent by the switch": (link, ("s1", "s1-eth1", "tx"), "super-packets on cables"),
    "sent by the wire": (link, ("w1", "w1-eth1", "tx"), "super-packets of w1"),
    "received by the wire": (link, ("w1", "w1-eth0", "rx"), "super-packets on cables"),
    "entered the switch": (hits, ("s1", "entered.s1-eth0"), "super-packets of s1"),
    "entered the wire": (hits, ("w1", "entered.w1-eth0"), "injected loss on trunk, in super-packets"),
    "segments into the wire": (segments, ("w1", "entered.w1-eth0"), "super-packets on cables"),
    "of one segment": (hits, ("s1", "sizes.s1-eth1"), "congestion drops at s1-eth1, in super-packets"),
    "segments of one segment": (segments, ("s1", "sizes.s1-eth1"), "sizes of super-packets at s1-eth1"),
    "those that are cut": (hits, ("s1", "sizes.s1-eth1", 6), "super-packets of s1"),
    "segments of those that are cut": (segments, ("s1", "sizes.s1-eth1", 6), "super-packets of s1"),
}


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("what", ALTERED)
def test_a_counter_that_is_off_by_one_is_refused(raw, what, by):
    find, where, noticed_by = ALTERED[what]
    after = copy.deepcopy(AFTER)
    counters, key = find(after, *where)
    counters[key] = counters[key] + by if counters[key] + by >= 0 else 1
    (raw / "counters.after.json").write_text(json.dumps(after), encoding="utf-8")
    assert noticed_by in told(raw)


def test_as_many_drops_as_the_loss_allows_of_impossibly_many_segments_are_refused(raw):
    """All other counters agree: the super-packets are there, but 10 000 of their segments are lost."""
    after = copy.deepcopy(AFTER)
    for counters, key in (
        qdisc(after, "w1", "w1-eth1", "10:", "packets"),
        qdisc(after, "w1", "w1-eth1", "1:", "packets"),
        segments(after, "h2", "entered.h2-eth0"),
    ):
        counters[key] -= 10_000
    (raw / "counters.after.json").write_text(json.dumps(after), encoding="utf-8")
    assert told(raw) == {"injected loss on trunk, in super-packets", "segments of w1"}


def test_more_loss_than_was_asked_for_is_refused_though_all_counters_agree(raw):
    after = copy.deepcopy(AFTER)
    for counters, key in (
        qdisc(after, "w1", "w1-eth1", "10:", "drops"),
        qdisc(after, "w1", "w1-eth1", "1:", "drops"),
    ):
        counters[key] += 200
    for find in (
        lambda: link(after, "w1", "w1-eth1", "tx"),
        lambda: link(after, "h2", "h2-eth0", "rx"),
        lambda: hits(after, "h2", "entered.h2-eth0"),
    ):
        counters, key = find()
        counters[key] -= 200
    for find in (
        lambda: qdisc(after, "w1", "w1-eth1", "10:", "packets"),
        lambda: qdisc(after, "w1", "w1-eth1", "1:", "packets"),
        lambda: segments(after, "h2", "entered.h2-eth0"),
    ):
        counters, key = find()
        counters[key] -= 600
    (raw / "counters.after.json").write_text(json.dumps(after), encoding="utf-8")
    assert told(raw) == {"injected loss on trunk, in super-packets"}


@pytest.mark.parametrize("name", ["entered.s1-eth0", "sizes.s1-eth1"])
def test_filters_that_were_not_counted_are_missed_by_name(raw, name):
    after = copy.deepcopy(AFTER)
    del after["s1"]["filters"][name]
    (raw / "counters.after.json").write_text(json.dumps(after), encoding="utf-8")
    with pytest.raises(BackendError, match=rf"tc -s -j filter show: {name} chain 0 of s1 is missing"):
        told(raw)


@pytest.mark.parametrize(
    ("interface", "feature"),
    [("h1-eth0", "tcp-segmentation-offload"), ("s1-eth1", "generic-segmentation-offload")],
)
def test_an_interface_that_cuts_super_packets_is_no_cell_with_offloads(raw, interface, feature):
    answers = json.loads((raw / "readback.json").read_text(encoding="utf-8"))
    features = answers[f"offloads.{interface}"]
    features["stdout"] = features["stdout"].replace(f"{feature}: on", f"{feature}: off")
    (raw / "readback.json").write_text(json.dumps(answers), encoding="utf-8")
    assert told(raw) == {"host settings"}

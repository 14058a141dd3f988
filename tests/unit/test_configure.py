"""Cell → commands: what is set, where, and what must be read back."""

import re
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import GUEST

from fabbbr.backends.guest.size import memory_bytes
from fabbbr.commands.plan import row_of
from fabbbr.job.build import prepare
from fabbbr.job.cabling import lay_cables
from fabbbr.job.configure import (
    configure_commands,
    interface_roles,
    readback_captures,
    step_tasks,
)
from fabbbr.job.headroom import Extremes, window_bytes
from fabbbr.job.qdiscs import _red_packet_bytes, aqm_lines
from fabbbr.model import THRESHOLD_AQMS, Aqm, Loss
from fabbbr.physics import chain_of, mean_burst, stationary_loss
from fabbbr.plan.opening import open_plan
from fabbbr.testbed import Kernel, Machine
from fabbbr.units import Ratio

TEXT = """id: made
title: made for a test
slice: {slice}
path: {{{path}}}
flows: [{flows}]
repeat: 1
{more}
"""


@pytest.fixture
def planned(tmp_path):
    def plan(
        path="rate: 100 Mbit/s, rtt: 20 ms", flows="{cca: cubic, duration: 10 s}", slice_="two_site", more=""
    ):
        file = tmp_path / "made.yaml"
        file.write_text(TEXT.format(slice=slice_, path=path, flows=flows, more=more), encoding="utf-8")
        return open_plan(str(file), seed=1).cells[0]

    return plan


def lines(cell, tool):
    """(node, line) of every batch of a tool, in order."""
    return [
        (command.node, line)
        for command in configure_commands(cell, GUEST, lay_cables(cell, GUEST))
        if command.argv[0] == tool and command.stdin
        for line in command.stdin.splitlines()
    ]


def test_the_bottleneck_queue_has_the_rate_buffer_and_burst_of_the_plan(planned):
    cell = planned("rate: 100 Mbit/s, rtt: 20 ms, buffer: 2 BDP")
    assert cell.bottleneck.buffer_bytes == 500_000
    assert (
        "s1",
        "qdisc add dev s1-eth1 root handle 1: tbf rate 100000000bit burst 12500 limit 500000",
    ) in lines(cell, "tc")


@pytest.mark.parametrize("slice_", ["two_site", "{name: dumbbell, hosts: 3}", "{name: parking_lot, hops: 3}"])
def test_following_the_routes_of_the_switches_leads_to_every_host(planned, slice_):
    """Switches route: a bridge would leave frames charged to their sender (TCP small queues)."""
    cell = planned(slice_=slice_, flows="{cca: cubic, duration: 1 s, count: 4}")
    cabling = lay_cables(cell, GUEST)
    behind = {ends.queue.name: ends.link.b for ends in cabling.ends}
    behind |= {ends.far.name: ends.link.a for ends in cabling.ends}
    routes = {
        (node, line.split()[2].split("/")[0]): line.split()[-1]
        for node, line in lines(cell, "ip")
        if line.startswith("route add")
    }
    for flow in cell.flows:
        for start, end in ((flow.sender, flow.receiver), (flow.receiver, flow.sender)):
            at, passed = cabling.next_hop(start, end).node, 0
            while at != end:
                at = behind[routes[at, cabling.address(end)]]
                passed += 1
                assert passed < 10


@pytest.mark.parametrize("slice_", ["two_site", "{name: dumbbell, hosts: 3}", "{name: parking_lot, hops: 5}"])
def test_netem_is_never_on_a_host_nor_in_one_qdisc_tree_with_a_rate(planned, slice_):
    cell = planned("rate: 10 Mbit/s, rtt: 20 ms, loss: 1 %", slice_=slice_)
    wires = {node.name for node in lay_cables(cell, GUEST).nodes if node.kind == "wire"}
    where = {
        kind: {node for node, line in lines(cell, "tc") if f" {kind} " in line} for kind in ("netem", "tbf")
    }
    assert where["netem"] <= wires
    assert where["tbf"] <= {switch.name for switch in cell.switches}
    assert where["netem"]


@pytest.mark.parametrize(
    "slice_", ["two_site", "{name: dumbbell, hosts: 120}", "{name: parking_lot, hops: 30}"]
)
def test_no_name_of_an_interface_is_longer_than_the_kernel_takes_or_given_twice(planned, slice_):
    cell = planned("rate: 10 Mbit/s, rtt: 20 ms", slice_=slice_)
    names = [side.name for cable in lay_cables(cell, GUEST).cables for side in (cable.a, cable.b)]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 15


THREE_FLOWS = "{cca: cubic, duration: 1 s, count: 3}"
PATHS = [
    ("two_site", "rtt: 20 ms"),
    ("two_site", "rtt: 20 ms, loss: 1 %, ack_aggregation: 1 ms"),
    ("rtt_pair", "rtt: {h1: 61 ms, h2: 113 ms}"),
    ("{name: dumbbell, hosts: 3}", "rtt: 20 ms, loss: {rate: 1 %, position: before_bottleneck}"),
    ("{name: parking_lot, hops: 3}", "rtt: 20 ms"),
]


@pytest.mark.parametrize(("slice_", "path"), PATHS)
def test_the_delays_that_packets_meet_there_and_back_add_up_to_the_rtt(planned, slice_, path):
    cell = planned(f"rate: 10 Mbit/s, {path}", THREE_FLOWS, slice_)
    for flow in cell.flows:
        there, back = (
            delays_us(cell, *ends) for ends in ((flow.sender, flow.receiver), (flow.receiver, flow.sender))
        )
        assert there == back == flow.rtt.ns / 2000


def delays_us(cell, start, end):
    """What netem holds a packet on its way from host to host, over cables, wires and the switches' routes."""
    cabling = lay_cables(cell, GUEST)
    pairs = [pair for cable in cabling.cables for pair in ((cable.a, cable.b), (cable.b, cable.a))]
    sides = {side.name: (side, peer) for side, peer in pairs}
    netem = "\n".join(line for _, line in lines(cell, "tc"))
    held = dict(re.findall(r"dev (\S+) .*delay (\d+)us", netem))
    routes = {(node, line.split()[2]): line.split()[-1] for node, line in lines(cell, "ip")}
    at, came_in, total = start, None, 0
    while at != end:
        others = [name for name, (side, _) in sides.items() if side.node == at and name != came_in]
        out = others[0] if len(others) == 1 else routes[at, f"{cabling.address(end)}/32"]
        total += int(held.get(out, 0))
        at, came_in = sides[out][1].node, sides[out][1].name
    return total


@pytest.mark.parametrize(("slice_", "path"), PATHS)
def test_every_wire_does_something_to_packets(planned, slice_, path):
    cell = planned(f"rate: 10 Mbit/s, {path}", THREE_FLOWS, slice_)
    wires = {node.name for node in lay_cables(cell, GUEST).nodes if node.kind == "wire"}
    doing = {node for node, line in lines(cell, "tc") if re.search(r"netem .*(delay|loss|slot)", line)}
    assert wires == doing


@pytest.mark.parametrize("buffer", ["0.1 BDP", "1 BDP", "10 BDP"])
@pytest.mark.parametrize("rtt", ["20 ms", "100 ms", "300 ms"])
def test_windows_hold_what_bbr_and_a_full_buffer_have_in_flight(planned, rtt, buffer):
    """A byte of payload takes two of memory; BBR lets two BDP fly, and others fill path and buffer."""
    cell = planned(f"rate: 1 Gbit/s, rtt: {rtt}, buffer: {buffer}")
    payload, bdp = window_bytes(cell) / 2, cell.bottleneck.bdp_bytes
    assert payload >= max(2 * bdp, bdp + cell.bottleneck.buffer_bytes)


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.1, 0.2])
def test_windows_hold_what_comes_while_a_packet_is_lost_again_and_again(planned, loss):
    """In nine BDP of ten; of its packets the unluckiest decides: each of its losses takes a round trip."""
    cell = planned(f"rate: 1 Gbit/s, rtt: 100 ms, buffer: 0.1 BDP, loss: {loss}")
    packets = round(cell.bottleneck.bdp_bytes / 1500)
    sent = np.random.default_rng(1).geometric(1 - loss, size=(500, packets)).max(axis=1)
    waiting = np.quantile(sent, 0.9) * cell.bottleneck.bdp_bytes
    assert window_bytes(cell) / 2 >= waiting


def test_no_window_is_larger_than_the_kernel_takes(planned):
    assert window_bytes(planned("rate: 100 Gbit/s, rtt: 300 ms")) < 1 << 31


def test_a_step_to_a_faster_longer_or_deeper_path_widens_windows_and_delay_lines(planned):
    steps = "steps: [{at: 1 s, rate: 1 Gbit/s}, {at: 2 s, rtt: 200 ms}]"
    plain, stepped = planned(), planned(more=steps)
    assert window_bytes(stepped) > window_bytes(plain)
    narrow, wide = (Extremes.of(cell).netem_limit(cell.trunk) for cell in (plain, stepped))
    assert wide > narrow


@pytest.mark.parametrize("buffer", ["1 BDP", "4 BDP"])
def test_windows_hold_what_comes_at_the_old_rate_while_one_waits_in_the_queue_of_the_new(planned, buffer):
    """Half of them: the other half is for what waits while a packet is lost again."""
    path = f"rate: 50 Mbit/s, rtt: 40 ms, buffer: {buffer}"
    cell = planned(path, more="steps: [{at: 5 s, rate: 5 Mbit/s}, {at: 8 s, rate: 20 Mbit/s}]")
    round_trip_s = 0.04 + cell.bottleneck.buffer_bytes * 8 / 5e6
    assert window_bytes(cell) / 4 >= int(1.25 * 50e6 / 8 * round_trip_s)


def test_a_fall_to_a_trickle_asks_for_no_guest_of_another_size(planned):
    steps = "steps: [{at: 5 s, rate: 100 kbit/s}]"
    cell = planned("rate: 100 Mbit/s, rtt: 100 ms, buffer: 4 BDP", more=steps)
    assert memory_bytes(prepare(cell, GUEST).job) == memory_bytes(prepare(planned(), GUEST).job)


def test_a_step_to_a_faster_path_alone_asks_for_no_more_than_that_path(planned):
    faster = planned("rate: 500 Mbit/s, rtt: 100 ms")
    stepped = planned(
        f"rate: 100 Mbit/s, rtt: 100 ms, buffer: {faster.bottleneck.buffer_bytes} B",
        more="steps: [{at: 1 s, rate: 500 Mbit/s}]",
    )
    assert window_bytes(stepped) == window_bytes(faster)


@pytest.mark.parametrize(("timer_hz", "burst"), [(1000, 12_500), (250, 50_000), (100, 125_000)])
def test_the_kernel_of_the_switch_decides_the_burst_that_it_needs_and_no_other_machine(
    planned, timer_hz, burst
):
    """A TBF must hold what 100 Mbit/s are in one tick of its timer."""
    fast, slow = (Machine(kernel=Kernel(release="0", timer_hz=hz)) for hz in (timer_hz + 1, timer_hz))
    slice_ = GUEST.model_copy(
        update={"machines": {"host": fast, "switch": slow}, "placement": {"s1": "switch"}}
    )
    prepared = prepare(planned(more="steps: [{at: 1 s, buffer: 99 kB}]"), slice_)
    told = [command.stdin for command in (*prepared.job.configure, *prepared.job.steps[0].commands)]
    shaped = [line for batch in told if batch for line in batch.splitlines() if " tbf " in line]
    assert len(shaped) == 2
    assert all(f" burst {burst} " in line for line in shaped)
    assert [queue.burst_bytes for queue in prepared.expected.queues] == [burst]


def test_an_interface_that_is_there_keeps_its_address_and_neighbours_know_it(planned):
    mac = "02:00:00:aa:bb:cc"
    there = GUEST.model_copy(update={"interfaces": {"trunk": {"h2": mac}}})
    prepared = prepare(planned(), there)
    (side,) = (end for cable in prepared.job.cables for end in (cable.a, cable.b) if end.node == "h2")
    assert side.mac == mac
    batches = [command.stdin for command in prepared.job.configure if command.node == "s1" and command.stdin]
    assert any(f"lladdr {mac} " in batch for batch in batches)


def test_only_cables_between_machines_are_the_networks(planned):
    machine = Machine(kernel=Kernel(release="0", timer_hz=1000))
    two = GUEST.model_copy(
        update={
            "machines": {"hosts": machine, "switch": machine},
            "placement": {"s1": "switch", "w1": "switch"},
        }
    )
    cables = prepare(planned(), two).expected.network_cables
    assert [(cable.a.node, cable.b.node) for cable in cables] == [("h1", "s1"), ("w1", "h2")]
    assert prepare(planned(), GUEST).expected.network_cables == ()


def test_a_step_changes_what_it_names_and_keeps_the_rest(planned):
    cell = planned(more="steps: [{at: 1 s, rate: 50 Mbit/s}, {at: 2 s, buffer: 99 kB}]")
    first, second = (step.commands[0].stdin for step in prepare(cell, GUEST).job.steps)
    assert "rate 50000000bit" in first
    assert f"limit {cell.bottleneck.buffer_bytes}" in first
    assert "rate 50000000bit" in second
    assert "limit 99000" in second


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (Loss(rate=Ratio.parse("1 %")), 0.01),
        (Loss(rate=Ratio.parse("1 %"), model="gilbert_elliott", recovery=Ratio.parse("99 %")), 0.01),
        (Loss(rate=Ratio.parse("5 %"), model="gilbert_elliott", recovery=Ratio.parse("45 %")), 0.1),
        (
            Loss(rate=Ratio.parse("5 %"), model="gilbert_elliott", recovery=Ratio.parse("45 %"),
                 loss_in_bad=Ratio.parse("50 %"), loss_in_good=Ratio.parse("10 %")),
            0.14,
        ),
    ],
)  # fmt: skip
def test_stationary_loss_is_the_share_of_time_in_each_state_times_its_loss(loss, expected):
    """Gilbert 1960, Elliott 1963: bad for p / (p + r) of the packets."""
    assert stationary_loss(loss) == pytest.approx(expected, rel=1e-9)


@given(
    rate=st.integers(min_value=10**6, max_value=5 * 10**11).map(Ratio),
    burst=st.integers(min_value=1, max_value=1000),
)
def test_bursts_are_the_chain_that_loses_as_much_and_as_many_in_a_row_as_asked(rate, burst):
    """It is bad for p / (p + r) of the packets, and each time for 1 / r of them."""
    loss = Loss(rate=rate, model="bursts", burst=burst)
    bad, recovers, *_ = chain_of(loss)
    assert bad / (bad + recovers) == pytest.approx(rate.value)
    assert 1 / recovers == pytest.approx(burst) == pytest.approx(mean_burst(loss))
    assert 0 < bad <= 1
    assert stationary_loss(loss) == rate.value


def test_netem_is_told_of_bursts_with_more_digits_than_it_keeps(planned):
    told = planned("rate: 10 Mbit/s, rtt: 20 ms, loss: {rate: 0.1 %, model: bursts, burst: 3}")
    (lossy,) = {line for _, line in lines(told, "tc") if "gemodel" in line}
    assert "loss gemodel 0.0333667000334% 33.3333333333% 100% 0%" in lossy


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("0.1 %", "0.1 %"),
        ("{rate: 0.1 %, model: bursts, burst: 10}", "0.1 % in bursts of 10"),
        ("{rate: 0.01 %, model: gilbert_elliott, recovery: 10 %}", "0.0999 % in bursts of 10"),
        ("{rate: 0 %, model: gilbert_elliott, recovery: 10 %, loss_in_good: 2 %}", "2 % in bursts of 10"),
    ],
)
def test_a_plan_tells_of_the_packets_that_are_lost_and_not_of_the_models_parameters(planned, loss, said):
    cell = planned(f"rate: 10 Mbit/s, rtt: 20 ms, loss: {loss}")
    assert row_of(cell)["loss"] == said


def test_a_link_that_never_loses_a_packet_has_no_loss(planned):
    none = "{rate: 0 %, model: gilbert_elliott, recovery: 10 %}"
    assert row_of(planned(f"rate: 10 Mbit/s, rtt: 20 ms, loss: {none}"))["loss"] == "none"


def test_only_what_goes_back_is_aggregated_and_still_is_after_a_step(planned):
    cell = planned(
        "rate: 10 Mbit/s, rtt: 20 ms, loss: 1 %, ack_aggregation: {least: 0.2 ms, most: 3 ms}",
        more="steps: [{at: 5 s, rtt: 30 ms}]",
    )
    cabling = lay_cables(cell, GUEST)
    (ends,) = (ends for ends in cabling.ends if ends.link.name == "trunk")
    changed = [
        line
        for command in next(step_tasks(cell, GUEST, cabling)).commands
        for line in command.stdin.splitlines()
    ]
    for told in ([line for _, line in lines(cell, "tc")], changed):
        (slotted,) = (line for line in told if " slot " in line)
        assert f"dev {ends.wire_backward.name} root" in slotted
        assert slotted.endswith("slot 200us 3000us")


def test_a_wire_without_delay_can_aggregate(planned):
    cell = planned("rate: 10 Mbit/s, rtt: {h1: 20 ms}, ack_aggregation: 1 ms")
    assert any(line.endswith("slot 1000us 1000us") for _, line in lines(cell, "tc"))


def test_every_interface_with_a_role_is_there_and_every_node_is_read_back(planned):
    cell = planned("rate: 10 Mbit/s, rtt: 20 ms, loss: 1 %", slice_="{name: parking_lot, hops: 3}")
    cabling = lay_cables(cell, GUEST)
    names = {side.name for cable in cabling.cables for side in (cable.a, cable.b)}
    assert set(interface_roles(cabling)) <= names
    read = {capture.command.node for capture in readback_captures(cell, cabling)}
    assert read == {node.name for node in cabling.nodes}


def test_only_hosts_that_talk_know_one_another(planned):
    cell = planned(slice_="{name: dumbbell, hosts: 3}", flows="{cca: cubic, duration: 1 s, count: 3}")
    told = [node for node, line in lines(cell, "ip") if line.startswith("neigh") and not node.startswith("s")]
    assert sorted(told) == ["h1", "h2", "h3", "r1", "r2", "r3"]


def test_fq_limits_the_data_of_the_hosts_that_have_a_maxrate_and_nothing_else(planned):
    cell = planned(
        flows="{cca: cubic, duration: 9 s, maxrate: 8.5 Mbit/s}, {cca: bbr1, from: h2, duration: 9 s}",
        slice_="dumbbell",
    )
    told = [line for node, line in lines(cell, "tc") if node == "h1"]
    assert told[1] == "qdisc add dev h1-eth0 parent 1:1 handle 30: fq maxrate 8500000bit"
    # TCP from a data port: the probes are UDP and ICMP, and iperf3's control connection has another port.
    assert "match ip protocol 6 0xff match ip sport 0x8000 0x8000 flowid 1:1" in told[2]
    assert not [line for node, line in lines(cell, "tc") if node in ("h2", "r1", "r2")]
    asked = [each.name for each in readback_captures(cell, lay_cables(cell, GUEST))]
    assert "qdisc.h1" in asked
    assert "qdisc.h2" not in asked


def aqms(cell):
    """(node, line) of every AQM, which comes when the rate is measured."""
    return [
        (command.node, line)
        for command in prepare(cell, GUEST).job.aqms
        for line in command.stdin.splitlines()
    ]


@pytest.mark.parametrize("aqm", get_args(Aqm))
def test_a_step_of_the_buffer_is_one_of_the_aqm_that_holds_the_queue(planned, aqm):
    """TBF asks its own limit of nobody once it has a child."""
    cell = planned(
        f"rate: 50 Mbit/s, rtt: 10 ms, aqm: {aqm}",
        more="steps: [{at: 1 s, rate: 60 Mbit/s}, {at: 2 s, buffer: 6 packets}]",
    )
    prepared = prepare(cell, GUEST)
    of_rate, of_buffer = (step.commands[0].stdin.splitlines() for step in prepared.job.steps)
    queue = cell.bottleneck.model_copy(update={"rate": cell.steps[0].rate, "buffer_bytes": 6 * 1514})
    assert len(of_rate) == 1
    assert of_buffer[1:] == aqm_lines("change", cell, prepared.expected.queues[0].interface, queue)
    assert len(of_buffer) == 1 + (aqm != "taildrop")


@pytest.mark.parametrize(
    ("offloads", "bursts"), [("true", [25_000, 25_000, 50_000]), ("false", [6_250, 12_500, 50_000])]
)
def test_a_bucket_holds_each_super_packet_that_stands_in_its_queue_when_the_rate_falls(
    planned, offloads, bursts
):
    """TBF cuts what is larger when it comes; what is there already would stay for ever."""
    cell = planned(
        f"rate: 200 Mbit/s, rtt: 10 ms, offloads: {offloads}",
        more="steps: [{at: 2 s, rate: 50 Mbit/s}, {at: 4 s, rate: 100 Mbit/s}, {at: 6 s, rate: 400 Mbit/s}]",
    )
    prepared = prepare(cell, GUEST)
    told = [re.findall(r"burst (\d+)", step.commands[0].stdin) for step in prepared.job.steps]
    assert [{int(burst) for burst in found} for found in told] == [{burst} for burst in bursts]
    assert prepared.expected.queues[0].burst_bytes == 25_000


@pytest.mark.parametrize("aqm", THRESHOLD_AQMS)
def test_those_that_mark_after_a_wait_are_given_their_threshold(planned, aqm):
    path = f"rate: 9 Mbit/s, rtt: 20 ms, aqm: {aqm}, ecn: true, ce_threshold: 242 us"
    ((node, line),) = aqms(planned(path))
    assert (node, f"2: {aqm} limit" in line, "ecn ce_threshold 242us" in line) == ("s1", True, True)


@pytest.mark.parametrize(
    ("aqm", "words"),
    [
        ("codel", "target 20000us interval 300000us"),
        ("fq_codel", "target 20000us interval 300000us"),
        ("pie", "target 20000us"),
        ("fq_pie", "target 20000us"),
        ("cake", "rtt 300000us"),
        ("red", ""),
    ],
)
def test_an_aqm_is_told_of_the_times_that_it_has(planned, aqm, words):
    times = "aqm_target: 20 ms, aqm_interval: 300 ms"
    path = f"rate: 9 Mbit/s, rtt: 20 ms, {times}, reverse: {{rate: 1 Mbit/s, aqm: codel}}"
    asked = planned(f"{path}, aqm: {aqm}")
    (line,) = {line for _, line in aqms(asked) if f" {aqm} " in line and "s1-eth1" in line}
    told = re.findall(r"(?:target|interval|rtt) \S+", line)
    assert " ".join(told) == words
    (queue,) = [one for one in prepare(asked, GUEST).expected.queues if not one.reverse]
    assert queue.aqm_times_s == {
        word: float(time.removesuffix("us")) / 1e6 for word, time in (each.split() for each in told)
    }


@pytest.mark.parametrize("aqm", get_args(Aqm))
def test_an_aqm_is_not_there_yet_when_the_rate_is_measured(planned, aqm):
    cell = planned(f"rate: 300 kbit/s, rtt: 40 ms, buffer: 4 packets, aqm: {aqm}")
    assert not [line for _, line in lines(cell, "tc") if f" {aqm} " in line]
    assert len(aqms(cell)) == (aqm != "taildrop")
    probe, asked = prepare(cell, GUEST).job.burst, prepare(cell, GUEST).expected.burst
    departures = probe.packets + probe.refills * probe.refill_packets
    at_once = probe.packets - asked.queued
    assert departures - at_once >= 1000 - 4
    assert asked.fills_buffer is (aqm == "taildrop")


@given(st.integers(1514, 200_000))
def test_red_is_given_a_packet_that_tc_finds_a_weight_for(limit_bytes):
    """As tc computes it: RED's authors want a weight with which a burst passes (Floyd and Jacobson 1993)."""
    packet = _red_packet_bytes(limit_bytes)
    most = limit_bytes // 4
    least = most // 3
    burst = (2 * least + most) // (3 * packet)
    needed = burst + 1 - least / packet
    assert needed >= 1
    assert any(needed <= (1 - (1 - 0.5**log) ** burst) / 0.5**log for log in range(1, 32))
    assert packet == 1000 or limit_bytes < 14_400


@pytest.mark.parametrize(
    ("rtt", "held", "least_s"),
    [
        ("20 ms", "{least: 0.2 ms, most: 3 ms}", 0.0002),
        ("6 ms", "{least: 0.2 ms, most: 3 ms}", 0.0002),  # a slot is drawn below its most
        ("4 ms", "{least: 0.2 ms, most: 3 ms}", 0.0),
        ("{h1: 20 ms}", "{least: 0.2 ms, most: 3 ms}", 0.0002),
        ("7 ms", "3 ms", 0.003),
        ("6 ms", "3 ms", 0.0),
        ("4 ms", "3 ms", 0.0),
    ],
)
def test_what_is_held_while_it_is_delayed_waits_for_both_at_once(planned, rtt, held, least_s):
    """Half of the round trip is on the way back, where slots are drawn as packets come."""
    cell = planned(f"rate: 10 Mbit/s, rtt: {rtt}, ack_aggregation: {held}")
    (trip,) = prepare(cell, GUEST).expected.round_trips
    assert trip.held_s == (least_s, 0.003)

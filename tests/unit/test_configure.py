"""Cell → commands: what is set, where, and what must be read back."""

import re

import pytest

from fabbbr.job.build import job
from fabbbr.job.cabling import lay_cables
from fabbbr.job.configure import (
    configure_commands,
    interface_roles,
    netem_limit,
    readback_captures,
    step_commands,
    window_bytes,
)
from fabbbr.model import Loss
from fabbbr.physics import stationary_loss
from fabbbr.plan.opening import open_plan
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
        for command in configure_commands(cell, lay_cables(cell))
        if command.argv[0] == tool and command.stdin
        for line in command.stdin.splitlines()
    ]


def test_the_bottleneck_queue_has_the_rate_buffer_and_burst_of_the_plan(planned):
    cell = planned("rate: 100 Mbit/s, rtt: 20 ms, buffer: 2 BDP")
    link = cell.bottleneck
    assert link.buffer_bytes == 500_000
    assert (
        "s1",
        f"qdisc add dev s1-eth1 root handle 1: tbf rate 100000000bit burst {link.burst_bytes} limit 500000",
    ) in lines(cell, "tc")


@pytest.mark.parametrize("slice_", ["two_site", "{name: dumbbell, hosts: 3}", "{name: parking_lot, hops: 3}"])
def test_following_the_routes_of_the_switches_leads_to_every_host(planned, slice_):
    """Switches route: a bridge would leave frames charged to their sender (TCP small queues)."""
    cell = planned(slice_=slice_, flows="{cca: cubic, duration: 1 s, count: 4}")
    cabling = lay_cables(cell)
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
    wires = {node.name for node in lay_cables(cell).nodes if node.kind == "wire"}
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
    names = [side.name for cable in lay_cables(cell).cables for side in (cable.a, cable.b)]
    assert len(set(names)) == len(names)
    made = [
        (node, word)
        for node, line in lines(cell, "ip")
        for word in re.findall(r"(?:add|name) (\w+) mtu", line)
    ]
    assert len(set(made)) == len(made)
    assert max(len(name) for name in [*names, *(name for _, name in made)]) <= 15


@pytest.mark.parametrize("rtt", ["20 ms", "100 ms", "300 ms"])
def test_windows_hold_two_bdp_and_the_buffer_though_a_byte_of_payload_takes_two_of_memory(planned, rtt):
    cell = planned(f"rate: 1 Gbit/s, rtt: {rtt}, buffer: 1 BDP")
    assert window_bytes(cell) >= 2 * (2 * cell.bottleneck.bdp_bytes + cell.bottleneck.buffer_bytes)


@pytest.mark.parametrize(
    ("loss", "times"),
    # Of 8334 packets 8334 p^k are lost k times in a row: at 1 % none three times, at 10 % one four times.
    [("0.001 %", 2), ("1 %", 2), ("10 %", 4), ("20 %", 6)],
)
def test_windows_hold_what_waits_for_a_packet_that_is_lost_again_and_again(planned, loss, times):
    cell = planned(f"rate: 1 Gbit/s, rtt: 100 ms, buffer: 0.1 BDP, loss: {loss}")
    in_flight = 2 * cell.bottleneck.bdp_bytes + cell.bottleneck.buffer_bytes
    waiting = max(in_flight, times * cell.bottleneck.bdp_bytes)
    assert window_bytes(cell) == pytest.approx(2 * (in_flight + waiting), rel=1e-3)


def test_no_window_is_larger_than_the_kernel_takes(planned):
    assert window_bytes(planned("rate: 100 Gbit/s, rtt: 300 ms")) < 1 << 31


def test_a_step_to_a_faster_longer_or_deeper_path_widens_windows_and_delay_lines(planned):
    steps = "steps: [{at: 1 s, rate: 1 Gbit/s}, {at: 2 s, rtt: 200 ms}]"
    plain, stepped = planned(), planned(more=steps)
    assert window_bytes(stepped) > window_bytes(plain)
    assert netem_limit(stepped, stepped.bottleneck) > netem_limit(plain, plain.bottleneck)


def test_a_step_changes_what_it_names_and_keeps_the_rest(planned):
    cell = planned(more="steps: [{at: 1 s, rate: 50 Mbit/s}, {at: 2 s, buffer: 99 kB}]")
    first, second = (step.commands[0].stdin for step in job(cell).steps)
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


def test_only_what_goes_back_is_aggregated_and_still_is_after_a_step(planned):
    cell = planned(
        "rate: 10 Mbit/s, rtt: 20 ms, loss: 1 %, ack_aggregation: {least: 0.2 ms, most: 3 ms}",
        more="steps: [{at: 5 s, rtt: 30 ms}]",
    )
    cabling = lay_cables(cell)
    (ends,) = (ends for ends in cabling.ends if ends.link.name == "trunk")
    changed = [line for command in next(step_commands(cell, cabling)) for line in command.stdin.splitlines()]
    for told in ([line for _, line in lines(cell, "tc")], changed):
        (slotted,) = (line for line in told if " slot " in line)
        assert f"dev {ends.wire_backward.name} root" in slotted
        assert slotted.endswith("slot 200us 3000us")


def test_a_wire_without_delay_can_aggregate(planned):
    cell = planned("rate: 10 Mbit/s, rtt: {h1: 20 ms}, ack_aggregation: 1 ms")
    assert any(line.endswith("slot 1000us 1000us") for _, line in lines(cell, "tc"))


def test_every_interface_with_a_role_is_there_and_every_node_is_read_back(planned):
    cell = planned("rate: 10 Mbit/s, rtt: 20 ms, loss: 1 %", slice_="{name: parking_lot, hops: 3}")
    cabling = lay_cables(cell)
    names = {side.name for cable in cabling.cables for side in (cable.a, cable.b)}
    assert set(interface_roles(cabling)) <= names
    read = {capture.command.node for capture in readback_captures(cell, cabling)}
    assert read == {node.name for node in cabling.nodes}


def test_only_hosts_that_talk_know_one_another(planned):
    cell = planned(slice_="{name: dumbbell, hosts: 3}", flows="{cca: cubic, duration: 1 s, count: 3}")
    told = [node for node, line in lines(cell, "ip") if line.startswith("neigh") and not node.startswith("s")]
    assert sorted(told) == ["h1", "h2", "h3", "r1", "r2", "r3"]

"""Cell → nodes, cables and addresses."""

import ipaddress
from collections import Counter

import pytest
from places import GUEST

from fabbbr.job.cabling import lay_cables
from fabbbr.plan.opening import open_plan

TEXT = "id: made\ntitle: t\nslice: {slice}\npath: {{{path}}}\nflows: [{flows}]\nrepeat: 1\n"
SLICES = ("two_site", "rtt_pair", "{name: dumbbell, hosts: 150}", "{name: parking_lot, hops: 9}")
FORWARD = "{cca: cubic, duration: 1 s}"


@pytest.fixture
def laid(tmp_path):
    def lay(slice_, path="rate: 10 Mbit/s, rtt: 20 ms", flows=FORWARD):
        file = tmp_path / "made.yaml"
        file.write_text(TEXT.format(slice=slice_, path=path, flows=flows), encoding="utf-8")
        cell = open_plan(str(file), seed=1).cells[0]
        return cell, lay_cables(cell, GUEST)

    return lay


@pytest.mark.parametrize("slice_", SLICES)
def test_every_host_has_an_address_of_its_own_in_one_network(laid, slice_):
    cell, cabling = laid(slice_)
    addresses = [ipaddress.ip_interface(node.address) for node in cabling.nodes if node.kind == "host"]
    assert len({each.ip for each in addresses}) == len(cell.hosts)
    assert len({each.network for each in addresses}) == 1
    (network,) = {each.network for each in addresses}
    assert not {network.network_address, network.broadcast_address} & {each.ip for each in addresses}


@pytest.mark.parametrize("slice_", SLICES)
def test_every_interface_has_a_name_and_a_unicast_address_of_its_own(laid, slice_):
    _, cabling = laid(slice_)
    sides = [side for cable in cabling.cables for side in (cable.a, cable.b)]
    assert set(Counter(side.name for side in sides).values()) == {1}
    assert set(Counter(side.mac for side in sides).values()) == {1}
    assert all(int(side.mac[:2], 16) & 3 == 2 for side in sides), "local, not multicast"


@pytest.mark.parametrize("slice_", SLICES)
def test_the_network_is_a_tree_whose_hosts_are_leaves_and_whose_wires_pass_through(laid, slice_):
    _, cabling = laid(slice_)
    degree = Counter(side.node for cable in cabling.cables for side in (cable.a, cable.b))
    assert len(cabling.cables) == len(cabling.nodes) - 1
    assert {degree[node.name] for node in cabling.nodes if node.kind == "host"} == {1}
    assert {degree[node.name] for node in cabling.nodes if node.kind == "wire"} <= {2}


def test_a_reverse_flow_gets_a_queue_of_its_own_and_a_forward_one_none(laid):
    _, cabling = laid("two_site")
    assert [ends.reverse_queues for ends in cabling.ends if ends.link.bottleneck] == [()]
    _, cabling = laid("two_site", flows=FORWARD.replace("}", ", direction: reverse}"))
    (queues,) = [ends.reverse_queues for ends in cabling.ends if ends.link.bottleneck]
    assert [queue.name for queue in queues] == ["s1-eth0"]


def test_no_queue_and_no_wire_end_is_on_a_host(laid):
    for flows in (FORWARD, FORWARD.replace("}", ", direction: reverse}")):
        cell, cabling = laid("{name: dumbbell, hosts: 4}", flows=flows)
        hosts = {host.name for host in cell.hosts}
        queues = [
            q for ends in cabling.ends if ends.link.bottleneck for q in (ends.queue, *ends.reverse_queues)
        ]
        assert queues
        assert not {queue.node for queue in queues} & hosts

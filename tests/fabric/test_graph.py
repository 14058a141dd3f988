"""Graphs that a double of FABRIC answered, read by FABRIC's own information model."""

import json
from pathlib import Path

import pytest

pytest.importorskip("fim", reason="needs the extra fabric")

from fabbbr.backends.fabric import graph
from fabbbr.backends.fabric.answers import slice_seen, sliver_seen
from fabbbr.backends.fabric.seen import live_slice

pytestmark = pytest.mark.filterwarnings("default")
GOLDEN = Path(__file__).parent.parent / "golden/fabric"


def data(name):
    return json.loads((GOLDEN / f"{name}.json").read_text())["data"]


def live(name, moment):
    (said,) = data(f"{name}.{moment}")
    slivers = tuple(sliver_seen({**each, "name": each["sliver"]["Name"]}) for each in data(f"{name}.slivers"))
    return live_slice(slice_seen(said), graph.seen(said["model"]), slivers, {"default_ubuntu_22": "ubuntu"})


def macs_in_slivers(name):
    """Node → MAC addresses, from the other of FABRIC's two accounts of a slice."""
    found = {}
    for each in data(f"{name}.slivers"):
        for component in each["sliver"].get("components", ()):
            for service in component["network_services"]:
                for interface in service["interfaces"]:
                    mac = json.loads(interface.get("LabelAllocations", "{}")).get("mac")
                    found.setdefault(each["sliver"]["Name"], set()).add(mac.lower())
    return found


def test_a_slice_on_its_way_has_no_machine_yet():
    seen = live("kinds", "first")
    assert (seen.state, seen.machines) == ("configuring", ())
    assert all(f"{name} " in seen.said for name in ("h1", "sw", "h2", "h3"))


def test_each_link_of_a_slice_is_found_by_name_with_its_address():
    seen = live("kinds", "last")
    assert (seen.state, seen.said) == ("ok", "StableOK")
    links = {machine.name: set(machine.interfaces) for machine in seen.machines}
    assert links == {
        "h1": {"l1", "l4", "l5"},
        "sw": {"l1", "l2", "l3"},
        "h2": {"l2", "l5"},
        "h3": {"l3", "l4"},
    }
    told = macs_in_slivers("kinds")
    for machine in seen.machines:
        assert len(set(machine.interfaces.values())) == len(machine.interfaces)
        assert set(machine.interfaces.values()) <= told[machine.name]


def test_addresses_workers_and_users_are_those_of_the_slivers():
    slivers = {each["sliver"]["Name"]: each["sliver"] for each in data("kinds.slivers")}
    for machine in live("kinds", "last").machines:
        said = slivers[machine.name]
        assert (machine.address, machine.site) == (said["MgmtIp"], said["Site"])
        assert machine.worker == json.loads(said["LabelAllocations"])["instance_parent"]
        assert machine.user == ("ubuntu" if "ubuntu" in said["ImageRef"] else "root")


def test_tagged_and_routed_links_say_so():
    machines = {machine.name: machine for machine in live("kinds", "last").machines}
    assert {name: set(machine.vlans) for name, machine in machines.items()} == {
        "h1": set(),
        "sw": {"l2", "l3"},
        "h2": {"l2"},
        "h3": {"l3"},
    }
    assert machines["sw"].vlans == {"l2": 100, "l3": 100}
    gateways = {
        each["sliver"]["Name"]: json.loads(each["sliver"]["Gateway"])
        for each in data("kinds.slivers")
        if each["sliver"].get("Gateway")
    }
    for name, end in (("h1", "a"), ("h3", "b")):
        said = gateways[f"link-l4-{end}"]
        assert machines[name].gateways == {"l4": f"{said['ipv4']}/{said['ipv4_subnet'].split('/')[1]}"}


def test_a_failed_slice_says_which_part_and_why():
    seen = live("nowhere", "last")
    assert seen.state == "failed"
    assert seen.said.startswith("StableError: h2 is Closed: Insufficient resources")
    assert "MOON" in seen.said
    assert "choose one of FABRIC's sites" in seen.said

"""What FABRIC answered once, word by word, read again: the offer, slices, and how they are."""

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from fabbbr.backends.fabric.answers import (
    GraphSeen,
    NetworkSeen,
    NodeSeen,
    PortSeen,
    SliceSeen,
    SliverSeen,
    instant,
    slice_seen,
    sliver_seen,
)
from fabbbr.backends.fabric.offer import offer, project
from fabbbr.backends.fabric.seen import coarse, live_slice
from fabbbr.reserve.records import Room

GOLDEN = Path(__file__).parent.parent / "golden/fabric"


def golden(name):
    return json.loads((GOLDEN / f"{name}.json").read_text())


# The offer.


def test_the_offer_of_a_recorded_summary():
    summary, token = golden("summary")["data"][0], golden("token")
    made = offer(summary, token, token["token"]["projects"][0]["uuid"])
    assert set(made.sites) == {site["name"] for site in summary["sites"]}
    assert set(made.project.tags) == set(token["token"]["projects"][0]["tags"])
    for said in summary["sites"]:
        site = made.sites[said["name"]]
        assert site.location == tuple(said["location"])
        if said["state"] != "Active":
            continue
        assert site.state == "active"
        assert list(site.workers) == said["hosts"]
        # The sums over hosts are those that FABRIC gives for the site.
        assert site.cores == Room(capacity=said["cores_capacity"], available=said["cores_available"])
        assert site.ram_gb == Room(capacity=said["ram_capacity"], available=said["ram_available"])
        assert site.disk_gb == Room(capacity=said["disk_capacity"], available=said["disk_available"])
        shares = said["components"]["SharedNIC-ConnectX-6"]
        assert site.nics["NIC_Basic"] == Room(capacity=shares["capacity"], available=shares["available"])


def test_of_recorded_sites_in_maintenance_only_what_serves_is_offered():
    summary = golden("summary")["data"][0]
    sites = offer(summary, {}, "p").sites
    away, partly = sites["BRIST"], sites["RUTG"]
    assert (away.state, away.workers, away.cores.available, away.nics) == ("in maintenance", (), 0, {})
    assert partly.state == "partly in maintenance"
    assert partly.workers == ("rutg-w2.fabric-testbed.net", "rutg-w3.fabric-testbed.net")
    (said,) = (site for site in summary["sites"] if site["name"] == "RUTG")
    assert partly.cores.available == said["cores_available"] * 2 // 3


def host(name, state, free):
    nics = {"SmartNIC-ConnectX-7-100": {"capacity": 2, "available": 1}, "GPU-Tesla T4": {"capacity": 9}}
    room = {f"{what}_{how}": free for what in ("cores", "ram", "disk") for how in ("capacity", "available")}
    return {"name": name, "site": "UTAH", "state": state, "components": nics, **room}


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("Active", "active"),
        ("PreMaint", "active"),
        ("PartMaint", "partly in maintenance"),
        ("Maint", "in maintenance"),
        ("Unknown", "in maintenance"),
    ],
)
def test_a_worker_in_maintenance_offers_nothing(said, state):
    hosts = [host("w1", "Active", 10), host("w2", "Maint", 100)]
    site = offer({"sites": [{"name": "UTAH", "state": said}], "hosts": hosts}, {}, "p").sites["UTAH"]
    assert site.state == state
    assert site.workers == ("w1",)
    assert site.cores == site.ram_gb == site.disk_gb == Room(capacity=10, available=10)
    assert site.nics == {"NIC_ConnectX_7_100": Room(capacity=2, available=1)}
    assert site.location is None


def test_without_hosts_the_numbers_are_those_of_the_site():
    said = {"name": "UTAH", "state": "Active", "cores_capacity": 4, "cores_available": None}
    site = offer({"sites": [said], "hosts": None}, {}, "p").sites["UTAH"]
    assert (site.cores, site.workers) == (Room(capacity=4, available=0), ())


def test_a_token_for_another_project_has_no_permissions_in_this_one():
    token = {"projects": [{"uuid": "other", "name": "theirs", "tags": ["Slice.Multisite"]}]}
    assert project(token, "mine").model_dump() == {"id": "mine", "name": "mine", "tags": ()}
    assert project(token, "other").tags == ("Slice.Multisite",)


# Slices.


def test_a_recorded_slice_has_its_name_state_and_end():
    said = golden("kinds.listed")["data"][0]
    seen = slice_seen(said)
    assert (seen.id, seen.name, seen.state) == (said["slice_id"], "kinds", "StableOK")
    assert seen.lease_end == datetime.strptime(said["lease_end_time"], "%Y-%m-%d %H:%M:%S %z")


@pytest.mark.parametrize("text", [None, "", "soon", "2026-01-01 00:00:00"])
def test_an_end_that_cannot_be_read_is_absent(text):
    assert instant(text) is None


def test_a_sliver_that_says_little_is_still_one():
    assert sliver_seen({"sliver_id": "s"}) == SliverSeen(name="s", state="unknown")


def up(name, **changes):
    return NodeSeen(
        **{
            "name": name,
            "site": "UTAH",
            "image": "u24",
            "state": "Active",
            "address": "2001:db8::1",
            **changes,
        }
    )


def slice_of(state, nodes=(), networks=(), ports=(), slivers=()):
    end = datetime(2026, 1, 1, tzinfo=timezone.utc)
    graph = GraphSeen(nodes=nodes, networks=networks, ports=ports)
    return live_slice(
        SliceSeen(id="1", name="s", state=state, lease_end=end), graph, slivers, {"u24": "ubuntu"}
    )


NET = NetworkSeen(name="link-l1", state="Active")
PORT = PortSeen(network="link-l1", node="h1", mac="02:AA:00:00:00:01")


@pytest.mark.parametrize(
    ("state", "graph", "expected", "said"),
    [
        ("StableOK", {"nodes": (up("h1"),), "networks": (NET,), "ports": (PORT,)}, "ok", "StableOK"),
        ("ModifyOK", {"nodes": (up("h1"),)}, "ok", "ModifyOK"),
        ("StableOK", {}, "configuring", "StableOK, but nothing in it is known yet"),
        (
            "StableOK",
            {"nodes": (up("h1"), up("h2", address=None))},
            "configuring",
            "StableOK, but h2 has no management address yet",
        ),
        ("StableOK", {"nodes": (up("h1", state="Ticketed"),)}, "configuring", "StableOK, but h1 is Ticketed"),
        (
            "StableOK",
            {"nodes": (up("h1"),), "networks": (NET,), "ports": (PORT.model_copy(update={"mac": None}),)},
            "configuring",
            "StableOK, but h1 has no MAC address on link-l1 yet",
        ),
        (
            "StableOK",
            {"nodes": (up("h1"),), "networks": (NetworkSeen(name="link-l1", state="Ticketed"),)},
            "configuring",
            "StableOK, but link-l1 is Ticketed",
        ),
        (
            "StableOK",
            {"nodes": (up("h1", state="Closed", error="Insufficient resources : [core]"),)},
            "failed",
            (
                "StableOK, but h1 is Closed: Insufficient resources : [core]; others have them now: choose "
                "another site or a smaller size, delete the slice and create it again"
            ),
        ),
        (
            "StableError",
            {"nodes": (up("h1"), up("h2", state="Failed"))},
            "failed",
            "StableError: h2 is Failed",
        ),
        ("AllocatedError", {}, "failed", "AllocatedError"),
        ("Nascent", {"nodes": (up("h1", state=None),)}, "configuring", "Nascent: h1 Nascent"),
        (
            "Configuring",
            {"nodes": (up("h1"), up("h2", state="Ticketed"))},
            "configuring",
            "Configuring: h1 Active; h2 Ticketed",
        ),
        ("Modifying", {}, "configuring", "Modifying"),
        ("SomethingNew", {}, "configuring", "SomethingNew"),
        ("Closing", {}, "closing", "Closing"),
        ("Dead", {}, "gone", "Dead"),
    ],
)
def test_a_slice_is_never_better_than_it_is(state, graph, expected, said):
    live = slice_of(state, **graph)
    assert (live.state, live.said) == (expected, said)


def test_a_reason_comes_from_the_notice_where_the_graph_has_none():
    slivers = (SliverSeen(name="h2", state="Closed", notice="Last ticket update: no candidates nodes found"),)
    live = slice_of("StableError", nodes=(up("h1"), up("h2", state="Closed")), slivers=slivers)
    assert "h2 is Closed: Last ticket update: no candidates" in live.said
    assert "the site is unknown or in maintenance" in live.said


def test_machines_are_those_that_can_be_used():
    nodes = (up("h1", worker="w1"), up("h2", address=None), up("h3", state="Closed"))
    (machine,) = slice_of("StableError", nodes=nodes, networks=(NET,), ports=(PORT,)).machines
    assert machine.model_dump() == {
        "name": "h1",
        "site": "UTAH",
        "address": "2001:db8::1",
        "user": "ubuntu",
        "interfaces": {"l1": "02:aa:00:00:00:01"},
        "vlans": {},
        "gateways": {},
        "worker": "w1",
    }


def test_routers_and_tags_of_networks_go_with_their_links():
    networks = (NET, NetworkSeen(name="link-l2-a", state="Active", gateway="10.128.0.1/24"))
    ports = (
        PORT.model_copy(update={"vlan": 100}),
        PORT.model_copy(update={"network": "link-l2-a", "mac": "02:aa:00:00:00:02"}),
    )
    (machine,) = slice_of("StableOK", nodes=(up("h1"),), networks=networks, ports=ports).machines
    assert machine.vlans == {"l1": 100}
    assert machine.gateways == {"l2": "10.128.0.1/24"}
    assert machine.interfaces == {"l1": "02:aa:00:00:00:01", "l2": "02:aa:00:00:00:02"}


def test_every_state_of_fabric_has_its_word():
    stable = {"StableOK": "ok", "ModifyOK": "ok", "StableError": "failed", "ModifyError": "failed"}
    assert {state: coarse(state) for state in stable} == stable
    assert {coarse(state) for state in ("Nascent", "Configuring", "Modifying", "AllocatedOK")} == {
        "configuring"
    }

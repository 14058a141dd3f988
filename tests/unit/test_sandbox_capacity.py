"""Who gets a host, and in which words FABRIC says that nobody does."""

import pytest

from fabbbr.sandbox.control.asked import AskedComponent, AskedNode
from fabbbr.sandbox.control.capacity import InsufficientError, Inventory
from fabbbr.sandbox.control.sites import HOST_CORES, SITES


def node(name="n", site="TACC", host=None, cores=2, kinds=()):
    components = tuple(
        AskedComponent(id=f"{name}{k}{n}", name=f"c{n}", kind=k, ports=()) for n, k in enumerate(kinds)
    )
    return AskedNode(
        id=name, name=name, site=site, host=host, image="default_rocky_9", cores=cores, ram_gb=8, disk_gb=10,
        components=components,
    )  # fmt: skip


def free(inventory, site, what):
    record = next(record for record in inventory.summary()["sites"] if record["name"] == site)
    return (
        record[f"{what}_available"]
        if what in {"cores", "ram", "disk"}
        else record["components"][what]["available"]
    )


def test_what_a_node_takes_is_missing_from_the_summary_until_it_is_given_back():
    inventory = Inventory()
    before = free(inventory, "TACC", "cores"), free(inventory, "TACC", "SmartNIC-ConnectX-6")
    inventory.allocate(node(cores=7, kinds=("SmartNIC-ConnectX-6",)))
    assert free(inventory, "TACC", "cores") == before[0] - 7
    assert free(inventory, "TACC", "SmartNIC-ConnectX-6") == before[1] - 1
    inventory.release("n")
    assert (free(inventory, "TACC", "cores"), free(inventory, "TACC", "SmartNIC-ConnectX-6")) == before


def test_nodes_spill_over_to_the_next_host_until_the_site_is_full():
    inventory = Inventory()
    hosts = [inventory.allocate(node(f"n{n}", cores=HOST_CORES)) for n in range(SITES["TACC"].hosts)]
    assert hosts == list(SITES["TACC"].host_names())
    with pytest.raises(InsufficientError, match=r"Insufficient resources : \['cores'\]"):
        inventory.allocate(node("one too many"))


def test_wished_host_is_given_or_refused_by_name():
    wished = "tacc-w2.fabric-testbed.net"
    assert Inventory().allocate(node(host=wished)) == wished
    with pytest.raises(InsufficientError, match="No candidates nodes found to serve n"):
        Inventory().allocate(node(host="tacc-w99.fabric-testbed.net"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (node(site="ATLANTIS"), "Site ATLANTIS does not exist"),
        (node(site="BRIST"), "Site BRIST is in maintenance"),
        (node(site="RUTG", host="rutg-w1.fabric-testbed.net"), "No candidates nodes found"),
        (node(kinds=("SmartNIC-ConnectX-6",) * 3), "Component of type: SmartNIC-ConnectX-6 not available"),
        (node(site="KANS", kinds=("GPU-RTX6000",)), "Component of type: GPU-RTX6000 not available"),
    ],
)
def test_refusal_in_fabric_s_words(asked, said):
    with pytest.raises(InsufficientError, match=f"^Insufficient resources : {said}"):
        Inventory().allocate(asked)


def test_site_in_part_maintenance_serves_from_its_other_hosts():
    assert Inventory().allocate(node(site="RUTG")) == "rutg-w2.fabric-testbed.net"


def test_node_that_asks_for_more_keeps_what_it_had_when_refused():
    inventory = Inventory()
    inventory.allocate(node(kinds=("SmartNIC-ConnectX-6",)))
    before = free(inventory, "TACC", "SmartNIC-ConnectX-6")
    with pytest.raises(InsufficientError):
        inventory.extend(node(kinds=("SmartNIC-ConnectX-6",) * 3))
    assert free(inventory, "TACC", "SmartNIC-ConnectX-6") == before
    inventory.extend(node(kinds=("SmartNIC-ConnectX-6",) * 2))
    assert free(inventory, "TACC", "SmartNIC-ConnectX-6") == before - 1


def test_site_totals_are_the_sums_of_its_hosts():
    summary = Inventory().summary()
    for site in summary["sites"]:
        hosts = [host for host in summary["hosts"] if host["site"] == site["name"]]
        assert site["cores_capacity"] == sum(host["cores_capacity"] for host in hosts)
        assert sorted(site["hosts"]) == sorted(host["name"] for host in hosts)

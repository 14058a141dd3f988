"""From a topology to what is asked of a testbed, and what a testbed would refuse."""

import filecmp
import random
import subprocess
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offers import CHOICE, WHERE, offer, two_site

import fabbbr.reserve
from fabbbr.errors import PlanError, SpecError, UsageError
from fabbbr.model import Host, Switch
from fabbbr.plan import definitions
from fabbbr.reserve.inventory import inventory
from fabbbr.reserve.keys import key_of
from fabbbr.reserve.records import Key, LiveMachine, LiveSlice, Reservation, Size
from fabbbr.reserve.refusals import problems, require_name, require_none
from fabbbr.reserve.reservation import SIZES, Options, reserve, size_of
from fabbbr.reserve.sites import Demand, by_lot, by_rtt, demands, distances
from fabbbr.spec.experiment import SliceChoice
from fabbbr.topology import Link, Pair, Topology

SITES = sorted(WHERE)


def reserved(topology=None, **options):
    return reserve("study", CHOICE, topology or two_site(), Options(**options))


def bundled(name, **parameters):
    choice = SliceChoice(name=name, parameters={key: str(value) for key, value in parameters.items()})
    return definitions.load(choice)


# --- machines and cables


def test_two_sites_are_three_machines_a_bridge_at_home_and_a_site_to_site_network():
    reservation = reserved()
    assert [(one.name, one.site, one.nodes) for one in reservation.machines] == [
        ("h1", "DALL", ("h1",)), ("h2", "SALT", ("h2",)), ("sw", "DALL", ("s1",)),
    ]  # fmt: skip
    assert [(one.link, one.a_machine, one.b_machine, one.kind) for one in reservation.cables] == [
        ("access", "h1", "sw", "L2Bridge"), ("trunk", "sw", "h2", "L2STS"),
    ]  # fmt: skip
    assert reservation.placement == {"h1": "h1", "h2": "h2", "s1": "sw"}


def test_at_one_site_everything_is_a_bridge():
    assert {cable.kind for cable in reserved(two_site("TACC", "TACC")).cables} == {"L2Bridge"}


def test_whole_cards_make_point_to_point_networks_only_where_asked():
    assert reserved(nic="NIC_ConnectX_6").cables[1].kind == "L2STS"
    assert reserved(nic="NIC_ConnectX_6", wide="L2PTP").cables[1].kind == "L2PTP"


def test_linked_switches_of_one_site_share_a_machine_and_their_link_is_no_network():
    reservation = reserved(bundled("parking_lot", hops=3), elsewhere="DALL")
    switches = [one for one in reservation.machines if "s1" in one.nodes]
    assert [one.nodes for one in switches] == [("s1", "s2", "s3", "s4")]
    assert not {"hop1", "hop2", "hop3"} & {cable.link for cable in reservation.cables}
    assert len(reservation.machines) == 8 + 1


def test_switches_of_two_sites_are_two_machines():
    reservation = reserved(bundled("dumbbell", left_site="DALL", right_site="SALT"))
    assert {one.name: one.site for one in reservation.machines if one.name.startswith("sw")} == {
        "sw-s1": "DALL", "sw-s2": "SALT",
    }  # fmt: skip


def test_a_host_of_one_letter_gets_a_machine_that_fablib_takes_and_a_host_called_sw_keeps_its_name():
    topology = Topology(
        hosts=(Host(name="a", site="DALL"), Host(name="sw", site="DALL")),
        switches=(Switch(name="s", site="DALL"),),
        links=(Link(name="x", a="a", b="s"), Link(name="y", a="s", b="sw", bottleneck=True)),
        pairs=(Pair(sender="a", receiver="sw"),),
    )
    assert [one.name for one in reserved(topology).machines] == ["host-a", "sw", "sw-s"]


def test_a_node_without_a_site_is_refused_by_name():
    with pytest.raises(UsageError, match="no site is known for h1, h2, s1; name sites with --sites"):
        reserved(bundled("two_site"))


def test_machines_that_are_there_carry_what_the_inventory_says():
    placement = {"h1": "left", "s1": "left", "h2": "right"}
    reservation = reserved(two_site("LAB", "LAB"), placement=placement)
    assert reservation.placement == placement
    assert [cable.link for cable in reservation.cables] == ["trunk"]


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        ({"h1": "x", "h2": "y"}, "no machine carries s1"),
        ({"h1": "x", "h2": "y", "s1": "z", "h3": "z"}, "the slice has no h3"),
    ],
)
def test_a_placement_that_does_not_fit_is_refused(placement, said):
    with pytest.raises(UsageError, match=said):
        reserved(placement=placement)


def test_a_machine_stands_at_one_site():
    with pytest.raises(SpecError, match="machine m would stand at DALL, SALT"):
        reserved(placement={"h1": "m", "h2": "m", "s1": "m"})


@given(sites=st.lists(st.sampled_from(SITES), min_size=3, max_size=12), seed=st.integers(0, 1000))
def test_any_tree_becomes_machines_that_carry_every_node_once_and_every_link_between_machines(sites, seed):
    """Random trees of switches with a host at each."""
    rng = random.Random(seed)  # noqa: S311 - to be repeated
    switches = tuple(Switch(name=f"s{k}", site=site) for k, site in enumerate(sites))
    hosts = tuple(Host(name=f"h{k}", site=rng.choice(SITES)) for k in range(len(sites)))
    trunks = tuple(
        Link(name=f"t{k}", a=f"s{rng.randrange(k)}", b=f"s{k}", bottleneck=True) for k in range(1, len(sites))
    )
    links = (*trunks, *(Link(name=f"a{k}", a=f"h{k}", b=f"s{k}") for k in range(len(sites))))
    topology = Topology(
        hosts=hosts, switches=switches, links=links, pairs=(Pair(sender="h0", receiver="h1"),)
    )
    reservation = reserved(topology)
    site_of = {node.name: node.site for node in (*hosts, *switches)}
    carried = [node for machine in reservation.machines for node in machine.nodes]
    assert sorted(carried) == sorted(site_of)
    for machine in reservation.machines:
        assert {site_of[node] for node in machine.nodes} == {machine.site}
    placement = reservation.placement
    cabled = {cable.link: cable for cable in reservation.cables}
    for link in links:
        assert (placement[link.a] != placement[link.b]) == (link.name in cabled)
        if link.name in cabled:
            assert (cabled[link.name].kind == "L2Bridge") == (site_of[link.a] == site_of[link.b])
        else:
            assert link.name.startswith("t")
    assert problems(reservation, offer()) == ()
    assert Reservation.model_validate_json(reservation.model_dump_json()) == reservation


# --- sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [("default", (2, 8, 10)), ("knit6", (16, 32, 10)), ("4x16x100", (4, 16, 100))],
)
def test_a_size_by_name_or_by_numbers(text, size):
    assert size_of(text) == Size(cores=size[0], ram_gb=size[1], disk_gb=size[2])


@pytest.mark.parametrize(
    "text", ["", "knit7", "4x16", "0x1x1", "4x16x100x1", "-1x2x3", "4x16xlots", "1e3x1x1"]
)
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="--size"):
        size_of(text)


def test_the_default_size_needs_no_permission():
    assert problems(reserved(two_site("DALL", "DALL")), offer(tags=())) == ()


# --- sites


def test_the_table_is_that_of_the_references():
    ours = Path(str(resources.files(fabbbr.reserve) / "site_rtt.csv"))
    theirs = Path(str(resources.files("fabbbr_analysis.references") / "knit6_site_rtt.csv"))
    assert filecmp.cmp(ours, theirs, shallow=False)


def test_every_row_of_the_table_between_named_sites_is_a_distance():
    assert len(distances()) == 12
    assert all(0 < one.rtt_s < 1 for one in distances())


@pytest.mark.parametrize(
    ("wished_ms", "sites"),
    [
        (0.1, ("TACC", "TACC")),
        (5, ("DALL", "TACC")),
        (26, ("DALL", "SALT")),
        (40, ("SALT", "FIU")),
        (500, ("GPN", "FIU")),
    ],
)
def test_the_pair_nearest_to_the_wished_round_trip(wished_ms, sites):
    choice = by_rtt(wished_ms / 1e3, distances(), dict.fromkeys(WHERE, ""))
    assert choice.sites == sites


def test_a_nearer_pair_that_cannot_be_had_is_passed_over_and_named():
    choice = by_rtt(0.026, distances(), dict.fromkeys(WHERE, "") | {"SALT": "is in maintenance"})
    assert choice.sites == ("DALL", "WASH")
    assert "DALL–SALT at 26 ms (SALT is in maintenance)" in choice.said


def test_no_pair_at_all_is_refused_with_the_reasons():
    with pytest.raises(PlanError, match="is not known here"):
        by_rtt(0.026, distances(), {})


WANTS = {"sender": Demand(cores=4, nics={"NIC_Basic": 2}), "receiver": Demand(cores=2)}


@given(seed=st.integers(), avoid=st.sets(st.sampled_from(SITES), max_size=5))
def test_sites_by_lot_are_different_active_roomy_and_the_same_for_a_seed(seed, avoid):
    place = offer(DALL={"cores": 3}, SALT={"state": "in maintenance"}, FIU={"state": "partly in maintenance"})
    usable = set(WHERE) - avoid - {"SALT", "FIU"}
    try:
        choice = by_lot(WANTS, place, avoid=avoid, seed=seed)
    except PlanError:
        assert len(usable) < 2 or usable <= {"DALL"}
        return
    sender, receiver = choice.sites
    assert sender != receiver
    assert {sender, receiver} <= usable
    assert sender != "DALL"
    assert by_lot(WANTS, place, avoid=avoid, seed=seed) == choice
    assert f"--seed {seed}" in choice.said


def test_the_lot_reaches_every_site_that_fits():
    drawn = {site for seed in range(200) for site in by_lot(WANTS, offer(), avoid=(), seed=seed).sites}
    assert drawn == set(WHERE)


def test_no_site_by_lot_says_what_each_lacks():
    with pytest.raises(PlanError, match="DALL has 1 cores free of 4 needed") as refused:
        by_lot(WANTS, offer(**{name: {"cores": 1} for name in WHERE}), avoid=("FIU",), seed=1)
    assert "FIU is taken or to be avoided" in str(refused.value)


def test_what_a_reservation_needs_is_summed_by_site():
    found = demands(reserved())
    assert found["DALL"] == Demand(cores=4, ram_gb=16, disk_gb=20, nics={"NIC_Basic": 3})
    assert found["SALT"] == Demand(cores=2, ram_gb=8, disk_gb=10, nics={"NIC_Basic": 1})


# --- refusals

BIG = SIZES["knit6"]


@pytest.mark.parametrize(
    ("options", "place", "said"),
    [
        ({}, {"SALT": None}, "no site 'SALT'.*there are DALL"),
        ({}, {"SALT": {"state": "in maintenance"}}, "site SALT is in maintenance; take UTAH or "),
        ({}, {"SALT": {"state": "partly in maintenance", "workers": ()}}, "with no host in service"),
        ({}, {"DALL": {"cores": 3}}, "site DALL has 3 cores free of 4 needed; take TACC or "),
        ({}, {"DALL": {"ram_gb": 15}}, "15 GB of memory free of 16 needed"),
        ({}, {"DALL": {"disk_gb": 19}}, "19 GB of disk free of 20 needed"),
        ({}, {"DALL": {"basic": 2}}, "2 NIC_Basic free of 3 needed"),
        ({}, {"tags": ()}, "no permission Slice.Multisite, which a slice at 2 sites needs; ask for it"),
        ({"size": BIG}, {"tags": ("Slice.Multisite",)}, "VM.NoLimitCPU, which a machine of more than 2"),
        ({"size": BIG}, {"tags": ("Slice.Multisite",)}, "VM.NoLimitRAM, which a machine of more than 10"),
        ({"size": size_of("2x8x11")}, {"tags": ("Slice.Multisite",)}, "VM.NoLimitDisk"),
        (
            {"nic": "NIC_ConnectX_6"},
            {"tags": ("Slice.Multisite",), "DALL": {"smart": 9}},
            "Component.SmartNIC_ConnectX_6, which the kind of card NIC_ConnectX_6 needs",
        ),
        ({"nic": "NIC_ConnectX_7_400"}, {}, "0 NIC_ConnectX_7_400 free of 3 needed"),
        ({"wide": "L2PTP"}, {}, "link trunk is an L2PTP.*VLAN tag, and needs whole cards.*leave the network"),
        (
            {"wide": "L2PTP", "nic": "NIC_ConnectX_6"},
            {"DALL": {"smart": 9}},
            "link trunk is an L2PTP.*a job's have none; leave the network L2STS",
        ),
        ({"wide": "FABNetv4"}, {}, "link trunk is FABNetv4, which routes.*leave the network L2STS"),
        ({}, {"tags": ("Slice.Multisite", "Slice.OnlyEDUKY")}, "EDUKY alone"),
        ({"lease_s": 15 * 86400 + 1}, {"tags": ("Slice.Multisite",)}, "longer than the 15 .*--lease 360h"),
        ({"lease_s": 27 * 7 * 86400}, {}, "longer than the 182 "),
        ({}, {"keys": (Key(place="k", kind="ssh-ed25519", bits=256),)}, "key k is ssh-ed25519"),
        ({}, {"keys": (Key(place="k", kind="ssh-rsa", bits=2048),)}, "key k is ssh-rsa of 2048 bits"),
        ({}, {"keys": (Key(place="k", kind="ssh-dss", bits=1024),)}, "key k is ssh-dss"),
    ],
)  # fmt: skip
def test_each_refusal_names_the_thing_and_a_remedy(options, place, said):
    with pytest.raises(PlanError, match=said):
        require_none(reserved(**options), offer(**place))


def test_all_problems_are_said_at_once():
    place = offer(tags=(), SALT={"state": "in maintenance"}, DALL={"cores": 3})
    whats = " ".join(
        problem.what for problem in problems(reserved(size=BIG, lease_s=1e8, wide="L2PTP"), place)
    )
    for part in (
        "SALT is in maintenance",
        "DALL has",
        "Multisite",
        "NoLimitCPU",
        "NoLimitRAM",
        "lease",
        "L2PTP",
    ):
        assert part in whats


@pytest.mark.parametrize(
    "place",
    [
        {"keys": (Key(place="k", kind="ecdsa-sha2-nistp256", bits=256),)},
        {"keys": (Key(place="k", kind="ssh-rsa", bits=3072),)},
        {"SALT": {"state": "partly in maintenance"}},
    ],
)
def test_what_would_be_given_is_not_refused(place):
    assert problems(reserved(), offer(**place)) == ()


def test_a_single_permission_for_each_kind_of_card_does_too():
    tags = ("Slice.Multisite", "Component.SmartNIC_ConnectX_6")
    assert problems(reserved(nic="NIC_ConnectX_6"), offer(tags=tags, DALL={"smart": 3})) == ()


def test_a_place_where_sites_are_labels_refuses_none_of_them():
    anywhere = offer().model_copy(update={"sites": {}, "any_site": True, "project": None})
    assert problems(reserved(two_site("HERE", "THERE"), size=BIG), anywhere) == ()


@pytest.mark.parametrize("name", ["ab", "my-study", "A.b_c-9", "x" * 60])
def test_names_that_a_slice_may_have(name):
    require_name(name)


@pytest.mark.parametrize("name", ["", "a", "-x", ".x", "a b", "a/b", "x" * 61, "ab\n", "é1"])
def test_names_that_a_slice_may_not_have(name):
    with pytest.raises(UsageError, match="is no name for a slice"):
        require_name(name)


# --- keys


@pytest.mark.parametrize(
    ("kind", "bits", "said"),
    [
        ("rsa", 2048, "ssh-rsa"),
        ("rsa", 3072, "ssh-rsa"),
        ("ecdsa", 384, "ecdsa-sha2-nistp384"),
        ("ed25519", 256, "ssh-ed25519"),
    ],
)
def test_a_key_of_ssh_keygen_is_read_as_it_is(kind, bits, said, tmp_path):
    size = () if kind == "ed25519" else ("-b", str(bits))
    subprocess.run(("ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-f", tmp_path / "k"), check=True)
    assert key_of((tmp_path / "k.pub").read_text(), "k.pub") == Key(place="k.pub", kind=said, bits=bits)


@given(text=st.text() | st.from_regex(r"ssh-(rsa|ed25519) [A-Za-z0-9+/]{0,60}={0,2}", fullmatch=True))
def test_whatever_a_key_file_says_is_a_key_or_an_error_that_names_it(text):
    try:
        said = key_of(text, "k.pub").place
    except SpecError as error:
        said = str(error)
    assert "k.pub" in said


# --- inventory


def test_the_inventory_groups_machines_by_what_they_carry_with_their_interfaces():
    reservation = reserved(two_site("LAB", "LAB"), placement={"h1": "left", "s1": "left", "h2": "right"})
    macs = {"left": {"trunk": "02:00:00:00:00:01"}, "right": {"trunk": "02:00:00:00:00:02"}}
    live = LiveSlice(
        name="study",
        id="1",
        state="ok",
        machines=tuple(
            LiveMachine(name=name, site="LAB", address="10.0.0.1", user="u", interfaces=macs[name])
            for name in macs
        ),
    )
    ways = {name: {"ansible_host": name} for name in macs}
    groups = inventory(reservation, live, two_site("LAB", "LAB"), ways)["all"]["children"]["fabbbr"][
        "children"
    ]
    assert list(groups["tcp_hosts"]["hosts"]) == ["left", "right"]
    assert list(groups["software_switches"]["hosts"]) == ["left"]
    assert groups["tcp_hosts"]["hosts"]["right"] == {
        "ansible_host": "right",
        "fabbbr_site": "LAB",
        "fabbbr_nodes": ["h2"],
        "fabbbr_interfaces": [{"link": "trunk", "mac": "02:00:00:00:00:02"}],
        "tcp_host_interfaces": ["02:00:00:00:00:02"],
    }

"""The playbooks on real name spaces of this kernel: prepare, conditions, restore, with a TBF and a bridge."""

import json
import re

import pytest
from rooms import PLAYBOOKS, inventory, room, two_hosts_and_a_switch

from fabbbr.testbed import Machine

RATE_BPS = 80_000_000
PORTS = (
    {"interface": "s1-eth1"},
    {"interface": "s1-eth2", "rate_bps": RATE_BPS, "burst_bytes": 50_000, "buffer_bytes": 500_000},
)
SLOWER = (PORTS[0], {**PORTS[1], "rate_bps": RATE_BPS // 2})
SEEN = "ip -j link; tc -r -j qdisc; ethtool -k {device} | sort; sysctl net.ipv4.tcp_rmem"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with room(tmp_path_factory.mktemp("room")) as made:
        two_hosts_and_a_switch(made)
        yield made


@pytest.fixture(scope="module")
def asked(nodes):
    return inventory(
        nodes.folder, ports=PORTS, hosts={"tcp_host_mtu_bytes": 1400, "tcp_host_offloads": {"tso": False}}
    )


def seen(nodes):
    """What a restored node must have as it was."""
    devices = {"h1": "h1-eth0", "h2": "h2-eth0", "s1": "s1-eth1"}
    return {
        node: nodes.says("sh", "-c", SEEN.format(device=device), node=node)
        for node, device in devices.items()
    }


@pytest.fixture(scope="module")
def story(nodes, asked):
    """What happens, in order: each run of a playbook, and what was seen of the nodes."""
    told = {"before": seen(nodes)}
    told["dry"] = nodes.play("prepare.yml", asked, "--check")
    told["untouched"] = seen(nodes)
    told["first"] = nodes.play("prepare.yml", asked)
    told["second"] = nodes.play("prepare.yml", asked)
    told["set, dry"] = nodes.play("conditions.yml", asked, "--check")
    told["nothing yet"] = nodes.qdiscs("s1", "s1-eth2")
    told["set"] = nodes.play("conditions.yml", asked)
    told["in force"] = nodes.qdiscs("s1", "s1-eth2")
    told["set again"] = nodes.play("conditions.yml", asked)
    told["ping"] = nodes.run("ping", "-c", "3", "-i", "0.1", "10.0.0.2", node="h1").stdout
    nodes.says("tc", "qdisc", "change", "dev", "s1-eth2", "root", "handle", "1:", "tbf", "rate",
               "79999992bit", "burst", "50000", "limit", "500000", node="s1")  # fmt: skip
    told["altered"] = nodes.play("conditions.yml", asked, software_switch_state="verified")
    told["mended"] = nodes.play("conditions.yml", asked)
    told["verified"] = nodes.play("conditions.yml", asked, software_switch_state="verified")
    told["slower"] = nodes.play("conditions.yml", asked, software_switch_interfaces=SLOWER)
    told["slower, in force"] = nodes.qdiscs("s1", "s1-eth2")
    told["restored"] = nodes.play("restore.yml", asked)
    told["after"] = seen(nodes)
    told["restored again"] = nodes.play("restore.yml", asked)
    told["left"] = nodes.run(
        "find", "/run/tcp_host", "/run/software_switch", nodes.folder / "agent", "-type", "f"
    ).stdout
    return told


NONE = {"h1": 0, "h2": 0, "s1": 0}


@pytest.mark.parametrize(
    ("run", "changed"),
    [
        ("second", NONE),
        ("set, dry", {"s1": 1}),
        ("set", {"s1": 1}),
        ("set again", {"s1": 0}),
        ("mended", {"s1": 1}),
        ("verified", {"s1": 0}),
        ("slower", {"s1": 1}),
        ("restored again", NONE),
    ],
)
def test_a_run_changes_what_is_not_yet_so_and_nothing_else(story, run, changed):
    played = story[run]
    assert played.status == 0, played.output
    assert played.changed == changed, played.output


def test_the_first_run_changes_every_node(story):
    assert story["first"].status == 0, story["first"].output
    assert all(story["first"].changed.values())


def test_a_dry_run_says_what_it_would_change_and_changes_nothing(story):
    assert story["dry"].status == 0, story["dry"].output
    assert all(story["dry"].changed.values())
    assert story["untouched"] == story["before"]
    assert [one["kind"] for one in story["nothing yet"]] == ["noqueue"]


def test_what_was_asked_is_in_force_and_packets_go_through(story):
    (tbf,) = story["in force"]
    assert (tbf["kind"], tbf["options"]["rate"], tbf["options"]["limit"]) == ("tbf", RATE_BPS // 8, 500_000)
    assert "3 received" in story["ping"]
    (tbf,) = story["slower, in force"]
    assert tbf["options"]["rate"] == RATE_BPS // 16


def test_a_rate_that_was_altered_by_one_byte_per_second_is_caught(story):
    assert story["altered"].status != 0
    assert "s1-eth2: rate of tbf is 9999999 instead of 10000000" in story["altered"].output


def test_restoring_gives_back_what_was_there(story):
    assert story["restored"].status == 0, story["restored"].output
    assert story["after"] == story["before"]
    assert story["left"] == ""


def test_what_a_name_space_lacks_is_told_by_name(story):
    for name in ("net.core.rmem_max", "net.core.wmem_max"):
        assert f"{name} may not be written in this network name space" in story["first"].output


def test_the_facts_are_a_machine_as_a_testbed_has_it(story):
    facts = re.search(
        r'ok: \[h1\] => \{"ansible_facts": (\{.*"fab_machine".*\}), "changed": false\}', story["first"].output
    )
    assert facts, story["first"].output
    told = json.loads(facts[1])
    machine = Machine.model_validate(told["fab_machine"])
    assert machine.tools.keys() >= {"iperf3", "ss", "tc", "ping", "ethtool", "python"}
    assert told["fab_clock"]["resolution_s"] <= 1e-6


def test_a_setting_that_a_name_space_lacks_is_refused_by_name_unless_it_is_tolerated(nodes):
    lacking = inventory(nodes.folder, hosts={"tcp_host_tolerate_missing": False})
    before = seen(nodes)
    played = nodes.play("prepare.yml", lacking, "--limit", "h1")
    assert played.status != 0
    for name in ("net.core.rmem_max", "net.core.wmem_max"):
        assert f"{name} may not be written" in played.output
    assert seen(nodes) == before


def test_the_way_to_the_manager_is_refused(nodes):
    nodes.says("ip", "route", "add", "default", "via", "10.0.0.2", node="h1")
    try:
        played = nodes.play("prepare.yml", inventory(nodes.folder), "--limit", "h1")
        assert played.status != 0
        assert "interface h1-eth0 has a default route" in played.output
        free = inventory(nodes.folder, hosts={"tcp_host_refuse_default_route": False})
        played = nodes.play("prepare.yml", free, "--limit", "h1")
        assert played.status == 0, played.output
    finally:
        nodes.says("ip", "route", "del", "default", node="h1")
        nodes.play("restore.yml", inventory(nodes.folder))


def test_a_kernel_without_a_queueing_discipline_is_refused_by_its_name(nodes):
    played = nodes.play(
        "prepare.yml", inventory(nodes.folder), "--limit", "s1",
        software_switch_tried={"cake": ["no-such-word"]}, software_switch_qdiscs=["cake"],
        software_switch_kernel_packages=[],
    )  # fmt: skip
    assert played.status != 0
    assert "lacks cake" in played.output


def test_a_variable_of_the_wrong_kind_is_refused_before_anything_is_done(nodes):
    played = nodes.play("conditions.yml", inventory(nodes.folder), software_switch_state="maybe")
    assert played.status != 0
    assert (
        "value of software_switch_state must be one of: present, absent, verified, got: maybe"
        in played.output
    )


def test_every_playbook_is_one_that_ansible_can_read(nodes):
    for playbook in sorted(PLAYBOOKS.glob("*.yml")):
        played = nodes.play(playbook.name, inventory(nodes.folder), "--syntax-check")
        assert played.status == 0, played.output

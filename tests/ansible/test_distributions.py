"""Which packages a distribution's node gets: its facts, and missing commands, on a node of this machine.

The package managers are not theirs: apt is asked in check mode, dnf is a script that notes what it was asked.
"""

import json
import re

import pytest
from rooms import inventory, room, two_hosts_and_a_switch

UBUNTU_22 = {
    "distribution": "Ubuntu",
    "os_family": "Debian",
    "pkg_mgr": "apt",
    "kernel": "5.15.0-125-generic",
}
UBUNTU_24 = {"distribution": "Ubuntu", "os_family": "Debian", "pkg_mgr": "apt", "kernel": "6.8.0-49-generic"}
DEBIAN_12 = {"distribution": "Debian", "os_family": "Debian", "pkg_mgr": "apt", "kernel": "6.1.0-28-amd64"}
DEBIAN_13 = {"distribution": "Debian", "os_family": "Debian", "pkg_mgr": "apt", "kernel": "6.12.0-1-amd64"}
ROCKY_9 = {
    "distribution": "Rocky",
    "os_family": "RedHat",
    "pkg_mgr": "dnf",
    "kernel": "5.14.0-503.el9.x86_64",
}
MISSING = ("iperf3", "ping", "tc")
LACKING = {
    "software_switch_commands": ["ip", "tc"],
    "software_switch_qdiscs": ["tbf", "cake"],
    "software_switch_tried": {
        "tbf": ["rate", "1mbit", "burst", "9000", "limit", "9000"],
        "cake": ["no-such-word"],  # a kernel without it would say no as well
    },
}
DNF = '#!/bin/sh\necho "$*" >>/var/dnf.log\ncp /usr/lib/kept/* /usr/local/bin/\n'


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Nodes on which some commands are missing, until dnf is asked to install something."""
    with room(tmp_path_factory.mktemp("room")) as made:
        two_hosts_and_a_switch(made)
        made.says("mkdir", "/usr/lib/kept")
        for command in MISSING:
            found = made.says("sh", "-c", f"readlink -f $(command -v {command})").strip()
            made.says("mv", found, f"/usr/lib/kept/{command}")
        yield made


def play(nodes, facts, playbook, *arguments, **more):
    """Run it on one host and the switch, which are taken for nodes of that distribution."""
    told = {"ansible_facts": {f"ansible_{name}": value for name, value in facts.items()}}
    pretends = nodes.folder.with_name("library") / "pretended_facts.py"
    pretends.parent.mkdir(exist_ok=True)
    pretends.write_text(f"#!/usr/bin/python\nprint({json.dumps(told)!r})\n", encoding="utf-8")
    nodes.environment |= {"ANSIBLE_FACTS_MODULES": pretends.stem, "ANSIBLE_LIBRARY": str(pretends.parent)}
    return nodes.play(playbook, inventory(nodes.folder), *arguments, **more)


def asked_of_apt(played):
    """The packages of each task that asked apt, in order."""
    asked = re.findall(r'"package": (\[[^\]]*\])', played.output)
    return [json.loads(one) for one in dict.fromkeys(asked)]


@pytest.mark.parametrize("facts", [UBUNTU_22, UBUNTU_24, DEBIAN_12, DEBIAN_13])
def test_a_host_of_debians_family_gets_the_packages_of_its_missing_commands(nodes, facts):
    played = play(nodes, facts, "prepare.yml", "--check", "-vvv", "--limit", "h1")
    assert asked_of_apt(played)[0] == ["iperf3", "iproute2", "iputils-ping"], played.output


@pytest.mark.parametrize(
    ("facts", "kernel"),
    [(UBUNTU_22, ["linux-modules-extra-5.15.0-125-generic"]), (DEBIAN_12, None)],
)
def test_a_switch_of_debians_family_gets_the_modules_that_its_kernels_package_lacks(nodes, facts, kernel):
    nodes.says("cp", "/usr/lib/kept/tc", "/usr/local/bin/tc")
    played = play(nodes, facts, "prepare.yml", "--check", "-vvv", "--limit", "s1", **LACKING)
    nodes.says("rm", "/usr/local/bin/tc")
    if kernel is not None:
        assert asked_of_apt(played)[-1] == kernel, played.output
    else:
        # All of them are in its kernel's own package: what is missing then is missing for good.
        assert "linux-modules-extra" not in played.output
        assert "the kernel 6.1.0-28-amd64 lacks" in played.output


def test_rocky_gets_its_own_names_of_packages_and_of_the_module_with_netem(nodes):
    nodes.says("sh", "-c", f"printf '%s' '{DNF}' >/usr/bin/dnf; chmod 755 /usr/bin/dnf; rm -f /var/dnf.log")
    played = play(nodes, ROCKY_9, "prepare.yml", "--limit", "h1")
    assert played.status == 0, played.output
    assert nodes.says("cat", "/var/dnf.log").splitlines() == [
        "install --assumeyes --setopt=install_weak_deps=False iperf3 iproute-tc iputils"
    ]
    nodes.says("rm", "/var/dnf.log")
    played = play(nodes, ROCKY_9, "prepare.yml", "--limit", "s1", **LACKING)
    assert "kernel-modules-extra-5.14.0-503.el9.x86_64" in nodes.says("cat", "/var/dnf.log")
    assert "the kernel 5.14.0-503.el9.x86_64 lacks cake" in played.output


def test_a_dry_run_without_tc_cannot_try_queueing_disciplines_and_refuses_none(nodes):
    nodes.says("rm", "-f", "/usr/local/bin/tc")
    played = play(nodes, DEBIAN_12, "prepare.yml", "--check", "--limit", "s1", measurement_required=[])
    assert played.status == 0, played.output

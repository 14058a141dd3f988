"""The modules of the roles tcp_host and measurement on a real name space."""

import hashlib
import re
from pathlib import Path

import pytest
from rooms import room

from fabbbr.backends.agent import AGENT
from fabbbr.backends.machine import archive
from fabbbr.testbed import Machine

WINDOW = "net.ipv4.tcp_rmem"
FILE = "/etc/sysctl.d/99-test.conf"
RECORD = "/run/test.json"
HIDE = 'env -u SSH_CONNECTION "$@"; exit $?'


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with room(tmp_path_factory.mktemp("room")) as found:
        yield found


@pytest.fixture
def node(made):
    """A name space with an interface d1, and files of the room."""
    made.says("ip", "netns", "add", "no")
    made.says(
        "ip",
        "-n",
        "no",
        "link",
        "add",
        "d1",
        "address",
        "02:00:00:00:00:d1",
        "type",
        "veth",
        "peer",
        "name",
        "d2",
    )
    yield Node(made)
    made.says("ip", "netns", "del", "no")
    made.says("rm", "-f", RECORD, FILE)


class Node:
    def __init__(self, made):
        self.made = made

    def ask(self, module, role="tcp_host", **more):
        return self.made.ask(role, module, node="no", **more)

    def set(self, settings, **more):
        return self.ask("fab_sysctl", settings=settings, record=RECORD, **{"file": FILE, **more})

    def device(self, **more):
        return self.ask("fab_device", record=RECORD, **{"interfaces": ["d1"], **more})

    def says(self, *argv):
        return self.made.says(*argv, node="no")

    def value(self, name):
        return " ".join(self.says("sysctl", "-n", name).split())

    def text(self, file):
        return self.made.run("cat", file).stdout


def test_settings_hold_now_and_at_every_boot_and_once(node):
    asked = {
        WINDOW: "4096  131072\t8388608",
        "net.ipv4.tcp_mtu_probing": 1,
        "net.ipv4.tcp_no_metrics_save": True,
    }
    for changed in (True, False):
        assert node.set(asked)["changed"] is changed
    assert node.value(WINDOW) == "4096 131072 8388608"
    assert node.value("net.ipv4.tcp_no_metrics_save") == "1"
    assert node.text(FILE) == (
        "net.ipv4.tcp_mtu_probing = 1\nnet.ipv4.tcp_no_metrics_save = 1\n"
        "net.ipv4.tcp_rmem = 4096 131072 8388608\n"
    )


def test_absent_gives_back_what_was_there_before_the_first_of_several_runs(node):
    before = {name: node.value(name) for name in (WINDOW, "net.ipv4.tcp_mtu_probing")}
    node.set({WINDOW: "4096 131072 8388608"})
    node.set({WINDOW: "4096 131072 9999999", "net.ipv4.tcp_mtu_probing": 1})
    assert node.set({}, state="absent")["changed"] is True
    assert {name: node.value(name) for name in before} == before
    assert node.text(FILE) == ""
    assert node.set({}, state="absent")["changed"] is False


def test_a_setting_that_is_no_longer_asked_for_is_given_back(node):
    before = node.value("net.ipv4.tcp_mtu_probing")
    node.set({WINDOW: "4096 131072 8388608", "net.ipv4.tcp_mtu_probing": 1})
    assert node.set({WINDOW: "4096 131072 8388608"})["changed"] is True
    assert node.value("net.ipv4.tcp_mtu_probing") == before
    assert "mtu_probing" not in node.text(FILE)


def test_check_mode_of_settings_says_so_and_does_nothing(node):
    before = node.value(WINDOW)
    assert node.set({WINDOW: "4096 131072 8388608"}, check=True)["changed"] is True
    assert node.value(WINDOW) == before
    assert node.text(FILE) == node.text(RECORD) == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({WINDOW: "4096 131072 8388608", "net.core.rmem_max": 1}, "net.core.rmem_max may not be written"),
        ({WINDOW: "4096 131072 8388608", "net.ipv4.tcp_magic": 1}, "net.ipv4.tcp_magic is not there"),
        (
            {WINDOW: "4096 131072 8388608", "net.ipv4.tcp_mtu_probing": "no"},
            "refuses net.ipv4.tcp_mtu_probing = no",
        ),
        ({WINDOW: "4096 131072 8388608", "net/../../etc/passwd": 1}, "is no name of a setting"),
    ],
)
def test_a_setting_that_is_refused_is_named_and_none_is_set(node, settings, said):
    before = node.value(WINDOW)
    assert said in node.set(settings)["msg"]
    assert node.value(WINDOW) == before
    assert node.text(FILE) == node.text(RECORD) == ""


def test_what_is_tolerated_is_named_and_the_rest_is_set(node):
    said = node.set({WINDOW: "4096 131072 8388608", "net.core.rmem_max": 1}, tolerate_missing=True)
    assert list(said["missing"]) == ["net.core.rmem_max"]
    assert list(said["settings"]) == [WINDOW]
    assert "rmem_max" not in node.text(FILE)


def test_an_interface_is_found_by_its_mac_address_and_gets_back_what_it_had(node):
    before = node.says("ethtool", "-k", "d1"), node.says("ip", "link", "show", "d1")
    asked = {"interfaces": ["02:00:00:00:00:D1"], "mtu_bytes": 1400, "offloads": {"tso": False, "lro": False}}
    for changed in (True, False):
        assert node.device(**asked)["changed"] is changed
    assert "mtu 1400" in node.says("ip", "link", "show", "d1")
    assert "tcp-segmentation-offload: off" in node.says("ethtool", "-k", "d1")
    node.device(mtu_bytes=1300)
    assert node.device(state="absent")["changed"] is True
    assert (node.says("ethtool", "-k", "d1"), node.says("ip", "link", "show", "d1")) == before
    assert node.device(state="absent")["changed"] is False


def test_an_interface_that_is_no_longer_named_gets_back_what_it_had(node):
    node.device(interfaces=["d1", "d2"], mtu_bytes=1400)
    node.device(interfaces=["d2"], mtu_bytes=1400)
    assert "mtu 1500" in node.says("ip", "link", "show", "d1")
    assert "mtu 1400" in node.says("ip", "link", "show", "d2")


def test_a_queueing_discipline_stands_and_goes(node):
    node.says("ip", "link", "set", "d1", "up")
    for changed in (True, False):
        assert node.device(qdisc="pfifo")["changed"] is changed
    assert [one["kind"] for one in node.made.qdiscs("no", "d1")] == ["pfifo"]
    node.device(state="absent")
    assert [one["kind"] for one in node.made.qdiscs("no", "d1")] == ["noqueue"]


def test_every_transmit_queue_gets_its_own(node):
    node.says("ip", "link", "add", "m1", "numtxqueues", "3", "type", "veth", "peer", "name", "m2")
    node.says("ip", "link", "set", "m1", "up")
    for changed in (True, False):
        assert node.device(interfaces=["m1"], qdisc="pfifo")["changed"] is changed
    assert [one["kind"] for one in node.made.qdiscs("no", "m1")] == ["mq", "pfifo", "pfifo", "pfifo"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"mtu_bytes": 1400, "qdisc": "no_such"}, "all interfaces are as they were"),
        ({"mtu_bytes": 1400, "offloads": {"lro": True}}, "large-receive-offload off after it was asked for"),
        ({"mtu_bytes": 1400, "offloads": {"warp": True}}, "has no offload warp"),
        ({"mtu_bytes": 1400, "offloads": {"tso": "of"}}, "say true or false"),
        ({"mtu_bytes": 10}, "all interfaces are as they were"),
        ({"interfaces": ["d9"], "mtu_bytes": 1400}, "no interface is called or has MAC address d9"),
    ],
)
def test_what_an_interface_does_not_take_is_named_and_nothing_stays(node, asked, said):
    before = node.says("ethtool", "-k", "d1"), node.says("ip", "link", "show", "d1")
    assert said in node.device(**asked)["msg"]
    assert (node.says("ethtool", "-k", "d1"), node.says("ip", "link", "show", "d1")) == before
    assert node.text(RECORD) == ""


def test_a_queueing_discipline_of_others_is_not_replaced(node):
    node.says(
        "tc", "qdisc", "add", "dev", "d1", "root", "tbf", "rate", "1mbit", "burst", "9000", "limit", "9000"
    )
    assert "tc qdisc del dev d1 root" in node.device(qdisc="pfifo")["msg"]


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
def test_the_interface_of_the_ssh_connection_is_refused_although_sudo_hides_it(node, address):
    """sudo takes the variable from its child; a parent process still has it."""
    bits = "32" if "." in address else "128"
    node.says("ip", "addr", "add", f"{address}/{bits}", "dev", "d1")
    node.says("ip", "link", "set", "d1", "up")
    hidden = ("env", f"SSH_CONNECTION=198.51.100.1 4711 {address} 22", "sh", "-c", HIDE, "sh")
    said = node.made.ask(
        "tcp_host", "fab_device", node="no", around=hidden, interfaces=["d1"], mtu_bytes=1400, record=RECORD,
        refuse_default_route=False,
    )  # fmt: skip
    assert "interface d1 carries this SSH connection" in said["msg"]


def test_commands_that_are_there_are_told_with_their_versions(node):
    said = node.ask("fab_commands", commands=["tc", "no-such-command"])
    assert said["missing"] == ["no-such-command"]
    assert re.fullmatch(r"\d+(\.\d+)+", said["versions"]["tc"])


def test_the_agent_is_the_same_file_as_fabbbr_itself_puts(node):
    files = {f"agent/{file.name}": file.read_text(encoding="utf-8") for file in AGENT.glob("*.py")}
    place = str(node.made.folder / "agent.zip")
    for changed in (True, False):
        said = node.ask("fab_archive", role="measurement", file=place, files=files)
        assert said["changed"] is changed
    assert said["sha256"] == hashlib.sha256(archive()).hexdigest()
    assert (
        node.ask("fab_archive", role="measurement", file=place, files={"a.py": ""}, check=True)["changed"]
        is True
    )
    assert "nothing to put" in node.ask("fab_archive", role="measurement", file=place, files={})["msg"]


def test_a_node_tells_what_it_measures_with(node):
    said = node.ask("fab_measurement_info", role="measurement", optional=["iperf3", "no-such-command"])
    machine = Machine.model_validate(said["machine"])
    assert machine.kernel.release == Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert machine.kernel.timer_hz in (100, 250, 300, 1000)
    assert "no-such-command" not in machine.tools
    assert said["clock"]["source"]


def test_a_node_without_a_tool_is_refused_by_its_name(node):
    said = node.ask("fab_measurement_info", role="measurement", required=["tc", "no-such-command"])
    assert "missing on this node: no-such-command" in said["msg"]

"""The module fab_switch on real interfaces: what it refuses and gives back, and what it does when tc lies."""

import json

import pytest
from rooms import room

BOTTLENECK = {"rate_bps": 80_000_000, "burst_bytes": 50_000, "buffer_bytes": 500_000}
WANTED = [{"interface": "p1", **BOTTLENECK}]
RECORD = "/run/switch.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with room(tmp_path_factory.mktemp("room")) as found:
        yield found


@pytest.fixture
def switch(made):
    """A name space with the ports p1 and p2, which are down, and what asks the module there."""
    made.says("ip", "netns", "add", "sw")
    for port in ("p1", "p2"):
        made.says("ip", "-n", "sw", "link", "add", port, "type", "veth", "peer", "name", f"{port}-far")
    yield Switch(made)
    made.says("ip", "netns", "del", "sw")
    made.says("rm", "-f", RECORD)


class Switch:
    def __init__(self, made):
        self.made = made

    def ask(self, interfaces=(), **more):
        return self.made.ask(
            "software_switch", "fab_switch", node="sw", record=RECORD, interfaces=list(interfaces), **more
        )

    def says(self, *argv):
        return self.made.says(*argv, node="sw")

    def kinds(self, device):
        return [one["kind"] for one in self.made.qdiscs("sw", device)]

    @property
    def remembers(self):
        return self.made.run("test", "-e", RECORD).returncode == 0


def test_ports_and_bridge_are_given_back_as_they_were_down_and_apart(switch):
    before = switch.says("ip", "-br", "link")
    both = [*WANTED, {"interface": "p2"}]
    assert switch.ask(both, bridge="br7")["changed"] is True
    links = {one["ifname"]: one for one in json.loads(switch.says("ip", "-j", "link"))}
    assert links["p1"]["master"] == links["p2"]["master"] == "br7"
    assert "UP" in links["p1"]["flags"]
    assert switch.ask(both, bridge="br7")["changed"] is False
    assert switch.ask(state="absent")["changed"] is True
    assert switch.says("ip", "-br", "link") == before
    assert switch.ask(state="absent")["changed"] is False
    assert not switch.remembers


def test_a_bridge_that_was_there_stays_and_one_of_its_ports_may_leave(switch):
    switch.says("ip", "link", "add", "br7", "type", "bridge")
    assert switch.ask([*WANTED, {"interface": "p2"}], bridge="br7")["changed"] is True
    assert switch.ask(WANTED, bridge="br7")["changed"] is True
    links = {one["ifname"]: one for one in json.loads(switch.says("ip", "-j", "link"))}
    assert links["p1"]["master"] == "br7"
    assert "master" not in links["p2"]
    switch.ask(state="absent")
    assert "br7" in switch.says("ip", "-br", "link")


def test_a_port_that_is_no_longer_named_gets_back_what_it_had(switch):
    switch.ask([*WANTED, {"interface": "p2", **BOTTLENECK}])
    assert switch.kinds("p2") == ["tbf"]
    assert switch.ask(WANTED)["changed"] is True
    assert switch.kinds("p2") in ([], ["noqueue"])
    assert switch.kinds("p1") == ["tbf"]


def test_check_mode_changes_nothing(switch):
    assert switch.ask(WANTED, check=True)["changed"] is True
    assert switch.kinds("p1") in ([], ["noqueue"])
    assert not switch.remembers


def test_what_others_set_is_not_replaced_for_it_could_not_be_given_back(switch):
    switch.says(
        "tc", "qdisc", "add", "dev", "p1", "root", "tbf", "rate", "1mbit", "burst", "9000", "limit", "9000"
    )
    before = switch.made.qdiscs("sw", "p1")
    said = switch.ask(WANTED)["msg"]
    assert "queueing disciplines that others set" in said
    assert "tc qdisc del dev p1 root" in said
    assert switch.made.qdiscs("sw", "p1") == before


@pytest.mark.parametrize(
    ("interfaces", "more", "said"),
    [
        ([{"interface": "p9"}], {}, "no interface is called or has MAC address p9; there are"),
        ([{"interface": "lo"}], {}, "lo is no data-plane interface"),
        ([{"interface": "p1"}, {"interface": "p1"}], {}, "p1 is named more than once"),
        ([{"interface": "p1"}], {"bridge": "p2"}, "p2 is no bridge"),
        ([{"interface": "p1", "rate_bps": 8000}], {}, "burst_bytes, buffer_bytes is missing"),
        ([{"interface": "p1", "speed": 3}], {}, "speed"),
        (WANTED, {"state": "verified"}, "instead of tbf 1:"),
    ],
)
def test_what_cannot_be_is_refused_by_name(switch, interfaces, more, said):
    assert said in switch.ask(interfaces, **more)["msg"]
    assert not switch.remembers


LYING_TC = """#!/bin/sh
{real} "$@"
status=$?
case "$*" in *-batch*)
	{real} qdisc change dev p1 root handle 1: tbf rate {rate} burst 50000 limit 500000 2>/dev/null
esac
exit $status
"""


def lying(tmp_path, switch, rate):
    """A tc after whose batches p1 has another rate."""
    real = switch.says("sh", "-c", "command -v tc").strip()
    tc = tmp_path / "tc"
    tc.write_text(LYING_TC.format(real=real, rate=rate))
    tc.chmod(0o755)
    return tmp_path


def test_a_rate_that_is_another_as_soon_as_it_is_set_is_refused_and_nothing_stays(tmp_path, switch):
    said = switch.ask(WANTED, path=lying(tmp_path, switch, "79999992bit"))["msg"]
    assert "read back after setting: p1: rate of tbf is 9999999 instead of 10000000" in said
    assert switch.kinds("p1") in ([], ["noqueue"])
    assert not switch.remembers


def test_what_could_not_be_set_again_either_is_said(tmp_path, switch):
    switch.ask(WANTED)
    faster = [{"interface": "p1", **BOTTLENECK, "rate_bps": 160_000_000}]
    said = switch.ask(faster, path=lying(tmp_path, switch, "8mbit"))["msg"]
    assert "What was set before could not be set again either" in said


def test_a_batch_that_fails_half_way_leaves_what_was_set_before(switch):
    both = [*WANTED, {"interface": "p2", **BOTTLENECK}]
    switch.ask(both)
    # A bucket that holds no frame: the kernel takes it for p1, but no rate so small for p2.
    slow = [
        {"interface": "p1", **BOTTLENECK, "rate_bps": 8_000_000},
        {"interface": "p2", **BOTTLENECK, "rate_bps": 8},
    ]
    said = switch.ask(slow)["msg"]
    assert "p2" in said
    assert switch.ask(both, state="verified")["differences"] == []


def test_a_record_that_is_damaged_is_named(switch):
    switch.made.says("sh", "-c", f"echo '{{' >{RECORD}")
    assert f"{RECORD} is damaged" in switch.ask(WANTED)["msg"]

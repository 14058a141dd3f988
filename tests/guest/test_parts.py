"""A job in parts: machines, which are name spaces of a guest, and the network's cables between them."""

import contextlib
import json
import os
import sys
import threading
from pathlib import Path

import pytest
from guest.cells import WALL_LIMIT_S, experiment, run

from fabbbr.backends.guest.cpus import Cpus
from fabbbr.backends.guest.machine import Machine, Watch, boot
from fabbbr.backends.keeper import Keeper

pytestmark = pytest.mark.guest

TWO_MACHINES = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
export LIBMOUNT_FORCE_MOUNT2=always
mount -a -T "$FABBBR_RUNTIME/fstab"
mkdir -p /run/netns /var/tmp
ip link set lo up
cd /run/fabbbr/work || exit 1
exec </dev/null
sleep 2
export PYTHONPATH={path}
timeout "$FABBBR_LIMIT" "$FABBBR_PYTHON" -m guest.machines /run/fabbbr/work
echo 0 > exit
sync
exec "$FABBBR_PYTHON" -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""
TEXT = experiment(
    "parts",
    slice_="dumbbell",
    path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 50 packets",
    flows="{cca: cubic, duration: 4 s}, {cca: bbr1, duration: 3 s, start: 1 s}, {cca: cubic, size: 300 kB}",
    more="steps: [{at: 2 s, rate: 10 Mbit/s}, {at: 2.5 s, loss: 100 %}, {at: 2.6 s, loss: 0 %}]",
)
WITH_OFFLOADS = experiment(
    "parts",
    slice_="dumbbell",
    path="rate: 100 Mbit/s, rtt: 20 ms, buffer: 64 kB, loss: 1 %, offloads: true",
    flows="{cca: cubic, duration: 3 s}, {cca: bbr1, duration: 3 s}",
)
EVERY_KIND = experiment(
    "parts",
    slice_="dumbbell",
    path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 50 packets, burst: 60 kB, "
    "reordering: {rate: 2 %, late: 30 ms}",
    flows="{ping: 100 ms}, {cca: cubic, duration: 3 s}, {udp: 1 Mbit/s, duration: 3 s, from: h2}, "
    "{arrivals: {rate: 2 /s, size: 20 kB}, cca: cubic, duration: 2 s, label: web}, "
    "{video: {bitrate: 1 Mbit/s, chunk: 500 ms, buffer: 1 s}, cca: bbr1, duration: 3 s}",
)
TEXTS = {"offloads": WITH_OFFLOADS, "traffic": EVERY_KIND}
"""Of the scenarios whose experiment is another."""
HOSTS = dict.fromkeys(("h1", "h2", "r1", "r2"), "ma")
LEFT = dict.fromkeys(("h1", "h2", "s1"), "ma")
THREE = LEFT | dict.fromkeys(("s2", "r1", "r2"), "mc") | {"s1": "mb"}
SCENARIOS = {
    "hosts": ("whole", HOSTS),
    "left": ("whole", LEFT),
    "three": ("whole", THREE),
    "single": ("whole", {}),
    "restarted": ("coordinator_killed", HOSTS),
    "stopped": ("agent_stopped", HOSTS),
    "killed": ("agent_killed", HOSTS),
    "missing": ("interface_missing", HOSTS),
    "silent": ("coordinator_silent", HOSTS),
    "offloads": ("whole", THREE),
    "traffic": ("whole", THREE),
}


def packages():
    folders = dict.fromkeys(Path(entry).resolve() for entry in sys.path if Path(entry).is_dir())
    return {f"path{number}": folder for number, folder in enumerate(folders)}


@pytest.fixture(scope="module")
def testbed(kernel, tmp_path_factory):
    """Scenario → what came of it."""
    work = tmp_path_factory.mktemp("testbed")
    (work / "raw").mkdir()
    asked = [
        {
            "name": name,
            "what": what,
            "placement": placement,
            "rest": "mb",
            "experiment": TEXTS.get(name, TEXT),
        }
        for name, (what, placement) in SCENARIOS.items()
    ]
    (work / "scenarios.json").write_text(json.dumps(asked), encoding="utf-8")
    init = work / "init.sh"
    path = os.pathsep.join(f"/run/fabbbr/{name}" for name in packages())
    init.write_text(TWO_MACHINES.format(path=path), encoding="utf-8")
    machine = Machine(
        kernel=kernel.binary, seccomp=kernel.seccomp, seed=1, memory_bytes=1 << 30,
        clock_limit_s=1000, init=init, extra_mounts=packages(),
    )  # fmt: skip
    watch = Watch(
        wall_limit_s=4 * WALL_LIMIT_S, stall_limit_s=4 * WALL_LIMIT_S,
        progress=lambda _: None, cancelled=threading.Event(),
    )  # fmt: skip
    with contextlib.closing(Keeper()) as keeper:
        boot(machine, work, watch, keeper, Cpus())
    return work


@pytest.fixture(scope="module")
def told(testbed):
    """Scenario → what it told."""
    found = {
        name: json.loads((testbed / name / "told.json").read_text(encoding="utf-8")) for name in SCENARIOS
    }
    for name, one in found.items():
        assert "crash" not in one, f"{name}: {one['crash']}"
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same cell on one machine."""
    ran = run(tmp_path_factory.mktemp("alone"), TEXT)
    assert ran.wrong() == {}
    return ran.cell().raw("flows.json").parent


CABLES_OF_THE_NETWORK = {"hosts": 4, "left": 1, "three": 3, "single": 0, "restarted": 4}
WHOLE = tuple(CABLES_OF_THE_NETWORK)


@pytest.mark.parametrize("name", WHOLE)
def test_every_check_of_the_certificate_holds_for_a_job_in_parts_the_cables_of_the_network_included(
    told, name
):
    checks = {check["name"]: check for check in told[name]["told"]["checks"]}
    assert {check["name"]: check["measured"] for check in checks.values() if not check["passed"]} == {}
    for needed in (
        "RTT h1–r1",
        "rate",
        "buffer",
        "packets of s1",
        "packets of w1",
        "packets on cables",
        "flows",
    ):
        assert needed in checks
    network = [check for name, check in checks.items() if name.startswith("network between ")]
    assert len(network) == CABLES_OF_THE_NETWORK[name]
    # No packet on them that was not counted at both ends, and many were.
    assert all(check["measured"].count(": 0 of ") == 2 for check in network)
    assert ("clocks" in checks) == (name != "single")


def test_super_packets_on_cables_of_the_network_are_compared_in_segments(told):
    """What a network card sends it has cut; what the other receives is put together otherwise."""
    checks = {check["name"]: check for check in told["offloads"]["told"]["checks"]}
    assert {check["name"]: check["measured"] for check in checks.values() if not check["passed"]} == {}
    assert {"segments of s1", "segments of w1", "segments of s2"} <= checks.keys()
    # None of the nodes has cables of ours alone.
    assert not [name for name in checks if name.startswith("super-packets of")]
    assert "segments" in checks["injected loss on trunk, in super-packets"]["measured"]
    network = [check for name, check in checks.items() if name.startswith("network between ")]
    assert len(network) == CABLES_OF_THE_NETWORK["three"]
    assert all("of the segments" in check["asked"] for check in network)


def test_every_kind_of_traffic_is_carried_out_in_parts_and_certified(told, testbed):
    checks = {check["name"]: check for check in told["traffic"]["told"]["checks"]}
    assert {check["name"]: check["measured"] for check in checks.values() if not check["passed"]} == {}
    assert {"ping h1–r1, ping", "datagrams", "flows"} <= checks.keys()
    trips = [
        trip_s
        for _, trip_s in json.loads((testbed / "traffic" / "cell" / "raw" / "ping-0.json").read_text())[
            "samples"
        ]
    ]
    assert len(trips) >= 30
    assert min(trips) >= 0.020 - 1e-6


@pytest.mark.parametrize("name", WHOLE)
def test_the_clocks_are_compared_before_and_after_and_name_spaces_share_one(told, name):
    clocks = told[name]["told"]["clocks"]
    placement = SCENARIOS[name][1]
    assert clocks.keys() == {"mb", *placement.values()}
    for clock in clocks.values():
        assert clock["measured"].keys() == {"burst", "flows", "after"}
        for offset in clock["measured"].values():
            # No time passes on a virtual clock between asking another and being told.
            assert 0 <= offset["bound_s"] < 1e-3
            assert abs(offset["offset_s"]) <= offset["bound_s"]
    begun = [clock["flows_s"] for clock in clocks.values()]
    apart = max(begun) - min(begun)
    assert apart <= sum(clock["measured"]["flows"]["bound_s"] for clock in clocks.values())


@pytest.mark.parametrize("name", WHOLE)
def test_samplers_of_all_machines_begin_at_one_instant_and_go_on_until_the_last_flow_is_over(
    testbed, told, name
):
    raw = testbed / name / "cell" / "raw"
    times = {
        path.name: [float(line.split()[0]) for line in path.read_text().splitlines()]
        for path in raw.glob("*.times")
    }
    assert len(times) == 7
    last_s = max(record["ended_s"] for record in json.loads((raw / "flows.json").read_text()))
    for sampled in times.values():
        assert 0 <= sampled[0] < 1e-3
        assert sampled[-1] > last_s - 0.5


@pytest.mark.parametrize("name", WHOLE)
def test_the_raw_files_are_those_of_one_machine_and_the_clocks(testbed, told, alone, name):
    raw = testbed / name / "cell" / "raw"
    expected = {path.name for path in alone.iterdir()} | {"clocks.json"}
    assert {path.name for path in raw.iterdir()} == expected
    for file in ("readback.json", "counters.before.json", "counters.after.json"):
        assert list(json.loads((raw / file).read_text())) == list(json.loads((alone / file).read_text()))


@pytest.mark.parametrize("name", WHOLE)
def test_flows_get_about_what_they_get_on_one_machine(testbed, told, alone, name):
    def received(raw):
        """Bytes of the first three seconds, while both last; when each ends, and with how much, is luck."""
        total = 0
        for index, seconds in ((0, 3), (1, 2)):
            report = json.loads((raw / f"flow-{index}.server.json").read_text())
            total += sum(
                one["sum"]["bytes"] for one in report["intervals"] if one["sum"]["end"] < seconds + 0.5
            )
        return total

    assert received(testbed / name / "cell" / "raw") == pytest.approx(received(alone), rel=0.1)


@pytest.mark.parametrize("name", SCENARIOS)
def test_interfaces_are_back_as_they_were_and_nothing_is_left_running(told, name):
    one = told[name]
    had = one["before"]
    if name == "killed":
        # Its veths went with its name spaces, and their other ends too; a network card would have come back.
        had = {machine: {name: had[machine][name] for name in ("lo", "mgmt0")} for machine in had}
    assert one["after"] == had
    assert one["running"] == []
    assert len(one["left"]) == (2 if name == "silent" else 0), "kept until the next run clears the machine"


def test_what_a_killed_run_left_is_ended_before_the_next_begins(told):
    one = told["restarted"]
    assert one["told"]["cleared"] == list(one["before"].values())
    assert [said.partition(":")[0] for said in one["told"]["said"]] == [
        f"machine {machine} carries out a cell, perhaps of a run that is gone" for machine in one["before"]
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stopped", "machine mb: the agent failed at stage 'flows': stopped by signal 15"),
        ("killed", "machine mb: its agent has been silent for 30 s"),
        (
            "missing",
            "machine mb: the agent failed at stage 'network': s1-eth1 of the job is the interface with MAC",
        ),
    ],
)
def test_a_part_that_fails_ends_the_cell_with_an_error_that_names_its_machine(told, name, said):
    assert told[name]["told"]["error"].startswith(f"BackendError: {said}")


def test_parts_whose_coordinator_is_gone_for_good_stop_by_themselves(told):
    assert told["silent"]["told"]["errors"] == 2 * ["no word from the coordinator for 10 s"]

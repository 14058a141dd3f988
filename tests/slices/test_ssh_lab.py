"""A slice of hosts that are reached by ssh: name spaces with an sshd each, and one for who uses them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml
from loopback_sshd import cannot as cannot_ssh
from loopback_sshd import sshd
from name_spaces import cannot

pytestmark = [
    pytest.mark.skipif(bool(cannot() or cannot_ssh()), reason=cannot() or cannot_ssh() or "it can"),
    pytest.mark.xdist_group("name spaces"),
]

MACHINES = ("left", "mid", "right")
FABBBR = """
import sys
from fabbbr import cli
from fabbbr.slice import measure

measure.RATE_S = 1
sys.exit(cli.main())
"""
CREATE = ("--backend", "ssh", "--slice", "two_site", "--skip-prepare", "--json")


def run(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


class Lab:
    """The machines, and one who uses them from ``user``."""

    def __init__(self, folder, prefix, temporary):
        self.folder, self.prefix = folder, prefix
        self.inventory = folder / "lab.yaml"
        self.temporary = temporary
        self.environment = os.environ | {
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "TMPDIR": str(temporary),
        }

    def space(self, machine):
        return f"{self.prefix}{machine}"

    def command(self, *words):
        return ("ip", "netns", "exec", self.space("user"), sys.executable, "-uc", FABBBR, "slice", *words)

    def fabbbr(self, *words):
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            env=self.environment,
            timeout=600,
        )

    def create(self, name="study", *more):
        return self.fabbbr("create", name, *CREATE, "--inventory", str(self.inventory), *more)

    def links(self, machine):
        told = json.loads(run("ip", "-n", self.space(machine), "-j", "addr"))
        return {
            one["ifname"]: (
                one["address"],
                one["mtu"],
                "UP" in one["flags"],
                [each["local"] for each in one["addr_info"] if each["scope"] == "global"],
            )
            for one in told
            if one["link_type"] != "loopback"
        }

    def left(self, machine):
        """What is below the folder of fabbbr's on the machine."""
        done = self.fabbbr("ssh", "study", machine, "--", "find", "/var/lib/fabbbr", "-mindepth", "1")
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.split())


@pytest.fixture
def lab(tmp_path):
    every = ("user", *MACHINES)
    with contextlib.ExitStack() as stack:
        # tmp_path is too long for a socket.
        short = stack.enter_context(tempfile.TemporaryDirectory(prefix="fabbbr-test-"))
        lab = Lab(tmp_path, f"fbt{os.getpid()}-", Path(short))
        for machine in every:
            run("ip", "netns", "add", lab.space(machine))
            stack.callback(run, "ip", "netns", "delete", lab.space(machine))
            run("ip", "-n", lab.space(machine), "link", "set", "lo", "up")
        cables = [
            ("user", f"m{number}", f"198.18.{number}.1/24", machine, "mgmt0", f"198.18.{number}.2/24")
            for number, machine in enumerate(MACHINES)
        ]
        cables += [("left", "eth1", None, "mid", "eth1", None), ("mid", "eth2", None, "right", "eth1", None)]
        for a, a_name, a_address, b, b_name, b_address in cables:
            run(
                *("ip", "link", "add", "name", a_name, "netns", lab.space(a), "type", "veth"),
                *("peer", "name", b_name, "netns", lab.space(b)),
            )
            for machine, name, address in ((a, a_name, a_address), (b, b_name, b_address)):
                if address is not None:
                    run("ip", "-n", lab.space(machine), "addr", "add", address, "dev", name)
                    run("ip", "-n", lab.space(machine), "link", "set", name, "up")
        lab.servers = {}
        for number, machine in enumerate(MACHINES):
            lab.servers[machine] = stack.enter_context(
                sshd(
                    tmp_path / machine,
                    before=("ip", "netns", "exec", lab.space(machine)),
                    address=f"198.18.{number}.2",
                    port=2222,
                    own_files=True,
                )
            )
        mac = json.loads(run("ip", "-n", lab.space("right"), "-j", "link", "show", "eth1"))[0]["address"]
        carries = {
            "left": (["h1"], {"access": "eth1"}),
            "mid": (["s1"], {"access": "eth1", "trunk": "eth2"}),
            "right": (["h2"], {"trunk": mac.upper()}),
        }
        lab.inventory.write_text(
            yaml.safe_dump(
                {
                    "machines": {
                        name: {
                            "address": server.address,
                            "port": server.port,
                            "user": "root",
                            "key": str(server.key),
                            "nodes": carries[name][0],
                            "links": carries[name][1],
                        }
                        for name, server in lab.servers.items()
                    }
                }
            )
        )
        yield lab


def test_the_whole_life_by_commands_and_without_a_memory(lab):
    before = {machine: lab.links(machine) for machine in MACHINES}
    made = lab.create()
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert told["phase"] == "measured"
    assert told["pairs"][0]["lost"] == 0
    assert told["pairs"][0]["rate_bps"] > 1e7
    assert {one["name"]: one["nodes"] for one in told["reservation"]["machines"]} == {
        "left": ["h1"], "mid": ["s1"], "right": ["h2"],
    }  # fmt: skip
    assert {machine: lab.links(machine) for machine in MACHINES} == before
    assert lab.left("mid") == ["/var/lib/fabbbr/parts", "/var/lib/fabbbr/slice.json"]
    assert lab.create().returncode == 0, "once more, and nothing is done"

    other = lab.create("other")
    assert other.returncode == 6
    assert "machine left is used by slice study" in other.stderr

    where = ("--backend", "ssh", "--inventory", str(lab.inventory))
    lab.environment["XDG_STATE_HOME"] = str(lab.folder / "elsewhere")
    assert lab.fabbbr("show", "study").returncode == 2
    shown = lab.fabbbr("show", "study", *where, "--json")
    assert json.loads(shown.stdout)["live"]["state"] == "ok", shown.stderr
    status = lab.fabbbr("ssh", "study", "left", *where, "--", "sh", "-c", "ip netns identify; exit 9")
    assert status.returncode == 9, status.stderr
    gone = lab.fabbbr("teardown", "study", *where, "--yes")
    assert gone.returncode == 0, gone.stderr
    assert lab.fabbbr("show", "study", *where).returncode == 2
    again = lab.create()
    assert again.returncode == 0, again.stderr


def test_a_machine_that_cannot_be_reached_is_named_and_the_same_command_goes_on(lab):
    text = lab.inventory.read_text()
    lab.inventory.write_text(text.replace("198.18.2.2", "198.18.2.9"))
    refused = lab.create()
    assert refused.returncode == 6
    assert "right: ssh cannot connect" in refused.stderr
    lab.inventory.write_text(text)
    made = lab.create()
    assert made.returncode == 0, made.stderr


def test_a_link_that_the_inventory_does_not_have_is_refused_by_name(lab):
    lab.inventory.write_text(lab.inventory.read_text().replace("trunk: eth2", "rtunk: eth2"))
    refused = lab.create()
    assert refused.returncode == 6
    assert "machine mid: the inventory does not say which interface carries link trunk" in refused.stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_ended_while_it_measures_the_machines_are_as_they_were_and_the_same_command_goes_on(lab, how):
    before = {machine: lab.links(machine) for machine in MACHINES}
    command = lab.command("create", "study", *CREATE, "--inventory", str(lab.inventory))
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=lab.environment
    ) as process:
        said = ""
        for line in process.stderr:
            said += line
            if "measuring: rate" in line:
                break
        else:
            pytest.fail(said)
        assert list(lab.links("mid")) == ["mgmt0"], "its interfaces should be in use now"
        process.send_signal(how)
        said += process.stderr.read()
    assert process.returncode == (130 if how != signal.SIGKILL else -signal.SIGKILL)
    until = time.monotonic() + 40
    while {machine: lab.links(machine) for machine in MACHINES} != before and time.monotonic() < until:
        time.sleep(0.2)
    assert {machine: lab.links(machine) for machine in MACHINES} == before, said
    while (left := list(lab.temporary.iterdir())) and time.monotonic() < until:
        time.sleep(0.2)
    assert not left
    if how != signal.SIGKILL:
        assert lab.left("mid") == ["/var/lib/fabbbr/parts", "/var/lib/fabbbr/slice.json"]
    made = lab.create()
    assert made.returncode == 0, made.stderr
    assert lab.fabbbr("teardown", "study", "--yes").returncode == 0


EXPERIMENT = """\
id: lab
title: A bottleneck that nothing is emulated on but its rates and buffers
slice: two_site
path: {rate: 20 Mbit/s, rtt: 1 ms, buffer: 30 packets, reverse: 5 Mbit/s}
flows: [{cca: cubic, duration: 2 s}]
repeat: 1
"""


def test_an_experiment_runs_on_hosts_that_are_reached_by_ssh(lab):
    assert lab.create().returncode == 0
    before = {machine: lab.links(machine) for machine in MACHINES}
    experiment, out = lab.folder / "experiment.yaml", lab.folder / "run"
    experiment.write_text(EXPERIMENT)
    words = ("run", "study", str(experiment), "--out", str(out), "--no-guest", "--json")
    done = lab.fabbbr(*words)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["certified"]) == 1, done.stderr
    for path in out.glob("cells/*/manifest.json"):
        manifest = json.loads(path.read_text())
        place = manifest["provenance"]["testbed"]
        assert (place["backend"], place["placement"]) == ("ssh", {"h1": "left", "s1": "mid", "h2": "right"})
        assert place["network_rtt_s"]["trunk"] < 1e-3
        assert set(manifest["provenance"]["options"]["clocks"]) == set(MACHINES)
        checks = {check["name"]: check for check in manifest["certificate"]["checks"]}
        assert all(check["passed"] for check in checks.values())
        assert checks["rate of the way back"]["asked"] == "5 Mbit/s"
    assert (out / "report.html").exists()
    assert {machine: lab.links(machine) for machine in MACHINES} == before
    assert lab.left("mid") == [
        "/var/lib/fabbbr/parts",
        "/var/lib/fabbbr/parts/lock",
        "/var/lib/fabbbr/slice.json",
    ]
    again = lab.fabbbr(*words)
    assert sorted(json.loads(again.stdout)["skipped"]) == sorted(told["certified"])
    assert lab.fabbbr("teardown", "study", "--yes").returncode == 0

"""Run inside a guest: name spaces as machines, veths between them as the network's cables, jobs in parts.

``python -m guest.machines WORK`` does what ``WORK/scenarios.json`` names, and leaves what came of each.
"""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

from fabbbr.backends.base import Task
from fabbbr.backends.channel import NamespaceChannel
from fabbbr.backends.clearing import clear
from fabbbr.backends.machine import agent_on
from fabbbr.backends.machines import carry_out
from fabbbr.backends.tools import tools_found
from fabbbr.certify.certificate import certify
from fabbbr.certify.evidence import Evidence
from fabbbr.job.build import prepare
from fabbbr.plan.opening import open_plan
from fabbbr.testbed import VIRTUAL_TIME, Kernel, Machine, Testbed

MANAGEMENT = "mgmt0"
TIMER_HZ = 1000
"""Of the guest's kernel."""
DATA_MTU = 1400
"""Of a data-plane interface outside a job: not the job's, so that it is seen to come back."""


def run(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def interfaces(machine):
    """Name → what a job must leave as it was."""
    told = json.loads(run("ip", "netns", "exec", machine, "ip", "-j", "addr", "show"))
    return {
        one["ifname"]: [
            one["address"],
            one["mtu"],
            "UP" in one["flags"],
            [f"{a['local']}/{a['prefixlen']}" for a in one["addr_info"] if a.get("scope") == "global"],
        ]
        for one in told
    }


def found_on(placement, links, cables):
    """Name spaces as a testbed: interfaces of the network have MAC addresses that no job chose."""
    kernel = Kernel(release=os.uname().release, timer_hz=TIMER_HZ)
    interfaces = {}
    for number, cable in enumerate(cables):
        for end, side in enumerate((cable.a, cable.b)):
            at = (links[side.link].a, links[side.link].b)[end]
            interfaces.setdefault(side.link, {})[at] = f"02:aa:00:00:{number:02x}:{end:02x}"
    return Testbed(
        backend="name spaces",
        clock="real",  # its zero is not ours to choose: other cells were carried out before
        tolerances=VIRTUAL_TIME,
        machines=dict.fromkeys(sorted(set(placement.values())), Machine(kernel=kernel, tools=tools_found())),
        placement=placement,
        interfaces=interfaces,
    )


@contextlib.contextmanager
def standing(prepared, folder):
    """The machines and the cables between them; name → the way there. Each has a management interface."""
    place = prepared.testbed
    machines = list(place.machines)
    for machine in machines:
        run("ip", "netns", "add", machine)
    for number, machine in enumerate(machines):
        within = ("ip", "-n", machine)
        run("ip", "link", "add", f"mg{number}", "type", "veth", "peer", "name", MANAGEMENT, "netns", machine)
        run(*within, "addr", "add", f"192.168.0.{number + 1}/24", "dev", MANAGEMENT)
        run(*within, "link", "set", MANAGEMENT, "up")
    used = dict.fromkeys(machines, 0)
    for cable in prepared.expected.network_cables:
        ends = [(place.machine_of(side.node), side.mac) for side in (cable.a, cable.b)]
        words = []
        for machine, mac in ends:
            words += ["name", f"dat{used[machine]}", "address", mac, "mtu", str(DATA_MTU), "netns", machine]
            used[machine] += 1
        run("ip", "link", "add", *words[:8], "type", "veth", "peer", *words[8:])
    for machine in machines[:1] if any(used.values()) else ():
        run("ip", "-n", machine, "addr", "add", "172.16.0.1/24", "dev", "dat0")
        run("ip", "-n", machine, "link", "set", "dat0", "up")
    try:
        yield {machine: NamespaceChannel(machine, str(folder / machine)) for machine in machines}
    finally:
        for number, machine in enumerate(machines):
            # A name space takes its interfaces with it some time later, and the next one has the same names.
            run("ip", "link", "del", f"mg{number}")
            run("ip", "netns", "del", machine)


@dataclasses.dataclass
class Scenario:
    """One job on the machines of a testbed."""

    prepared: object
    channels: dict
    work: Path

    def task(self, work=None):
        (self.work / "raw").mkdir(parents=True, exist_ok=True)
        return Task(
            job=self.prepared.job, work=self.work, seed=1, wall_limit_s=600,
            cancelled=threading.Event(), progress=lambda _: None,
        )  # fmt: skip

    def carry_out(self):
        return carry_out(self.task(), self.prepared.testbed, self.channels)

    def certified(self, report):
        evidence = Evidence.read(self.work / "raw")
        checks = certify(self.prepared, evidence, lossy_links=1).checks
        return {
            "checks": [check.model_dump() for check in checks],
            "clocks": report.options["clocks"],
            "clock_s": report.clock_s,
        }

    def agents(self):
        """The agents on any machine, as the coordinator starts them; not their forks, the programs."""
        found = {
            pid
            for pid in pids()
            if b"agent.part" in command_line(pid) and b"unshare" not in command_line(pid)
        }
        return [pid for pid in found if parent(pid) not in found]


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def parent(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def whole(scenario):
    """Nothing goes wrong."""
    return scenario.certified(scenario.carry_out())


def coordinator_killed(scenario):
    """Killed while flows run; the next run clears the machines, as its survey does, and carries it out."""
    kill_coordinator(scenario)
    told = []
    for name, channel in scenario.channels.items():
        with agent_on(channel, "facts") as path:
            clear(name, channel, path, told.append)
    cleared = [interfaces(machine) for machine in scenario.channels]
    return scenario.certified(scenario.carry_out()) | {"said": told, "cleared": cleared}


def agent_stopped(scenario):
    """One agent gets SIGTERM while flows run: both give back what they took."""
    return with_an_agent_ended(scenario, signal.SIGTERM)


def agent_killed(scenario):
    """One agent gets SIGKILL while flows run: it can neither say so nor give anything back."""
    return with_an_agent_ended(scenario, signal.SIGKILL)


def interface_missing(scenario):
    """A data-plane interface has another MAC than the job says."""
    machine = sorted(scenario.channels)[1]
    mac = interfaces(machine)["dat1"][0]
    run("ip", "-n", machine, "link", "set", "dat1", "address", "02:ff:ff:ff:ff:ff")
    told = refused(scenario)
    run("ip", "-n", machine, "link", "set", "dat1", "address", mac)
    return told


def coordinator_silent(scenario):
    """A coordinator that is gone for good."""
    from fabbbr.backends import machines

    machines._BEAT_S, machines._PATIENCE_S = 1.0, 10.0
    kill_coordinator(scenario)
    outcomes = []
    for _ in range(300):
        outcomes = list((scenario.work.parent / "machines").glob("*/*/outcome.json"))
        if len(outcomes) == 2:
            break
        time.sleep(0.1)
    return {"errors": [json.loads(file.read_text())["error"] for file in outcomes]}


def kill_coordinator(scenario):
    """Have another process coordinate, and kill it a second after the flows began."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            scenario.carry_out()
        os._exit(0)
    await_file(scenario, "go.flows")
    time.sleep(1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def with_an_agent_ended(scenario, number):
    """What came of it when one agent got this signal as the flows began."""
    ender = threading.Thread(
        target=lambda: (await_file(scenario, "go.flows"), os.kill(max(scenario.agents()), number))
    )
    ender.start()
    return refused(scenario, ender)


def refused(scenario, ender=None):
    try:
        scenario.carry_out()
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        if ender is not None:
            ender.join()
    return {"error": None}


def await_file(scenario, name):
    """Until every machine has it."""
    for _ in range(3000):
        if len(list((scenario.work.parent / "machines").glob(f"*/*/{name}"))) == len(scenario.channels):
            return
        time.sleep(0.05)
    raise TimeoutError(name)


def prepared_on(cell, asked):
    """First as if nothing were there, to know which cables are the network's, then on what is found."""
    links = {link.name: link for link in cell.links}
    nodes = [node.name for node in prepare(cell, found_on({"": asked["rest"]}, links, ())).job.nodes]
    placement = {node: asked["placement"].get(node, asked["rest"]) for node in nodes}
    cables = prepare(cell, found_on(placement, links, ())).expected.network_cables
    return prepare(cell, found_on(placement, links, cables))


def main(work):
    for asked in json.loads((work / "scenarios.json").read_text()):
        folder = work / asked["name"]
        folder.mkdir()
        told = {}
        try:
            (folder / "experiment.yaml").write_text(asked["experiment"])
            (cell,) = open_plan(str(folder / "experiment.yaml"), seed=1, profile="default").cells
            prepared = prepared_on(cell, asked)
            with standing(prepared, folder / "machines") as channels:
                before = {machine: interfaces(machine) for machine in channels}
                scenario = Scenario(prepared, channels, folder / "cell")
                told = {"told": globals()[asked["what"]](scenario)}
                time.sleep(2)
                told |= {
                    "before": before,
                    "after": {machine: interfaces(machine) for machine in channels},
                    "left": [
                        str(file) for file in sorted((folder / "machines").glob("*/*")) if file.is_dir()
                    ],
                    "running": scenario.agents() + pids_of("iperf3") + pids_of("tc"),
                }
        except Exception:  # noqa: BLE001 - the test looks at it
            told["crash"] = traceback.format_exc()
        (folder / "told.json").write_text(json.dumps(told))


def pids_of(program):
    return [pid for pid in pids() if command_line(pid).split(b"\0")[0].endswith(program.encode())]


def pids():
    return [int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit()]


if __name__ == "__main__":
    main(Path(sys.argv[1]))

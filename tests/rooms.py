"""A room of name spaces on this machine in which playbooks run: its own nodes, and memory over every folder.

Nothing of it is left when it is closed, whatever a playbook did there.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import confined
import yaml

REPOSITORY = Path(__file__).parents[1]
PLAYBOOKS = REPOSITORY / "playbooks"
ANSIBLE = Path(sys.executable).parent / "ansible-playbook"
PYTHON = "/usr/bin/python3"
"""What a node has."""
HOLD_S = 600
"""The holder of a room ends by itself after so long, should nobody end it."""
HOLD = f"mkdir -p /run/netns && echo ready && exec sleep {HOLD_S}"

# On a node the module utilities of a role stand beside Ansible's own.
RUN = """
import runpy, sys
import ansible.module_utils
module, utilities = sys.argv[1:]
ansible.module_utils.__path__.append(utilities)
sys.argv[1:] = []
runpy.run_path(module, run_name="__main__")
"""


@dataclass(frozen=True, kw_only=True)
class Played:
    """How a run of a playbook ended."""

    status: int
    changed: dict[str, int]
    output: str


class Room:
    """Nodes, where ``enter`` are the words that lead to them and ``folder`` is a place for files there."""

    def __init__(self, folder: Path, enter: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self._enter = enter
        self.environment = {"ANSIBLE_PIPELINING": "1"}

    def says(self, *argv, node=None):
        """What a command says that must end well, on a node or in the room."""
        return self.run(*argv, node=node, check=True).stdout

    def run(self, *argv, node=None, check=False, **more):
        there = ("ip", "netns", "exec", node) if node else ()
        done = subprocess.run(
            (*self._enter, *there, *argv),
            capture_output=True, text=True, check=False, timeout=60, **more,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{argv}: {done.stderr}"
        return done

    def qdiscs(self, node, device):
        told = json.loads(self.says("tc", "-r", "-j", "qdisc", "show", "dev", device, node=node))
        return [one for one in told if one]

    def ask(self, role, module, *, node, check=False, path=None, around=(), **parameters):
        """What a module of a role answers on a node; ``around`` are words before the command."""
        question = {"ANSIBLE_MODULE_ARGS": {**parameters, "_ansible_check_mode": check}}
        folder = PLAYBOOKS / "roles" / role
        environment = ("env", f"PATH={path}:/usr/sbin:/usr/bin:/sbin:/bin") if path else ()
        argv = (
            *around,
            *environment,
            sys.executable,
            "-c",
            RUN,
            folder / "library" / f"{module}.py",
            folder / "module_utils",
        )
        done = self.run(*argv, node=node, input=json.dumps(question))
        assert done.stdout, done.stderr
        answer = json.loads(done.stdout)
        assert bool(done.returncode) == answer.get("failed", False), done.stdout + done.stderr
        return answer

    def play(self, playbook, inventory, *arguments, **asked):
        """Run one of the playbooks, or the text of one."""
        # Beside the folder, over which the room has its own memory.
        hosts = self.folder.with_name(f"{self.folder.name}-hosts.yml")
        hosts.write_text(yaml.safe_dump(inventory), encoding="utf-8")
        settings = (f"{name}={value}" for name, value in self.environment.items())
        inside = (*self._enter, "env", *settings, "sh", "-c", confined.PLAY, "sh", self.folder)
        words = ("-v", "-i", hosts, PLAYBOOKS / playbook, *arguments, "-e", json.dumps(asked))
        done = subprocess.run(
            (*inside, sys.executable, ANSIBLE, *words),
            capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        output = done.stdout + done.stderr
        changed = re.findall(r"^(\w+)\s+: ok=.*\bchanged=(\d+)", output, re.MULTILINE)
        return Played(
            status=done.returncode, changed={node: int(count) for node, count in changed}, output=output
        )


@contextlib.contextmanager
def room(folder: Path) -> Iterator[Room]:
    """Make a room; ``folder`` is where its memory is mounted."""
    user = () if Path("/proc/self").owner() == "root" else ("--user", "--map-root-user")
    holder = subprocess.Popen(
        ("unshare", "--mount", "--net", *user, "sh", "-c", confined.LAY_OVER + HOLD, "sh", folder),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout.readline() == "ready\n"
        yield Room(folder, ("nsenter", f"--target={holder.pid}", "--mount", "--net"))
    finally:
        holder.kill()
        holder.communicate()


def two_hosts_and_a_switch(made: Room) -> None:
    """h1 and h2, each cabled to a switch s1, as name spaces of the room; h2 is found by its MAC address."""
    for node in ("h1", "h2", "s1"):
        made.says("ip", "netns", "add", node)
        made.says("ip", "-n", node, "link", "set", "lo", "up")
    for number, host in enumerate(("h1", "h2"), start=1):
        port = f"s1-eth{number}"
        made.says(
            "ip", "-n", "s1", "link", "add", port, "type", "veth",
            "peer", "name", f"{host}-eth0", "address", f"02:00:00:00:00:0{number}", "netns", host,
        )  # fmt: skip
        made.says("ip", "-n", "s1", "link", "set", port, "up")
        made.says("ip", "-n", host, "addr", "add", f"10.0.0.{number}/24", "dev", f"{host}-eth0")
        made.says("ip", "-n", host, "link", "set", f"{host}-eth0", "up")
    # The kernel notes some time later that a cable has both ends up.
    for host in ("h1", "h2", "s1"):
        while any(
            word in made.says("ip", "-n", host, "link") for word in ("NO-CARRIER", "state DOWN", "LOWERLAYER")
        ):
            time.sleep(0.05)


def inventory(folder: Path, *, ports=(), hosts=None, switches=None):
    """The nodes of `two_hosts_and_a_switch`; what they cannot have on every kernel is left out."""
    shared = {
        "ansible_connection": "fabbbr_namespace",
        "ansible_become": False,
        "ansible_python_interpreter": PYTHON,
        "measurement_folder": str(folder / "agent"),
    }
    of_hosts = {
        "fabbbr_ccas": [],
        "tcp_host_persistent": False,
        "tcp_host_tolerate_missing": True,
        "tcp_host_qdisc": None,
        "tcp_host_iperf3_minimum": "",
        **(hosts or {}),
    }
    of_switches = {
        "software_switch_qdiscs": ["tbf"],
        "software_switch_bridge": "br0",
        "software_switch_interfaces": list(ports),
        **(switches or {}),
    }
    groups = {
        "tcp_hosts": {
            "vars": of_hosts,
            "hosts": {
                "h1": {"fabbbr_namespace": "h1", "tcp_host_interfaces": ["h1-eth0"]},
                "h2": {"fabbbr_namespace": "h2", "tcp_host_interfaces": ["02:00:00:00:00:02"]},
            },
        },
        "software_switches": {"vars": of_switches, "hosts": {"s1": {"fabbbr_namespace": "s1"}}},
    }
    return {"fabbbr": {"vars": shared, "children": groups}}

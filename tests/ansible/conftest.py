"""A node that is made up of files and scripts, and the role's modules run there as Ansible runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROLE = Path(__file__).parents[2] / "playbooks" / "roles" / "bbr"
TCP = "proc/sys/net/ipv4"
PARAMETERS = "sys/module/fab_bbr/parameters"

# On a node the module utilities of a role stand beside Ansible's own; here a node's files are below a folder.
RUN = """
import functools, pathlib, runpy, sys
import ansible.module_utils
module, utilities, root = sys.argv[1:]
ansible.module_utils.__path__.append(utilities)
from ansible.module_utils import fab_bbr_node, fab_node
fab_node.OWN_FOLDERS = fab_node.SYSTEM_FOLDERS = ()
fab_bbr_node.Node = functools.partial(fab_bbr_node.Node, root=pathlib.Path(root))
sys.argv[1:] = []
runpy.run_path(module, run_name="__main__")
"""


class Node:
    """Files below ``root``, and tools of its own before this machine's."""

    def __init__(self, root, tools):
        self.root, self.tools = root, tools
        tools.mkdir(exist_ok=True)

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def offer(self, *names):
        self.write(f"{TCP}/tcp_available_congestion_control", " ".join(names) + "\n")

    def load(self, **parameters):
        """As if the module had been loaded with these parameters."""
        self.write("proc/modules", "tcp_diag 1 0 - Live 0x0\nfab_bbr 65536 0 - Live 0x0\n")
        for name, value in parameters.items():
            self.write(f"{PARAMETERS}/{name}", f"{value}\n")

    def tool(self, name, script):
        """A tool of the node; it notes that it was called."""
        file = self.tools / name
        file.write_text(f'#!/bin/sh\ncd {self.root}\necho "${{0##*/}} $*" >>called\n{script}\n')
        file.chmod(0o755)
        return file

    @property
    def called(self):
        """Which tools were called, in order."""
        log = self.root / "called"
        return log.read_text().splitlines() if log.exists() else []

    def ask(self, module, *, check=False, **parameters):
        """What a module answers: exit status and document must agree on failure."""
        question = {"ANSIBLE_MODULE_ARGS": {**parameters, "_ansible_check_mode": check}}
        done = subprocess.run(
            (sys.executable, "-c", RUN, ROLE / "library" / f"{module}.py", ROLE / "module_utils", self.root),
            input=json.dumps(question), env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}"},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        answer = json.loads(done.stdout)
        assert bool(done.returncode) == answer.get("failed", False), done.stdout + done.stderr
        return answer


@pytest.fixture
def node(tmp_path):
    """A node without the module, whose kernel takes modules."""
    made = Node(tmp_path / "node", tmp_path / "tools")
    made.offer("reno", "cubic")
    made.write("proc/modules", "tcp_diag 1 0 - Live 0x0\n")
    made.write("proc/sys/kernel/modules_disabled", "0\n")
    made.tool("dmesg", "cat log 2>/dev/null")
    return made


@pytest.fixture
def this_machine(tmp_path):
    """The machine that the tests run on, with tools of its own if a test wants."""
    return Node(Path("/"), tmp_path / "tools")

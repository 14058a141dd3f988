"""Programs that know nothing of the double, run beside it: `make test-fabric` installs what they need."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabbbr.backends.guest.image.found import found_image

PROGRAMS = Path(__file__).with_name("programs")
LONGEST_S = 2400
collect_ignore = ["programs", "faulty", "inside"]  # each would run where it is imported


def pytest_collection_modifyitems(items):
    """What is missing here for whole sandboxes; what needs fablib alone asks for the fixture `fablib`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.fabric)


@pytest.fixture
def fablib():
    if importlib.util.find_spec("fim") is None:
        pytest.skip("fablib is not installed: make test-fabric")


@dataclass
class Outcome:
    """How a program ended in a sandbox, and what the sandbox noted."""

    status: int
    output: str
    log: Path

    def events(self, what: str) -> list[dict]:
        return [event for event in self._lines("events") if event["event"] == what]

    def requests(self, method: str, path: str) -> list[dict]:
        return [
            request
            for request in self._lines("requests")
            if request["method"] == method and request["path"].startswith(path)
        ]

    def _lines(self, name: str) -> list[dict]:
        return [json.loads(line) for line in (self.log / f"{name}.jsonl").read_text().splitlines()]


@pytest.fixture
def sandbox(tmp_path, fablib):
    """Run a program of `programs/`, or a command, beside a double of its own."""
    if shutil.which("/usr/sbin/sshd") is None or shutil.which("sudo") is None:
        pytest.skip("whole sandboxes need sshd and sudo: make test-fabric")

    def run(what: str | tuple[str, ...], *options: str, on: str = "host") -> Outcome:
        if on == "host" and (os.geteuid() != 0 or shutil.which("unshare") is None):
            pytest.skip("whole sandboxes on a host need root and unshare")
        if on == "guest" and found_image() is None:
            pytest.skip("there is no guest image: fabbbr guest build")
        log = tmp_path / "log"
        command = (sys.executable, str(PROGRAMS / f"{what}.py")) if isinstance(what, str) else what
        started = start("--on", on, *options, "--log", str(log), "--", *command, cwd=tmp_path)
        try:
            output, _ = started.communicate(timeout=LONGEST_S)
        finally:
            started.kill()
        sys.stdout.write(output)
        return Outcome(started.returncode, output, log)

    return run


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """`fabbbr sandbox`, as a user would start it."""
    return subprocess.Popen(
        (sys.executable, "-m", "fabbbr.cli", "sandbox", *arguments),
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

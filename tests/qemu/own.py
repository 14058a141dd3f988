"""The example's module in a machine: what a run would have built, and what its agent loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qemu.machine import Machine

from fabbbr import agent
from fabbbr.backends.base import OwnControl
from fabbbr.backends.channel import Channel
from fabbbr.backends.kernel_modules import Modules
from fabbbr.model import Module
from fabbbr.sources import read

AIMD = Path(__file__).parents[2] / "examples" / "tcp_aimd"
AGENT = Path(agent.__file__).parent / "loading.py"


def control(**params: str) -> OwnControl:
    sources = read(AIMD)
    use = Module(sha256=sources.sha256, kernel_name="aimd", params=params)
    return OwnControl(sources=sources, uses=(use,))


def brought(channel: Channel) -> tuple[Modules, list[str], dict[str, Any]]:
    """The module built there, what was told of it, and what goes into the provenance of its cells."""
    modules, told = Modules(), list[str]()
    modules.add(control(beta="512"), channel, "this machine", told.append)
    return modules, told, modules.options([control().sources.sha256])["modules"]["tcp_aimd"]


def loaded(machine: Machine, channel: Channel, beta: str) -> dict[str, Any]:
    """What the agent says of it when it has loaded it for a cell with this parameter."""
    machine.send(AGENT, "/run/loading.py")
    words = ("python3", "/run/loading.py", "load", control().sources.sha256, "aimd", f"beta={beta}")
    done = channel.run(words)
    assert done.returncode == 0, done.stderr
    # As fabbbr's own set-up does: an ordinary user may choose it.
    machine.says("sudo sysctl -w net.ipv4.tcp_allowed_congestion_control='reno cubic aimd'")
    return json.loads(done.stdout)

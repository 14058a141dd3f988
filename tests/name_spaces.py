"""Name spaces as machines, for tests that make real ones."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from fabbbr.backends.mininet import _run
from fabbbr.plan import definitions
from fabbbr.reserve.reservation import Options, reserve
from fabbbr.spec.experiment import SliceChoice


def cannot():
    if os.geteuid() != 0:
        return "network name spaces need root"
    if shutil.which("iperf3") is None or shutil.which("ping") is None:
        return "iperf3 and ping are not installed"
    probe = f"fabbbr-test-{os.getpid()}"
    if _run("ip", "netns", "add", probe) != 0:
        return "the kernel allows no network name spaces"
    _run("ip", "netns", "delete", probe)
    return ""


def _named():
    folder = Path("/run/netns")
    return [one.name for one in folder.iterdir()] if folder.exists() else []


def spaces(name):
    prefix = f"fabbbr-{name}+"
    return sorted(one.removeprefix(prefix) for one in _named() if one.startswith(prefix))


def links(name, machine):
    told = ip(name, machine, "-j", "link")
    return {one["ifname"]: one["address"] for one in json.loads(told) if one["link_type"] != "loopback"}


def standing(name, live):
    """All that a job must leave as it was; numbers of interfaces are the kernel's."""
    keys = ("address", "mtu", "flags", "operstate", "addr_info", "qdisc")
    found = {}
    for machine in live.machines:
        told = json.loads(ip(name, machine.name, "-j", "addr"))
        found[machine.name] = {one["ifname"]: [one[key] for key in keys] for one in told}
    return found


def ip(name, machine, *words):
    argv = ("ip", "-n", f"fabbbr-{name}+{machine}", *words)
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def reserved(name, definition="two_site", placement=None, **parameters):
    choice = SliceChoice(name=definition, parameters={key: str(value) for key, value in parameters.items()})
    topology = definitions.load(choice)
    return reserve(name, choice, topology, Options(elsewhere="here", placement=placement or {})), topology


def in_a_chroot(folder, *argv):
    """What a command says in a chroot that has this machine's files, and is no mount point.

    Made in a mount name space of its own, so nothing of it stays when the command has ended.
    """
    folder.mkdir()
    script = """
        mkdir tmp && mount --bind /tmp tmp
        for one in /*; do
            if [ -L "$one" ]; then cp -a "$one" .
            elif [ "$one" != /tmp ] && [ -d "$one" ]; then mkdir ".$one" && mount --rbind "$one" ".$one"
            fi
        done
        exec chroot . "$@"
    """
    return subprocess.run(
        ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *argv),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

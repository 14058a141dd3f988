"""``fabbbr doctor``: what this machine can do, and the remedy for what it cannot."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from fabbbr.backends.allotted import cpus_at_once, free_memory_bytes, usable_cpus
from fabbbr.backends.guest.image.found import found_image
from fabbbr.backends.guest.kernel.build import cannot_build
from fabbbr.backends.guest.kernel.prebuilt import prebuilt_kernel
from fabbbr.backends.guest.memory import guests_with_room, memory_folder
from fabbbr.backends.guest.size import LEAST_TAKEN_BYTES
from fabbbr.backends.mininet import lacks
from fabbbr.backends.tools import tool_versions
from fabbbr.commands.terminal import Terminal
from fabbbr.counts import counted
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.sandbox.outside import require_programs

_MORE_MEMORY = "; end what takes it, or give the container more"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the doctor's report."""

    name: str
    fit: bool
    said: str
    needed: bool = True
    """For the default backend; the others are choices."""


def main(arguments: argparse.Namespace) -> int:
    """Print all findings; exit status 5 when the default backend cannot run."""
    findings = list(_findings())
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings]))
    else:
        console = Terminal()
        for finding in findings:
            style = "green" if finding.fit else ("red" if finding.needed else "yellow")
            console.say(("yes" if finding.fit else "no ", style), f"  {finding.name}: {finding.said}")
    unfit = [finding.name for finding in findings if finding.needed and not finding.fit]
    if unfit:
        message = f"the guest backend cannot run yet: {', '.join(unfit)}"
        raise EnvironmentUnfitError(message)
    return 0


def _cpus() -> str:
    at_once, all_of_them = cpus_at_once(), len(usable_cpus())
    quota = f" of {all_of_them}, by a quota of its control group" if at_once < all_of_them else ""
    return f"{at_once}{quota}: as many cells run at a time, where memory has room"


def _findings() -> Iterator[Finding]:
    yield Finding(name="CPUs", fit=True, said=_cpus())
    yield _image()
    yield _memory()
    yield _prebuilt()
    try:
        versions = tool_versions()
        yield Finding(name="tools of this host", fit=True, said="; ".join(versions.values()), needed=False)
    except EnvironmentUnfitError as error:
        yield Finding(name="tools of this host", fit=False, said=str(error), needed=False)
    missing = lacks()
    yield Finding(
        name="Mininet on this host (--backend mininet)",
        fit=not missing,
        said="; ".join(f"{lack.what} is missing: {lack.remedy}" for lack in missing) or "can run",
        needed=False,
    )
    yield _sandbox()


def _image() -> Finding:
    """What a cell runs in, or how to get it."""
    image = found_image()
    if image is not None:
        said = f"{image.sha256[:16]}, Linux {image.kernel.release}, {image.tools['iperf3']}"
        return Finding(name="guest image", fit=True, said=said)
    lacking = cannot_build()
    return Finding(
        name="guest image",
        fit=False,
        said=lacking or "not built yet: fabbbr guest build (once, some minutes)",
    )


def _sandbox() -> Finding:
    """What the double of FABRIC is made of."""
    name = "double of FABRIC (fabbbr sandbox)"
    try:
        require_programs()
    except EnvironmentUnfitError as error:
        return Finding(name=name, fit=False, said=str(error).removeprefix("sandbox: "), needed=False)
    return Finding(name=name, fit=True, said="can run", needed=False)


def _prebuilt() -> Finding:
    """The distribution's kernel, for a machine that cannot build one."""
    name = "prebuilt guest in real time (--clock real)"
    try:
        kernel = prebuilt_kernel()
    except EnvironmentUnfitError as error:
        return Finding(name=name, fit=False, said=str(error), needed=False)
    said = f"Linux {kernel.release}" if kernel else "not installed: apt-get install user-mode-linux kmod"
    return Finding(name=name, fit=kernel is not None, said=said, needed=False)


def _memory() -> Finding:
    """Where that of a guest stands, and how many of the smallest there is room for."""
    try:
        folder = memory_folder()
    except EnvironmentUnfitError as error:
        return Finding(name="guest memory", fit=False, said=str(error))
    in_folder, in_all = shutil.disk_usage(folder).free, free_memory_bytes()
    guests = guests_with_room(LEAST_TAKEN_BYTES)
    return Finding(
        name="guest memory",
        fit=guests > 0,
        said=(
            f"{in_folder / 1e9:.2g} GB free in {folder}, and {in_all / 1e9:.2g} GB of memory to use: "
            f"room for {counted(guests, 'guest')} of the smallest kind{'' if guests else _MORE_MEMORY}"
        ),
    )

"""``fabbbr doctor``: what this machine can do, and the remedy for what it cannot."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from fabbbr.backends.allotted import cpus_at_once, usable_cpus
from fabbbr.backends.guest.image.found import found_image
from fabbbr.backends.guest.kernel.build import cannot_build
from fabbbr.backends.guest.kernel.prebuilt import prebuilt_kernel
from fabbbr.backends.mininet import lacks
from fabbbr.backends.tools import tool_versions
from fabbbr.commands.terminal import Terminal
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.sandbox.outside import require_programs

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where a guest's memory comes from
_GUEST_MEMORY_BYTES = 2 << 30


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
    return f"{at_once}{quota}: as many cells run at a time"


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
    """A guest's memory is a file in shared memory that must be large enough and may be executed."""
    folder = Path(os.environ.get("TMPDIR", str(_SHARED_MEMORY)))
    try:
        free = shutil.disk_usage(folder).free
        executable = _may_execute(folder)
    except OSError as error:
        return Finding(
            name="guest memory", fit=False, said=f"{folder}: {error.strerror}; set TMPDIR elsewhere"
        )
    if not executable:
        return Finding(
            name="guest memory",
            fit=False,
            said=f"{folder} is mounted noexec; remount it, or set TMPDIR to a folder that is not",
        )
    return Finding(
        name="guest memory",
        fit=free >= _GUEST_MEMORY_BYTES,
        said=f"{free / 1e9:.1f} GB free in {folder}, a guest uses up to {_GUEST_MEMORY_BYTES / 1e9:.1f} GB",
    )


def _may_execute(folder: Path) -> bool:
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        path = Path(file.name)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return os.access(path, os.X_OK) and not os.statvfs(folder).f_flag & os.ST_NOEXEC

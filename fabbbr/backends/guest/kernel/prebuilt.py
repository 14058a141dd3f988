"""Debian's prebuilt ``user-mode-linux``: the fallback where no kernel can be built, in real time only."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fabbbr.backends.tools import search_path
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.files import sha256_of

_FIRST_WITH_LARGE_STATE = (6, 12)
"""Seen to run; 6.1 was seen to fail, and nothing between was tried."""
_PROGRAM = "linux.uml"
_MODULES = Path("lib/uml/modules")
"""Beside the program's own folder, /usr/bin; a package unpacked elsewhere
without root has the same layout."""


@dataclass(frozen=True, kw_only=True)
class PrebuiltKernel:
    """The distribution's guest kernel; its qdiscs and congestion controls are modules."""

    binary: Path
    release: str
    modules: Path
    kernel_sha256: str
    config_sha256: None = None
    seccomp: bool = False
    clock_address: None = None
    timer_hz: int = 100
    """CONFIG_HZ of Debian's package."""


def cannot_run(release: str, cpu_flags: str) -> str | None:
    """Why a prebuilt kernel of ``release`` cannot run on a CPU with these flags; None when it can.

    User Mode Linux 6.1 keeps a process's extended state in a buffer that AMX registers do not fit into: its
    first process ends with "ptrace set fp regs failed".
    """
    numbers = tuple(int(part) for part in release.split(".")[:2])
    if "amx_tile" in cpu_flags.split() and numbers < _FIRST_WITH_LARGE_STATE:
        return (
            f"the prebuilt guest kernel {release} cannot run on a CPU with AMX; install "
            f"a newer user-mode-linux, or build a kernel: fabbbr guest build"
        )
    return None


def prebuilt_kernel() -> PrebuiltKernel | None:
    """The installed package's kernel, or None; raise EnvironmentUnfitError when it cannot run here."""
    program = shutil.which(_PROGRAM)
    if program is None:
        return None
    modules = Path(program).parent.parent / _MODULES
    release = _release(program)
    if not (modules / release).is_dir():
        message = (
            f"{program} {release} has no modules at {modules / release}; apt-get install "
            f"--reinstall user-mode-linux"
        )
        raise EnvironmentUnfitError(message)
    if shutil.which("modprobe", path=search_path()) is None:
        message = f"modprobe is missing, and {program} has its qdiscs as modules: apt-get install kmod"
        raise EnvironmentUnfitError(message)
    reason = cannot_run(release, Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace"))
    if reason is not None:
        raise EnvironmentUnfitError(reason)
    return PrebuiltKernel(
        binary=Path(program), release=release, modules=modules, kernel_sha256=sha256_of(Path(program))
    )


def _release(program: str) -> str:
    """What the kernel calls itself; raise EnvironmentUnfitError when it does not even start."""
    answer = subprocess.run((program, "--version"), capture_output=True, text=True, check=False, timeout=20)
    release = answer.stdout.strip()
    if answer.returncode != 0 or re.fullmatch(r"\d+\.\d+\S*", release) is None:
        said = (answer.stderr.strip() or release or f"exit status {answer.returncode}").splitlines()[0]
        message = (
            f"{program} does not run here ({said}); install the user-mode-linux of this "
            f"machine's own distribution, or build a kernel: fabbbr guest build"
        )
        raise EnvironmentUnfitError(message)
    return release

"""Debian's prebuilt ``user-mode-linux``: the fallback where no kernel can be built, in real time only."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fabbbr.errors import EnvironmentUnfitError
from fabbbr.store import sha256_of

_FIRST_WITH_LARGE_STATE = (6, 12)
"""Seen to run; 6.1 was seen to fail, and nothing between was tried."""
_MODULES = Path("/usr/lib/uml/modules")


@dataclass(frozen=True, kw_only=True)
class PrebuiltKernel:
    """The distribution's guest kernel; its qdiscs and congestion controls are modules."""

    binary: Path
    release: str
    modules: Path
    kernel_sha256: str
    config_sha256: None = None
    seccomp: bool = False


def cannot_run(release: str, cpu_flags: str) -> str | None:
    """Why a prebuilt kernel of ``release`` cannot run on a CPU with these flags; None when it can.

    User Mode Linux 6.1 keeps a process's extended state in a buffer that AMX registers do not fit into: its first
    process ends with "ptrace set fp regs failed".
    """
    numbers = tuple(int(part) for part in release.split(".")[:2])
    if "amx_tile" in cpu_flags.split() and numbers < _FIRST_WITH_LARGE_STATE:
        return (
            f"the prebuilt guest kernel {release} cannot run on a CPU with AMX; install a newer user-mode-linux, "
            "or build a kernel: fabbbr kernel build"
        )
    return None


def prebuilt_kernel() -> PrebuiltKernel | None:
    """The installed package's kernel, or None; raise EnvironmentUnfitError when it cannot run on this CPU."""
    program = shutil.which("linux.uml")
    if program is None or not _MODULES.is_dir():
        return None
    told = subprocess.run((program, "--version"), capture_output=True, text=True, check=False, timeout=20)
    release = told.stdout.strip()
    if not (_MODULES / release).is_dir():
        return None
    reason = cannot_run(release, Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace"))
    if reason is not None:
        raise EnvironmentUnfitError(reason)
    return PrebuiltKernel(
        binary=Path(program), release=release, modules=_MODULES, kernel_sha256=sha256_of(Path(program))
    )

"""Debian's prebuilt ``user-mode-linux``: the fallback where no kernel can be built, in real time only."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fabbbr.store import sha256_of

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


def prebuilt_kernel() -> PrebuiltKernel | None:
    """The installed package's kernel, or None."""
    program = shutil.which("linux.uml")
    if program is None or not _MODULES.is_dir():
        return None
    told = subprocess.run((program, "--version"), capture_output=True, text=True, check=False, timeout=20)
    release = told.stdout.strip()
    if not (_MODULES / release).is_dir():
        return None
    return PrebuiltKernel(
        binary=Path(program), release=release, modules=_MODULES, kernel_sha256=sha256_of(Path(program))
    )

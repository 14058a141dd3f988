"""The changes to the kernel source: a seed for all randomness, a finer timer tick, and BBR versions 2 and 3."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from fabbbr.bundled import folder
from fabbbr.errors import KernelBuildError

SEEDED_RANDOM = Path(__file__).parent / "fabbbr_random.h"


def bbr_sources() -> tuple[Path, ...]:
    """The files of the module ``fab_bbr`` that the kernel takes in; the same files that nodes get through DKMS."""
    names = ("Kbuild", "fab_bbr_core.c", "fab_bbr_core.h", "fab_bbr_module.c")
    return tuple(folder("playbooks") / "roles/bbr/files" / name for name in names)


def edit(tree: Path) -> None:
    """The changes to the source; each must find its place exactly once."""
    util = tree / "arch/um/os-Linux/util.c"
    shutil.copy(SEEDED_RANDOM, util.parent)
    _substitute(util, r"^(ssize_t os_getrandom\()", r'#include "fabbbr_random.h"\n\n\1')
    _substitute(util, r"return getrandom\(buf, len, flags\);", "return fabbbr_getrandom(buf, len, flags);")
    # Neither the build's name nor the command line may stir the pool that the seed fills.
    random = tree / "drivers/char/random.c"
    _substitute(random, r"^\t_mix_pool_bytes\(init_utsname\(\).*\n\t_mix_pool_bytes\(command_line,.*\n", "")
    # TCP counts its timers in ticks: at 100 Hz an RTO would move in steps of 10 ms.
    _substitute(tree / "arch/um/Kconfig", r"(config HZ\n\tint\n\tdefault) 100$", r"\1 1000")
    _take_in_bbr(tree / "net/ipv4")


def _take_in_bbr(place: Path) -> None:
    (place / "fab_bbr").mkdir(exist_ok=True)
    for file in bbr_sources():
        shutil.copy(file, place / "fab_bbr")
    _substitute(place / "Makefile", r"^(obj-\$\(CONFIG_TCP_CONG_BBR\) .*)$", r"\1\nobj-y += fab_bbr/")


def _substitute(file: Path, pattern: str, replacement: str) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        message = f"this kernel source has no {file.name}: {error.strerror}; it is not one that fabbbr knows"
        raise KernelBuildError(message) from error
    changed, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    if count != 1:
        message = f"{file.name} of this kernel source is not as expected ({count} places for {pattern!r})"
        raise KernelBuildError(message)
    file.write_text(changed, encoding="utf-8")

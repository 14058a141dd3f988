"""The changes to the kernel source: a seed for all randomness, and a finer timer tick."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from fabbbr.errors import KernelBuildError

SEEDED_RANDOM = Path(__file__).parent / "fabbbr_random.h"


def edit(tree: Path) -> None:
    """The three changes to the source; each must find its place exactly once."""
    util = tree / "arch/um/os-Linux/util.c"
    shutil.copy(SEEDED_RANDOM, util.parent)
    _substitute(util, r"^(ssize_t os_getrandom\()", r'#include "fabbbr_random.h"\n\n\1')
    _substitute(util, r"return getrandom\(buf, len, flags\);", "return fabbbr_getrandom(buf, len, flags);")
    # Neither the build's name nor the command line may stir the pool that the seed fills.
    random = tree / "drivers/char/random.c"
    _substitute(random, r"^\t_mix_pool_bytes\(init_utsname\(\).*\n\t_mix_pool_bytes\(command_line,.*\n", "")
    # TCP counts its timers in ticks: at 100 Hz an RTO would move in steps of 10 ms.
    _substitute(tree / "arch/um/Kconfig", r"(config HZ\n\tint\n\tdefault) 100$", r"\1 1000")


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

"""Takes BBR versions 2 and 3 into the kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

from fabbbr.backends.guest.kernel.edits.place import substitute
from fabbbr.bundled import folder


def sources() -> tuple[Path, ...]:
    """The files of the module ``fab_bbr`` that the kernel takes in; nodes get the same through DKMS."""
    names = ("Kbuild", "fab_bbr_core.c", "fab_bbr_core.h", "fab_bbr_module.c")
    return tuple(folder("playbooks") / "roles/bbr/files" / name for name in names)


def take_in(place: Path) -> None:
    """Put them into ``net/ipv4``."""
    (place / "fab_bbr").mkdir(exist_ok=True)
    for file in sources():
        shutil.copy(file, place / "fab_bbr")
    substitute(place / "Makefile", (r"^(obj-\$\(CONFIG_TCP_CONG_BBR\) .*)$", r"\1\nobj-y += fab_bbr/"))

"""Sources to begin a congestion control of one's own from: fabbbr's, or the kernel's, under another name.

What a copy does is what its original does, until it is changed. The original stays in the kernel beside it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from fabbbr.backends.guest.kernel.edits.bbr import sources
from fabbbr.backends.guest.kernel.edits.place import substitute, text_of
from fabbbr.errors import UsageError
from fabbbr.job.congestion import mainline_name
from fabbbr.model import BbrProfile
from fabbbr.spec.experiment import BBR_PROFILES, CCAS, IMPLEMENTATIONS
from fabbbr.suggest import did_you_mean

_OF_EVERY_KERNEL = "reno"
_INCLUDED = re.compile(r'^#include "(tcp_\w+\.h)"$', re.MULTILINE)
_EXPORTED = re.compile(r"^EXPORT_SYMBOL(?:_GPL)?\(.*\);\n", re.MULTILINE)
"""For other files of the kernel, which have the original's."""
_ENTRY = r"^#define FAB_CONGESTION_OPS\(ops_name, opener\)\s*\\\n((?:.*\\\n)*.*\n)\n"
"""A macro that is one entry of the module's table."""


def profile_of(cca: str, asked: BbrProfile | None) -> BbrProfile | None:
    """Which constants of fabbbr's module a copy of ``cca`` has; None when it is one of the kernel's own.

    Raises UsageError for what there is not.
    """
    if cca not in CCAS:
        message = f"no congestion control {cca!r}{did_you_mean(cca, CCAS)} (there are {', '.join(CCAS)})"
        raise UsageError(message)
    known = BBR_PROFILES.get(cca, ())
    if asked is not None and asked not in known:
        have = f"has {', '.join(known)}" if known else "has none: it is the kernel's own"
        message = f"--profile {asked}: {cca} {have}"
        raise UsageError(message)
    if asked is None and IMPLEMENTATIONS.get(cca, ("mainline",))[0] == "fabbbr":
        return known[0]
    return asked


def copy_ours(folder: Path, name: str, profile: BbrProfile) -> None:
    """Lay out the module ``fab_bbr`` so that it registers ``name`` alone, with these constants."""
    for file in sources():
        shutil.copyfile(file, folder / file.name)
    _name_recipe(folder / "Kbuild", name)
    _name_shim(folder / "fab_bbr_module.c", name, profile)


def copy_kernels(folder: Path, cca: str, name: str, find_tree: Callable[[], Path]) -> None:
    """Lay out the file of the guest's kernel that has ``cca``, with the headers beside it that it includes.

    ``find_tree`` gives the kernel's sources. Raises UsageError where it has no file of its own.
    """
    if cca == _OF_EVERY_KERNEL:
        message = (
            "reno is part of every kernel and no file of its own: a module calls its tcp_reno_ssthresh, "
            "tcp_reno_cong_avoid and tcp_reno_undo_cwnd; begin from examples/tcp_aimd, which does"
        )
        raise UsageError(message)
    original, place = mainline_name(cca), find_tree() / "net" / "ipv4"
    file = folder / f"tcp_{name}.c"
    file.write_text(_EXPORTED.sub("", text_of(place / f"tcp_{original}.c")), encoding="utf-8")
    for header in _INCLUDED.findall(text_of(file)):
        shutil.copyfile(place / header, folder / header)
    substitute(file, (rf'(\.name\s*=\s*)"{original}"', rf'\1"{name}"'))


def _name_recipe(file: Path, name: str) -> None:
    """A module of another name, which does not say what it was built from: the certificate does."""
    substitute(file, (r"^# Out of tree(?:.*\n)*?(?=fab_bbr-y)", f"obj-m := tcp_{name}.o\n"))
    substitute(file, (r"^fab_bbr-y", f"tcp_{name}-y"))
    substitute(file, (r"^fab_bbr_folder.*\nfab_bbr_sources.*\n\n", ""))
    substitute(file, (r"^ccflags-y \+= -DFAB_BBR_SOURCE.*\n", ""))


def _name_shim(file: Path, name: str, profile: BbrProfile) -> None:
    """One entry of the table instead of all, written out for who looks for the name, and no parameters."""
    constant = {"v1cap3": "FAB_PROFILE_V1_CAP3"}.get(profile, f"FAB_PROFILE_{profile.upper()}")
    opener = f"static void fab_open_own(struct sock *sk)\n{{\n\tfab_open(sk, {constant});\n}}\n"
    openers = r"^static void fab_open_bbr1\((?:.*\n)*?static void fab_open_bbr3\((?:.*\n)*?}\n"
    table = r"(^static struct tcp_congestion_ops fab_ops\[\].*\n)(?:.*\n)*?(?=};)"
    entry = _entry(text_of(file), name)
    substitute(file, (r'"fab_bbr: " fmt', f'"{name}: " fmt'))
    substitute(
        file, (r"^static const char \*const fab_profile_names(?:.*\n)*?MODULE_PARM_DESC\(source.*\n\n", "")
    )
    substitute(file, (openers, opener))
    substitute(file, (_ENTRY, ""))
    substitute(file, (table, rf"\g<1>{entry}"))
    substitute(file, (r'^MODULE_DESCRIPTION\(".*"\)', f'MODULE_DESCRIPTION("begun as fab_bbr, {profile}")'))


def _entry(text: str, name: str) -> str:
    found = re.search(_ENTRY, text, re.MULTILINE)
    lines = found[1].splitlines() if found is not None else []
    written = "\n".join(line.removesuffix("\\").rstrip() for line in lines)
    return written.replace("ops_name", f'"{name}"').replace("opener", "fab_open_own") + ",\n"

"""``fabbbr cca``: the congestion controls that there are, and a copy of one to change."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from rich import box
from rich.table import Table

from fabbbr.backends.guest.image.found import found_image
from fabbbr.backends.guest.module import copies
from fabbbr.backends.guest.module.tree import EXPECTED_S, cached_tree, kernel_tree
from fabbbr.commands.building import with_bar
from fabbbr.commands.terminal import Terminal, tell
from fabbbr.errors import EnvironmentUnfitError, UsageError
from fabbbr.foreign import shown
from fabbbr.job.congestion import mainline_name
from fabbbr.model import BbrProfile
from fabbbr.spec.experiment import BBR_PROFILES, CCAS, IMPLEMENTATIONS, OwnName

_PREFIX = "tcp_"


def main(arguments: argparse.Namespace) -> int:
    """Print what there is, or copy one."""
    if arguments.action == "copy":
        return _copy(arguments.cca, arguments.to, arguments.profile)
    return _list(as_json=arguments.json)


def _list(*, as_json: bool) -> int:
    rows = [_row(cca) for cca in CCAS]
    if as_json:
        print(json.dumps(rows))
        return 0
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("cca", "whose", "profiles of fabbbr's"):
        table.add_column(column)
    for row in rows:
        table.add_row(str(row["cca"]), ", ".join(row["whose"]), ", ".join(row["profiles"]))
    console = Terminal()
    console.print(table)
    console.say("begin your own from one, as with: fabbbr cca copy bbr3 --to tcp_mine")
    return 0


def _row(cca: str) -> dict[str, list[str] | str]:
    return {
        "cca": cca,
        "mainline_name": mainline_name(cca) if "mainline" in IMPLEMENTATIONS.get(cca, ("mainline",)) else "",
        "whose": list(IMPLEMENTATIONS.get(cca, ("mainline",))),
        "profiles": list(BBR_PROFILES.get(cca, ())),
    }


def _copy(cca: str, to: Path | None, asked: BbrProfile | None) -> int:
    profile = copies.profile_of(cca, asked)
    to = to or Path(f"{_PREFIX}my_{cca}")
    name = _name_of(to)
    if os.path.lexists(to):
        message = f"{to} is there already; name another folder with --to"
        raise UsageError(message)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{to.name}-", dir=to.parent) as work:
            staged = Path(work) / to.name
            staged.mkdir()
            if profile is None:
                copies.copy_kernels(staged, cca, name, _tree)
            else:
                copies.copy_ours(staged, name, profile)
            staged.rename(to)
    except OSError as error:
        message = f"cannot write {to}: {error.strerror}; name another folder with --to"
        raise UsageError(message) from error
    tell(to)
    Terminal(stderr=True).say(f"change it, and run it: fabbbr run EXPERIMENT --cca {name}={_from_here(to)}")
    return 0


def _name_of(to: Path) -> str:
    """What it registers: the folder's name without ``tcp_``, as reports call it too."""
    name = to.name.removeprefix(_PREFIX)
    try:
        TypeAdapter(OwnName).validate_python(name)
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        message = (
            f"--to {to}: it would register {shown(name)}: {why[0].lower()}{why[1:]}; "
            "name a folder as tcp_mine"
        )
        raise UsageError(message) from error
    return name


def _from_here(to: Path) -> str:
    return str(to) if to.is_absolute() else f"./{to}"


def _tree() -> Path:
    """The sources of the guest's kernel, which are fetched where they are missing."""
    image = found_image()
    if image is None:
        message = "there is no guest image, whose kernel this would be copied from: fabbbr guest build"
        raise EnvironmentUnfitError(message)
    found = cached_tree(image.kernel)
    if found is not None:
        return found
    console = Terminal(stderr=True)
    console.say(f"the sources of the guest's kernel are fetched once: about {EXPECTED_S / 60:.0f} minute")
    return with_bar(console, "sources", partial(kernel_tree, image.kernel))

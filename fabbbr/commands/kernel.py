"""``fabbbr kernel build``, ``list`` and ``remove``: kernels of the user's own for the guest."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich import box
from rich.table import Table

from fabbbr.backends.base import require_jobs
from fabbbr.backends.guest.image.found import found_image
from fabbbr.backends.guest.kernel import own
from fabbbr.backends.guest.kernel.build import (
    SPACE_BYTES,
    GuestKernel,
    compilers_at_once,
    expected_minutes,
    recipe_hash,
)
from fabbbr.backends.guest.kernel.given import Given
from fabbbr.backends.guest.module.tree import keep
from fabbbr.commands.building import with_bar
from fabbbr.commands.terminal import Terminal
from fabbbr.kernels import OF_IMAGE


def main(arguments: argparse.Namespace) -> int:
    """Build one, print what there are, or remove one."""
    if arguments.action == "build":
        return _build(arguments)
    if arguments.action == "remove":
        own.remove(arguments.name)
        Terminal().say(f"removed {arguments.name}")
        return 0
    return _list(as_json=arguments.json)


def _build(arguments: argparse.Namespace) -> int:
    require_jobs(arguments.jobs)
    given = Given(
        source=arguments.source,
        commit=arguments.commit,
        patches=tuple(arguments.patches),
        name=arguments.name,
    )
    name = given.called
    there = own.own_kernels().get(name)
    if there is not None and arguments.if_missing and there.recipe == recipe_hash():
        return _say(there, name, as_json=arguments.json)
    kernel = build(Terminal(stderr=arguments.json), given, jobs=arguments.jobs)
    return _say(kernel, name, as_json=arguments.json)


def build(console: Terminal, given: Given, *, jobs: int | None = None) -> GuestKernel:
    """Build a kernel with a bar on ``console``, or a line per stage where it is no terminal."""
    name, cpus = given.called, jobs or compilers_at_once()
    console.say(
        f"building kernel {name}: about {expected_minutes(cpus)} minutes with {cpus} CPUs, "
        f"{SPACE_BYTES / 1e9:.0f} GB below {own.own_kernels_folder()} while it is compiled, and 60 MB after"
    )
    return with_bar(console, f"kernel {name}", partial(own.build_own, given, jobs=jobs, keep=keep))


def _say(kernel: GuestKernel, name: str, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(_as_json(name, kernel)))
        return 0
    Terminal().say(
        f"Linux {kernel.release} ({_of(kernel)}), built in {kernel.build_s:.0f} s: write kernel: {name}, or "
        f"vary: {{kernel: [{OF_IMAGE}, {name}]}}"
    )
    return 0


def _list(*, as_json: bool) -> int:
    image = found_image()
    kernels = ({OF_IMAGE: image.kernel} if image is not None else {}) | own.own_kernels()
    if as_json:
        print(json.dumps([_as_json(name, kernel) for name, kernel in kernels.items()]))
        return 0
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("kernel", "release", "built of", "sha256", ""):
        table.add_column(column)
    for name, kernel in kernels.items():
        left = "" if kernel.recipe == recipe_hash() else "by another fabbbr: build it anew"
        table.add_row(name, kernel.release, _of(kernel), kernel.kernel_sha256[:16], left)
    console = Terminal()
    console.print(table)
    if len(kernels) < 2:
        console.say("build another, as with: fabbbr kernel build --source 6.1, or --source ./linux")
    return 0


def _of(kernel: GuestKernel) -> str:
    return ", ".join((f"{kernel.package} {kernel.package_version}", *kernel.patches))


def _as_json(name: str, kernel: GuestKernel) -> dict[str, object]:
    return asdict(kernel) | {"name": name, "folder": str(Path(kernel.folder))}

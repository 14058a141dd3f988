"""``fabbbr guest build``, ``show`` and ``run``."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from functools import partial
from pathlib import Path

from fabbbr.backends.base import require_jobs
from fabbbr.backends.guest.command import Outside, run_in_guest
from fabbbr.backends.guest.image.build import build_image
from fabbbr.backends.guest.image.found import GuestImage, found_image, images_folder
from fabbbr.backends.guest.kernel.build import SPACE_BYTES, compilers_at_once, expected_minutes
from fabbbr.backends.tools import search_path
from fabbbr.commands.building import with_bar
from fabbbr.commands.terminal import Terminal
from fabbbr.errors import EnvironmentUnfitError

_KEPT = ("LANG", "LC_ALL", "TERM", "TZ", "PYTHONPATH", "VIRTUAL_ENV")
"""Of the caller's environment; the rest speaks of a world that is not there."""


def main(arguments: argparse.Namespace) -> int:
    """Run a command in a guest; else build the image unless there is one, and print what there is."""
    if arguments.action == "run":
        return _run(arguments)
    require_jobs(getattr(arguments, "jobs", None))
    image = found_image()
    if image is None and arguments.action == "show":
        message = "there is no guest image yet; build it once with: fabbbr guest build (some minutes)"
        raise EnvironmentUnfitError(message)
    if image is None:
        image = build(Terminal(stderr=arguments.json), jobs=arguments.jobs)
    if arguments.json:
        print(json.dumps(asdict(image) | {"folder": str(image.folder)}))
        return 0
    kernel = image.kernel
    console = Terminal()
    console.say(f"image {image.sha256[:16]}: {image.folder}")
    console.say(
        f"Linux {kernel.release} ({kernel.package} {kernel.package_version}), built in "
        f"{kernel.build_s:.0f} s, {'seccomp' if kernel.seccomp else 'ptrace'}"
    )
    console.say("; ".join(image.tools.values()))
    if image.unread:
        console.say(
            f"not all package lists could be read when it was built ({image.unread}), so its programs may "
            "be older than elsewhere, and what cells draw at random other; when they can, remove "
            f"{image.folder} and build it anew: fabbbr guest build"
        )
    return 0


def _run(arguments: argparse.Namespace) -> int:
    kept = {name: value for name in _KEPT if (value := os.environ.get(name)) is not None}
    outside = Outside(
        folder=Path.cwd(),
        environment={**kept, "PATH": search_path(), "HOME": "/root", "USER": "root"},
        mounts=tuple(arguments.mount),
    )
    return run_in_guest(arguments.argv, outside)


def build(console: Terminal, *, jobs: int | None = None) -> GuestImage:
    """Build the image with a bar on ``console``, or a line per stage where it is no terminal."""
    cpus = jobs or compilers_at_once()
    console.say(
        f"building the guest image, once: about {expected_minutes(cpus)} minutes with {cpus} CPUs, "
        f"{SPACE_BYTES / 1e9:.0f} GB below {images_folder()} while it is compiled, and 50 MB after"
    )
    return with_bar(console, "guest image", partial(build_image, jobs=jobs))

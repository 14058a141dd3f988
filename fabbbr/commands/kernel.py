"""``fabbbr kernel build`` and ``show``."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from fabbbr.backends.guest.kernel.build import GuestKernel, build_kernel, cached_kernel
from fabbbr.commands.terminal import Terminal
from fabbbr.errors import EnvironmentUnfitError


def main(arguments: argparse.Namespace) -> int:
    """Build unless cached, and print what there is."""
    kernel = cached_kernel()
    if kernel is None and arguments.action == "show":
        message = "the guest kernel is not built yet; build it once with: fabbbr kernel build"
        raise EnvironmentUnfitError(message)
    if kernel is None:
        kernel = _build(arguments)
    if arguments.json:
        print(json.dumps(asdict(kernel)))
        return 0
    Terminal().say(
        f"Linux {kernel.release} ({kernel.package} {kernel.package_version}), built in "
        f"{kernel.build_s:.0f} s, {'seccomp' if kernel.seccomp else 'ptrace'}: {kernel.folder}"
    )
    return 0


def _build(arguments: argparse.Namespace) -> GuestKernel:
    console = Terminal(stderr=arguments.json)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("guest kernel", total=1.0)
        stages: list[str] = []

        def progress(stage: str, share: float) -> None:
            bar.update(task, completed=share, description=f"guest kernel: {stage}")
            if stage not in stages:
                stages.append(stage)
                if not console.is_terminal:
                    console.say(f"guest kernel: {stage}")

        return build_kernel(progress, jobs=arguments.jobs)

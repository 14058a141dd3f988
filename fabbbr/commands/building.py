"""A bar for what is built once and takes minutes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from fabbbr.backends.guest.kernel.build import Progress as Told
from fabbbr.commands.terminal import Terminal

_Built = TypeVar("_Built")


def with_bar(console: Terminal, what: str, build: Callable[[Told], _Built]) -> _Built:
    """Call ``build`` with what it may tell its progress; a line per stage where there is no terminal."""
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=1.0)
        stages: list[str] = []

        def progress(stage: str, share: float) -> None:
            bar.update(task, completed=share, description=f"{what}: {stage}")
            if stage not in stages:
                stages.append(stage)
                if not console.is_terminal:
                    console.say(f"{what}: {stage}")

        return build(progress)

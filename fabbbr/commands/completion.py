"""``fabbbr completion``: the lines that switch on completion in a shell, and what is offered there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from fabbbr import bundled
from fabbbr.errors import FabbbrError
from fabbbr.plan.opening import read_text
from fabbbr.spec import read
from fabbbr.spec.axes import squeeze
from fabbbr.spec.experiment import FlowGroup, PathSetup, Setup

_SUFFIXES = (".yaml", ".yml")


def main(arguments: argparse.Namespace) -> int:
    """Print them, for ``eval "$(fabbbr completion bash)"``."""
    import argcomplete

    print(argcomplete.shellcode(["fabbbr"], shell=arguments.shell))  # type: ignore[attr-defined]
    return 0


def experiments(prefix: str) -> list[str]:
    """Bundled names, and experiment files and folders that begin with ``prefix``."""
    folder, slash, _ = prefix.rpartition("/")
    try:
        there = sorted(Path(f"{folder}/" if slash else ".").iterdir())
    except OSError:
        there = []
    own = [
        f"{folder}{slash}{path.name}{'/' if path.is_dir() else ''}"
        for path in there
        if path.suffix in _SUFFIXES or (path.is_dir() and not path.name.startswith("."))
    ]
    return [*bundled.names("experiments"), *own]


def selectors(prefix: str, experiment: str) -> list[str]:
    """How ``--only`` may go on: an axis of the experiment, or a value of one, as cell ids spell it."""
    before, comma, last = prefix.rpartition(",")
    axis, equals, values = last.partition("=")
    axes = _axes(experiment)
    if not equals:
        return [f"{before}{comma}{name}=" for name in axes]
    others, bar, _ = values.rpartition("|")
    return [f"{before}{comma}{axis}={others}{bar}{squeeze(value)}" for value in axes.get(axis, ())]


def keys(prefix: str, experiment: str) -> list[str]:
    """How ``--set`` may go on: a key of experiment files, an axis of the experiment, or a value of one."""
    axes = _axes(experiment)
    axis, equals, _ = prefix.partition("=")
    if equals:
        return [f"{axis}={value}" for value in axes.get(axis, ())]
    return [f"{key}=" for key in (*_keys(), *axes)]


def _axes(experiment: str) -> dict[str, tuple[str, ...]]:
    """Those of a file as it stands; none where it cannot be read, for nobody waits for a complaint here."""
    try:
        path = bundled.find("experiments", experiment)
        return read.parse(read_text(path), source=str(path)).axes
    except FabbbrError:
        return {}


def _keys() -> Iterator[str]:
    """Keys of experiment files that a command line may set, those of the path and of the first flows too."""
    yield from ("repeat", "claims")
    yield from (key for key in Setup.model_fields if key not in ("path", "flows"))
    yield from (f"path.{key}" for key in PathSetup.model_fields)
    yield from (f"flows.0.{field.alias or key}" for key, field in FlowGroup.model_fields.items())

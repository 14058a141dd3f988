"""How a sandbox is to behave; the same words on both sides of the door between the worlds."""

from __future__ import annotations

import argparse
from pathlib import Path

from fabbbr.record import Record
from fabbbr.sandbox.faults import Fault
from fabbbr.sandbox.options import DEFAULT_SCALE, DEFAULT_TAGS


class Settings(Record):
    """``scale`` is the share of FABRIC's own waits; ``log`` a folder that outlives the sandbox."""

    scale: float = DEFAULT_SCALE
    faults: tuple[Fault, ...] = ()
    tags: tuple[str, ...] = DEFAULT_TAGS
    seed: int = 1
    token_hours: float = 4.0
    log: Path | None = None

    def arguments(self) -> tuple[str, ...]:
        """The options that :func:`from_arguments` reads back as these settings."""
        faults = [word for fault in self.faults for word in ("--fault", _written(fault))]
        tags = [word for tag in self.tags or ("none",) for word in ("--tag", tag)]
        log = [] if self.log is None else ["--log", str(self.log)]
        numbers = [
            "--scale",
            repr(self.scale),
            "--seed",
            str(self.seed),
            "--token-hours",
            repr(self.token_hours),
        ]
        return (*numbers, *faults, *tags, *log)


def _written(fault: Fault) -> str:
    pairs = fault.model_dump(exclude_defaults=True, exclude={"kind"})
    return ":".join([fault.kind, ",".join(f"{key}={value}" for key, value in pairs.items())]).rstrip(":")


def from_arguments(arguments: argparse.Namespace) -> Settings:
    """The settings that were asked for; UsageError when a fault cannot be read."""
    tags = DEFAULT_TAGS if arguments.tag is None else tuple(tag for tag in arguments.tag if tag != "none")
    return Settings(
        scale=arguments.scale,
        faults=tuple(Fault.parse(text) for text in arguments.fault),
        tags=tags,
        seed=arguments.seed,
        token_hours=arguments.token_hours,
        log=None if arguments.log is None else arguments.log.absolute(),
    )

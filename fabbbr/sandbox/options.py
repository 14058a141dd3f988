"""The options of a sandbox on a command line; nothing heavy is imported for a --help."""

from __future__ import annotations

import argparse
from pathlib import Path

DEFAULT_SCALE = 0.02
DEFAULT_TAGS = ("Slice.Multisite", "VM.NoLimit", "Component.SmartNIC", "Net.NoLimitBW")
"""Of the project: enough for every experiment that fabbbr ships. ``--tag none`` is a fresh project."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of both `fabbbr sandbox` and the first program inside."""
    parser.add_argument(
        "--scale",
        type=_positive,
        default=DEFAULT_SCALE,
        metavar="X",
        help=f"share of FABRIC's own waiting times; 1 is as on FABRIC (default: {DEFAULT_SCALE})",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="KIND[:KEY=VALUE,…]",
        help="a failure on purpose, as in ssh-late:node=h1,seconds=30; may be given again",
    )
    parser.add_argument(
        "--tag",
        action="append",
        metavar="TAG",
        help=f"a permission of the project; none for a fresh one (default: {' '.join(DEFAULT_TAGS)})",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that is drawn (default: 1)")
    parser.add_argument(
        "--token-hours", type=_positive, default=4.0, metavar="H", help="how long a token lives (default: 4)"
    )
    parser.add_argument("--log", type=Path, metavar="DIR", help="where requests and events are kept")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        message = f"{text} is not a positive number"
        raise argparse.ArgumentTypeError(message)
    return value

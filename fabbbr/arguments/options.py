"""Options that several commands have: said once, so that they mean the same everywhere."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

from fabbbr.arguments.completers import axis_values, experiment_names, keys

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""Where a command, or an action of one, is added."""
_AGAIN = "the same command begins anew"
_GOES_ON = "finished cells are kept, the same command continues"


def add_command(commands: Commands, name: str, module: str, text: str) -> argparse.ArgumentParser:
    """Add a command that the module of this name in :mod:`fabbbr.commands` carries out."""
    parser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(module=module, command=name, runs_cells=False, interrupted=_AGAIN)
    return parser


def runs_cells(parser: argparse.ArgumentParser) -> None:
    """Say of a command that it runs cells: nobody's reading stops it, and what is finished is kept."""
    parser.set_defaults(runs_cells=True, interrupted=_GOES_ON)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON for a program to read")


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add the experiment itself."""
    parser.add_argument(
        "experiment", metavar="EXP", help="a bundled name or your own YAML file"
    ).completer = (  # type: ignore[attr-defined]
        experiment_names
    )


def add_cell_options(parser: argparse.ArgumentParser) -> None:
    """Which cells, wherever they run."""
    profile = parser.add_mutually_exclusive_group()
    profile.add_argument("--quick", dest="profile", action="store_const", const="quick", default="default")
    profile.add_argument("--full", dest="profile", action="store_const", const="full")
    parser.add_argument("--repeat", type=int, metavar="N", help="repetitions per condition")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the whole run (default: 1)")
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a key of the experiment, as in path.rate='1 Gbit/s'; may be given again",
    ).completer = keys  # type: ignore[attr-defined]
    add_own_ccas(parser)
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let the experiment's own slice file or module run without asking; for this call only",
    )
    parser.add_argument(
        "--only", metavar="SELECTOR", help="axis=value[,axis=value…], or a glob over cell ids"
    ).completer = axis_values  # type: ignore[attr-defined]


def add_own_ccas(parser: argparse.ArgumentParser) -> None:
    """Add ``--cca``: congestion controls that the user brings."""
    parser.add_argument(
        "--cca",
        dest="ccas",
        action="append",
        default=[],
        type=_named_place,
        metavar="NAME=PATH",
        help="a congestion control of your own, as in mine=./tcp_mine: the folder of a kernel module, or one "
        ".c file, or a BPF program (.bpf.c); runs beside those that the experiment compares; "
        "may be given again",
    )


def _named_place(text: str) -> tuple[str, Path]:
    name, equals, place = text.partition("=")
    if not (name and equals and place):
        message = f"{text!r}: write it as NAME=PATH, as in mine=./tcp_mine"
        raise argparse.ArgumentTypeError(message)
    return name, Path(place)


def add_until_decided(parser: argparse.ArgumentParser) -> None:
    """Add what decides how many repetitions there are."""
    parser.add_argument(
        "--until-decided",
        action="store_true",
        help="add repetitions where a claim is undecided: twice as many at each look, until --most",
    )
    parser.add_argument(
        "--most", type=int, metavar="N", help="repetitions at most (default: eight times the first)"
    )


def add_warm_up(parser: argparse.ArgumentParser) -> None:
    """Add ``--warm-up``: another one than the run's own."""
    parser.add_argument(
        "--warm-up",
        metavar="TIME",
        help="leave so much out of steady state, as 5s, and not what the run says; nothing is run again",
    )


def add_selector(parser: argparse.ArgumentParser) -> None:
    """Add ``--where``: which cells of a run."""
    parser.add_argument(
        "--where",
        metavar="SELECTOR",
        help="axis=value[,axis=value…], as rtt=100ms, or a glob over cell ids",
    )

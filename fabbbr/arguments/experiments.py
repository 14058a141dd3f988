"""Commands about experiments: list, plan, run."""

from __future__ import annotations

import argparse
from pathlib import Path

from fabbbr.arguments.completers import bundled_names
from fabbbr.arguments.options import (
    Commands,
    add_cell_options,
    add_command,
    add_experiment,
    add_json,
    add_until_decided,
    runs_cells,
)
from fabbbr.backends.registry import BACKENDS, CLOCKS, DEFAULT


def add_experiment_commands(commands: Commands) -> None:
    """Add ``experiments``, ``spec``, ``plan``, ``run``."""
    experiments = add_command(
        commands, "experiments", "experiments", "list the bundled experiments, show one, or copy one to edit"
    )
    experiments.add_argument("action", choices=("list", "show", "copy"), nargs="?", default="list")
    experiments.add_argument("name", nargs="?", help="a bundled experiment").completer = bundled_names  # type: ignore[attr-defined]
    experiments.add_argument(
        "--to", type=Path, metavar="FILE", help="where copy writes (default: ./NAME.yaml)"
    )
    add_json(experiments)
    spec = add_command(commands, "spec", "experiments", "print the JSON schema of experiment files")
    spec.add_argument("action", choices=("schema",))
    plan = add_command(
        commands, "plan", "plan", "the cells of an experiment, what they will cost, and their commands"
    )
    _add_plan_options(plan)
    plan.add_argument("--commands", action="store_true", help="also print every command that would run")
    add_json(plan)
    run = add_command(
        commands, "run", "run", "run an experiment, or the cells of it that are missing, and report"
    )
    runs_cells(run)
    _add_plan_options(run)
    run.add_argument("--jobs", type=int, metavar="N", help="cells at a time (default: one per CPU)")
    run.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: runs/NAME)")
    add_until_decided(run)
    run.add_argument("--dry-run", action="store_true", help="print cells and every command, run nothing")
    run.add_argument("--no-report", action="store_true", help="keep raw files only; report later")
    add_json(run)


def _add_plan_options(parser: argparse.ArgumentParser) -> None:
    add_experiment(parser)
    add_cell_options(parser)
    parser.add_argument(
        "--backend", choices=tuple(BACKENDS), default=DEFAULT, help=f"where to run (default: {DEFAULT})"
    )
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        help="real is slower and less exact, for comparison (default: the first that the backend has)",
    )

"""``fabbbr report``, ``claims``, ``compare`` and ``verify``: all that needs nothing but a run folder."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fabbbr.commands.terminal import Terminal, tell
from fabbbr.errors import StoreError
from fabbbr.laboratory import open_runs
from fabbbr.store import RunFolder

if TYPE_CHECKING:
    import pandas as pd

    from fabbbr_analysis.claims import Verdict

_COLOURS = {
    "reproduced": "green",
    "compatible": "cyan",
    "not reproduced": "red",
    "inconclusive": "yellow",
    "not run": "dim",
}


def main(arguments: argparse.Namespace) -> int:
    """Dispatch by command."""
    return {"report": _report, "claims": _claims, "compare": _compare, "verify": _verify}[arguments.command](
        arguments
    )


def _report(arguments: argparse.Namespace) -> int:
    from fabbbr_analysis.report import write_report

    folder = arguments.to or arguments.runs[0]
    path = write_report(open_runs(arguments.runs), folder)
    tell(json.dumps({"report": str(path)}) if arguments.json else path)
    return 0


def _claims(arguments: argparse.Namespace) -> int:
    from fabbbr_analysis.claims import judge

    runs = arguments.runs or sorted(path.parent for path in Path("runs").glob("*/run.json"))
    verdicts = judge(open_runs(runs))
    if arguments.json:
        keys = ("id", "experiment", "verdict", "value", "low", "high", "band", "published", "n")
        print(json.dumps([{key: getattr(verdict, key) for key in keys} for verdict in verdicts]))
    else:
        _print_scoreboard(verdicts, everything=arguments.all)
    return 0


def _print_scoreboard(verdicts: Sequence[Verdict], *, everything: bool) -> None:
    """A line per verdict and its claim below it, which fits a terminal of 80 columns."""
    console = Terminal()
    for verdict in verdicts:
        if everything or verdict.verdict != "not run":
            console.say(
                (f"{verdict.verdict:14}", _COLOURS[verdict.verdict]),
                " ",
                (f"{verdict.id:6}", "bold"),
                f" {_measured(verdict)}",
                (f", band {verdict.band}", "dim"),
            )
            console.say(f"{'':21} ", (verdict.predicate, "dim"))
    counts: Counter[str] = Counter(verdict.verdict for verdict in verdicts)
    console.say(
        ", ".join(f"{counts[name]} {name}" for name in _COLOURS if counts[name])
        + ("" if everything else "  (--all lists those not run)")
    )


def _measured(verdict: Verdict) -> str:
    if verdict.value is None:
        return ""
    if verdict.low is None or verdict.high is None:
        return f"{verdict.value:.4g}"
    return f"{verdict.value:.4g} ({verdict.low:.4g} to {verdict.high:.4g}), n = {verdict.n}"


def _compare(arguments: argparse.Namespace) -> int:
    from fabbbr_analysis.summary import compare

    first, second = open_runs(arguments.runs)
    frame = compare(first, second)
    if arguments.json:
        print(frame.to_json(orient="records"))
    else:
        _print_comparison(frame)
    if arguments.to is not None:
        from fabbbr_analysis.report import write_comparison

        path = write_comparison(first, second, arguments.to)
        Terminal(stderr=arguments.json).say(f"report: {path}")
    return 0


def _print_comparison(frame: pd.DataFrame) -> None:
    """What changed, condition by condition; what did not is only counted."""
    console = Terminal()
    for condition, rows in frame.groupby("condition", sort=False):
        counts: Counter[str] = Counter(rows["verdict"])
        found = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        console.say((str(condition), "bold"), "  ", (found, "dim"))
        for row in rows[rows["verdict"].isin(["changed", "unclear"])].itertuples():
            interval = f"({row.difference_low:.4g} to {row.difference_high:.4g})"
            console.say(
                f"  {row.verdict:8} {row.metric}: {row.mean_a:.5g} → {row.mean_b:.5g}",
                (f", a − b {row.difference:.4g} {interval}", "dim"),
            )


def _verify(arguments: argparse.Namespace) -> int:
    problems: list[str] = []
    whole = 0
    for path in arguments.runs:
        folder = RunFolder.open(path)
        if not (path / "cells").is_dir():
            message = f"{path} has no cells folder: what is left of the run cannot be verified"
            raise StoreError(message)
        for file in sorted((path / "cells").iterdir()):
            try:
                found = folder.cell(file.name).damage()
            except StoreError as error:
                found = [str(error)]
            problems += found
            whole += not found
    if arguments.json:
        print(json.dumps({"whole_cells": whole, "problems": problems}))
    else:
        for problem in problems:
            tell(problem)
        tell(f"{whole} cells are whole")
    if problems:
        message = (
            f"{len(problems)} problems; remove the folders of the damaged cells and run the experiment again"
        )
        raise StoreError(message)
    return 0

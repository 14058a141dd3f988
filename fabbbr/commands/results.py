"""``fabbbr report``, ``claims``, ``compare`` and ``verify``: all that needs nothing but a run folder."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fabbbr.commands.terminal import Terminal, tell
from fabbbr.counts import counted
from fabbbr.errors import StoreError
from fabbbr.inspection import REMEDY, Inspection, inspect
from fabbbr.laboratory import open_runs
from fabbbr.store import RUN, RunFolder

if TYPE_CHECKING:
    import pandas as pd

    from fabbbr_analysis.claims import Verdict
    from fabbbr_analysis.runset import RunSet

_COLOURS = {
    "reproduced": "green",
    "compatible": "cyan",
    "not reproduced": "red",
    "inconclusive": "yellow",
    "not run": "dim",
}


_VERDICT = (
    "id", "experiment", "losses", "verdict", "value", "low", "high", "band", "published", "n",
    "rules_version",
)  # fmt: skip
"""What JSON says of a verdict."""


def main(arguments: argparse.Namespace) -> int:
    """Dispatch by command."""
    return {"report": _report, "claims": _claims, "compare": _compare, "verify": _verify}[arguments.command](
        arguments
    )


@contextmanager
def opened(paths: Sequence[Path], *, warm_up: str | None = None) -> Iterator[Sequence[RunSet]]:
    """Open run folders without what is damaged; name that and, when all else is done, raise StoreError.

    With ``warm_up``, as if all of their cells had this one.
    """
    from fabbbr_analysis.runset import DamagedRunWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedRunWarning)
        run_sets: Sequence[RunSet] = open_runs(paths)
    if warm_up is not None:
        run_sets = [run_set.with_warm_up(warm_up) for run_set in run_sets]
    every = [each for run_set in run_sets for each in (run_set, run_set.beside) if each is not None]
    problems = tuple(problem for each in every for problem in each.problems)
    for problem in problems:
        Terminal(stderr=True).say(f"damaged and left out: {problem}")
    yield run_sets
    _raise_for(problems)


def _raise_for(problems: Sequence[str]) -> None:
    """Raise StoreError when there are problems; they have been listed."""
    if problems:
        message = f"{len(problems)} problem{'s' * (len(problems) > 1)}; {REMEDY}"
        raise StoreError(message)


def report_on(console: Terminal, folder: RunFolder, opening: contextlib.ExitStack) -> Path | None:
    """Write the report of a run; return where it is, None where no cell is whole.

    ``opening`` says at its end what is damaged.
    """
    if not any(folder.has(cell.id) for cell in folder.manifest.cells):
        return None
    from fabbbr_analysis.report import write_report

    run_sets = opening.enter_context(opened([folder.path]))
    with console.status("making tables and report"):
        report = write_report(run_sets, folder.path)
    console.say("report: ", (str(report), "bold"))
    return report


def _report(arguments: argparse.Namespace) -> int:
    from fabbbr_analysis.report import place_of, write_report

    with opened(arguments.runs, warm_up=arguments.warm_up) as run_sets:
        path = write_report(run_sets, arguments.to or place_of(run_sets[0]))
        tell(json.dumps({"report": str(path)}) if arguments.json else path)
    return 0


def _claims(arguments: argparse.Namespace) -> int:
    from fabbbr_analysis.claims import judge

    runs = list(_runs_below(arguments.runs or [Path("runs")], named=bool(arguments.runs)))
    if not runs and not arguments.json:
        Terminal().say("no run below ./runs: begin one with fabbbr run, or name its folder")
    with opened(runs) as run_sets:
        verdicts = judge(run_sets)
        if arguments.json:
            print(json.dumps([{key: getattr(verdict, key) for key in _VERDICT} for verdict in verdicts]))
        else:
            _print_scoreboard(verdicts, everything=arguments.all)
            _name_other_ways(run_sets, verdicts)
    return 0


def _runs_below(folders: Sequence[Path], *, named: bool) -> Iterator[Path]:
    """The runs that are one of ``folders`` or anywhere within it; the inside of a run is not looked at.

    A folder that somebody ``named`` and that has none is given back itself: to open it says what it lacks.
    """
    for folder in folders:
        found = False
        for path, below, files in os.walk(folder):
            if RUN in files:
                below.clear()
                found = True
                yield Path(path)
            below.sort()
        if not found and named:
            yield folder


def _print_scoreboard(verdicts: Sequence[Verdict], *, everything: bool) -> None:
    """A line per verdict and its claim below it, which fits a terminal of 80 columns.

    Of a claim that was judged both ways, packet by packet and as super-packets, the verdicts stand together.
    """
    from fabbbr_analysis.claims import side_by_side

    console = Terminal()
    rows = side_by_side(verdicts)
    shown = rows if everything else [row for row in rows if any(map(_rests_on_runs, row))]
    for row in shown:
        # The worst part of each way decides: where that is not the same, both are named.
        apart = len({verdict.quantity for verdict in row}) > 1
        for place, verdict in enumerate(row):
            _print_verdict(console, verdict, "" if place else verdict.id, named=apart)
        console.say(f"{'':21} ", (row[0].predicate, "dim"))
    for line in _tallies([verdict for row in shown for verdict in row]):
        console.say(line)
    if len(shown) < len(rows):
        console.say(f"(--all lists {len(rows) - len(shown)} more, which these runs do not judge)")


def _rests_on_runs(verdict: Verdict) -> bool:
    """Whether runs were judged: what is mere arithmetic has none."""
    return verdict.verdict != "not run" and verdict.n is not None


def _name_other_ways(run_sets: Sequence[RunSet], verdicts: Sequence[Verdict]) -> None:
    """What runs an experiment as it was published, where that was not run."""
    from fabbbr_analysis.report.provenance import rerun_command

    other = _unpublished_way(verdicts)
    for run_set in run_sets:
        if run_set.experiment in other:
            command = rerun_command(run_set.manifest, run_set.origins())
            Terminal().say(
                f"{run_set.experiment} was published with segmentation offloads on. To judge that too: "
                f"{command} --set path.offloads=true --out {shlex.quote(f'{run_set.path}.super-packets')}"
            )


def _print_verdict(console: Terminal, verdict: Verdict, name: str, *, named: bool) -> None:
    what = f"{verdict.quantity}, " if named and verdict.value is not None else ""
    console.say(
        (f"{verdict.verdict:14}", _COLOURS[verdict.verdict]),
        " ",
        (f"{name:6}", "bold"),
        f" {verdict.way}: " if verdict.way else " ",
        what,
        _measured(verdict) or verdict.reason.partition("; ")[0],
        ("" if verdict.value is None else f", band {verdict.band}", "dim"),
    )


def _tallies(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """How many of each verdict; where packets were lost both ways, a line for each."""
    both = {verdict.losses for verdict in verdicts} >= {"packets", "super-packets"}
    for words, ways in (
        ("packet by packet: ", (None, "packets")),
        ("super-packets: ", ("super-packets",)),
    ):
        counts: Counter[str] = Counter(verdict.verdict for verdict in verdicts if verdict.losses in ways)
        if counts:
            said = ", ".join(f"{counts[name]} {name}" for name in _COLOURS if counts[name])
            yield f"{words if both or 'super-packets' in ways else ''}{said}"


def _unpublished_way(verdicts: Sequence[Verdict]) -> list[str]:
    """Experiments that were published with super-packets and judged packet by packet alone."""
    from fabbbr_analysis.references import ran_with_offloads

    run = {
        way: {verdict.experiment for verdict in verdicts if verdict.losses == way}
        for way in ("packets", "super-packets")
    }
    return [name for name in sorted(run["packets"] - run["super-packets"]) if ran_with_offloads(name)]


def _measured(verdict: Verdict) -> str:
    if verdict.value is None:
        return ""
    if verdict.low is None or verdict.high is None:
        return f"{verdict.value:.4g}"
    return f"{verdict.value:.4g} ({verdict.low:.4g} to {verdict.high:.4g}), n = {verdict.n}"


def _compare(arguments: argparse.Namespace) -> int:
    from fabbbr_analysis.summary import compare

    with opened(arguments.runs) as (first, second):
        frame = compare(first, second)
        if arguments.json:
            print(frame.to_json(orient="records"))
        else:
            _print_comparison(first, second, frame)
        if arguments.to is not None:
            from fabbbr_analysis.report import write_comparison

            path = write_comparison(first, second, arguments.to)
            Terminal(stderr=arguments.json).say(f"report: {path}")
    return 0


def _print_comparison(first: RunSet, second: RunSet, frame: pd.DataFrame) -> None:
    """In sentences, condition by condition; before them what was different to begin with."""
    from fabbbr_analysis.report import all_the_same, asked_differently, paired, sentences

    console = Terminal()
    console.say(("A", "bold"), f" is {first.path}, ", ("B", "bold"), f" is {second.path}.")
    different = asked_differently(first, second)
    if different:
        console.say("Different to begin with:")
        for one in different:
            console.say(f"  {one}")
    if not frame["verdict"].isin(["changed", "unclear", "unchanged"]).any():
        console.say("The two runs have no condition in common, so nothing can be compared.")
    if nothing := all_the_same(frame):
        console.say(f"{nothing}.")
        return
    if together := paired(frame):
        console.say(f"{together}.")
    for condition, rows in frame.groupby("condition", sort=False):
        console.say((str(condition), "bold"))
        for sentence in sentences(rows):
            console.say(f"  {sentence}")


def _verify(arguments: argparse.Namespace) -> int:
    from fabbbr_analysis.tables.index import altered

    found = {folder.path: inspect(folder, raw_files=True) for folder in _folders(arguments.runs)}
    problems = tuple(
        problem for path, each in found.items() for problem in (*each.problems, *altered(path / "tables"))
    )
    if arguments.json:
        print(json.dumps(_as_json(found, problems)))
    else:
        for problem in problems:
            tell(problem)
        for path, each in found.items():
            _print_inspection(path, each)
    _raise_for(problems)
    return 0


def _folders(paths: Sequence[Path]) -> Iterator[RunFolder]:
    """Run folders, and those of the same cells in the guest that are within them."""
    for path in paths:
        folder = RunFolder.open(path)
        yield folder
        beside = folder.beside()
        if beside is not None:
            yield beside


def _as_json(found: dict[Path, Inspection], problems: Sequence[str]) -> dict[str, object]:
    return {
        "whole_cells": sum(len(each.whole) for each in found.values()),
        "problems": problems,
        "not_run": [cell_id for each in found.values() for cell_id in each.not_run],
        "without_digest": sum(each.without_digest for each in found.values()),
        "digests": {str(path): each.digest for path, each in found.items()},
    }


def _print_inspection(path: Path, found: Inspection) -> None:
    tell(f"{path}: {counted(len(found.whole), 'whole cell')}")
    if found.not_run:
        more = f", and {len(found.not_run) - 1} more" if len(found.not_run) > 1 else ""
        tell(f"{path}: planned and not there, so not run yet: {found.not_run[0]}{more}")
    if found.without_digest:
        tell(
            f"{path}: {found.without_digest} manifests are of format 1 and have no digest: an edit "
            f"of them is not noticed"
        )
    if found.digest is not None:
        tell(f"{path}: digest sha256 {found.digest}")

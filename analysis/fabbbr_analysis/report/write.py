"""Write a report's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr.errors import AnalysisError, StoreError
from fabbbr.files import write_atomically
from fabbbr.inspection import summary_of
from fabbbr_analysis.answers import as_frame
from fabbbr_analysis.claims import judge
from fabbbr_analysis.figures.catalogue import palette_of
from fabbbr_analysis.figures.measures import MEASURES
from fabbbr_analysis.report import render
from fabbbr_analysis.report.added import comparison
from fabbbr_analysis.report.page import ExperimentSection, page
from fabbbr_analysis.summary import summarise

if TYPE_CHECKING:
    from fabbbr_analysis.claims import Verdict
    from fabbbr_analysis.runset import RunSet

REPORT = "report.html"
TESTBED_ADDS = "testbed_adds.csv"


def write_report(run_sets: Sequence[RunSet], folder: Path) -> Path:
    """Write ``report.html``, ``report.md`` and the tables behind them; return the path of the first.

    ``answers.csv`` has who wins, by how much and how sure, ``summary.csv`` every mean and ``claims.csv`` each
    verdict. Where a run has its cells in the guest too, ``testbed_adds.csv`` has every column of that
    comparison.

    The same run sets in the same place give the same bytes: all times come from the manifests. Raises
    AnalysisError when there is no run set or one has no cells, StoreError when all of its cells are damaged
    or the folder cannot be written.
    """
    if not run_sets:
        message = "a report needs at least one run folder; name one, as in: fabbbr report RUN"
        raise AnalysisError(message)
    for run_set in run_sets:
        if run_set.runs.empty and run_set.problems:
            message = f"{run_set.path} has no cell left to report on: {summary_of(run_set.problems)}"
            raise StoreError(message)
        if run_set.runs.empty:
            message = f"{run_set.path} holds no finished cell to report on; finish it with: fabbbr run"
            raise AnalysisError(message)
    verdicts = judge(run_sets)
    summaries = [summarise(run_set.runs, measured(run_set.runs)) for run_set in run_sets]
    whole = page(run_sets, verdicts, summaries, palette_of(*run_sets), folder)
    make(folder)
    write_atomically(folder / "summary.csv", as_csv(pd.concat(summaries, ignore_index=True)))
    write_atomically(folder / "answers.csv", as_csv(_answers(whole.experiments)))
    write_atomically(
        folder / "claims.csv", as_csv(pd.DataFrame(map(claim_as_row, verdicts), columns=CLAIM_COLUMNS))
    )
    compared = [table for run_set in run_sets if (table := comparison(run_set)) is not None]
    if compared:
        write_atomically(folder / TESTBED_ADDS, as_csv(pd.concat(compared, ignore_index=True)))
    write_atomically(folder / "report.md", render.markdown("report.md.j2", page=whole))
    write_atomically(folder / REPORT, render.html("report.html.j2", page=whole))
    return folder / REPORT


def place_of(run_set: RunSet) -> Path:
    """Where a report goes when nobody says: the run folder, or one in it where the warm-up is not its own."""
    other = run_set.other_warm_up
    return run_set.path if other is None else run_set.path / f"warm-up-{other.word}"


def _answers(experiments: Sequence[ExperimentSection]) -> pd.DataFrame:
    frames = [as_frame(each.answer).assign(experiment=each.id) for each in experiments]
    return pd.concat([frame for frame in frames if not frame.empty] or frames[:1], ignore_index=True)


def make(folder: Path) -> None:
    """Create ``folder``; raise StoreError when that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot create {folder}: {error.strerror}; choose another --out"
        raise StoreError(message) from error


def measured(runs: pd.DataFrame) -> list[str]:
    """Return the metrics of which at least one run has a value."""
    return [m.column for m in MEASURES if m.column in runs.columns and runs[m.column].notna().any()]


def as_csv(table: pd.DataFrame) -> str:
    """Write a table with Unix line ends and nothing for what is absent."""
    return str(table.to_csv(index=False, lineterminator="\n"))


CLAIM_COLUMNS = (
    "id", "experiment", "losses", "verdict", "value", "low", "high", "band", "published", "n", "strength",
    "predicate", "reason", "rules_version",
)  # fmt: skip
"""What ``claims.csv`` says of a verdict."""


def claim_as_row(verdict: Verdict) -> dict[str, object]:
    """Return a verdict as a row of ``claims.csv``."""
    return {column: getattr(verdict, column) for column in CLAIM_COLUMNS}

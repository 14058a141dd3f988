"""What was asked of a run and what came of it: who wins, by how much, how sure.

:func:`answer` turns a run set into plain records, for a report, a notebook or a terminal: sentences, a table
with intervals, and warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fabbbr_analysis.answers.choices import told_of_choices
from fabbbr_analysis.answers.convergence import told_of_convergence
from fabbbr_analysis.answers.costs import told_of_costs
from fabbbr_analysis.answers.crossings import told_of_crossings
from fabbbr_analysis.answers.delays import told_of_delays
from fabbbr_analysis.answers.effects import told_of_axes
from fabbbr_analysis.answers.enough import told_of_enough
from fabbbr_analysis.answers.evenness import told_of_evenness
from fabbbr_analysis.answers.frame import as_frame
from fabbbr_analysis.answers.leads import leads_of
from fabbbr_analysis.answers.places import told_of_places
from fabbbr_analysis.answers.records import Answer, AnswerRow, Lead
from fabbbr_analysis.answers.rows import OF_SEVERAL, in_order, in_units_of_all, rows_of, whole_runs_of
from fabbbr_analysis.answers.sentences import headline, steps_in, told_of_whole_runs
from fabbbr_analysis.answers.tails import told_of_tails
from fabbbr_analysis.answers.videos import told_of_videos
from fabbbr_analysis.answers.warned import warnings_of
from fabbbr_analysis.figures.conditions import varied

if TYPE_CHECKING:
    from fabbbr_analysis.figures.measures import Measure
    from fabbbr_analysis.runset import RunSet

__all__ = ["Answer", "AnswerRow", "Lead", "answer", "as_frame"]


def answer(run_set: RunSet) -> Answer:
    """Say what was asked of ``run_set`` and what came of it; only certified runs count.

    Raises AnalysisError when the run set has no table ``groups``.
    """
    axes = varied(run_set.runs)
    found, over_all = rows_of(run_set, axes), whole_runs_of(run_set, axes)
    told = in_units_of_all([*found, *over_all])
    rows, whole = told[: len(found)], told[len(found) :]
    leads = leads_of(rows)
    shown = in_order((*whole, *rows), axes)
    return Answer(
        headline=(
            *told_of_whole_runs(whole, leads_of(whole), axes, steps=steps_in(rows)),
            *told_of_choices(rows, axes),
            *headline(rows, leads, axes),
            *told_of_tails(rows, leads, axes),
            *told_of_crossings(rows, leads, axes),
            *told_of_evenness(run_set.runs, rows, axes),
            *told_of_costs(rows, leads, axes),
            *told_of_convergence(rows, axes),
            *told_of_places(rows, leads, axes),
            *told_of_axes(rows, axes, run_set.plan.values()),
            *told_of_enough(rows, axes),
            *told_of_delays(run_set, rows, axes),
            *told_of_videos(run_set, axes),
        ),
        warnings=tuple(warnings_of(run_set)),
        axes=tuple(axis.title for axis in axes),
        measures=tuple(_measures_of(shown)),
        rows=tuple(shown),
        leads=leads_of(shown) if whole else leads,
    )


def _measures_of(rows: Sequence[AnswerRow]) -> Iterator[Measure]:
    """Those that some row has, but what of single flows is the same twice."""
    present = {column for row in rows for column in row.values}
    some = {column for row in rows for column, found in row.values.items() if found.value > 0}
    several = any(row.n_flows > 1 for row in rows)
    hidden = frozenset() if several else OF_SEVERAL
    for measure in rows[0].measures.values() if rows else ():
        if measure.column in (some if measure.rare else present) - hidden:
            yield measure if several else replace(measure, title=measure.title.removesuffix(", median"))

"""Conditions with their intervals as a table: LaTeX for a paper, Markdown for a page, CSV for a program."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import pandas as pd

from fabbbr.errors import AnalysisError, UsageError
from fabbbr.suggest import did_you_mean
from fabbbr_analysis.answers import answer
from fabbbr_analysis.figures.measures import BY_COLUMN, MEASURES, Measure
from fabbbr_analysis.press import latex
from fabbbr_analysis.press.caption import of_table
from fabbbr_analysis.report import render
from fabbbr_analysis.report.tables import Result, ResultTable, asked_table, result_table
from fabbbr_analysis.report.write import as_csv
from fabbbr_analysis.summary import summarise

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

Format: TypeAlias = Literal["latex", "markdown", "csv"]
DEFAULT = ("goodput_bps", "rtt_median_s", "retransmit_ratio", "jain_flows", "completion_mean_s")
"""Few enough for a page; what no run has, and fairness among one flow, is left out."""
USUAL_OF_GROUPS = ("goodput_per_flow", "share", "completion", "rtt", "retransmit_ratio")
"""The same of groups of flows, of what there is."""
_HEAD_CHARACTERS = 14
"""Of a line of a head, which is broken into several."""
_COLUMN_CHARACTERS = 58
"""What fits a column of a two-column page, in small letters; wider tables go across both."""


@dataclass(frozen=True, kw_only=True)
class PrintedTable:
    """A table of one run."""

    experiment: str
    caption: str
    summary: pd.DataFrame
    """In long form, in base units, as :func:`fabbbr_analysis.summary.summarise` gives it."""
    shown: ResultTable
    """The same as text, in the units that people read."""

    def written(self, kind: Format) -> str:
        """The table in one of its forms."""
        if kind == "latex":
            return _latex(self)
        if kind == "markdown":
            return render.markdown("table.md.j2", table=self)
        return as_csv(self.summary)


def tabulate(run_set: RunSet, metrics: Sequence[str] = (), *, title: str = "") -> PrintedTable:
    """Tabulate every condition; ``metrics`` by name, the usual ones when there are none.

    Raises UsageError for a metric that does not exist, AnalysisError for one that no run has.
    """
    columns = [_measure(name).column for name in metrics] or _usual(run_set)
    summary = summarise(run_set.runs, columns)
    missing = [each for each in columns if summary.loc[summary["metric"] == each, "mean"].isna().all()]
    if missing:
        slugs = ", ".join(BY_COLUMN[each].slug for each in missing)
        message = f"no certified run of {run_set.experiment} has a value of {slugs}; leave it out"
        raise AnalysisError(message)
    manifest = run_set.manifest
    name = title or str(manifest.experiment.get("title") or run_set.experiment)
    return PrintedTable(
        experiment=run_set.experiment,
        caption=of_table(run_set, name.rstrip("."), summary),
        summary=summary,
        shown=result_table(run_set.runs, summary, columns),
    )


def tabulate_groups(run_set: RunSet, metrics: Sequence[str] = (), *, title: str = "") -> PrintedTable:
    """Tabulate every group of flows in every phase; arguments and errors as of :func:`tabulate`."""
    found = answer(run_set)
    if not found.rows:
        message = f"no certified run of {run_set.experiment} has groups of flows to tabulate"
        raise AnalysisError(message)
    known = {name: each for each in found.measures for name in (each.column, each.slug)}
    for name in metrics:
        if name not in known:
            slugs = [each.slug for each in found.measures]
            message = f"no metric {name!r} of groups{did_you_mean(name, slugs)} (metrics: {', '.join(slugs)})"
            raise UsageError(message)
    chosen = [known[name] for name in metrics] or [
        each for each in found.measures if each.slug in USUAL_OF_GROUPS
    ]
    whole = asked_table(replace(found, measures=tuple(chosen)))
    summary = pd.DataFrame(
        [
            {
                "experiment": run_set.experiment, "condition": row.condition, "phase": row.phase,
                "group": row.group, "cca": row.cca, "flows": row.n_flows, "metric": each.column,
                "n": value.n if value else 0, "mean": value.value if value else None,
                "low": value.low if value else None, "high": value.high if value else None,
                "method": value.method if value else None, "excluded": row.excluded,
            }
            for row in found.rows for each in chosen for value in [row.values.get(each.column)]
        ]
    )  # fmt: skip
    name = title or str(run_set.manifest.experiment.get("title") or run_set.experiment)
    return PrintedTable(
        experiment=run_set.experiment,
        caption=of_table(run_set, f"{name.rstrip('.')}, by group of flows", summary),
        summary=summary,
        # Who leads is the report's to say: a table of a paper has numbers.
        shown=replace(
            whole,
            values=whole.values[:-1],
            rows=tuple(replace(row, values=row.values[:-1]) for row in whole.rows),
        ),
    )


def _usual(run_set: RunSet) -> list[str]:
    certified = run_set.certified
    several = bool((certified["n_flows"] > 1).any())
    present = [each for each in DEFAULT if each in certified and certified[each].notna().any()]
    found = [each for each in present if several or each != "jain_flows"]
    if not found:
        message = f"{run_set.experiment} has no certified run to tabulate; fabbbr report says why"
        raise AnalysisError(message)
    return found


def _measure(name: str) -> Measure:
    for measure in MEASURES:
        if name in (measure.column, measure.slug):
            return measure
    names = [measure.slug for measure in MEASURES]
    message = f"no metric {name!r}{did_you_mean(name, names)} (metrics: {', '.join(names)})"
    raise UsageError(message)


def _latex(table: PrintedTable) -> str:
    shown = table.shown
    wide = "*" if _characters(shown) > _COLUMN_CHARACTERS else ""
    counted = len({(row.runs, row.excluded) for row in shown.rows}) > 1
    heads = [_head(each, "l") for each in shown.names]
    heads += [_head(each, "r") for each in (*shown.values, *(["Runs"] if counted else []))]
    columns = "l" * len(shown.names) + "r" * (len(heads) - len(shown.names))
    rows = [
        [*map(latex.escaped, row.names), *map(_value, row.values), *([str(row.runs)] if counted else [])]
        for row in shown.rows
    ]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{table{wide}}}",
            r"  \centering",
            r"  \small",
            rf"  \caption{{{latex.escaped(table.caption)}}}",
            rf"  \label{{{latex.label('tab', table.experiment)}}}",
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            f"    {' & '.join(heads)} \\\\",
            r"    \midrule",
            *(f"    {' & '.join(row)} \\\\" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            rf"\end{{table{wide}}}",
            "",
        ]
    )


def _characters(shown: ResultTable) -> int:
    """Width of the widest row, with a gap of two between columns."""
    rows = [[*row.names, *(f"{each.mean} {each.limits}" for each in row.values)] for row in shown.rows]
    heads = [max(_lines(head), key=len) for head in (*shown.names, *shown.values)]
    widths = [max(map(len, cells)) for cells in zip(heads, *rows, strict=True)]
    return sum(widths) + 2 * len(widths)


def _lines(head: str) -> list[str]:
    """A head in lines, its unit on one of its own."""
    title, bracket, unit = head.rpartition(" (")
    return [*textwrap.wrap(title or head, _HEAD_CHARACTERS), *([f"({unit}"] if bracket else [])]


def _head(head: str, side: str) -> str:
    lines = [rf"\strut {latex.escaped(line)}" for line in _lines(head)]
    return rf"\shortstack[{side}]{{" + r"\\".join(lines) + "}"


def _value(result: Result) -> str:
    limits = rf" {{\footnotesize {latex.escaped(result.limits)}}}" if result.limits else ""
    return f"{latex.escaped(result.mean)}{limits}"

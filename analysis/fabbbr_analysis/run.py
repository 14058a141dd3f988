"""A run as a notebook holds it: it draws itself, and answers by name what is asked of it."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr.errors import AnalysisError
from fabbbr.foreign import listed
from fabbbr.store import RunFolder
from fabbbr_analysis.drawn import Drawn
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.summary import COMPARED, compare, compare_along, summarise

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from fabbbr_analysis.answers import Answer
    from fabbbr_analysis.claims import Verdict
    from fabbbr_analysis.report.tables import ResultTable

_DIFFERENT = ("changed", "different")


class Run(Drawn, RunSet):
    """One run: its tables as DataFrames, its figures, its report, and what it says of itself.

    Printed, or as the last line of a notebook's cell, it is a table of its conditions under its headline.

    Examples
    --------
    >>> import fabbbr as fb
    >>> run = fb.open("runs/rivals")
    >>> run.flows[["cca", "streams", "outcome"]].drop_duplicates().values.tolist()
    [['bbr1', 1, 'completed'], ['cubic', 2, 'completed']]
    """

    @property
    def title(self) -> str:
        """What the experiment file says that it is about; its id where it says nothing."""
        return str(self.manifest.experiment.get("title") or self.experiment)

    @property
    def state(self) -> str:
        """How many of the planned cells are certified, and what became of the others.

        >>> import fabbbr as fb
        >>> fb.open("runs/rivals").state
        '4 of 4 cells certified'
        """
        planned, ran, certified = len(self.manifest.cells), len(self.runs), len(self.certified)
        others = ((ran - certified, "not certified"), (planned - ran, "not run"))
        said = "".join(f", {count} {what}" for count, what in others if count)
        return f"{certified} of {planned} cells certified{said}"

    @cached_property
    def answer(self) -> Answer:
        """What was asked of the run and what came of it, as records: who wins, by how much, how sure.

        >>> import fabbbr as fb
        >>> [row.name for row in fb.open("runs/rivals").answer.rows[:2]]
        ['bbr (bbr1)', 'cubic']
        """
        from fabbbr_analysis.answers import answer

        return answer(self)

    @cached_property
    def headline(self) -> tuple[str, ...]:
        """The result in sentences, as at the head of the report."""
        from fabbbr_analysis.report.page import said_of

        return tuple(said_of(self.manifest, self.runs, self.summary(), self.answer))

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row per condition, phase and group of flows, as text: what each got, and who is ahead.

        The numbers behind it, in base units: ``groups``, one row per cell, phase and group.

        >>> import fabbbr as fb
        >>> fb.open("runs/rivals").answers["Flows"].unique().tolist()
        ['bbr (bbr1)', 'cubic']
        """
        from fabbbr_analysis.report.tables import asked_table

        return _as_frame(asked_table(self.answer))

    @cached_property
    def conditions(self) -> pd.DataFrame:
        """One row per condition, each metric of whole cells with its 95 % interval, as text.

        The numbers behind it, in base units: :meth:`summary`.

        >>> import fabbbr as fb
        >>> fb.open("runs/rivals").conditions["Runs"].tolist()
        [2, 2]
        """
        from fabbbr_analysis.report.tables import result_table

        return _as_frame(result_table(self.runs, self.summary()))

    def summary(self, metrics: Sequence[str] | None = None) -> pd.DataFrame:
        """Return mean, 95 % interval and more of each condition and metric, long, in base units.

        ``metrics`` are columns of ``runs``; None: all that a run has. The columns are those of
        :func:`fabbbr_analysis.summary.summarise`.

        >>> import fabbbr as fb
        >>> table = fb.open("runs/rivals").summary(["goodput_bps"])
        >>> table[["condition", "n"]].values.tolist()
        [['buffer=1BDP', 2], ['buffer=4BDP', 2]]
        """
        from fabbbr_analysis.report.write import measured

        return summarise(self.runs, measured(self.runs) if metrics is None else metrics)

    def with_metric(self, name: str, values: pd.Series[float]) -> Run:
        """Return the same run with a metric of your own: a column more in ``runs``.

        ``values`` has one number per cell, by cell id; cells without one have none. What is one number per
        cell has intervals over repetitions in :meth:`summary`, and in :meth:`compare` with ``metrics``.
        Raises AnalysisError for a name that is taken, and where no value is of a cell of this run.

        >>> import fabbbr as fb
        >>> run = fb.open("runs/rivals")
        >>> slowest = run.with_metric("slowest_bps", run.flows.groupby("cell_id").goodput_bps.min())
        >>> slowest.summary(["slowest_bps"])["n"].tolist()
        [2, 2]
        """
        if name in self.runs.columns:
            message = f"runs has a column {name!r} already; choose another name"
            raise AnalysisError(message)
        if not self.runs["cell_id"].isin(values.index).any():
            message = f"{name}: no value is of a cell of {self.path}; let the index be cell_id"
            raise AnalysisError(message)
        found = self._like(read=self._read)
        found.__dict__["runs"] = self.runs.assign(**{name: self.runs["cell_id"].map(values)})
        return found

    def drawn(self) -> tuple[Sequence[str], pd.DataFrame]:
        """Title, headline, warnings and state above the conditions, or above the groups of flows in them."""
        from fabbbr_analysis.report.page import are_wholes

        if self.runs.empty:
            return [self.title, self.state], pd.DataFrame()
        table = self.conditions if are_wholes(self.manifest) or self.answers.empty else self.answers
        return [self.title, *self.headline, *self.answer.warnings, self.state], table

    @property
    def figures(self) -> tuple[str, ...]:
        """Every name that :meth:`figure` takes, the most telling first.

        >>> import fabbbr as fb
        >>> fb.open("runs/rivals").figures[0]
        'goodput_by_buffer'
        """
        from fabbbr_analysis.figures import figure_names

        return tuple(figure_names(self))

    def figure(self, name: str | None = None) -> go.Figure:
        """Return a figure of the report as an object of plotly; without a name, the first.

        Raises AnalysisError, which lists the names, where there is none of that name.

        >>> import fabbbr as fb
        >>> fb.open("runs/rivals").figure("rtt_by_buffer").layout.yaxis.title.text
        'Median RTT (ms)'
        """
        from fabbbr_analysis.figures import figure

        if name is None and not self.figures:
            message = f"{self.path} has no figure: no cell in it is finished"
            raise AnalysisError(message)
        return figure(self, name if name is not None else self.figures[0])

    def over_time(self, *cells: str) -> go.Figure:
        """Return goodput and RTT of each flow and the queue over the time of these cells, in one figure.

        Each is a cell's id, a condition (its most typical certified cell is taken) or a glob over cell ids;
        without one, the run must have a single condition. Raises AnalysisError where nothing matches.

        >>> import fabbbr as fb
        >>> run = fb.open("runs/rivals")
        >>> [axis.title.text for axis in run.over_time("buffer=1BDP").select_yaxes()]
        ['Goodput (Mbit/s)', 'RTT (ms)', 'Queue (kB)']
        """
        from fabbbr_analysis.figures import timeline
        from fabbbr_analysis.figures.catalogue import palette_of

        wanted = list(dict.fromkeys(cell for name in cells or ("",) for cell in self._cells(name)))
        return timeline.over_time(self, wanted, palette=palette_of(self))

    def _cells(self, name: str) -> list[str]:
        from fabbbr_analysis.figures.timeline import representative_cells

        typical = representative_cells(self.runs, of_one_repetition=self.shares_draws)
        by_condition = dict(zip(typical["condition"], typical["cell_id"], strict=True))
        ids = [str(cell_id) for cell_id in self.runs["cell_id"]]
        if not name and len(by_condition) == 1:
            return [str(cell_id) for cell_id in by_condition.values()]
        if name in by_condition:
            return [str(by_condition[name])]
        found = [cell_id for cell_id in ids if cell_id == name or fnmatch.fnmatchcase(cell_id, name)]
        if not found:
            what = f"no cell {name!r}" if name else "several conditions; name a cell or a condition"
            message = f"{self.path} has {what} (cells: {listed(ids, most=12)})"
            raise AnalysisError(message)
        return found

    def compare(
        self,
        other: RunSet | str | Path | None = None,
        *,
        by: str | Sequence[str] | None = None,
        against: str | Sequence[str] | None = None,
        metrics: Sequence[str] = COMPARED,
    ) -> Comparison:
        """Compare with another run, or conditions of this one that differ in an axis alone.

        ``other`` is a run or its folder. ``by`` names an axis, such as ``"cca"``, or several that change
        together; every other value is compared with ``against`` (default: the first in the experiment file)
        where all else is the same. ``metrics`` are columns of ``runs``: few, because each
        further one makes every other harder to tell apart (Holm).

        >>> import fabbbr as fb
        >>> fb.open("runs/rivals").compare(by="buffer").table[["a", "b", "metric", "verdict"]].head(1)
               a      b       metric verdict
        0  4 BDP  1 BDP  goodput_bps   alike
        """
        if (other is None) == (by is None):
            message = 'compare takes another run, or an axis of this one: run.compare(by="cca")'
            raise AnalysisError(message)
        if by is not None:
            axes = _several(by)
            base = self._first_of(axes) if against is None else _several(against)
            table = compare_along(self, axes, against=base, metrics=metrics)
            return Comparison(title=f"{self.title}: by {' and '.join(axes)}", table=table)
        other = other if isinstance(other, RunSet) else Run.open(Path(str(other)))
        title = f"{self.path} (a) beside {other.path} (b)"
        return Comparison(title=title, table=compare(self, other, metrics=metrics))

    def _first_of(self, axes: Sequence[str]) -> Sequence[str] | None:
        """The values of these axes in the first condition of the experiment file; None where it is silent."""
        columns = [f"axis_{axis}" for axis in axes]
        if not set(columns) <= set(self.certified.columns):
            return None
        there = set(self.certified[columns].astype(str).itertuples(index=False, name=None))
        conditions = self.manifest.experiment.get("conditions", ())
        asked = (tuple(str(each["axes"].get(axis)) for axis in axes) for each in conditions)
        return next((values for values in asked if values in there), None)

    def report(self, folder: str | Path | None = None) -> Path:
        """Write the report, and return where: ``report.html`` in the run folder, or in ``folder``.

        With another warm-up than the run's own, in a folder such as ``warm-up-5s`` in the run folder.

        >>> import fabbbr as fb
        >>> fb.open("runs/rivals").report().as_posix()
        'runs/rivals/report.html'
        """
        from fabbbr_analysis.report import place_of, write_report

        return write_report([self], place_of(self) if folder is None else Path(folder))

    def list_cells(self) -> pd.DataFrame:
        """Return a row per planned cell: what became of it, and why it does not count where it does not.

        >>> import fabbbr as fb
        >>> fb.open("runs/rivals").list_cells()["status"].unique().tolist()
        ['certified']
        """
        columns = ["cell_id", "condition", "repetition", "status", "reason"]
        planned = pd.DataFrame(
            [(cell.id, cell.condition, cell.repetition) for cell in self.manifest.cells], columns=columns[:3]
        )
        became = self.runs[["cell_id", "status", "reason"]]
        table = planned.merge(became, on="cell_id", how="left")
        return table.assign(status=table["status"].fillna("not run"))

    def list_figures(self) -> pd.DataFrame:
        """Return the names that :meth:`figure` takes, as a table."""
        return pd.DataFrame({"figure": self.figures})

    def list_claims(self) -> pd.DataFrame:
        """Return what published claims this run judges, with verdict, value, interval and band.

        >>> import fabbbr as fb
        >>> fb.open("runs/rivals").list_claims().empty
        True
        """
        from fabbbr_analysis.claims import judge

        found: list[Verdict] = [each for each in judge([self]) if each.verdict != "not run" and each.n]
        columns = ("id", "verdict", "value", "low", "high", "band", "n", "predicate", "reason")
        return pd.DataFrame([[getattr(each, name) for name in columns] for each in found], columns=columns)

    def show_cell(self, cell_id: str) -> pd.DataFrame:
        """Return the certificate of one cell: each check, what was asked and what was measured.

        Raises StoreError where the run has no such finished cell.

        >>> import fabbbr as fb
        >>> list(fb.open("runs/rivals").show_cell("buffer=1BDP,r1").columns)
        ['check', 'passed', 'asked', 'measured', 'detail']
        """
        checks = RunFolder.open(self.path).cell(cell_id).manifest.certificate.checks
        return pd.DataFrame(
            [(check.name, check.passed, check.asked, check.measured, check.detail) for check in checks],
            columns=["check", "passed", "asked", "measured", "detail"],
        )


def _as_frame(table: ResultTable) -> pd.DataFrame:
    """Set a table of the report as a frame of text; what was left out is told where something was."""
    rows = [
        [*row.names, *(f"{value.mean} {value.limits}".strip() for value in row.values), row.runs]
        for row in table.rows
    ]
    frame = pd.DataFrame(rows, columns=[*table.names, *table.values, "Runs"])
    excluded = [row.excluded for row in table.rows]
    return frame.assign(Excluded=excluded) if any(excluded) else frame


def _several(names: str | Sequence[str]) -> Sequence[str]:
    return (names,) if isinstance(names, str) else tuple(names)


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Drawn):
    """What differs between two runs, or between conditions of one; draws itself as a table."""

    title: str
    table: pd.DataFrame
    """Of :func:`fabbbr_analysis.summary.compare`, or ``compare_along``, in base units."""

    @property
    def different(self) -> pd.DataFrame:
        """The rows whose difference is larger than chance makes it."""
        return self.table[self.table["verdict"].isin(_DIFFERENT)].reset_index(drop=True)

    def drawn(self) -> tuple[Sequence[str], pd.DataFrame]:
        """How many rows differ, above every pair in the units of the report."""
        from fabbbr_analysis.report.compare import in_words

        counts = self.table["verdict"].value_counts()
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        return [self.title, f"{said}; intervals of 95 %" if said else "nothing to compare"], in_words(
            self.table
        )

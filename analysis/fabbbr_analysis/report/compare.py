"""What changed between two runs: the same look, one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.graph_objects as go

from fabbbr.counts import counted
from fabbbr.files import write_atomically
from fabbbr.manifest import RunManifest
from fabbbr_analysis.figures import canvas
from fabbbr_analysis.figures.measures import BY_COLUMN, Measure, in_a_sentence
from fabbbr_analysis.report import provenance, render
from fabbbr_analysis.report.changes import all_the_same, paired
from fabbbr_analysis.report.provenance import Fact
from fabbbr_analysis.report.slots import Option, Slot, embed
from fabbbr_analysis.report.write import as_csv, make
from fabbbr_analysis.summary import compare
from fabbbr_analysis.wording import ABSENT, interval, listing, number

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

COMPARISON = "comparison.html"
VERDICTS = ("changed", "unclear", "unchanged")
_COLOURS = {"changed": "#D55E00", "unclear": "#E69F00", "unchanged": "#0072B2"}
_SYMBOLS = {"changed": "diamond", "unclear": "circle-open", "unchanged": "circle"}


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two runs."""

    letter: str
    name: str
    title: str
    created: str
    certified: int
    planned: int
    problems: tuple[str, ...]
    """What ``fabbbr verify`` finds wrong with the run folder."""


@dataclass(frozen=True, kw_only=True)
class DifferentFact:
    """A fact in which the two runs differ."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class ComparedRow:
    """One metric at one condition, as text."""

    condition: str
    metric: str
    verdict: str
    a: str
    b: str
    ratio: str
    p: str


@dataclass(frozen=True, kw_only=True)
class ComparisonPage:
    """The whole page."""

    sides: tuple[Side, Side]
    counts: dict[str, int]
    differences: tuple[DifferentFact, ...]
    figures: tuple[Slot, ...]
    rows: tuple[ComparedRow, ...]
    alone: tuple[tuple[str, str], ...]
    """Condition and the side that has it."""
    nothing: str
    """That the two are the same in every run; empty where they are not."""
    paired: str
    """That runs were compared pair by pair; empty where they were not."""

    @property
    def result(self) -> str:
        """The result in one line."""
        total = sum(self.counts.values())
        if not total:
            return "The two runs have no condition in common, so nothing can be compared."
        if self.nothing:
            return f"{self.nothing}."
        said = [f"{self.counts[verdict]} {verdict}" for verdict in VERDICTS if self.counts[verdict]]
        return f"Of {counted(total, 'comparison')} of a metric at a condition: {listing(said)}."


def write_comparison(a: RunSet, b: RunSet, folder: Path) -> Path:
    """Write ``comparison.html`` and ``comparison.csv`` and return the path of the first.

    Raises StoreError when the folder cannot be written.
    """
    table = compare(a, b)
    whole = _comparison(a, b, table)
    make(folder)
    write_atomically(folder / "comparison.csv", as_csv(table))
    write_atomically(folder / COMPARISON, render.html("comparison.html.j2", page=whole))
    return folder / COMPARISON


def asked_differently(a: RunSet, b: RunSet) -> tuple[str, ...]:
    """What of set-up and provenance is not the same, each in a phrase; when they were begun is no cause."""
    different = (one for one in _differences(a, b) if one.name != "Started")
    return tuple(f"{one.name}: {one.a} in A, {one.b} in B" for one in different)


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """Set a table of ``compare`` or ``compare_along`` as text: means in units, ratios with intervals.

    Where conditions of one run are compared, the columns ``a`` and ``b`` name them.
    """
    names = [name for name in ("a", "b") if name in table.columns]
    rows = []
    for record in table.to_dict("records"):
        row = _row(record)
        pair = [str(record[name]) for name in names]
        rows.append([row.condition, *pair, row.metric, row.a, row.b, row.ratio, row.p, row.verdict])
    heads = ["condition", *names, "metric", "mean of a", "mean of b", "a over b", "p (Holm)", "verdict"]
    shown = pd.DataFrame(rows, columns=heads)
    return shown if (shown["condition"] != "").any() else shown.drop(columns="condition")


def _comparison(a: RunSet, b: RunSet, table: pd.DataFrame) -> ComparisonPage:
    compared = table[table["verdict"].isin(VERDICTS)]
    alone = table[~table["verdict"].isin(VERDICTS)]
    tally = Counter(compared["verdict"])
    # What changed is what the reader came for; within a verdict the order of the plan stays.
    order = compared["verdict"].map(VERDICTS.index)
    return ComparisonPage(
        sides=(_side("A", a), _side("B", b)),
        counts={verdict: tally[verdict] for verdict in VERDICTS},
        differences=tuple(_differences(a, b)),
        figures=tuple(_figures(compared)),
        rows=tuple(
            _row(row) for row in compared.loc[order.sort_values(kind="stable").index].to_dict("records")
        ),
        alone=tuple(
            (str(condition), str(verdict))
            for condition, verdict in zip(alone["condition"], alone["verdict"], strict=True)
        ),
        nothing=all_the_same(table),
        paired=paired(table),
    )


def _side(letter: str, run_set: RunSet) -> Side:
    manifest: RunManifest = run_set.manifest
    return Side(
        letter=letter,
        name=run_set.path.name,
        title=str(manifest.experiment.get("title") or run_set.experiment),
        created=manifest.created,
        certified=int((run_set.runs["status"] == "certified").sum()),
        planned=len(manifest.cells),
        problems=run_set.problems,
    )


def _differences(a: RunSet, b: RunSet) -> list[DifferentFact]:
    """Return what was asked or used differently: the first place to look for the cause of a change."""
    first, second = _facts(a), _facts(b)
    names = [*first, *(name for name in second if name not in first)]
    return [
        DifferentFact(name=name, a=first.get(name, "–"), b=second.get(name, "–"))
        for name in names
        if first.get(name) != second.get(name)
    ]


def _facts(run_set: RunSet) -> dict[str, str]:
    facts: Sequence[Fact] = (
        *provenance.conditions(run_set.manifest),
        *provenance.facts(run_set.manifest, run_set.origins()),
    )
    return {fact.name: fact.value for fact in facts}


def _row(row: Mapping[Hashable, Any]) -> ComparedRow:
    known = BY_COLUMN.get(str(row["metric"]))
    measure = None if known is None else known.suited((row["mean_a"], row["mean_b"]))
    factor, unit = (measure.factor, measure.unit) if measure else (1.0, "")
    return ComparedRow(
        condition=str(row["condition"]),
        metric=measure.title if measure else ABSENT if pd.isna(row["metric"]) else str(row["metric"]),
        verdict=str(row["verdict"]),
        a=f"{number(row['mean_a'] * factor)} {unit}".strip(),
        b=f"{number(row['mean_b'] * factor)} {unit}".strip(),
        ratio=f"{number(row['ratio'])} (exact)"
        if row["exact"]
        else interval(row["ratio"], row["ratio_low"], row["ratio_high"]),
        p=number(row["p_holm"], significant=2),
    )


def _figures(compared: pd.DataFrame) -> list[Slot]:
    """Draw one figure per metric: the ratio of every condition with its interval, around 1."""
    drawn = compared[compared["ratio"].notna()]
    return [
        _slot(place, BY_COLUMN[str(metric)], rows)
        for place, (metric, rows) in enumerate(drawn.groupby("metric", sort=False))
        if metric in BY_COLUMN
    ]


def _slot(place: int, measure: Measure, rows: pd.DataFrame) -> Slot:
    figure = canvas.empty(height=120 + 24 * len(rows))
    for verdict in VERDICTS:
        _add(figure, rows[rows["verdict"] == verdict], verdict)
    figure.add_vline(x=1, line={"color": "#8A8F98", "width": 1, "dash": "dot"})
    figure.update_xaxes(title_text="A over B")
    figure.update_yaxes(
        type="category", categoryarray=list(rows["condition"])[::-1], categoryorder="array", automargin=True
    )
    return Slot(
        id=f"ratio-{place}",
        title=f"{measure.title}: A over B",
        caption=f"{measure.explanation} Means of A over means of B with 95 % intervals; 1 is no change.",
        alt=f"Chart of the ratio of {in_a_sentence(measure.title)} of A to B at each condition. "
        "The table below has the numbers.",
        height=int(figure.layout.height),
        options=(Option(label="", data=embed(figure)),),
        selector="At",
        scale_toggle=False,
        wide=False,
    )


def _add(figure: go.Figure, rows: pd.DataFrame, verdict: str) -> None:
    if rows.empty:
        return
    figure.add_scatter(
        x=[float(ratio) for ratio in rows["ratio"]],
        y=list(rows["condition"]),
        mode="markers",
        name=verdict,
        marker={"color": _COLOURS[verdict], "symbol": _SYMBOLS[verdict], "size": 9},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": canvas.or_none(rows["ratio_high"] - rows["ratio"]),
            "arrayminus": canvas.or_none(rows["ratio"] - rows["ratio_low"]),
            "color": _COLOURS[verdict],
            "thickness": 1.5,
            "width": 3,
        },
        hovertemplate="<b>%{y}</b><br>A is %{x:.4g} times B<extra></extra>",
    )

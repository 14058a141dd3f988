"""Published values in the units of a figure, and what a scaled rerun may be compared with."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fabbbr.units import Rate
from fabbbr_analysis import references
from fabbbr_analysis.figures.conditions import Axis, names_the_cca
from fabbbr_analysis.figures.measures import Measure

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_SAME_RATE = 0.01


@dataclass(frozen=True, kw_only=True)
class Published:
    """Series as drawn in a paper, in the unit of the figure that they are laid over."""

    series: pd.DataFrame
    """Columns x, y (in the units shown), label, cca, reading."""
    remark: str
    """How the values were scaled; usually empty."""


def find(run_set: RunSet, measure: Measure, axis: Axis | None, panel: Mapping[str, str]) -> Published | None:
    """Return what was published of this metric against this axis, or None.

    A rerun at another bottleneck rate keeps T/C, not T: published rates are then drawn as the same share of
    our bottleneck (and ``remark`` says so), and other published metrics are not drawn at all.
    """
    if axis is None or axis.condition is None:
        return None
    series = in_panel(references.published_series(run_set.experiment, measure.column), panel)
    series = _where_held(series, run_set)
    if series.empty:
        return None
    scale = _scale(run_set)
    if scale is None or (abs(scale - 1) > _SAME_RATE and measure.unit != "Mbit/s"):
        return None
    rescaled = abs(scale - 1) > _SAME_RATE
    return Published(
        series=series.assign(
            x=series["x"] * axis.condition.factor,
            y=series["y"] * measure.factor * (scale if rescaled else 1.0),
        ),
        remark=f"scaled from {Rate(int(_rate_of(run_set).bps / scale))} to {_rate_of(run_set)}"
        if rescaled
        else "",
    )


def in_panel(series: pd.DataFrame, panel: Mapping[str, str]) -> pd.DataFrame:
    """Keep the series of one panel of a paper, which their labels name: only these may lie over ours."""
    return _named(series, panel.values())


def _named(series: pd.DataFrame, texts: Collection[str]) -> pd.DataFrame:
    """Keep the series whose labels say all of these."""
    said = [all(_says(label, text) for text in texts) for label in series["label"]]
    # An empty list would choose no columns, and not no rows.
    return series[np.array(said, dtype=bool)]


def _says(label: object, text: str) -> bool:
    # 1 BDP is the end of 0.1 BDP.
    return re.search(rf"(?<![\d.]){re.escape(text)}", str(label)) is not None


def _where_held(series: pd.DataFrame, run_set: RunSet) -> pd.DataFrame:
    """Keep the series of the one value at which these runs have an axis that the labels tell apart."""
    for name in (each for each in run_set.runs.columns if each.startswith("axis_")):
        values = run_set.runs[name].dropna().unique()
        if len(values) != 1 or names_the_cca(run_set.runs, name):
            continue
        told_apart = {str(values[0]), *run_set.planned(name.removeprefix("axis_"))}
        if any(_says(label, text) for label in series["label"] for text in told_apart):
            series = _named(series, [str(values[0])])
    return series


def _rate_of(run_set: RunSet) -> Rate:
    return Rate(int(run_set.runs["rate_bps"].iloc[0]))


def _scale(run_set: RunSet) -> float | None:
    """Return our bottleneck rate over the paper's: 1 when that has no single one, None when ours has not."""
    paper = references.paper_rate(run_set.experiment)
    if paper is None:
        return 1.0
    if run_set.runs["rate_bps"].nunique() != 1:
        return None
    return _rate_of(run_set).bps / paper.bps

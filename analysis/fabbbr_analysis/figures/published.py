"""Published values in the units of a figure, and what a scaled rerun may be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr.units import Rate
from fabbbr_analysis import references
from fabbbr_analysis.figures.conditions import Axis
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
    series = references.published_series(run_set.experiment, measure.column)
    # A paper's panel is named in the label of its series: only that one may lie over ours.
    same = [all(text in str(label) for text in panel.values()) for label in series["label"]]
    series = series[same]
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


def _rate_of(run_set: RunSet) -> Rate:
    return Rate(int(run_set.runs["rate_bps"].iloc[0]))


def _scale(run_set: RunSet) -> float | None:
    """Return our bottleneck rate over the paper's; None when either is not one number."""
    paper = references.paper_rate(run_set.experiment)
    if run_set.runs["rate_bps"].nunique() != 1:
        return None
    return 1.0 if paper is None else _rate_of(run_set).bps / paper.bps

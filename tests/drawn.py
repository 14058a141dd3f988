"""Drawing for tests of figures, and finding what was drawn."""

from __future__ import annotations

from fabbbr_analysis.figures import catalogue, sweep
from fabbbr_analysis.figures.conditions import varied
from fabbbr_analysis.figures.measures import BY_COLUMN
from fabbbr_analysis.figures.sweep import Sweep


def traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def draw(run_set, column="goodput_bps", **changes):
    axes = varied(run_set.runs)
    chosen = Sweep(measure=BY_COLUMN[column], axis=axes[0] if axes else None, **changes)
    return sweep.draw(run_set, chosen, palette=catalogue.palette_of(run_set), published=None)

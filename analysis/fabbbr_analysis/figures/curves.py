"""What the curves of flows and queues are called and look like where cells are drawn over one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr_analysis.figures.conditions import axis_columns
from fabbbr_analysis.figures.style import NO_CCA, Look, Palette, flow_dash, shade

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_MOST_FLOWS_NAMED = 10
"""With more flows than these the legend names groups of flows: it would be longer than the figure."""
_MANY_OPACITY = 0.7
_QUEUE_COLOUR = "#8A8F98"
_BACK_COLOUR = "#4B5563"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How one flow, or one queue, is drawn."""

    name: str
    look: Look
    opacity: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Curves:
    """The curves of some cells."""

    flows: Mapping[tuple[str, int], Curve]
    """Cell and number of the flow → its curve."""
    queues: Mapping[tuple[str, bool], Curve]
    """Cell, and whether it is of the way back → the curve of its queue."""


def series_of(flows: pd.DataFrame) -> pd.Series[str]:
    """Name the series of each flow: its congestion control, and its group where that is called otherwise.

    What runs none (UDP) has the name of its group.
    """
    names = [
        str(group) if pd.isna(cca) or group == cca else f"{cca} ({group})"
        for group, cca in zip(flows["group"], flows["cca"], strict=True)
    ]
    return pd.Series(names, flows.index, dtype=str)


def told_apart(flows: pd.DataFrame, runs: pd.DataFrame, axes: Sequence[str]) -> pd.Series[str]:
    """Name the series of each flow as :func:`series_of`, and one that is in cells which differ by them too.

    ``axes`` are columns of ``runs``; the CUBIC beside BBRv1 is then called ``cubic [cca=bbr1]``.
    """
    of_cell = told_where(runs, axes)
    names = [str(name) for name in series_of(flows)]
    where = [of_cell.get(str(cell_id), "") for cell_id in flows["cell_id"]]
    found: dict[str, set[str]] = {}
    for name, here in zip(names, where, strict=True):
        found.setdefault(name, set()).add(here)
    told = [
        f"{name} {here}" if len(found[name]) > 1 else name for name, here in zip(names, where, strict=True)
    ]
    return pd.Series(told, flows.index, dtype=str)


def told_where(runs: pd.DataFrame, axes: Sequence[str]) -> dict[str, str]:
    """Cell → the values of some axes, as in ``[joins=bbr1]``; empty without axes."""
    found: dict[str, str] = {}
    for row in runs.to_dict("records") if axes else ():
        values = (f"{name.removeprefix('axis_')}={row[name]}" for name in axes)
        found[str(row["cell_id"])] = f"[{', '.join(values)}]"
    return found


def of_cells(run_set: RunSet, cell_ids: Sequence[str], palette: Palette) -> Curves:
    """Return name and look of each flow and queue of these cells.

    Colour is the congestion control's, lighter for each further flow or group of it. Cells that share one
    differ by dash, and their names say in which axis they differ.
    """
    runs = run_set.runs[run_set.runs["cell_id"].isin(list(cell_ids))]
    flows = run_set.flows[run_set.flows["cell_id"].isin(list(cell_ids))]
    axes = axis_columns(runs)
    flows = flows.assign(series=told_apart(flows, runs, axes), cca=flows["cca"].fillna(NO_CCA))
    flows = flows.sort_values(["cell_id", "flow"])
    each = len(flows) <= _MOST_FLOWS_NAMED
    numbered = _numbered(flows) if each else set()
    found: dict[tuple[str, int], Curve] = {}
    for (cell_id, cca), rows in flows.groupby(["cell_id", "cca"], sort=True):
        units = list(dict.fromkeys(rows["flow"] if each else rows["series"]))
        in_place = sorted(flows[flows["cca"] == cca]["cell_id"].unique())
        for flow, series in zip(rows["flow"], rows["series"], strict=True):
            place = units.index(flow if each else series)
            number = f", flow {int(flow)}" if series in numbered else ""
            dash = flow_dash(in_place.index(cell_id) if len(in_place) > 1 else place)
            look = palette[str(cca)]
            found[str(cell_id), int(flow)] = Curve(
                name=f"{series}{number}",
                look=Look(colour=shade(look.colour, place, len(units)), symbol=look.symbol, dash=dash),
                opacity=1.0 if each else _MANY_OPACITY,
            )
    return Curves(flows=found, queues=_queues(found, cell_ids, told_where(runs, axes)))


def _numbered(flows: pd.DataFrame) -> set[str]:
    """Series of which some cell has several flows."""
    counts = Counter(zip(flows["cell_id"], flows["series"], strict=True))
    return {series for (_, series), count in counts.items() if count > 1}


def _queues(
    flows: Mapping[tuple[str, int], Curve], cell_ids: Sequence[str], where: Mapping[str, str]
) -> dict[tuple[str, bool], Curve]:
    """The queue of a cell whose flows have one name is drawn as they are; others have their own looks."""
    found: dict[tuple[str, bool], Curve] = {}
    for place, cell_id in enumerate(sorted(cell_ids)):
        own = {curve.name: curve for (cell, _), curve in flows.items() if cell == cell_id}
        alone = Look(colour=_QUEUE_COLOUR, symbol="circle", dash=flow_dash(place))
        queue = Curve(name=f"queue {where.get(cell_id, '')}".strip(), look=alone)
        found[cell_id, False] = next(iter(own.values())) if len(own) == 1 else queue
        back = Look(colour=_BACK_COLOUR, symbol="circle", dash=flow_dash(place))
        found[cell_id, True] = Curve(name=f"queue, way back {where.get(cell_id, '')}".strip(), look=back)
    return found

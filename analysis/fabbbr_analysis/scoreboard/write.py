"""Write the scoreboard's four files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr.files import write_atomically
from fabbbr_analysis.claims import judge_observed
from fabbbr_analysis.figures.catalogue import palette_of
from fabbbr_analysis.report import render
from fabbbr_analysis.report.slots import Slot, first_slot
from fabbbr_analysis.report.write import as_csv, claim_as_row, make
from fabbbr_analysis.scoreboard.board import Board, Standing, board, prefix_of

if TYPE_CHECKING:
    from fabbbr_analysis.claims import Observed
    from fabbbr_analysis.runset import RunSet

PAGE = "scoreboard.html"


def write_scoreboard(
    run_sets: Sequence[RunSet], observed: Sequence[Observed], folder: Path, *, machine: Mapping[str, str]
) -> Board:
    """Write ``scoreboard.html``, ``.md``, ``.json`` and ``.csv``; return what they say.

    ``observed``: all that ``claims.observe`` gave for ``run_sets``. The same runs on the same machine give
    the same bytes. Raises StoreError when the folder cannot be written.
    """
    whole = board(run_sets, judge_observed(observed), figures=_figures(run_sets), machine=machine)
    make(folder)
    write_atomically(folder / "scoreboard.csv", as_csv(pd.DataFrame(_rows(whole))))
    write_atomically(folder / "scoreboard.json", json.dumps(_as_json(whole), indent=1) + "\n")
    write_atomically(folder / "scoreboard.md", render.markdown("scoreboard.md.j2", board=whole))
    write_atomically(folder / PAGE, render.html("scoreboard.html.j2", board=whole))
    return whole


def _figures(run_sets: Sequence[RunSet]) -> dict[str, Slot]:
    """Prefix of a paper → the figure of the first of its experiments that has one."""
    found: dict[str, Slot] = {}
    for run_set in run_sets:
        prefix = prefix_of(run_set.experiment)
        slot = first_slot(run_set, palette_of(run_set), run_set.experiment) if prefix not in found else None
        if slot is not None:
            found[prefix] = slot
    return found


def _rows(whole: Board) -> list[dict[str, object]]:
    return [row for standing in whole.standings for row in _flat(standing)]


def _flat(standing: Standing) -> Iterator[dict[str, object]]:
    """A row for each way in which its runs lost packets."""
    for each in standing.row.ways:
        yield claim_as_row(each.verdict) | {"remarks": standing.remarks, "finding": standing.finding}


def _as_json(whole: Board) -> dict[str, object]:
    return {
        "headline": whole.headline,
        "counts": whole.counts,
        "claims": _rows(whole),
        "runs": [dataclasses.asdict(run) for run in whole.runs],
        "facts": {fact.name: fact.value for fact in whole.facts},
        "digest": whole.digest,
        "problems": list(whole.problems),
    }

"""Write a datasheet as a page, as PDF, as Markdown, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from fabbbr.files import write_atomically
from fabbbr_analysis.datasheet.picture import WIDTH_IN, height_in, picture
from fabbbr_analysis.datasheet.sheet import Contest, Datasheet, sheet
from fabbbr_analysis.press import paper
from fabbbr_analysis.press.caption import identity, made_by
from fabbbr_analysis.report import render
from fabbbr_analysis.report.write import make
from fabbbr_analysis.wording import distinct, listing

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

PAGE = "datasheet.html"


def write_datasheet(
    cca: str, rivals: Sequence[str], run_sets: Mapping[str, RunSet], folder: Path, *, facts: Mapping[str, str]
) -> Datasheet:
    """Write ``datasheet.html``, ``.pdf``, ``.md`` and ``.json``; return what they say.

    ``run_sets`` are named as the datasheet's experiments are and lie in folders of these names beside the
    page. The same runs give the same bytes. Raises StoreError when the folder cannot be written.
    """
    found = sheet(cca, rivals, run_sets)
    facts = {**facts, **_made_by(run_sets)}
    chart = picture(found)
    page = paper.Framing(width_in=WIDTH_IN, height_in=height_in(chart))
    titled = paper.Framing(width_in=WIDTH_IN, height_in=height_in(chart) + 0.3, title=found.headline)
    make(folder)
    write_atomically(folder / "datasheet.json", json.dumps(_as_json(found, facts), indent=1) + "\n")
    write_atomically(folder / "datasheet.md", render.markdown("datasheet.md.j2", sheet=found, facts=facts))
    write_atomically(folder / "datasheet.pdf", paper.printed(chart, titled, "pdf"))
    svg = paper.printed(chart, page, "svg").decode()
    drawn = Markup(svg[svg.index("<svg") :])  # noqa: S704 - drawn here
    write_atomically(
        folder / PAGE, render.still("datasheet.html.j2", sheet=found, facts=facts, picture=drawn)
    )
    return found


def _made_by(run_sets: Mapping[str, RunSet]) -> dict[str, str]:
    """What ran, and the digest of each run folder; nothing of run sets that are made of frames."""
    folders = {name: run_set for name, run_set in run_sets.items() if run_set.found is not None}
    if not folders:
        return {}
    told = distinct(made_by(run_set) for run_set in folders.values())
    runs = (f"{name} {identity(run_set)}" for name, run_set in folders.items())
    return {"made by": listing(told), "runs": "; ".join(runs)}


def _as_json(found: Datasheet, facts: Mapping[str, str]) -> dict[str, object]:
    return {
        "cca": found.cca,
        "rivals": found.rivals,
        "headline": found.headline,
        "facts": dict(facts),
        "panels": [
            {
                "title": panel.asked.title,
                "experiment": panel.asked.experiment,
                "axis": panel.asked.axis,
                "unit": panel.asked.unit,
                "factor": panel.asked.factor,
                "uncertified": panel.uncertified,
                "cells": [
                    {
                        "cca": cell.cca,
                        "place": cell.place,
                        "mean": cell.mean.value,
                        "low": cell.mean.low,
                        "high": cell.mean.high,
                        "n": cell.mean.n,
                    }
                    for cell in panel.cells
                ],
            }
            for panel in found.panels
        ],
        "worst": [_contest(contest) for contest in found.worst],
        "missing": found.missing,
    }


def _contest(contest: Contest) -> dict[str, object]:
    return {
        "where": contest.where,
        "own": contest.panel.in_words(contest.own),
        "rival": contest.rival.cca,
        "theirs": contest.panel.in_words(contest.rival),
    }

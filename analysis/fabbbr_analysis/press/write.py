"""Write figures to files: one with its caption, or all of a run with a page of thumbnails."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from fabbbr.errors import AnalysisError, StoreError, UsageError
from fabbbr.files import write_atomically
from fabbbr.inspection import summary_of
from fabbbr_analysis.figures.catalogue import Drawing, drawing, drawings
from fabbbr_analysis.press import latex, paper
from fabbbr_analysis.press.caption import identity, of_figure
from fabbbr_analysis.press.chart import Chart, read
from fabbbr_analysis.press.paper import Format, Framing
from fabbbr_analysis.report import render

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

INDEX = "index.html"
_REMEDY = "choose another place"
_THUMBNAIL: Format = "png"


@dataclass(frozen=True, kw_only=True)
class Pictured:
    """A figure on the page of thumbnails."""

    name: str
    caption: str
    file: str
    thumbnail: str


def format_of(path: Path) -> Format:
    """Which kind of file a suffix names; raise UsageError for one that is not known."""
    suffix = path.suffix.lower().removeprefix(".")
    for kind in get_args(Format):
        if suffix == kind:
            return kind  # type: ignore[no-any-return]
    message = f"{path}: a figure is a .pdf, .svg or .png, not {path.suffix or 'a file without a suffix'}"
    raise UsageError(message)


def require_cells(run_set: RunSet) -> None:
    """Raise StoreError when all cells are damaged, AnalysisError when none is finished."""
    if run_set.runs.empty and run_set.problems:
        message = f"{run_set.path} has no cell left: {summary_of(run_set.problems)}"
        raise StoreError(message)
    if run_set.runs.empty:
        message = f"{run_set.path} holds no finished cell of what is asked; finish it with: fabbbr run"
        raise AnalysisError(message)


def charted(run_set: RunSet, name: str) -> tuple[Drawing, Chart]:
    """A figure by name; raise AnalysisError when there is none or nothing in it, listing what there is."""
    found = drawing(run_set, name)
    chart = read(found.draw())
    if chart.empty:
        message = f"{name} of {run_set.experiment} has nothing to show: these runs measured none of it"
        raise AnalysisError(message)
    return found, chart


def write_figure(
    run_set: RunSet, name: str, path: Path, sheet: Framing, *, with_caption: bool = False
) -> list[Path]:
    """Write a figure, and beside it its caption as ``.txt`` and as LaTeX that includes it; return the files.

    The same run and sheet give the same bytes. Raises UsageError for an unknown suffix, StoreError when the
    folder is missing or cannot be written, AnalysisError when there is no such figure.
    """
    kind = format_of(path)
    require_folder_of(path)
    found, chart = charted(run_set, name)
    written: dict[Path, str | bytes] = {path: paper.printed(chart, sheet, kind)}
    if with_caption:
        caption = of_figure(run_set, found)
        written[path.with_suffix(".txt")] = f"{caption}\n"
        if kind != "svg":  # LaTeX includes none
            written[path.with_suffix(".tex")] = environment(path.name, caption, name, sheet)
    for each, content in written.items():
        write_atomically(each, content, remedy=_REMEDY)
    return list(written)


def require_folder_of(path: Path) -> None:
    """Raise StoreError when the folder that a file is to be written in is missing."""
    if not path.parent.is_dir():
        message = f"cannot write {path}: there is no folder {path.parent}; make it, or {_REMEDY}"
        raise StoreError(message)


def environment(file: str, caption: str, name: str, sheet: Framing) -> str:
    """LaTeX that sets a figure with its caption, in as many columns as it is wide."""
    wide = "*" if sheet.width_in > paper.COLUMN_IN * 1.1 else ""
    return "\n".join(
        [
            r"% needs \usepackage{graphicx}; the picture has its size, so nothing scales its letters",
            rf"\begin{{figure{wide}}}",
            r"  \centering",
            rf"  \includegraphics{{{file}}}",
            rf"  \caption{{{latex.escaped(caption)}}}",
            rf"  \label{{{latex.label('fig', name)}}}",
            rf"\end{{figure{wide}}}",
            "",
        ]
    )


def write_all(
    run_set: RunSet,
    folder: Path,
    sheet: Framing,
    *,
    kind: Format = "pdf",
    each: Callable[[str], None] = lambda _name: None,
) -> Path:
    """Write every figure that shows something, and a page of thumbnails; return the page's path.

    ``each`` is told the name of every figure that is begun.
    """
    require_folder_of(folder)
    shown: list[Pictured] = []
    files: dict[str, bytes] = {}
    found = drawings(run_set)
    stems = file_names(found)
    for name, one in found.items():
        each(name)
        chart = read(one.draw())
        if chart.empty:
            continue
        file, thumbnail = f"{stems[name]}.{kind}", f"{stems[name]}.{_THUMBNAIL}"
        files[file] = paper.printed(chart, sheet, kind)
        if thumbnail not in files:
            files[thumbnail] = paper.printed(chart, replace(sheet, title=""), _THUMBNAIL)
        caption = of_figure(run_set, one)
        shown.append(Pictured(name=name, caption=caption, file=file, thumbnail=thumbnail))
    page = render.still(
        "gallery.html.j2", experiment=run_set.experiment, identity=identity(run_set), figures=shown
    )
    _make(folder)
    for file, content in files.items():
        write_atomically(folder / file, content, remedy=_REMEDY)
    write_atomically(folder / INDEX, page, remedy=_REMEDY)
    return folder / INDEX


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        message = f"cannot create {folder}: {error.strerror}; {_REMEDY}"
        raise StoreError(message) from error


def file_names(names: Mapping[str, object]) -> dict[str, str]:
    """Name of a figure → name of its file, without a suffix; no two are the same.

    >>> file_names({"goodput_by_loss": 0, "over_time[loss=0.1%]": 0, "over_time[loss 0.1 %]": 0})
    {'goodput_by_loss': 'goodput_by_loss', 'over_time[loss=0.1%]': 'over_time-loss-0.1pct', \
'over_time[loss 0.1 %]': 'over_time-loss-0.1-pct'}
    """
    taken: dict[str, str] = {}
    for name in names:
        stem = re.sub(r"[^A-Za-z0-9_.]+", "-", name.replace("%", "pct")).strip("-")
        while stem in taken.values():
            stem += "-again"
        taken[name] = stem
    return taken

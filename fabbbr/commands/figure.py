"""``fabbbr figure``: the figures of a run as files for a paper."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from fabbbr.commands.results import opened
from fabbbr.commands.terminal import Terminal, tell
from fabbbr.errors import UsageError
from fabbbr.plan.selector import select

if TYPE_CHECKING:
    from fabbbr_analysis.press.paper import Framing
    from fabbbr_analysis.runset import RunSet

_LENGTH = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(in|cm|mm|pt)")
_PER_INCH = {"in": 1.0, "cm": 2.54, "mm": 25.4, "pt": 72.27}
"""A point is TeX's, of which \\columnwidth is told in."""
_NAMED = {"column": "3.3in", "page": "7in"}
_LEAST_IN, _MOST_IN = 1.0, 20.0


def main(arguments: argparse.Namespace) -> int:
    """List the figures, or write one or all."""
    from fabbbr_analysis.press.write import require_cells

    _require_what_fits(arguments)
    sheet = _sheet(arguments)
    with opened([arguments.run], warm_up=arguments.warm_up) as (whole,):
        run_set = picked(whole, arguments.where)
        require_cells(run_set)
        if arguments.all is not None:
            _write_all(run_set, sheet, arguments)
        elif arguments.name is None:
            _list(run_set, as_json=arguments.json)
        else:
            _write_one(run_set, sheet, arguments)
    return 0


def picked(run_set: RunSet, where: str | None) -> RunSet:
    """The cells that ``--where`` picks, as ``--only`` of a run does; raise UsageError when there are none."""
    if where is None:
        return run_set
    return run_set.only([cell.id for cell in select(run_set.manifest.cells, where)])


def _require_what_fits(arguments: argparse.Namespace) -> None:
    """Refuse options that would do nothing."""
    if arguments.all is not None and (arguments.name or arguments.to or arguments.caption):
        message = "--all writes every figure with its caption on a page: leave out NAME, --to and --caption"
        raise UsageError(message)
    if arguments.name is None and arguments.all is None and (arguments.to or arguments.caption):
        message = "which figure? fabbbr figure RUN lists their names; give one before --to or --caption"
        raise UsageError(message)
    if arguments.format is not None and arguments.all is None:
        message = "--format is for --all; the suffix of --to says it for one figure"
        raise UsageError(message)


def _sheet(arguments: argparse.Namespace) -> Framing:
    from fabbbr_analysis.press.paper import Framing

    height = None if arguments.height is None else length_in(arguments.height)
    return Framing(width_in=length_in(arguments.width), height_in=height, title=arguments.title or "")


def length_in(text: str) -> float:
    """A length in inches: ``3.3in``, ``84 mm``, ``252pt``, ``column`` or ``page``; raise UsageError else.

    >>> length_in("column"), length_in("25.4 mm")
    (3.3, 1.0)
    """
    found = _LENGTH.fullmatch(_NAMED.get(text, text))
    if found is None:
        message = f"{text!r} is no length; as 3.3in, 84mm, 8.4cm, 252pt, column (3.3in) or page (7in)"
        raise UsageError(message)
    inches = float(found[1]) / _PER_INCH[found[2]]
    if not _LEAST_IN <= inches <= _MOST_IN:
        message = f"a figure of {text} does not fit a page: take {_LEAST_IN:g}in to {_MOST_IN:g}in"
        raise UsageError(message)
    return inches


def _list(run_set: RunSet, *, as_json: bool) -> None:
    from fabbbr_analysis.figures.catalogue import drawings

    found = drawings(run_set)
    if as_json:
        print(json.dumps([{"name": name, "title": one.title} for name, one in found.items()]))
        return
    console = Terminal()
    for name, one in found.items():
        console.say((name, "bold"), "  ", (one.title, "dim"))


def _write_one(run_set: RunSet, sheet: Framing, arguments: argparse.Namespace) -> None:
    from fabbbr_analysis.press.caption import of_figure
    from fabbbr_analysis.press.write import charted, file_names, write_figure

    name, path = arguments.name, arguments.to
    if path is None and arguments.caption:
        drawing, _ = charted(run_set, name)
        caption = of_figure(run_set, drawing)
        tell(json.dumps({"caption": caption}) if arguments.json else caption)
        return
    path = path or Path(f"{file_names({name: None})[name]}.pdf")
    written = write_figure(run_set, name, path, sheet, with_caption=arguments.caption)
    if arguments.json:
        print(json.dumps({"figure": str(path), "files": [str(each) for each in written]}))
        return
    for each in written:
        tell(each)


def _write_all(run_set: RunSet, sheet: Framing, arguments: argparse.Namespace) -> None:
    from fabbbr_analysis.press.write import write_all

    console = Terminal(stderr=True)
    with console.status("drawing") as status:
        index = write_all(
            run_set,
            arguments.all,
            sheet,
            kind=arguments.format or "pdf",
            each=lambda name: status.update(f"drawing {name}"),
        )
    tell(json.dumps({"index": str(index)}) if arguments.json else index)

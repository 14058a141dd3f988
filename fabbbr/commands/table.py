"""``fabbbr table`` and ``cite``: what a paper says of a run in numbers, and how it names the run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from fabbbr.commands.figure import picked
from fabbbr.commands.results import opened
from fabbbr.errors import UsageError
from fabbbr.files import write_atomically
from fabbbr.foreign import visible

if TYPE_CHECKING:
    from fabbbr_analysis.press.table import Format, PrintedTable

_SUFFIXES: dict[str, Format] = {".tex": "latex", ".md": "markdown", ".csv": "csv"}


def main(arguments: argparse.Namespace) -> int:
    """Dispatch by command."""
    return {"table": _table, "cite": _cite}[arguments.command](arguments)


def _table(arguments: argparse.Namespace) -> int:
    from fabbbr_analysis.press.table import tabulate, tabulate_groups
    from fabbbr_analysis.press.write import require_cells

    kind = _format(arguments)
    metrics = arguments.metrics.split(",") if arguments.metrics else ()
    with opened([arguments.run], warm_up=arguments.warm_up) as (whole,):
        run_set = picked(whole, arguments.where)
        require_cells(run_set)
        made = tabulate_groups if arguments.groups else tabulate
        table = made(run_set, metrics, title=arguments.title or "")
        _put(_as_json(table) if arguments.json else table.written(kind), arguments.to)
    return 0


def _format(arguments: argparse.Namespace) -> Format:
    """As said, or by the suffix of ``--to``; Markdown on a terminal."""
    given: Format | None = arguments.format
    if given is not None and arguments.json:
        message = "--json is a format of its own: leave out --format"
        raise UsageError(message)
    if given is not None or arguments.to is None or arguments.json:
        return given or "markdown"
    kind = _SUFFIXES.get(arguments.to.suffix.lower())
    if kind is None:
        message = f"{arguments.to}: a table is a .tex, .md or .csv; else say --format latex, markdown or csv"
        raise UsageError(message)
    return kind


def _as_json(table: PrintedTable) -> str:
    rows = json.loads(table.summary.to_json(orient="records"))
    return json.dumps({"experiment": table.experiment, "caption": table.caption, "rows": rows}) + "\n"


def _cite(arguments: argparse.Namespace) -> int:
    from fabbbr_analysis.press.cite import bibtex, digest_of

    with opened([arguments.run]) as (run_set,):
        text = bibtex(run_set)
        said = json.dumps({"digest": digest_of(run_set), "bibtex": text}) + "\n"
        _put(said if arguments.json else text, arguments.to)
    return 0


def _put(text: str, to: Path | None) -> None:
    """Into a file or onto standard output."""
    if to is None:
        print(visible(text), end="")
        return
    from fabbbr_analysis.press.write import require_folder_of

    require_folder_of(to)
    write_atomically(to, text, remedy="choose another place")

"""Runs a notebook in the current folder, as `python execute.py NOTEBOOK`: what it prints, and where it fails.

What came of it is written beside it, as `NAME.executed.ipynb`, also when a cell fails: then this ends with 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

CELL_S = 900
"""For one cell, by the clock of the place."""


def main(path: Path) -> int:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=CELL_S, kernel_name="python3", on_cell_executed=_show)
    try:
        client.execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        nbformat.write(notebook, path.with_suffix(".executed.ipynb"))
    return 0


def _show(cell: nbformat.NotebookNode, cell_index: int, **_: object) -> None:
    for output in cell.outputs:
        text = output.get("text") or output.get("data", {}).get("text/plain", "")
        print(f"[{cell_index}] {text.rstrip()}", flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

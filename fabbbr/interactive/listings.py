"""What there is: bundled experiments, and the runs of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd

from fabbbr import bundled
from fabbbr.commands.experiments import every_experiment
from fabbbr.commands.slice import SLICE_HEADS, remembered, row_of
from fabbbr.errors import FabbbrError, UsageError
from fabbbr.foreign import visible
from fabbbr.interactive.asked import name_of
from fabbbr.plan.opening import read_text
from fabbbr.store import RUN, RunFolder
from fabbbr_analysis.drawn import Drawn


@dataclass(frozen=True, kw_only=True, repr=False)
class Listing(Drawn):
    """Names with what is known of each; a sequence of the names, which draws itself as a table."""

    title: str
    table: pd.DataFrame
    """One row per name, which is in the first column."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the rows are called."""
        return tuple(str(name) for name in self.table.iloc[:, 0])

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self.names)

    def __len__(self) -> int:
        """Count them."""
        return len(self.table)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a name."""
        return name in self.names

    def drawn(self) -> tuple[Sequence[str], pd.DataFrame]:
        """The title above the table."""
        return [self.title], self.table


class FileText(str):
    """A text file; a prompt and a notebook show it as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the text itself."""
        return visible(str(self))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(visible(str(self)))}</pre>"


def experiments() -> Listing:
    """List the bundled experiments: what each is about, where it is from and what its quick form costs.

    >>> import fabbbr as fb
    >>> "cardwell_f10" in fb.experiments()
    True
    """
    rows = [
        {
            "experiment": row["name"],
            "title": row["title"],
            "source": row["source"],
            "claims": ", ".join(row["claims"]),
            "quick: cells": row["quick_cells"],
            "quick: s on one core": row["quick_wall_s_on_one_core"],
        }
        for row in every_experiment()
    ]
    return Listing(title=f"{len(rows)} bundled experiments", table=pd.DataFrame(rows))


list_experiments = experiments


def show_experiment(experiment: str | Path) -> FileText:
    """Return the text of an experiment file, bundled or your own.

    Raises UsageError where there is none.

    >>> import fabbbr as fb
    >>> fb.show_experiment("one_flow.yaml").splitlines()[0]
    'id: one_flow'
    """
    return FileText(read_text(bundled.find("experiments", name_of(experiment))))


def list_runs(folder: str | Path = "runs") -> Listing:
    """List the run folders in ``folder``, with how many of their cells are there.

    Raises UsageError where there is no such folder.

    >>> import fabbbr as fb
    >>> fb.list_runs().names
    ('runs/rivals',)
    """
    place = Path(folder)
    if not place.is_dir():
        message = f"no folder {folder}; runs are made with fb.run, in ./runs if not told otherwise"
        raise UsageError(message)
    rows = [_row(path.parent) for path in sorted(place.glob(f"*/{RUN}"))]
    table = pd.DataFrame(rows, columns=["run", "experiment", "title", "cells", "planned", "created"])
    return Listing(title=f"{len(table)} runs in {place}", table=table)


def list_slices() -> Listing:
    """List the slices of testbeds that are remembered; no testbed is asked.

    ``fabbbr slice`` makes them, shows them and gives them back; ``fb.run(…, slice=name)`` runs on one.

    >>> import fabbbr as fb
    >>> fb.list_slices().names
    ()
    """
    table = pd.DataFrame([row_of(one) for one in remembered()], columns=list(SLICE_HEADS))
    return Listing(title=f"{len(table)} slices are remembered", table=table)


def _row(path: Path) -> dict[str, object]:
    try:
        folder = RunFolder.open(path)
    except FabbbrError as error:
        return {"run": str(path), "title": str(error)}
    manifest = folder.manifest
    return {
        "run": str(path),
        "experiment": manifest.experiment.get("id", manifest.source_name),
        "title": manifest.experiment.get("title", ""),
        "cells": sum(folder.has(cell.id) for cell in manifest.cells),
        "planned": len(manifest.cells),
        "created": manifest.created,
    }

"""Published numbers, shipped with the package: loaded by name, refused when altered.

``registry.json`` holds, for every file, its sha256, how its numbers were read (``exact`` from a table,
legend or data file; ``vec`` from the vectors of a figure, about 0.5 % of the axis; ``ras`` from a raster
image, about 1 %; ``text`` from prose; ``derived`` by computation) and where (``sources.csv``).

An experiment has one id everywhere, that of its file under ``experiments/``: ``kfoury_5_4`` for section 5.4
of Kfoury et al. The collection that these files were copied from writes ``kfoury.5.4``: whoever copies a file
anew puts underscores into the columns that name experiments, and changes nothing else. Our own is the column
``offloads`` of ``experiments.csv``: ``on`` where hosts and path were Linux machines and neither paper nor
released scripts switch segmentation offloads off.
"""

from __future__ import annotations

from fabbbr_analysis.references.grids import Grid, published_grid
from fabbbr_analysis.references.published import (
    SERIES_COLUMNS,
    paper_rate,
    published_series,
    ran_with_offloads,
)
from fabbbr_analysis.references.registry import Reference, load, registry

__all__ = [
    "SERIES_COLUMNS",
    "Grid",
    "Reference",
    "load",
    "paper_rate",
    "published_grid",
    "published_series",
    "ran_with_offloads",
    "registry",
]

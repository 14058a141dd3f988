"""Published numbers, shipped with the package: loaded by name, refused when altered.

``registry.json`` holds, for every file, its sha256, how its numbers were read (``exact`` from a table,
legend or data file; ``vec`` from the vectors of a figure, about 0.5 % of the axis; ``ras`` from a raster
image, about 1 %; ``text`` from prose; ``derived`` by computation) and where (``sources.csv``).
"""

from __future__ import annotations

from fabbbr_analysis.references.published import SERIES_COLUMNS, published_series
from fabbbr_analysis.references.registry import Entry, load, registry

__all__ = ["SERIES_COLUMNS", "Entry", "load", "published_series", "registry"]

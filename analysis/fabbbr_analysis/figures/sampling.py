"""Fewer points, same picture."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

POINTS_PER_TRACE = 2000
"""More than the pixels that a figure is wide, so that nothing visible is lost."""


def keep_extremes(x: FloatArray, y: FloatArray, limit: int = POINTS_PER_TRACE) -> npt.NDArray[np.intp]:
    """Return the positions of at most ``limit`` points that draw the same picture as all of them.

    ``x`` ascends. The positions are cut into buckets of equal count; of each bucket the lowest and the
    highest ``y`` stay, as do the first and the last point, so that no spike is lost and no value is invented
    (min-max decimation). Missing ``y`` values never win a bucket.
    """
    if limit < 4:
        message = f"a trace needs at least 4 points, not {limit}"
        raise ValueError(message)
    if len(x) <= limit:
        return np.arange(len(x), dtype=np.intp)
    edges = np.linspace(0, len(x), (limit - 2) // 2 + 1).astype(np.intp)
    kept = {0, len(x) - 1}
    for start, end in pairwise(edges):
        bucket = y[start:end]
        if not np.isnan(bucket).all():
            kept.update((int(start + np.nanargmin(bucket)), int(start + np.nanargmax(bucket))))
    return np.array(sorted(kept), dtype=np.intp)


def compact(values: FloatArray) -> npt.NDArray[np.float32]:
    """Halve the size of a trace: single precision holds 7 digits, a pixel shows 4."""
    return values.astype(np.float32)

"""A claim's interval against its pass band, as a small drawing that fits a row of the scoreboard."""

from __future__ import annotations

import math

from markupsafe import Markup

_WIDTH, _HEIGHT, _EDGE = 180, 26, 8


Range = tuple[float | None, float | None]
"""From, to; None is an open side."""


def drawing(band: Range, value: float, interval: Range, *, label: str) -> Markup:
    """Draw the band as a bar, the interval as a whisker, on one linear scale; ``label`` says it in words."""
    (least, most), (low, high) = band, interval
    ends = [end for end in (least, most, value, low, high) if end is not None and math.isfinite(end)]
    start, stop = min(ends), max(ends)
    margin = (stop - start or abs(stop) or 1.0) * 0.15
    # An open side of the band runs to the edge of the drawing.
    start, stop = start - margin, stop + margin

    def place(number: float) -> float:
        return round(_EDGE + (number - start) / (stop - start) * (_WIDTH - 2 * _EDGE), 1)

    left = 0 if least is None else place(least)
    right = _WIDTH if most is None else place(most)
    middle = _HEIGHT / 2
    whisker = Markup("")
    if low is not None and high is not None:
        whisker = Markup('<path class="whisker" d="M{0} {m}H{1}M{0} {t}V{b}M{1} {t}V{b}"/>').format(
            place(low), place(high), m=middle, t=middle - 4, b=middle + 4
        )
    return Markup(
        '<svg class="band" role="img" aria-label="{label}" viewBox="0 0 {w} {h}" width="{w}" height="{h}">'
        '<path class="scale" d="M0 {m}H{w}"/>'
        '<rect class="inside" x="{left}" y="4" width="{span}" height="{bar}" rx="2"/>'
        '{whisker}<circle class="point" cx="{cx}" cy="{m}" r="4"/></svg>'
    ).format(
        label=label,
        w=_WIDTH,
        h=_HEIGHT,
        m=middle,
        left=left,
        span=round(right - left, 1),
        bar=_HEIGHT - 8,
        whisker=whisker,
        cx=place(value),
    )

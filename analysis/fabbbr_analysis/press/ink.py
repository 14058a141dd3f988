"""How a figure looks on paper: a small serif that every machine has, and colours that survive a grey printer.

In print the colours of the report keep their hue and get a lightness of their own, so that a photocopy tells
them apart; markers and dashes say the same once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fabbbr_analysis.press.chart import Chart

PRINTED: Mapping[str, str] = {
    "#0072B2": "#00436A",
    "#D55E00": "#C8590A",
    "#CC79A7": "#DB93BA",
    "#009E73": "#006E50",
    "#56B4E9": "#4D99C5",
    "#E69F00": "#F0B840",
    "#8A8F98": "#84888F",
}
"""Colour of the report → of paper."""

MARKERS: Mapping[str, str] = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "pentagon": "p",
    "triangle-down": "v",
    "hexagon": "h",
    "star": "*",
    "x-thin": "x",
}
"""Symbol as plotly names it → as matplotlib does."""

DASHES: Mapping[str, tuple[float, ...]] = {
    "solid": (),
    "dash": (4.0, 1.6),
    "dashdot": (4.0, 1.4, 1.0, 1.4),
    "longdash": (7.0, 1.8),
    "dot": (1.0, 1.3),
}
"""Dash as plotly names it → lengths of lines and gaps in line widths."""

SETTINGS: Mapping[str, object] = {
    "font.family": ["STIXGeneral", "DejaVu Sans"],
    "mathtext.fontset": "stix",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "figure.titlesize": 9.0,
    "text.parse_math": True,  # powers of ten on axes; what comes from a run has no mathematics
    "text.usetex": False,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "fabbbr",
    "savefig.dpi": 300,
    "figure.dpi": 100,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "grid.color": "#D5D7DB",
    "grid.linewidth": 0.4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.2,
    "legend.handletextpad": 0.5,
    "legend.labelspacing": 0.25,
    "legend.borderaxespad": 0.0,
}
"""On top of matplotlib's own defaults, never of the user's: the same run gives the same picture anywhere."""

POINT_PER_PIXEL = 0.38
"""The report draws on 800 pixels what stands in 3.3 inches here."""


def printed(colour: str) -> str:
    """The colour on paper; one that is not of the palette (a shade for one of several flows) stays.

    >>> printed("#0072B2"), printed("#123456")
    ('#00436A', '#123456')
    """
    return PRINTED.get(colour.upper(), colour)


def lightness(colour: str) -> float:
    """CIE L* of an sRGB colour, from 0 (black) to 100: what a grey printer keeps of it.

    >>> round(lightness("#FFFFFF")), round(lightness("#777777")), round(lightness("#000000"))
    (100, 50, 0)
    """
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


def dashes(chart: Chart) -> dict[str, str]:
    """Colour → dash, for bare lines that would differ by nothing but their colour."""
    bare = [t for panel in chart.panels for t in panel.traces if t.line and not t.marks]
    series = [trace for trace in bare if trace.colour.upper() != _LIMIT]
    if any(trace.dash != "solid" for trace in series):
        return {}
    return dict(zip(dict.fromkeys(trace.colour for trace in series), _cycle(), strict=False))


_LIMIT = "#8A8F98"
"""Grey is no series: it marks a limit, or what is left out."""


def _cycle() -> Iterator[str]:
    while True:
        yield from ("solid", "dash", "dashdot", "dot", "longdash")

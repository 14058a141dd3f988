"""One look per congestion control, the same in every figure of a report.

Colours are those of Okabe and Ito (2008), which people with any colour vision can tell apart, without black
and yellow: each of those vanishes on one of the two backgrounds. Colour is never the only sign: every
congestion control has a marker of its own, and a dash once the colours repeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_COLOURS = ("#0072B2", "#D55E00", "#CC79A7", "#009E73", "#56B4E9", "#E69F00", "#8A8F98")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "pentagon", "triangle-down", "hexagon", "star")
_DASHES = ("solid", "dash", "dashdot", "longdash")
_FLOW_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")

_RESERVED = ("cubic", "bbr1", "bbr2", "reno", "htcp", "bbr3")
"""Their looks never change, whatever else is in a report."""

NO_CCA = ""
"""Stands for the congestion control of what runs none: UDP."""

PUBLISHED_READING = {
    "exact": "published, exact",
    "vector": "published, read from a figure",
    "raster": "published, read from a figure",
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """Colour, marker symbol and dash, as plotly names them."""

    colour: str
    symbol: str
    dash: str

    @property
    def open_symbol(self) -> str:
        """The hollow marker: published values."""
        return f"{self.symbol}-open"


@dataclass(frozen=True)
class Palette:
    """Series name → look."""

    looks: dict[str, Look]

    @classmethod
    def of(cls, names: Iterable[str]) -> Palette:
        """Give every series a look; the same names give the same looks."""
        known = [*_RESERVED, *sorted(set(names) - set(_RESERVED))]
        return cls({name: _look(place) for place, name in enumerate(known)})

    def __getitem__(self, name: str) -> Look:
        """Return the look of a series that was announced to :meth:`of`; what runs no CCA is grey."""
        return _NO_CCA_LOOK if name == NO_CCA else self.looks[name]


def _look(place: int) -> Look:
    # Seven colours and eight symbols: a pair repeats only after 56 series.
    return Look(
        colour=_COLOURS[place % len(_COLOURS)],
        symbol=_SYMBOLS[place % len(_SYMBOLS)],
        dash=_DASHES[place // len(_COLOURS) % len(_DASHES)],
    )


_NO_CCA_LOOK = Look(colour="#8A8F98", symbol="star", dash="solid")


def flow_dash(place: int) -> str:
    """Return the dash of the n-th flow among those that share a colour."""
    return _FLOW_DASHES[place % len(_FLOW_DASHES)]


def among(look: Look, place: int, count: int) -> Look:
    """Return the look of the n-th of ``count`` series that share a congestion control; the first keeps it."""
    first = _SYMBOLS.index(look.symbol)
    return Look(
        colour=shade(look.colour, place, count),
        symbol=_SYMBOLS[(first + place) % len(_SYMBOLS)],
        dash=flow_dash(place),
    )


def shade(colour: str, place: int, count: int) -> str:
    """Vary the lightness of ``colour`` so that the flows of one congestion control can be told apart.

    ``place`` counts from 0 to ``count - 1``; a single flow keeps the colour itself.
    """
    if count == 1:
        return colour
    toward_white = 0.55 * place / (count - 1)
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(c + (255 - c) * toward_white):02X}" for c in channels)

"""Datta and Fund 2023: what BBR gains over CUBIC on FABRIC, by rate, RTT and buffer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fabbbr_analysis.claims.beside import FromPaper
from fabbbr_analysis.claims.expression import Expression
from fabbbr_analysis.claims.levels import every, one_of
from fabbbr_analysis.claims.quantities import column
from fabbbr_analysis.claims.records import Band, Part, claims
from fabbbr_analysis.claims.sample import Key, key_of
from fabbbr_analysis.claims.vocabulary import median, most, rank_correlation, share
from fabbbr_analysis.references import published_grid

_BY = ("cca", "buffer_bytes", "rate_bps", "rtt_s")
_SHALLOW_BYTES, _DEEP_BYTES = 100 * 1024, 10_000 * 1024
_RATE = every("rate_bps").among(10e6, 20e6, 50e6, 100e6, 250e6)
_RTT = every("rtt_s").among(0.005, 0.010, 0.025, 0.050, 0.075, 0.100, 0.150, 0.200)
_GOODPUT = column("goodput", "fund2023", _BY, "goodput_bps")


@cache
def _goodput_on_fabric() -> Mapping[Key, float]:
    return _on_fabric("mean")


@cache
def _gain_on_fabric() -> Mapping[Key, float]:
    return _on_fabric("gain")


def _on_fabric(name: str) -> Mapping[Key, float]:
    grid = published_grid("fund2023", "goodput_bps")
    assert grid is not None
    rows = grid.table.assign(gain=grid.gains)[[*_BY, name]]
    return {key_of(*row[:-1]): float(row[-1]) for row in rows.itertuples(index=False)}


_FABRIC = FromPaper(words="FABRIC's goodput", by=_BY, numbers=_goodput_on_fabric)
_FABRIC_GAIN = FromPaper(words="FABRIC's gain over CUBIC", by=_BY, numbers=_gain_on_fabric)


def _gain(cca: str, buffer_bytes: int) -> Expression:
    beside = _GOODPUT["cubic", buffer_bytes, _RATE, _RTT]
    return _GOODPUT[cca, buffer_bytes, _RATE, _RTT] / beside - 1


def _as_on_fabric(cca: str, *, least_rho: float, most_apart: float) -> tuple[Part, Part]:
    gain, theirs = _gain(cca, _SHALLOW_BYTES), _FABRIC_GAIN[cca, _SHALLOW_BYTES, _RATE, _RTT]
    return (
        Part(
            f"rank correlation of {cca}'s gain over CUBIC with FABRIC's, 100 kB",
            rank_correlation(gain, over=theirs),
            Band(low=least_rho),
        ),
        Part(
            f"median distance of {cca}'s gain from FABRIC's, 100 kB",
            median(abs(gain - theirs)),
            Band(high=most_apart),
        ),
    )


def _within_5_percent(cca: str, buffer_bytes: int, size: str) -> Part:
    ours, theirs = (each[cca, buffer_bytes, _RATE, _RTT] for each in (_GOODPUT, _FABRIC))
    return Part(
        f"share of conditions with {cca}'s goodput within 5 % of FABRIC's, {size}",
        share(abs(ours / theirs - 1), at_most=0.05),
        Band(low=0.90),
    )


_BBR = one_of("bbr1", "bbr2").where(buffer_bytes=_DEEP_BYTES)
_FAST = _RATE.at_least(50e6)
_BESIDE_DEEP = _GOODPUT["cubic", _DEEP_BYTES, _FAST, _RTT]
_DEEP_GAIN = _GOODPUT[_BBR, _DEEP_BYTES, _FAST, _RTT] / _BESIDE_DEEP - 1

CLAIMS = claims(
    {
        "D1": _as_on_fabric("bbr1", least_rho=0.95, most_apart=0.02),
        "D2": _as_on_fabric("bbr2", least_rho=0.90, most_apart=0.03),
        "D3": tuple(
            _within_5_percent(cca, buffer_bytes, size)
            for buffer_bytes, size in ((_SHALLOW_BYTES, "100 kB"), (_DEEP_BYTES, "10 MB"))
            for cca in ("cubic", "bbr1", "bbr2")
        ),
        "D4": Part(
            "most gain or loss of a BBR over CUBIC at 10 MB from 50 Mbit/s on",
            most(abs(_DEEP_GAIN)),
            Band(high=0.10),
        ),
    }
)

"""Published numbers as series to draw beside ours: x and y in the base units of our own columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pandas as pd

from fabbbr.units import Rate, goodput_ceiling
from fabbbr_analysis.references.grids import published_grid
from fabbbr_analysis.references.registry import Reading, load

SERIES_COLUMNS = ["x", "y", "label", "cca", "reading"]

_READINGS: dict[Reading, str] = {"exact": "exact", "vec": "vector", "ras": "raster"}
_GIGA, _MEGA = 1e9, 1e6

_ONE_RATE = re.compile(r"\(?([\d.]+ [kMG]?bit/s)(?!.*bit/s)")
"""A bottleneck described by one rate, whatever words follow it."""

_SALT_FIU_AXIS_MS, _SALT_FIU_TABLE_MS = 40.0, 44.0
"""One site pair, two RTTs: the axis of FABRIC23 Fig 3 says 40 ms, the table of the talk 44 ms."""


def paper_rate(experiment: str) -> Rate | None:
    """Look up the bottleneck's rate in the paper; None when it has several, or there is no paper.

    >>> str(paper_rate("kfoury_5_4")), paper_rate("cardwell_f5")
    ('1 Gbit/s', None)
    """
    rows = load("experiments").set_index("id")["bottleneck"]
    stated = _ONE_RATE.match(str(rows.get(experiment, "")))
    return None if stated is None else Rate.parse(stated[1])


def ran_with_offloads(experiment: str) -> bool:
    """Whether the paper's hosts handed over super-packets, as far as it is known.

    >>> ran_with_offloads("knit6_e5"), ran_with_offloads("cardwell_f10")
    (True, False)
    """
    return bool(load("experiments").set_index("id")["offloads"].get(experiment) == "on")


def published_series(experiment: str, metric: str) -> pd.DataFrame:
    """Look up the published points of ``metric`` (a column of table ``runs``, or ``long_flow_share``).

    Returns
    -------
    DataFrame
        ``x`` in the unit of the axis column (``loss_ratio``, ``rtt_s``, ``buffer_bdp``), ``y`` in the unit of
        the metric column, ``label`` for a legend, ``cca``, and ``reading``: ``exact``, ``vector`` (about
        0.5 % of the axis) or ``raster`` (about 1 %). Empty when nothing was published.

    >>> series = published_series("cardwell_f10", "goodput_bps")
    >>> float(series.loc[(series["cca"] == "cubic") & (series["x"] == 0.001), "y"].iloc[0])
    6600000.0
    """
    source = _SERIES.get((experiment, metric))
    if source is None:
        return pd.DataFrame({"x": [], "y": []}, dtype=float).reindex(columns=SERIES_COLUMNS)
    return source().sort_values(["label", "x"], kind="stable", ignore_index=True)


def _series(
    *, x: pd.Series[float], y: pd.Series[float], cca: pd.Series[str], suffix: str, reading: Reading
) -> pd.DataFrame:
    label = cca + f" ({suffix})"
    frame = pd.DataFrame({"x": x, "y": y, "label": label, "cca": cca, "reading": _READINGS[reading]})
    return frame[SERIES_COLUMNS]


def _ratio(percent: pd.Series[float]) -> pd.Series[float]:
    """Percent as a ratio, rounded to the 12 digits of ``fabbbr.units.Ratio``: 0.1 % is exactly 0.001."""
    return (percent / 100).round(12)


def _f10(*, scale: float) -> pd.DataFrame:
    rows = load("cardwell2016_fig10_digitised")
    return _series(
        x=_ratio(rows["loss_pct"]),
        y=rows["goodput_mbps"] * scale,
        cca=rows["cca"],
        suffix="Cardwell et al. 2016, Fig. 10",
        reading="ras",
    )


def _hm_figure8() -> pd.DataFrame:
    rows = load("hsiao_muindi_data")
    rows = rows[(rows["experiment"] == "figure8") & rows["run"].str.startswith("official")]
    return _series(
        x=_ratio(rows["loss_pct"]),
        y=rows["published_goodput_mbps_(pre-loss link departures)"] * _MEGA,
        cca=rows["cca"].replace("bbr", "bbr1"),
        suffix="Hsiao and Muindi 2017, link departures before loss",
        reading="exact",
    )


def _fabric_figure(figure: int, y_name: str) -> pd.DataFrame:
    rows = load("fabric2023_figures")
    return rows[(rows["figure"] == figure) & (rows["y_name"] == y_name)]


def _e1(*, y_name: str, scale: float) -> pd.DataFrame:
    rows = _fabric_figure(3, y_name)
    rtt_ms = rows["x"].replace(_SALT_FIU_AXIS_MS, _SALT_FIU_TABLE_MS)
    return _series(
        x=(rtt_ms / 1000).round(9),
        y=rows["y"] * scale,
        cca=rows["series"],
        suffix="Gomez et al. 2023, Fig. 3, 10 Gbit/s",
        reading="vec",
    )


def _e3_cells() -> pd.DataFrame:
    """Fig. 6, one row per buffer and panel: columns ``fairness``, ``61ms``, ``113ms``, ``cca``, ``aqm``."""
    rows = load("fabric2023_figures")
    rows = rows[rows["figure"] == 6]
    rows = rows.assign(panel_name=rows["condition"].str.rsplit(";", n=1).str[-1])
    wide = rows.pivot_table(index=["panel_name", "x"], columns="series", values="y").reset_index()
    parts = wide["panel_name"].str.split(" ", n=1)
    return wide.assign(cca=parts.str[0], aqm=parts.str[1]).dropna()


def _e3(*, metric: str) -> pd.DataFrame:
    rows = _e3_cells()
    values = {
        "jain_flows": rows["fairness"] / 100,
        "long_flow_share": rows["113ms"] / (rows["61ms"] + rows["113ms"]),
    }
    named = rows["cca"] + ", " + rows["aqm"]
    frame = _series(
        x=rows["x"], y=values[metric], cca=named, suffix="Gomez et al. 2023, Fig. 6", reading="vec"
    )
    return frame.assign(cca=rows["cca"])


def _e5(*, scale: float) -> pd.DataFrame:
    rows = _fabric_figure(8, "throughput_gbps")
    rtt = rows["condition"].str.extract(r"RTT(\d+)ms", expand=False)
    frame = _series(
        x=_ratio(rows["x"]),
        y=rows["y"] * scale,
        cca=rows["series"] + ", " + rtt + " ms",
        suffix="Gomez et al. 2023, Fig. 8, 10 Gbit/s",
        reading="vec",
    )
    return frame.assign(cca=rows["series"])


def _e6(*, column: str, scale: float) -> pd.DataFrame:
    rows = load("fabric2023_fig9_queue")
    return _series(
        x=rows["buffer_bdp"],
        y=rows[column] * scale,
        cca=rows["series"],
        suffix="Gomez et al. 2023, Fig. 9",
        reading="vec",
    )


def _kfoury_loss() -> pd.DataFrame:
    rows = load("kfoury2020_figures")
    rows = rows[(rows["figure"] == 10) & (rows["y_name"] == "throughput_mbps")]
    buffer = rows["condition"].str.extract(r"buffer([\d.]+)BDP", expand=False)
    frame = _series(
        x=_ratio(rows["x"]),
        y=rows["y"] * _MEGA,
        cca=rows["series"] + ", " + buffer + " BDP",
        suffix="Kfoury et al. 2020, Fig. 10",
        reading="vec",
    )
    return frame.assign(cca=rows["series"])


def _fund() -> pd.DataFrame:
    grid = published_grid("fund2023", "goodput_bps")
    assert grid is not None
    rows = grid.table
    kib, mbps = (
        (rows["buffer_bytes"] / 1024).map("{:g}".format),
        (rows["rate_bps"] / _MEGA).map("{:g}".format),
    )
    frame = _series(
        x=rows["rtt_s"],
        y=rows["mean"],
        cca=rows["cca"] + ", " + mbps + " Mbit/s, " + kib + " KiB",
        suffix=grid.label,
        reading="exact",
    )
    return frame.assign(cca=rows["cca"])


_PER_10_GBPS = 1 / 10 / goodput_ceiling(1500)
"""Gbit/s on a 10 Gbit/s link → our utilisation."""

# Gomez and Kfoury report what iperf3's sender counted; it is the nearest they have to our goodput.
_SERIES: dict[tuple[str, str], Callable[[], pd.DataFrame]] = {
    ("cardwell_f10", "goodput_bps"): partial(_f10, scale=_MEGA),
    ("cardwell_f10", "utilisation"): partial(_f10, scale=1 / 100 / goodput_ceiling(1500)),
    ("hm_figure8", "link_rate_bps"): _hm_figure8,
    ("knit6_e1", "throughput_bps"): partial(_e1, y_name="throughput_gbps", scale=_GIGA),
    ("knit6_e1", "goodput_bps"): partial(_e1, y_name="throughput_gbps", scale=_GIGA),
    ("knit6_e1", "utilisation"): partial(_e1, y_name="throughput_gbps", scale=_PER_10_GBPS),
    ("knit6_e1", "retransmits"): partial(_e1, y_name="retransmissions_pkts", scale=1.0),
    ("knit6_e3", "jain_flows"): partial(_e3, metric="jain_flows"),
    ("knit6_e3", "long_flow_share"): partial(_e3, metric="long_flow_share"),
    ("knit6_e5", "throughput_bps"): partial(_e5, scale=_GIGA),
    ("knit6_e5", "goodput_bps"): partial(_e5, scale=_GIGA),
    ("knit6_e5", "utilisation"): partial(_e5, scale=_PER_10_GBPS),
    ("knit6_e6", "queue_median_bytes"): partial(_e6, column="median_queue_MB", scale=_MEGA),
    ("knit6_e6", "queue_median_bdp"): partial(_e6, column="median_bdp", scale=1.0),
    ("kfoury_5_4", "throughput_bps"): _kfoury_loss,
    ("kfoury_5_4", "goodput_bps"): _kfoury_loss,
    ("fund2023", "goodput_bps"): _fund,
}

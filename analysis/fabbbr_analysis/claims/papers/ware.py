"""Ware et al. 2019: BBR against loss-based flows in a deep buffer."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fabbbr_analysis import models
from fabbbr_analysis.claims import traces
from fabbbr_analysis.claims.expression import Expression
from fabbbr_analysis.claims.levels import every
from fabbbr_analysis.claims.quantities import InWindow, OfRun, OfTrace, Since
from fabbbr_analysis.claims.records import Arithmetic, Band, Part, claims
from fabbbr_analysis.claims.shares import Share
from fabbbr_analysis.claims.vocabulary import lesser, median, most

_CUBIC_FLOWS = 16
_MIXED = "bbr1+cubic"


def _bbr_share(experiment: str, *by: str) -> InWindow:
    """Share of the bytes received in the last 60 % of a run, in which the competition has settled."""
    return InWindow(
        words="BBR's share", experiment=experiment, by=by or ("cca",), window=Since(0.4),
        measure=Share(("bbr1",), "received"),
    )  # fmt: skip


_AGAINST_1 = _bbr_share("ware_1v1")
_AGAINST_16 = _bbr_share("ware_1v16")
_CAPPED = _bbr_share("ware_cap", "axis_profile")
"""By profile of fab_bbr1: ``v1`` has 2 BDP in flight at most, ``v1cap3`` 3 BDP."""

_DISTANCE_TO_MODEL = most(
    abs(_CAPPED["v1"] - float(models.ware_share_of_deep_buffer(2.0))),
    abs(_CAPPED["v1cap3"] - float(models.ware_share_of_deep_buffer(3.0))),
)


def _modelled(runs: pd.DataFrame) -> pd.Series[float]:
    """NaN where the buffer is too shallow for the model; one flow is the rival."""
    share = models.ware_share(
        rate_bps=runs["rate_bps"], rtt_s=runs["rtt_s"], buffer_bdp=runs["buffer_bdp"],
        bbr_flows=runs["n_flows"] - 1,
    )  # fmt: skip
    return pd.Series(share, index=runs.index)


_CONDITION = ("cca", "rate_bps", "buffer_bdp", "n_flows")
_GRID = (every("rate_bps"), every("buffer_bdp"), every("n_flows"))
_MODEL_SHARE = OfRun(words="model's share", experiment="ware_model", by=_CONDITION, value=_modelled)
_GRID_SHARE = _bbr_share("ware_model", *_CONDITION)


def _error(cca: str) -> Expression:
    """Median over the grid of the model's error, absolute or relative: the slides do not say which."""
    measured = _GRID_SHARE[(cca, *_GRID)]
    distance = abs(_MODEL_SHARE[(cca, *_GRID)] - measured)
    return lesser(median(distance), median(distance / measured))


_PACKETS_OF_BBR = ("bbr_bw_bps", *traces.IN_FLIGHT)
_WINDOW_USED = OfTrace(
    words="BBR's packets in flight / window", experiment="ware_1v1", by=("cca",), columns=_PACKETS_OF_BBR,
    measure=traces.bbr_in_flight_per_window,
)  # fmt: skip
_CAP_USED = OfTrace(
    words="BBR's bytes in flight / (2 × bandwidth × least RTT)", experiment="ware_1v1", by=("cca",),
    columns=(*_PACKETS_OF_BBR, "bbr_min_rtt_s", "mss_bytes"), measure=traces.bbr_in_flight_per_cap,
)  # fmt: skip

_DRAWN_BUFFERS_BDP = (2, 4, 8, 16, 32, 64)
_DRAWN_SHARES = (0.784, 0.629, 0.545, 0.491, 0.440, 0.367)
_MODEL = models.ware_share(rate_bps=10e6, rtt_s=0.04, buffer_bdp=_DRAWN_BUFFERS_BDP, bbr_flows=1)
_UNPROBED = models.ware_share_unprobed(rate_bps=10e6, rtt_s=0.04, buffer_bdp=1e6, bbr_flows=1)

CLAIMS = claims(
    {
        "W1": Arithmetic(
            "10 × 1.25 / (1.25 + 9) [Mbit/s]",
            10 * models.probe_bw_share(own_bps=1e6, others_bps=9e6),
            Band(low=1.21, high=1.22),
        ),
        "W2": Part("BBR's share against one CUBIC flow", _AGAINST_1[_MIXED], Band(low=0.30, high=0.60)),
        "W3": (
            Part(
                "change of BBR's share from 1 to 16 CUBIC flows",
                abs(_AGAINST_16[_MIXED] - _AGAINST_1[_MIXED]),
                Band(high=0.15),
            ),
            Part(
                "BBR's share against 16 CUBIC flows / fair share",
                _AGAINST_16[_MIXED] * (_CUBIC_FLOWS + 1),
                Band(low=3, ceiling=17),
            ),
        ),
        "W4": (
            Part("lesser median error of the model against CUBIC", _error(_MIXED), Band(high=0.10)),
            Part("lesser median error of the model against Reno", _error("bbr1+reno"), Band(high=0.13)),
        ),
        "W5": (
            Part("median of BBR's packets in flight / window", _WINDOW_USED[_MIXED], Band(low=0.9)),
            Part(
                "median of BBR's bytes in flight / (2 × bandwidth × least RTT)",
                _CAP_USED[_MIXED],
                Band(low=0.8, high=1.1),
            ),
        ),
        "W6": (
            Part(
                "BBR's share with a cap of 3 BDP minus that with 2 BDP",
                _CAPPED["v1cap3"] - _CAPPED["v1"],
                Band(low=0, strict=True),
            ),
            Part("largest |BBR's share - (1 - 1/cap)|", _DISTANCE_TO_MODEL, Band(high=0.15)),
        ),
        "W7": (
            Arithmetic(
                "BBR's share in an endless buffer, outside ProbeRTT",
                float(_UNPROBED),
                Band(low=0.4999, high=0.5001),
            ),
            Arithmetic(
                "largest change of the model's share from one buffer to the next, 2 to 64 BDP",
                float(np.max(np.diff(_MODEL))),
                Band(high=0, floor=-1, strict=True),
            ),
            Arithmetic(
                "largest distance of the model's share to the register's",
                float(np.max(np.abs(_MODEL - _DRAWN_SHARES))),
                Band(high=0.0005),
            ),
        ),
    }
)

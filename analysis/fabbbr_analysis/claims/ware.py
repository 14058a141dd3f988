"""Ware et al. 2019: BBR against loss-based flows in a deep buffer."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fabbbr_analysis import models
from fabbbr_analysis.claims.observe import windowed
from fabbbr_analysis.claims.records import Arithmetic, Band, Claim, Evidence, Part
from fabbbr_analysis.claims.sample import Array, Key, Means, Sample

_CUBIC_FLOWS = 16
_CAPS_BDP = {"v1": 2.0, "v1cap3": 3.0}
"""Profile of fab_bbr1 → what it has in flight at most."""


def last_60_percent(end_s: float) -> tuple[float, float]:
    """Part of a run in which the competition has settled."""
    return 0.4 * end_s, end_s


def bbr_share(flows: pd.DataFrame) -> float:
    """Share of all received bytes that the BBR flows got; NaN when nothing was received."""
    total = float(flows["received"].sum())
    return float(flows.loc[flows["cca"] == "bbr1", "received"].sum()) / total if total > 0 else np.nan


_ONE = windowed("ware.1v1", ("cca",), last_60_percent, bbr_share)
_SIXTEEN = windowed("ware.1v16", ("cca",), last_60_percent, bbr_share)


_CAPPED = windowed("ware.cap", ("axis_profile",), last_60_percent, bbr_share)


def both(evidence: Evidence) -> Sample:
    """BBR's share against 1 and against 16 CUBIC flows."""
    samples: tuple[tuple[str, Sample], ...] = (("1v1", _ONE(evidence)), ("1v16", _SIXTEEN(evidence)))
    runs = {_named(name, key): values for name, sample in samples for key, values in sample.runs.items()}
    remarks = tuple(remark for _, sample in samples for remark in sample.remarks)
    return Sample(axes=("experiment", "cca"), runs=runs, remarks=remarks)


def _named(name: str, key: Key) -> Key:
    return (name, *key)


def share_alone(x: Means) -> Array:
    """BBR's share against one CUBIC flow."""
    return x[("bbr1+cubic",)]


def change_of_share(x: Means) -> Array:
    """|share against 16 - share against 1|."""
    return np.asarray(abs(x["1v16", "bbr1+cubic"] - x["1v1", "bbr1+cubic"]), dtype=np.float64)


def over_fair_share(x: Means) -> Array:
    """Share against 16, in fair shares of one flow among 17."""
    return x["1v16", "bbr1+cubic"] * (_CUBIC_FLOWS + 1)


def gained_by_the_cap(x: Means) -> Array:
    """BBR's share with the larger cap minus that with the smaller."""
    return x[("v1cap3",)] - x[("v1",)]


def distance_to_the_model(x: Means) -> Array:
    """The larger of |share - (1 - 1/cap)|."""
    distances = [
        abs(x[(profile,)] - models.ware_share_of_deep_buffer(cap)) for profile, cap in _CAPS_BDP.items()
    ]
    return np.asarray(np.max(distances, axis=0), dtype=np.float64)


def worked_example_mbps() -> float:
    """Rate that a BBR flow with 1 of 10 Mbit/s is delivered while it probes [Mbit/s]."""
    return 10 * models.probe_bw_share(own_bps=1e6, others_bps=9e6)


CLAIMS = (
    Claim(
        id="W1",
        parts=(
            Arithmetic(
                quantity="10 × 1.25 / (1.25 + 9) [Mbit/s]",
                value=worked_example_mbps,
                band=Band(low=1.21, high=1.22),
            ),
        ),
    ),
    Claim(
        id="W2",
        parts=(
            Part(
                quantity="BBR's share against one CUBIC flow",
                observe=_ONE,
                formula=share_alone,
                band=Band(low=0.30, high=0.60),
            ),
        ),
    ),
    Claim(
        id="W3",
        parts=(
            Part(
                quantity="change of BBR's share from 1 to 16 CUBIC flows",
                observe=both,
                formula=change_of_share,
                band=Band(high=0.15),
            ),
            Part(
                quantity="BBR's share against 16 CUBIC flows / fair share",
                observe=both,
                formula=over_fair_share,
                band=Band(low=3, ceiling=17),
            ),
        ),
    ),
    Claim(
        id="W6",
        parts=(
            Part(
                quantity="BBR's share with a cap of 3 BDP minus that with 2 BDP",
                observe=_CAPPED,
                formula=gained_by_the_cap,
                band=Band(low=0, strict=True),
            ),
            Part(
                quantity="largest |BBR's share - (1 - 1/cap)|",
                observe=_CAPPED,
                formula=distance_to_the_model,
                band=Band(high=0.15),
            ),
        ),
    ),
)

"""The fidelity gate of our BBRv2 and BBRv3: what the drafts promise and others measured, check by check and profile by profile.

Checks B to I and K of the gate; A is the unit harness (``tests/bbr``), J needs a kernel of Google's. An id is the check and
the profile: ``GB.v2alpha``. ``docs/fidelity.md`` explains each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fabbbr_analysis.claims.observe import Observe, Trace, column_of, flow_metric, traced, windowed
from fabbbr_analysis.claims.records import Band, Claim, Evidence, Part, RunSet
from fabbbr_analysis.claims.sample import Array, Means, Sample, average, highest, lowest, sample_of
from fabbbr_analysis.metrics import jain

PROFILES = ("v2alpha", "draft01", "v3")
_V1 = "v1"
_PROFILE = "axis_profile"
_SHALLOW_BDP, _DEEP_BDP = 0.5, 16.0
_PROBE_RTT_CWND_GAIN, _UP_PACING_GAIN = 0.5, 1.25
_LAST_MINUTE_S = 60.0
_FRAME_OVERHEAD_BYTES = 14

Phases: TypeAlias = list[tuple[float, float]]
"""Start and end of each stretch of time in which something held; what the trace cuts off is left out."""


def _runs(run_set: RunSet) -> pd.DataFrame:
    return run_set.certified


def _metric(evidence: Evidence, *, experiment: str, axes: tuple[str, ...], column: str) -> Sample:
    return sample_of(evidence[experiment].certified, axes=axes, value=column)


def _observed(experiment: str, axis: str, column: str) -> Observe:
    return partial(_metric, experiment=experiment, axes=(_PROFILE, axis), column=column)


# B and C: the clocks, read from the gains that the kernel reports


def phases(times: Array, holds: NDArray[np.bool_]) -> Phases:
    """Stretches of samples for which ``holds``, from the first sample in to the first one after.

    >>> phases(np.array([0.0, 1, 2, 3, 4]), np.array([False, True, True, False, True]))
    [(1.0, 3.0)]
    """
    edges = np.flatnonzero(np.diff(holds.astype(np.int8))) + 1
    starts = [edge for edge in edges if holds[edge]]
    ends = [edge for edge in edges if not holds[edge]]
    if ends and starts and ends[0] < starts[0]:
        ends = ends[1:]
    return [(float(times[start]), float(times[end])) for start, end in zip(starts, ends, strict=False)]


def _probe_rtts(trace: Trace) -> Phases:
    return phases(column_of(trace, "t_s"), column_of(trace, "bbr_cwnd_gain") == _PROBE_RTT_CWND_GAIN)


def _probes(trace: Trace) -> Phases:
    return phases(column_of(trace, "t_s"), column_of(trace, "bbr_pacing_gain") == _UP_PACING_GAIN)


def time_between_probe_rtts(trace: Trace, _run: pd.Series) -> float:
    """Mean time from the end of a ProbeRTT to the start of the next, in s."""
    episodes = _probe_rtts(trace)
    gaps = [after[0] - before[1] for before, after in pairwise(episodes)]
    return float(np.mean(gaps)) if gaps else np.nan


def time_in_probe_rtt(trace: Trace, _run: pd.Series) -> float:
    """Mean length of a ProbeRTT, in s."""
    lengths = [end - start for start, end in _probe_rtts(trace)]
    return float(np.mean(lengths)) if lengths else np.nan


def inflight_in_probe_rtt(trace: Trace, run: pd.Series) -> float:
    """Median of what was in flight in the second halves of ProbeRTT, in BDP."""
    times, packets = column_of(trace, "t_s"), column_of(trace, "unacked_segments")
    inside = np.zeros(len(times), dtype=bool)
    for start, end in _probe_rtts(trace):
        inside |= (times >= (start + end) / 2) & (times < end)
    frame_bytes = float(run["mtu_bytes"]) + _FRAME_OVERHEAD_BYTES
    known = packets[inside & ~np.isnan(packets)]
    return float(np.median(known)) * frame_bytes / float(run["bdp_bytes"]) if len(known) else np.nan


def _waits_of(trace: Trace) -> Phases:
    """From the end of each ProbeRTT, where the clock of probing starts anew, to the first UP after it."""
    probes = [start for start, _ in _probes(trace)]
    episodes = _probe_rtts(trace)
    waits = []
    for (_, end), (following, _) in pairwise(episodes):
        first = next((start for start in probes if end < start < following), None)
        if first is not None:
            waits.append((end, first))
    return waits


def wait_before_probe(trace: Trace, run: pd.Series) -> float:
    """Mean time from ProbeRTT to the next REFILL, in s: REFILL has CRUISE's gain, lasts one round trip, and UP follows."""
    lengths = [end - start - float(run["rtt_s"]) for start, end in _waits_of(trace)]
    return float(np.mean(lengths)) if lengths else np.nan


def rounds_before_probe(trace: Trace, _run: pd.Series) -> float:
    """The same in round trips, each as long as the smoothed RTT was at that time."""
    # A new connection has no smoothed RTT yet.
    times, rtts = column_of(trace, "t_s"), column_of(trace.assign(rtt_s=trace["rtt_s"].bfill()), "rtt_s")
    passed = np.append(0.0, np.cumsum(np.diff(times) / rtts[:-1]))
    counts = [
        np.interp(end, times, passed) - np.interp(start, times, passed) - 1 for start, end in _waits_of(trace)
    ]
    return float(np.mean(counts)) if counts else np.nan


def _clock(measure: Callable[[Trace, pd.Series], float]) -> Observe:
    columns = ("bbr_cwnd_gain", "bbr_pacing_gain", "unacked_segments", "rtt_s")
    return traced("gate.cycle", columns, measure, axes=(_PROFILE, "rtt_s"), runs_of=_runs)


def _over_rtts(profile: str, choose: Callable[[list[Array]], Array]) -> Callable[[Means], Array]:
    return lambda x: choose([x[profile, rtt] for rtt in x.levels(profile)])


def _at_rtt(profile: str, rtt_s: float) -> Callable[[Means], Array]:
    return lambda x: x[profile, rtt_s]


def _clocks(profile: str) -> tuple[Part, ...]:
    def part(words: str, measure: Callable[[Trace, pd.Series], float], choice: str, band: Band) -> Part:
        choose = lowest if choice == "least" else highest
        return Part(
            quantity=f"{choice} {words}",
            observe=_clock(measure),
            formula=_over_rtts(profile, choose),
            band=band,
        )

    between = "s from one ProbeRTT to the next, over RTT"
    inflight = "packets in flight in ProbeRTT / BDP, over RTT"
    return (
        # Both ends of a stretch are read from samples 5 ms apart.
        part(between, time_between_probe_rtts, "least", Band(low=5.0, ceiling=5.3, slack=0.01)),
        part(between, time_between_probe_rtts, "most", Band(high=5.3, floor=5.0)),
        part("s in ProbeRTT, over RTT", time_in_probe_rtt, "least", Band(low=0.2)),
        part(inflight, inflight_in_probe_rtt, "least", Band(low=0.4)),
        part(inflight, inflight_in_probe_rtt, "most", Band(high=0.6)),
    )


def _waits(profile: str) -> tuple[Part, ...]:
    def part(words: str, measure: Callable[[Trace, pd.Series], float], rtt_s: float, band: Band) -> Part:
        return Part(
            quantity=f"{words} at RTT {rtt_s * 1000:g} ms",
            observe=_clock(measure),
            formula=_at_rtt(profile, rtt_s),
            band=band,
        )

    return (
        part("round trips before the next probe", rounds_before_probe, 0.010, Band(low=60, high=65)),
        part("s before the next probe", wait_before_probe, 0.040, Band(low=2.0, high=2.6)),
        part("s before the next probe", wait_before_probe, 0.100, Band(low=2.0, high=3.0)),
    )


# D to F: one flow under loss, in shallow and in deep buffers


def _goodput_by_loss(evidence: Evidence) -> Sample:
    return sample_of(
        evidence["gate.loss"].certified, axes=(_PROFILE, "loss_ratio", "rtt_s"), value="goodput_bps"
    )


def over_v1(x: Means, *, profile: str, level: float, choose: Callable[[list[Array]], Array]) -> Array:
    """Goodput of ``profile`` over that of BBRv1 at one loss, the least or the most over RTTs."""
    return choose([x[profile, level, rtt] / x[_V1, level, rtt] for rtt in x.levels(profile, level)])


def _cliff(profile: str) -> tuple[Part, ...]:
    def part(level: float, choice: str, band: Band) -> Part:
        return Part(
            quantity=f"{choice} goodput / BBRv1's at {level * 100:g} % loss, over RTT",
            observe=_goodput_by_loss,
            formula=partial(
                over_v1, profile=profile, level=level, choose=lowest if choice == "least" else highest
            ),
            band=band,
        )

    return (
        part(0.001, "least", Band(low=0.8)),
        part(0.01, "least", Band(low=0.5)),
        part(0.03, "most", Band(high=0.3)),
    )


def least_saving(x: Means, *, profile: str) -> Array:
    """Smallest ratio of BBRv1's retransmissions to those of ``profile`` in buffers below half a BDP."""
    return lowest([x[_V1, b] / x[profile, b] for b in x.levels(profile) if b < _SHALLOW_BDP])


def _mean_rtt(flows: pd.DataFrame) -> float:
    return float((flows["rtt_mean_s"] / flows["rtt_propagation_s"]).mean())


# G to I: beside others


def bbr_share(flows: pd.DataFrame) -> float:
    """Share of the summed goodput that the flows other than CUBIC get."""
    goodput = column_of(flows, "goodput_bps")
    return float(goodput[(flows["cca"] != "cubic").to_numpy()].sum() / goodput.sum())


def gain_in_fairness(x: Means, *, profile: str, below_bdp: float) -> Array:
    """Mean Jain index of ``profile`` minus BBRv1's over the buffers below ``below_bdp``."""
    levels = [b for b in x.levels(profile) if b < below_bdp]
    return average([x[profile, b] for b in levels]) - average([x[_V1, b] for b in levels])


def _received_jain(flows: pd.DataFrame) -> float:
    index = jain(column_of(flows, "received"))
    return np.nan if index is None else index


def _beside_cubic(profile: str) -> tuple[Part, ...]:
    return (
        Part(
            quantity="mean Jain index minus BBRv1's, buffers below 1 BDP",
            observe=_observed("gate.cubic", "buffer_bdp", "jain_flows"),
            formula=partial(gain_in_fairness, profile=profile, below_bdp=1.0),
            band=Band(low=0.0, strict=True),
        ),
        Part(
            quantity="share beside CUBIC at 16 BDP",
            observe=flow_metric("gate.cubic", (_PROFILE, "buffer_bdp"), bbr_share, runs_of=_runs),
            formula=lambda x: x[profile, _DEEP_BDP],
            band=Band(high=0.5),
        ),
    )


def _checks(profile: str) -> tuple[Claim, ...]:
    return (
        Claim(id=f"GB.{profile}", parts=_clocks(profile)),
        Claim(id=f"GC.{profile}", parts=_waits(profile)),
        Claim(id=f"GD.{profile}", parts=_cliff(profile)),
        Claim(
            id=f"GE.{profile}",
            parts=(
                Part(
                    quantity="least BBRv1 / own retransmissions below 0.5 BDP",
                    observe=_observed("gate.buffer", "buffer_bdp", "retransmits"),
                    formula=partial(least_saving, profile=profile),
                    band=Band(low=5.0, ceiling=100.0),
                ),
            ),
        ),
        Claim(
            id=f"GF.{profile}",
            parts=(
                Part(
                    quantity="most mean RTT / propagation, over RTT",
                    observe=flow_metric("gate.cycle", (_PROFILE, "rtt_s"), _mean_rtt, runs_of=_runs),
                    formula=_over_rtts(profile, highest),
                    band=Band(high=1.25, floor=1.0),
                ),
            ),
        ),
        Claim(id=f"GG.{profile}", parts=_beside_cubic(profile)),
        Claim(
            id=f"GH.{profile}",
            parts=(
                Part(
                    quantity="mean Jain index minus BBRv1's",
                    observe=_observed("gate.rtt", "buffer_bdp", "jain_flows"),
                    formula=partial(gain_in_fairness, profile=profile, below_bdp=np.inf),
                    band=Band(low=0.0, strict=True),
                ),
            ),
        ),
        Claim(
            id=f"GI.{profile}",
            parts=(
                Part(
                    quantity="least Jain index of the last minute, over the number of flows",
                    observe=windowed(
                        "gate.intra",
                        (_PROFILE, "n_flows"),
                        lambda end: (end - _LAST_MINUTE_S, end),
                        _received_jain,
                        runs_of=_runs,
                    ),
                    formula=_over_rtts(profile, lowest),
                    band=Band(low=0.9),
                ),
            ),
        ),
    )


# K: version 1 of the core beside the kernel's own


def _by_implementation(evidence: Evidence, *, column: str) -> Sample:
    axes = ("axis_implementation", "buffer_bdp", "loss_ratio")
    runs = evidence["gate.v1"].certified
    return sample_of(runs.assign(loss_ratio=runs["loss_ratio"].fillna(0.0)), axes=axes, value=column)


def _pairs(x: Means) -> list[tuple[Array, Array]]:
    return [
        (x["fabbbr", buffer, loss], x["mainline", buffer, loss])
        for buffer in x.levels("fabbbr")
        for loss in x.levels("fabbbr", buffer)
    ]


def _ratios(x: Means) -> list[Array]:
    return [ours / theirs for ours, theirs in _pairs(x) if np.all(theirs > 0)]


def _plumbing() -> tuple[Part, ...]:
    def both(quantity: str, column: str, band_low: float, band_high: float) -> tuple[Part, Part]:
        observe = partial(_by_implementation, column=column)
        return (
            Part(
                quantity=f"least {quantity}", observe=observe, formula=lambda x: lowest(_ratios(x)),
                band=Band(low=band_low),
            ),
            Part(
                quantity=f"most {quantity}", observe=observe, formula=lambda x: highest(_ratios(x)),
                band=Band(high=band_high, floor=1.0),
            ),
        )  # fmt: skip

    queue = Part(
        quantity="most difference of mean RTT / propagation",
        observe=partial(_by_implementation, column="rtt_median_s"),
        formula=lambda x: highest([abs(ours / theirs - 1) for ours, theirs in _pairs(x)]),
        band=Band(high=0.1),
    )
    return (
        *both("goodput / the kernel's own bbr", "goodput_bps", 0.9, 1.1),
        *both("retransmissions / the kernel's own bbr", "retransmits", 0.9, 1.1),
        queue,
    )


CLAIMS = (
    *(claim for profile in PROFILES for claim in _checks(profile)),
    Claim(id="GK.v1", parts=_plumbing()),
)

"""The fidelity gate of our BBRv2 and BBRv3: what the drafts promise and others measured.

Checks B to I and K of the gate; A is the unit harness (``tests/bbr``), J needs a kernel of Google's. An id is
the check and the profile: ``GB.v2alpha``. ``docs/fidelity.md`` explains each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from fabbbr_analysis.claims import cycle
from fabbbr_analysis.claims.expression import InCondition
from fabbbr_analysis.claims.levels import every
from fabbbr_analysis.claims.observed import RunSet, SocketTrace
from fabbbr_analysis.claims.quantities import InWindow, Last, OfFlows, OfRun, OfTrace, column
from fabbbr_analysis.claims.records import Band, Part, claims
from fabbbr_analysis.claims.shares import Share, jain_of_received
from fabbbr_analysis.claims.vocabulary import average, least, most

PROFILES = ("v2alpha", "draft01", "v3")
_PROFILE = "axis_profile"
_SHALLOW_BDP, _DEEP_BDP = 0.5, 16.0

_RTT, _BUFFER, _FLOWS, _LOSS = every("rtt_s"), every("buffer_bdp"), every("n_flows"), every("loss_ratio")


def _every_profile(run_set: RunSet) -> pd.DataFrame:
    """All certified runs: the profiles are what is compared."""
    return run_set.certified


def _column(words: str, experiment: str, name: str, *axes: str) -> OfRun:
    return replace(column(words, experiment, (_PROFILE, *axes), name), runs_of=_every_profile)


def _clock(words: str, measure: Callable[[SocketTrace, pd.Series], float]) -> OfTrace:
    return OfTrace(
        words=words, experiment="gate_cycle", by=(_PROFILE, "rtt_s"), columns=cycle.COLUMNS, measure=measure,
        runs_of=_every_profile,
    )  # fmt: skip


def _mean_rtt(flows: pd.DataFrame) -> float:
    return float((flows["rtt_mean_s"] / flows["rtt_propagation_s"]).mean())


# B and C: the clocks, read from the gains that the kernel reports

_BETWEEN = _clock("s from one ProbeRTT to the next", cycle.time_between_probe_rtts)
_WITHIN = _clock("s in ProbeRTT", cycle.time_in_probe_rtt)
_IN_FLIGHT = _clock("packets in flight in ProbeRTT / BDP", cycle.inflight_in_probe_rtt)
_ROUNDS = _clock("round trips before the next probe", cycle.rounds_before_probe)
_WAIT = _clock("s before the next probe", cycle.wait_before_probe)

# D to F: one flow under loss, in shallow and in deep buffers

_GOODPUT = _column("goodput", "gate_loss", "goodput_bps", "loss_ratio", "rtt_s")
_RESENT = _column("retransmissions", "gate_buffer", "retransmits", "buffer_bdp")
_MEAN_RTT = OfFlows(
    words="mean RTT / propagation", experiment="gate_cycle", by=(_PROFILE, "rtt_s"), runs_of=_every_profile,
    measure=_mean_rtt,
)  # fmt: skip

# G to I: beside others

_JAIN_BESIDE_CUBIC = _column("Jain's index", "gate_cubic", "jain_flows", "buffer_bdp")
_SHARE = OfFlows(
    words="share beside CUBIC", experiment="gate_cubic", by=(_PROFILE, "buffer_bdp"), runs_of=_every_profile,
    measure=Share(("bbr1", "bbr2", "bbr3")),
)  # fmt: skip
_JAIN_OF_RTTS = _column("Jain's index", "gate_rtt", "jain_flows", "buffer_bdp")
_JAIN_AMONG_ITSELF = InWindow(
    words="Jain's index of the last minute", experiment="gate_intra", by=(_PROFILE, "n_flows"),
    runs_of=_every_profile, window=Last(60), measure=jain_of_received,
)  # fmt: skip


def _clocks(own: str) -> tuple[Part, ...]:
    between, within, in_flight = _BETWEEN[own, _RTT], _WITHIN[own, _RTT], _IN_FLIGHT[own, _RTT]
    return (
        # Both ends of a stretch are read from samples 5 ms apart.
        Part(
            "least s from one ProbeRTT to the next, over RTT",
            least(between),
            Band(low=5.0, ceiling=5.3, slack=0.01),
        ),
        Part("most s from one ProbeRTT to the next, over RTT", most(between), Band(high=5.3, floor=5.0)),
        Part("least s in ProbeRTT, over RTT", least(within), Band(low=0.2)),
        Part("least packets in flight in ProbeRTT / BDP, over RTT", least(in_flight), Band(low=0.4)),
        Part("most packets in flight in ProbeRTT / BDP, over RTT", most(in_flight), Band(high=0.6)),
    )


def _waits(own: str) -> tuple[Part, ...]:
    return (
        Part("round trips before the next probe at RTT 10 ms", _ROUNDS[own, 0.010], Band(low=60, high=65)),
        Part("s before the next probe at RTT 40 ms", _WAIT[own, 0.040], Band(low=2.0, high=2.6)),
        Part("s before the next probe at RTT 100 ms", _WAIT[own, 0.100], Band(low=2.0, high=3.0)),
    )


def _cliff(own: str) -> tuple[Part, ...]:
    at = {loss: _GOODPUT[own, loss, _RTT] / _GOODPUT["v1", loss, _RTT] for loss in (0.001, 0.01, 0.03)}
    return (
        Part("least goodput / BBRv1's at 0.1 % loss, over RTT", least(at[0.001]), Band(low=0.8)),
        Part("least goodput / BBRv1's at 1 % loss, over RTT", least(at[0.01]), Band(low=0.5)),
        Part("most goodput / BBRv1's at 3 % loss, over RTT", most(at[0.03]), Band(high=0.3)),
    )


def _checks(own: str) -> dict[str, Part | tuple[Part, ...]]:
    """``own`` is the profile that is judged; the levels are those at which it was run."""
    shallow = _BUFFER.below(_SHALLOW_BDP).where(axis_profile=own)
    below_1 = _BUFFER.below(1).where(axis_profile=own)
    deep = _BUFFER.where(axis_profile=own)
    saving = least(_RESENT["v1", shallow] / _RESENT[own, shallow])
    beside_cubic = average(_JAIN_BESIDE_CUBIC[own, below_1]) - average(_JAIN_BESIDE_CUBIC["v1", below_1])
    of_rtts = average(_JAIN_OF_RTTS[own, deep]) - average(_JAIN_OF_RTTS["v1", deep])
    among_itself = least(_JAIN_AMONG_ITSELF[own, _FLOWS])
    mean_rtt = most(_MEAN_RTT[own, _RTT])
    return {
        f"GB.{own}": _clocks(own),
        f"GC.{own}": _waits(own),
        f"GD.{own}": _cliff(own),
        f"GE.{own}": Part(
            "least BBRv1 / own retransmissions below 0.5 BDP", saving, Band(low=5.0, ceiling=100.0)
        ),
        f"GF.{own}": Part("most mean RTT / propagation, over RTT", mean_rtt, Band(high=1.25, floor=1.0)),
        f"GG.{own}": (
            Part(
                "mean Jain index minus BBRv1's, buffers below 1 BDP", beside_cubic, Band(low=0.0, strict=True)
            ),
            Part("share beside CUBIC at 16 BDP", _SHARE[own, _DEEP_BDP], Band(high=0.5)),
        ),
        f"GH.{own}": Part("mean Jain index minus BBRv1's", of_rtts, Band(low=0.0, strict=True)),
        f"GI.{own}": Part(
            "least Jain index of the last minute, over the number of flows", among_itself, Band(low=0.9)
        ),
    }


# K: version 1 of the core beside the kernel's own


def _no_loss_is_0(run_set: RunSet) -> pd.DataFrame:
    runs = run_set.certified
    return runs.assign(loss_ratio=runs["loss_ratio"].fillna(0.0))


def _by_implementation(words: str, name: str) -> tuple[InCondition, InCondition]:
    """A column with our core and with the kernel's own, in each condition of ours."""
    axes = ("axis_implementation", "buffer_bdp", "loss_ratio")
    quantity = replace(column(words, "gate_v1", axes, name), runs_of=_no_loss_is_0)
    return quantity["fabbbr", _BUFFER, _LOSS], quantity["mainline", _BUFFER, _LOSS]


def _within_a_tenth(words: str, ours: InCondition, kernels: InCondition) -> tuple[Part, Part]:
    """Where the kernel's own had nothing there is no ratio."""
    ratio = ours / kernels
    return (
        Part(f"least {words} / the kernel's own bbr", least(ratio, positive=kernels), Band(low=0.9)),
        Part(
            f"most {words} / the kernel's own bbr", most(ratio, positive=kernels), Band(high=1.1, floor=1.0)
        ),
    )


def _plumbing() -> tuple[Part, ...]:
    our_rtt, kernels_rtt = _by_implementation("median RTT", "rtt_median_s")
    return (
        *_within_a_tenth("goodput", *_by_implementation("goodput", "goodput_bps")),
        *_within_a_tenth("retransmissions", *_by_implementation("retransmissions", "retransmits")),
        Part(
            "most difference of mean RTT / propagation", most(abs(our_rtt / kernels_rtt - 1)), Band(high=0.1)
        ),
    )


CLAIMS = (
    *(each for profile in PROFILES for each in claims(_checks(profile))),
    *claims({"GK.v1": _plumbing()}),
)

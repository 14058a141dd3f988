"""As much of the data comes late as was asked for, and as late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabbbr.certify.evidence import BurstTold
from fabbbr.job.expected import TrainProbe
from fabbbr.manifest import Check
from fabbbr.testbed import Tolerances
from fabbbr.units import NANOSECONDS_PER_SECOND

_CONFIDENCE = 1 - 1e-6
"""Of one train: of the thousand cells of a large run, one in a thousand runs is refused by chance."""
_NO_TRAIN = BurstTold(sent=0, arrivals=(), queues_at_peak=())


def checks(probe: TrainProbe | None, train: BurstTold | None, allowed: Tolerances) -> Iterator[Check]:
    """One, where something comes late."""
    if probe is not None:
        yield _check(probe, train or _NO_TRAIN, allowed)


def _check(probe: TrainProbe, train: BurstTold, allowed: Tolerances) -> Check:
    least_s, most_s = probe.late_s
    slack_s = allowed.rtt_s + probe.waits_s
    took_s = _late_s(probe, train)
    late = [seconds for seconds in took_s if least_s - slack_s <= seconds <= most_s + slack_s]
    neither = len(took_s) - len(late) - sum(seconds <= slack_s for seconds in took_s)
    held_up = int(allowed.held_up * len(took_s))
    low, high = _interval(len(took_s), probe.late_share)
    right = (
        # Any that is held up may seem to come late, but few of those that do are held up as well.
        low <= len(late) + held_up * probe.late_share and len(late) <= high + held_up and neither <= held_up
    )
    told_apart = slack_s < least_s / 2
    return Check(
        name=f"reordering on {', '.join(probe.links)}",
        passed=bool(took_s) and (right or not told_apart),
        asked=f"{low} to {high} of {len(took_s)} packets {_milliseconds(least_s, most_s)} late",
        measured=_in_words(late, neither, len(took_s)) if told_apart else "too little to be told apart here",
        detail=(
            f"{train.sent} packets of data, one every {probe.gap_ns / 1e3:g} us, told apart within "
            f"{slack_s * 1e6:.4g} us; binomial interval, {_CONFIDENCE:.4%}"
            + (f", and {held_up} that this machine may have held up" if held_up else "")
        ),
    )


def _late_s(probe: TrainProbe, train: BurstTold) -> list[float]:
    """How much later each came than the quickest, less those that were sent too late."""
    astray = {number for first, end in train.late for number in range(first, end)}
    took_ns = [at_ns - number * probe.gap_ns for number, at_ns in train.arrivals if number not in astray]
    quickest_ns = min(took_ns, default=0)
    return [(took - quickest_ns) / NANOSECONDS_PER_SECOND for took in took_ns]


def _interval(trials: int, probability: float) -> tuple[int, int]:
    from scipy.stats import binom

    low, high = binom.interval(_CONFIDENCE, trials, probability) if trials else (0, 0)
    return int(low), int(high)


def _in_words(late: Sequence[float], neither: int, packets: int) -> str:
    if not packets:
        return "none arrived"
    share = f"{len(late)} of {packets} ({len(late) / packets:.3%})"
    told = f"{share}, {_milliseconds(min(late), max(late))} late" if late else f"{share} late"
    return f"{told}; {neither} neither on time nor so late" if neither else told


def _milliseconds(*ends: float) -> str:
    """One number where both are the same in six digits."""
    return " to ".join(dict.fromkeys(f"{seconds * 1e3:.6g}" for seconds in ends)) + " ms"

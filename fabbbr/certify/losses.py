"""Was lost at random what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fabbbr.certify.counters import QdiscCounters
from fabbbr.certify.evidence import Evidence
from fabbbr.job.expected import Wire
from fabbbr.manifest import Check
from fabbbr.model import Loss
from fabbbr.physics import correlated_spread, loss_in_words, stationary_loss

LOSS_CONFIDENCE = 0.99
_OF_DATA = "10:"
"""Handle of the netem that data alone passes."""


def injected(wire: Wire, at_first: Loss, evidence: Evidence, lossy_links: int) -> Iterator[Check]:
    """Yield a check of what a link lost; where steps change it, one for each loss that it had."""
    lost: dict[Loss, _Lost] = {}
    for loss, (early, late) in zip((at_first, *wire.later_losses), _spans(wire, evidence), strict=False):
        lost[loss] = lost.get(loss, _Lost(0, 0)).and_between(early, late)
    for loss, (dropped, offered) in lost.items():
        at = f" at {loss_in_words(loss)}" if wire.later_losses else ""
        check = loss_check(loss, wire.link + at, dropped, offered, lossy_links)
        # A short loss may meet no packet.
        met_none = bool(wire.later_losses) and not offered
        yield check.model_copy(update={"passed": check.passed or met_none})


class _Lost(NamedTuple):
    """Packets."""

    dropped: int
    offered: int

    def and_between(self, early: QdiscCounters, late: QdiscCounters) -> _Lost:
        """With those of another time."""
        dropped = late.drops - early.drops
        offered = dropped + late.packets - early.packets + late.qlen - early.qlen
        return _Lost(self.dropped + dropped, self.offered + offered)


def _spans(wire: Wire, evidence: Evidence) -> Iterator[tuple[QdiscCounters, QdiscCounters]]:
    """What had been counted when each loss began and when it ended.

    Packets that come while tc works on a step are of neither loss. Steps that came after the flows are not
    carried out.
    """
    place = (wire.interface.node, wire.interface.name, _OF_DATA)
    begun = evidence.before.qdisc(*place)
    for before, after in evidence.counted_at_steps(wire.counted):
        yield begun, before.qdisc(*place)
        begun = after.qdisc(*place)
    yield begun, evidence.after.qdisc(*place)


def loss_check(
    loss: Loss, link: str, dropped: int, offered: int, lossy_links: int, *, unit: str = "packets"
) -> Check:
    """Compare what netem dropped of what it was offered with the binomial interval."""
    asked = stationary_loss(loss)
    offered = max(offered, 0)
    low, high = binomial_interval(loss, offered, asked, lossy_links)
    return Check(
        name=f"injected loss on {link}",
        passed=offered > 0 and low <= dropped <= high,
        asked=f"{asked:.6%} of {offered} {unit}: {low} to {high}",
        measured=f"{dropped} ({dropped / offered:.6%})" if offered else f"no {unit}",
        detail=f"binomial interval, {LOSS_CONFIDENCE:.0%} over the {lossy_links} lossy links of the run",
    )


def binomial_interval(loss: Loss, trials: int, probability: float, lossy_links: int) -> tuple[int, int]:
    """The fewest and the most successes, where ``loss`` decides which packets are tried together."""
    from scipy.stats import binom

    if probability in (0, 1):
        return (round(probability * trials),) * 2
    confidence = 1 - (1 - LOSS_CONFIDENCE) / max(lossy_links, 1)
    low, high = (int(bound) for bound in binom.interval(confidence, trials, probability))
    spread = correlated_spread(loss)
    if spread > 1:
        # Bursts are correlated: the count spreads as if there were fewer independent packets.
        middle = trials * probability
        low = max(int(middle - (middle - low) * spread), 0)
        high = int(middle + (high - middle) * spread) + 1
    return low, high

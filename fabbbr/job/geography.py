"""What of a cell's round trips the network has already, and what is left to emulate. Pure.

In a guest the network has nothing, and a wire holds the whole delay. Between sites it has most of it: a round
trip is never made longer unless that was asked for, and never can be made shorter.
"""

from __future__ import annotations

from fabbbr.errors import PlanError
from fabbbr.model import Cell, CellLink, Step
from fabbbr.testbed import Testbed
from fabbbr.units import NANOSECONDS_PER_SECOND, Duration


def misfit(cell: Cell, testbed: Testbed) -> str | None:
    """Why the round trips of ``cell`` cannot be had on ``testbed``, with the remedy; None when they can."""
    for link in cell.links:
        for rtt_s in _asked_s(cell, link):
            reason = _misfit(link, rtt_s, testbed)
            if reason is not None:
                return reason
    return None


def left_to_emulate(cell: Cell, testbed: Testbed) -> Cell:
    """``cell`` with the delays that netem must add; raise PlanError when asked and there do not fit."""
    if not testbed.network_rtt_s:
        return cell
    reason = misfit(cell, testbed)
    if reason is not None:
        raise PlanError(reason)
    stepped = {step.link for step in cell.steps if step.rtt is not None}

    def shortened(link: CellLink) -> CellLink:
        delay = _missing(link.delay, link.name, testbed, wired=link.name in stepped)
        return link.model_copy(update={"delay": delay})

    links = tuple(map(shortened, cell.links))
    steps = tuple(_step(step, testbed) for step in cell.steps)
    return cell.model_copy(update={"links": links, "steps": steps})


def _asked_s(cell: Cell, link: CellLink) -> list[float]:
    """Round trips that the cell asks of ``link``: at first, and after steps. Empty where it names none."""
    first = [2 * link.delay.seconds] if link.delay is not None else []
    later = [step.rtt.seconds for step in cell.steps if step.link == link.name and step.rtt is not None]
    return first + later


def _misfit(link: CellLink, asked_s: float, testbed: Testbed) -> str | None:
    there_s, tolerance_s = testbed.network_rtt_s.get(link.name, 0.0), testbed.tolerances.rtt_s
    if link.name not in testbed.network_rtt_s or abs(asked_s - there_s) <= tolerance_s:
        return None
    said = (
        f"link {link.name}: the experiment asks for a round trip of {asked_s * 1e3:g} ms, and the network "
        f"has {there_s * 1e3:.3g} ms there"
    )
    if asked_s < there_s:
        return f"{said}, which nothing makes shorter; choose sites that are nearer, or another path.rtt"
    if testbed.emulates_rtt:
        return None
    return f"{said}; choose sites as far apart, or have the rest emulated: --emulate rtt"


def _missing(delay: Duration | None, link: str, testbed: Testbed, *, wired: bool = False) -> Duration | None:
    """One way, what netem adds; None where the network has all of it, and no wire is needed for later."""
    if delay is None or link not in testbed.network_rtt_s:
        return delay
    if not testbed.emulates_rtt:
        return None
    left_ns = round(delay.ns - testbed.network_rtt_s[link] * NANOSECONDS_PER_SECOND / 2)
    return Duration(max(left_ns, 1)) if wired or left_ns > 0 else None


def _step(step: Step, testbed: Testbed) -> Step:
    """On a link whose delay is the network's own a step that asks for it changes nothing."""
    if step.rtt is None:
        return step
    half = _missing(Duration(step.rtt.ns // 2), step.link, testbed, wired=True)
    return step.model_copy(update={"rtt": Duration(2 * half.ns) if half is not None else None})

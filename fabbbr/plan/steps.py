"""Changes of links while flows run: those of the file, and those of a trace."""

from __future__ import annotations

from collections.abc import Iterator

from fabbbr import limits
from fabbbr.foreign import listed, shown
from fabbbr.model import Step
from fabbbr.plan.ground import Ground, delivers, half
from fabbbr.plan.links import buffer_bytes
from fabbbr.plan.misfits import Complaints, MisfitError
from fabbbr.plan.step_files import AskedStep
from fabbbr.units import Duration, Rate


def steps_of(
    ground: Ground,
    delays: dict[str, Duration],
    rates: dict[str, Rate],
    complaints: Complaints,
) -> Iterator[Step]:
    """The changes in the order of time; ``delays`` and ``rates`` are carried along."""
    known = {link.name for link in ground.topology.links}
    steps: list[Step] = []
    for asked in sorted(ground.steps, key=lambda asked: asked.step.at):
        if asked.step.link is None or asked.step.link in known:  # another was complained of
            with complaints.noted():
                steps.append(_step(ground, asked, delays, rates))
    with complaints.noted():
        steps = [*_trace_steps(ground), *steps]
    yield from sorted(steps, key=lambda step: step.at)


def _step(ground: Ground, asked: AskedStep, delays: dict[str, Duration], rates: dict[str, Rate]) -> Step:
    step = asked.step
    link = step.link or ground.topology.trunk
    if link not in rates and (step.rate is not None or step.buffer is not None):
        message = f"link {link} has no queue; name a bottleneck ({listed(rates)})"
        raise asked.misfit(message)
    if link not in delays and step.rtt is not None:
        message = f"link {link} has no delay of its own; name one that has ({listed(delays)})"
        raise asked.misfit(message, "rtt")
    if step.rtt is not None:
        delays[link] = half(step.rtt)
    if step.rate is not None:
        rates[link] = step.rate
    size = None
    if step.buffer is not None:
        rtt = ground.longest_rtt(link, delays)
        loc, of = asked.mistake(("buffer",), "")
        size = buffer_bytes(ground, loc, step.buffer, rates[link], rtt, of=of)
    return Step(at=step.at, link=link, rate=step.rate, rtt=step.rtt, buffer_bytes=size, loss=step.loss)


def _trace_steps(ground: Ground) -> list[Step]:
    end, trace = ground.setup.end, ground.trace
    if trace is None or end is None or delivers(ground, ground.topology.trunk):
        return []
    trunk, rates = ground.topology.trunk, trace.rates(until=end)
    if len(rates) > limits.STEPS:
        message = (
            f"{shown(ground.setup.path.trace)} changes the rate {len(rates)} times "
            f"until {end}; at most {limits.STEPS}, shorten the flows"
        )
        raise MisfitError.of((("path", "trace"), message))
    return [Step(at=at, link=trunk, rate=rate) for at, rate in rates]

"""Experiment × topology → the ordered cells of a run. Pure: equal arguments give equal cells.

Ids, seeds and the order inside a block do not move when repetitions are added, and ids and seeds do not move
when values are added either, so a grown experiment resumes in the same run folder.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeVar

from fabbbr import limits
from fabbbr.capturing import room_of
from fabbbr.errors import PlanError, SpecError, UntrustedError
from fabbbr.model import Arrivals, Cell, CellLink, Flow
from fabbbr.physics import end_of
from fabbbr.plan.arrivals import arrivals
from fabbbr.plan.beside import NOTHING, Beside
from fabbbr.plan.definitions import ParametersError
from fabbbr.plan.link_traces import Trace
from fabbbr.plan.misfits import MisfitError
from fabbbr.plan.resolve import Processes, Wiring, wire
from fabbbr.plan.step_files import StepFile
from fabbbr.ports import MOST_FLOWS, ports_per_flow
from fabbbr.sources import Sources
from fabbbr.spec.document import Loc
from fabbbr.spec.experiment import (
    Condition,
    Experiment,
    LinkSetup,
    PathSetup,
    ReverseSetup,
    Setup,
    SliceChoice,
    TraceStart,
)
from fabbbr.topology import Topology
from fabbbr.units import NANOSECONDS_PER_SECOND, Duration, Rate

LONGEST_ID = 200
"""Bytes: file systems hold 255, and a partial name is a little longer than the final one."""


class TooManyPartsError(PlanError):
    """All cells together are more than anybody could run."""


_T = TypeVar("_T")
_HasTrace = TypeVar("_HasTrace", PathSetup, ReverseSetup)
_HasWayBack = TypeVar("_HasWayBack", PathSetup, LinkSetup)

_TWO_PROBE_RTTS = Duration(20 * NANOSECONDS_PER_SECOND)

_CHARACTERS_PER_PART = 100
"""Of a trace: as much of ``run.json`` as a step takes."""


def cells(
    experiment: Experiment,
    topology_of: Callable[[SliceChoice], Topology],
    *,
    seed: int,
    beside: Beside = NOTHING,
) -> tuple[Cell, ...]:
    """All cells, in the order of execution.

    Blocks are repetitions, so that a run that is cut short holds whole blocks; inside a block the conditions
    are shuffled by ``seed``, so that drift does not fall on one of them. ``beside`` holds what the experiment
    names. Raises PlanError naming the condition
    that does not fit its topology, and when all cells together have more parts than anybody could run.
    """
    begun = cache(partial(_begun, beside.traces))

    def wired(condition: Condition, repetition: int) -> tuple[Cell, Processes]:
        setup = condition.setup
        named = tuple(setup.traces.values())
        followed = begun(named, setup.path.trace_start, f"{seed} {repetition} trace")
        return _in_condition(experiment, condition, topology_of, replace(beside, traces=followed))

    conditions: list[tuple[Cell, Processes]] = []
    parts = 0
    for condition in experiment.conditions:
        conditions.append(wired(condition, 1))
        parts += _parts(*conditions[-1]) * experiment.repeat
        if parts > limits.PARTS:
            message = (
                f"{experiment.id}: more than {limits.PARTS} hosts, switches, links, "
                f"flows, steps and traces in all cells ({parts} in the first {len(conditions)} of "
                f"{len(experiment.conditions)} conditions with "
                f"{experiment.repeat} repetitions); lower one of them or split the experiment"
            )
            raise TooManyPartsError(message)
    shuffler = random.Random(seed)  # noqa: S311 - an order, not a secret
    cells: list[Cell] = []
    for repetition in range(1, experiment.repeat + 1):
        there = [
            wired(condition, repetition) if condition.setup.path.trace_start == "random" else found
            for condition, found in zip(experiment.conditions, conditions, strict=True)
        ]
        block = [
            _with_arrivals(_repeated(cell, repetition, seed), processes, beside.sizes, seed)
            for cell, processes in there
        ]
        shuffler.shuffle(block)
        cells.extend(block)
    _check_ids(experiment, cells)
    return tuple(cells)


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """What is wrong with a setup that can be read."""

    loc: Loc
    message: str
    of_the_file: bool
    """Whether a name or a parameter in it is wrong, and not only how things fit together."""


def misfits(
    setup: Setup,
    topology_of: Callable[[SliceChoice], Topology],
    trace_of: Callable[[str], Trace],
    step_file_of: Callable[[str], StepFile],
    module_of: Callable[[str], Sources],
) -> Iterator[Misfit]:
    """All that is wrong with what a setup names, or that does not fit; nothing where it can run.

    Neither is a slice looked at that may not run.
    """
    modules: dict[str, Sources] = {}
    for index, group in enumerate(setup.flows):
        choice = setup.module_of(group)
        try:
            modules |= {} if choice is None else {choice.module: module_of(choice.module)}
        except SpecError as error:
            yield Misfit(loc=("flows", index, "cca"), message=str(error), of_the_file=True)
            setup = _with_another_cca(setup, index)
    step_files: dict[str, StepFile] = {}
    if (name := setup.steps_file) is not None:
        table = _read(step_file_of, ("steps",), name)
        if isinstance(table, Misfit):
            yield table
            setup = setup.model_copy(update={"steps": ()})
        else:
            step_files = {name: table}
    yield from _misfits(setup, topology_of, trace_of, Beside(step_files=step_files, modules=modules))


def _misfits(
    setup: Setup,
    topology_of: Callable[[SliceChoice], Topology],
    trace_of: Callable[[str], Trace],
    beside: Beside,
) -> Iterator[Misfit]:
    found = {name: _read(trace_of, loc, name) for loc, name in setup.traces.items()}
    unread = [each for each in found.values() if isinstance(each, Misfit)]
    traces = {name: each for name, each in found.items() if isinstance(each, Trace)}
    yield from unread
    setup = _without_traces(setup) if unread else setup
    try:
        wire(setup, topology_of(setup.slice), replace(beside, traces=traces))
    except UntrustedError:
        return
    except ParametersError as error:
        yield from (Misfit(loc=loc, message=said, of_the_file=True) for loc, said in error.found)
    except MisfitError as error:
        for loc, said in error.found:
            if not unread or loc[-1] != "buffer":
                yield Misfit(loc=loc, message=said, of_the_file=False)
    except SpecError as error:
        yield Misfit(loc=("slice",), message=str(error).removeprefix("slice: "), of_the_file=True)


def _read(read: Callable[[str], _T], loc: Loc, name: str) -> _T | Misfit:
    try:
        return read(name)
    except SpecError as error:
        return Misfit(loc=loc, message=str(error), of_the_file=True)


def _with_another_cca(setup: Setup, index: int) -> Setup:
    """The same setup with a congestion control that there is: what runs has no say in what fits the slice."""
    flows = list(setup.flows)
    flows[index] = flows[index].model_copy(update={"control": "cubic"})
    return setup.model_copy(update={"flows": tuple(flows)})


def _without_traces(setup: Setup) -> Setup:
    """The same setup with any rates: what its buffers hold is then not known."""
    links = {name: _without_trace_back(link) for name, link in setup.links.items()}
    path = _without_trace_back(_without_trace(setup.path))
    return setup.model_copy(update={"path": path, "links": links})


def _without_trace(asked: _HasTrace) -> _HasTrace:
    return asked.model_copy(update={"trace": None, "rate": asked.rate or Rate(10**8)})


def _without_trace_back(asked: _HasWayBack) -> _HasWayBack:
    back = asked.reverse
    return asked if back is None else asked.model_copy(update={"reverse": _without_trace(back)})


def _in_condition(
    experiment: Experiment,
    condition: Condition,
    topology_of: Callable[[SliceChoice], Topology],
    beside: Beside,
) -> tuple[Cell, Processes]:
    """The cell of a condition, its repetition and seed still to come, and what will then come at random."""
    setup = condition.setup
    try:
        topology = topology_of(setup.slice)
        wiring = wire(setup, topology, beside)
        cell = _resolved(experiment.id, condition, topology, wiring)
        _require_room(cell)
    except (PlanError, SpecError) as error:
        message = f"{experiment.id}: {f'{condition.id}: ' if condition.id else ''}{error}"
        raise (SpecError if isinstance(error, SpecError) else PlanError)(message) from error
    return cell, wiring.arrivals


def _begun(
    traces: Mapping[str, Trace], named: Sequence[str], start: TraceStart | None, seed: str
) -> Mapping[str, Trace]:
    """What a condition follows, from where a run begins; drawn, that is one in all of a repetition.

    It is the same instant of all that it names, for they were recorded together.
    """
    found = {name: traces[name] for name in named if name in traces}
    if start is None or not found:
        return found
    longest = max(found.values(), key=lambda trace: trace.opportunities_ms[-1])
    at = longest.instant(seed) if start == "random" else start
    return {name: trace.begun(at) for name, trace in found.items()}


def _marks_anywhere(links: Sequence[CellLink]) -> bool:
    found = (link.bottleneck for link in links if link.bottleneck is not None)
    return any(queue.ecn for bottleneck in found for queue in bottleneck.distinct)


def _resolved(experiment: str, condition: Condition, topology: Topology, wiring: Wiring) -> Cell:
    setup = condition.setup
    windows = [wiring.flows[index].start.ns + one.duration.ns for index, one in wiring.arrivals.items()]
    end = Duration(max([end_of(wiring.flows, wiring.links).ns, *windows]))
    return Cell(
        id=condition.id,
        experiment=experiment,
        condition=condition.id or experiment,
        axes=condition.axes,
        repetition=0,
        seed=0,
        hosts=topology.hosts,
        switches=topology.switches,
        links=wiring.links,
        flows=wiring.flows,
        arrivals=tuple(
            Arrivals(
                group=wiring.flows[index].group,
                rate=one.process.rate,
                sizes=str(one.process.size),
                start=wiring.flows[index].start,
                duration=one.duration,
            )
            for index, one in wiring.arrivals.items()
        ),
        pings=wiring.pings,
        steps=wiring.steps,
        steps_file=setup.steps_file,
        mtu_bytes=setup.path.mtu,
        offloads=setup.path.offloads,
        ecn=_marks_anywhere(wiring.links),
        sysctls=setup.sysctl.given() if setup.sysctl is not None else {},
        sample_period=setup.sample_period,
        warm_up=default_warm_up(wiring.flows, end=end) if setup.warm_up is None else setup.warm_up,
        captures=setup.capture,
        queue_delay=setup.queue_delay,
        kernel=setup.kernel,
    )


def _require_room(cell: Cell) -> None:
    """Captures stay in memory until the flows are over: nobody may be woken before."""
    needed = room_of(cell).memory_bytes
    if needed > limits.CAPTURE_BYTES:
        keys = " and ".join(
            key
            for key, used in (("capture", cell.captures), ("queue_delay", cell.queue_delay == "packets"))
            if used
        )
        message = (
            f"{keys}: takes {needed / 1e9:.3g} GB of memory while a cell runs, and at most "
            f"{limits.CAPTURE_BYTES / 1e9:.3g} GB are given; shorten the flows, lower the rate, or capture "
            f"fewer links, or headers alone"
        )
        raise PlanError(message)


def _with_arrivals(
    cell: Cell, processes: Processes, sizes: Mapping[str, Sequence[int]], run_seed: int
) -> Cell:
    """The cell with flows in place of each that stands for those that come at random.

    The same come in every condition of a repetition (common random numbers): what differs between conditions
    is not what was drawn.
    """
    if not processes:
        return cell
    flows: list[Flow] = []
    for flow in cell.flows:
        drawn = processes.get(flow.index)
        if drawn is None:
            flows.append(flow)
            continue
        listed = sizes.get(drawn.process.size.file or "")
        seed = f"{run_seed} {cell.repetition} {drawn.position}"
        flows += (
            flow.model_copy(
                update={"start": Duration(flow.start.ns + one.at.ns), "size": one.size, "at_random": True}
            )
            for one in arrivals(drawn.process, listed, seed=seed, duration=drawn.duration)
        )
    if not 0 < len(flows) <= MOST_FLOWS:
        message = (
            f"{cell.experiment}: {len(flows)} flows come in cell {cell.id}; "
            f"1 to {MOST_FLOWS} can run, change arrivals.rate or duration"
        )
        raise PlanError(message)
    ports, streams = ports_per_flow(len(flows)), max(flow.streams for flow in flows)
    if streams > ports:
        message = (
            f"{cell.experiment}: {len(flows)} flows come in cell {cell.id}, and each has {ports} ports to "
            f"send from; one has {streams} streams, give it fewer, or change arrivals.rate or duration"
        )
        raise PlanError(message)
    numbered = tuple(flow.model_copy(update={"index": index}) for index, flow in enumerate(flows))
    return cell.model_copy(update={"flows": numbered})


def _parts(cell: Cell, processes: Processes) -> int:
    drawn = sum(round(one.process.rate.per_s * one.duration.seconds) for one in processes.values())
    traces = (queue.trace for queue in cell.queues if queue.trace is not None)
    traced = sum(len(trace.gaps_ms) // _CHARACTERS_PER_PART for trace in traces)
    return drawn + traced + sum(map(len, (cell.hosts, cell.switches, cell.links, cell.flows, cell.steps)))


def cell_id(condition: str, repetition: int) -> str:
    """``cca=bbr1,loss=1%,r2``; ``r2`` when nothing varies."""
    return f"{condition},r{repetition}" if condition else f"r{repetition}"


def cell_seed(run_seed: int, condition: str, repetition: int) -> int:
    """63 bits that depend on nothing but these three."""
    text = f"{run_seed}\n{condition}\n{repetition}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _repeated(cell: Cell, repetition: int, run_seed: int) -> Cell:
    return cell.model_copy(
        update={
            "id": cell_id(cell.id, repetition),
            "repetition": repetition,
            "seed": cell_seed(run_seed, cell.condition, repetition),
        }
    )


def default_warm_up(flows: Sequence[Flow], *, end: Duration) -> Duration:
    """What steady-state metrics leave out: 20 s (BBR's first two ProbeRTT periods) or 50 RTT.

    At most half of the run. The same whatever runs, so that rivals are compared over the same time.
    """
    longest = max(flow.rtt.ns for flow in flows)
    return Duration(min(max(_TWO_PROBE_RTTS.ns, 50 * longest), end.ns // 2))


def _check_ids(experiment: Experiment, cells: Sequence[Cell]) -> None:
    seen: set[str] = set()
    for cell in cells:
        if cell.id in seen:
            message = (
                f"{experiment.id}: two cells are called {cell.id}; write the values of the axes differently"
            )
            raise PlanError(message)
        if len(cell.id) > LONGEST_ID:
            message = (
                f"{experiment.id}: the cell name {cell.id[:60]}… has {len(cell.id)} characters; "
                f"shorten the names or values of the axes to {LONGEST_ID}"
            )
            raise PlanError(message)
        seen.add(cell.id)

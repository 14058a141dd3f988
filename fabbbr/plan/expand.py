"""Experiment × topology → the ordered cells of a run. Pure: equal arguments give equal cells.

Ids, seeds and the order inside a block do not move when repetitions are added, and ids and seeds do not move
when values are added either, so a grown experiment resumes in the same run folder.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence

from fabbbr import limits
from fabbbr.errors import PlanError, SpecError
from fabbbr.model import Cell, Flow
from fabbbr.physics import end_of
from fabbbr.plan.link_traces import Trace
from fabbbr.plan.resolve import wire
from fabbbr.sources import Sources
from fabbbr.spec.experiment import Condition, Experiment, SliceChoice
from fabbbr.topology import Topology
from fabbbr.units import NANOSECONDS_PER_SECOND, Duration

LONGEST_ID = 200
"""Bytes: file systems hold 255, and a partial name is a little longer than the final one."""


_CHARACTERS_PER_PART = 100
"""Of a trace: as much of ``run.json`` as a step takes."""


def cells(
    experiment: Experiment,
    topology_of: Callable[[SliceChoice], Topology],
    *,
    seed: int,
    traces: Mapping[str, Trace] | None = None,
    modules: Mapping[str, Sources] | None = None,
) -> tuple[Cell, ...]:
    """All cells, in the order of execution.

    Blocks are repetitions, so that a run that is cut short holds whole blocks; inside a block the conditions
    are shuffled by ``seed``, so that drift does not fall on one of them. ``traces`` holds the files that
    ``path.trace`` names, ``modules`` the sources that ``cca`` does. Raises PlanError naming the condition
    that does not fit its topology, and when all cells together have more parts than anybody could run.
    """
    conditions: list[Cell] = []
    parts = 0
    for condition in experiment.conditions:
        trace = (traces or {}).get(condition.setup.path.trace or "")
        conditions.append(_in_condition(experiment, condition, topology_of, trace, modules or {}))
        parts += _parts(conditions[-1]) * experiment.repeat
        if parts > limits.PARTS:
            message = (
                f"{experiment.id}: more than {limits.PARTS} hosts, switches, links, "
                f"flows, steps and traces in all cells ({parts} in the first {len(conditions)} of "
                f"{len(experiment.conditions)} conditions with "
                f"{experiment.repeat} repetitions); lower one of them or split the experiment"
            )
            raise PlanError(message)
    shuffler = random.Random(seed)  # noqa: S311 - an order, not a secret
    cells: list[Cell] = []
    for repetition in range(1, experiment.repeat + 1):
        block = [_repeated(cell, repetition, seed) for cell in conditions]
        shuffler.shuffle(block)
        cells.extend(block)
    _check_ids(experiment, cells)
    return tuple(cells)


def _in_condition(
    experiment: Experiment,
    condition: Condition,
    topology_of: Callable[[SliceChoice], Topology],
    trace: Trace | None,
    modules: Mapping[str, Sources],
) -> Cell:
    """The cell of a condition, its repetition and seed still to come."""
    setup = condition.setup
    name = condition.id or experiment.id
    try:
        topology = topology_of(setup.slice)
        wiring = wire(setup, topology, trace=trace, modules=modules)
    except (PlanError, SpecError) as error:
        message = f"{experiment.id}: {f'{condition.id}: ' if condition.id else ''}{error}"
        raise type(error)(message) from error
    end = end_of(wiring.flows, wiring.links)
    return Cell(
        id=condition.id,
        experiment=experiment.id,
        condition=name,
        axes=condition.axes,
        repetition=0,
        seed=0,
        hosts=topology.hosts,
        switches=topology.switches,
        links=wiring.links,
        flows=wiring.flows,
        steps=wiring.steps,
        mtu_bytes=setup.path.mtu,
        offloads=setup.path.offloads,
        ecn=setup.path.ecn,
        sample_period=setup.sample_period,
        warm_up=default_warm_up(wiring.flows, end=end) if setup.warm_up is None else setup.warm_up,
    )


def _parts(cell: Cell) -> int:
    traces = (queue.trace for queue in cell.bottlenecks.values() if queue.trace is not None)
    traced = sum(len(trace.gaps_ms) // _CHARACTERS_PER_PART for trace in traces)
    return traced + sum(map(len, (cell.hosts, cell.switches, cell.links, cell.flows, cell.steps)))


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
    """What steady-state metrics leave out: 10 s or 50 RTT, 20 s with a BBR (its first two ProbeRTT periods).

    At most half of the run.
    """
    longest = max(flow.rtt.ns for flow in flows)
    least = 20 if any(flow.cca.startswith("bbr") for flow in flows) else 10
    return Duration(min(max(least * NANOSECONDS_PER_SECOND, 50 * longest), end.ns // 2))


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

"""One job on several machines: what each of them does of it. Pure.

A part is a job that has the nodes of one machine. What has two ends, a cable or a flow, is whole in the
part of each machine that has one of them: the agent carries out the ends whose nodes it has, and a cable
whose other end is elsewhere is the network's. The burst is in every part, for all must be quiet meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from fabbbr.errors import PlanError
from fabbbr.job.records import Capture, CaptureTask, Command, Job, StepTask


def split(job: Job, placement: Mapping[str, str]) -> dict[str, Job]:
    """Machine → its part, in the order of the nodes; with all nodes on one machine the part is the job.

    ``placement`` says on which machine each node is. Raise PlanError for a node that is on none, and for
    a command that is for no node, where there are several machines.
    """
    lost = [node.name for node in job.nodes if node.name not in placement]
    if lost:
        message = f"the placement names no machine for {', '.join(lost)}; add where they are"
        raise PlanError(message)
    machines = dict.fromkeys(placement[node.name] for node in job.nodes)
    if len(machines) == 1:
        return dict.fromkeys(machines, job)
    _require_nodes(job)
    return {
        machine: _part(job, {node.name for node in job.nodes if placement[node.name] == machine})
        for machine in machines
    }


def _part(job: Job, here: AbstractSet[str]) -> Job:
    return job.model_copy(
        update={
            "nodes": tuple(node for node in job.nodes if node.name in here),
            "cables": tuple(cable for cable in job.cables if {cable.a.node, cable.b.node} & here),
            "requires": tuple(wanted for wanted in job.requires if wanted.node in here),
            "configure": _commands(job.configure, here),
            "aqms": _commands(job.aqms, here),
            "readback": _captures(job.readback, here),
            "anew": _commands(job.anew, here),
            "counted": _captures(job.counted, here),
            "pings": _captures(job.pings, here),
            "flows": tuple(flow for flow in job.flows if {flow.client_node, flow.server_node} & here),
            "batches": tuple(each for each in job.batches if {each.client_node, each.server_node} & here),
            "pinging": tuple(ping for ping in job.pinging if ping.node in here),
            "steps": tuple(_steps(job.steps, here)),
            "gates": tuple(gate for gate in job.gates if gate.node in here),
            "socket_nodes": tuple(node for node in job.socket_nodes if node in here),
            "captures": tuple(_taps(job.captures, here)),
            "queue_nodes": tuple(node for node in job.queue_nodes if node in here),
        }
    )


def _commands(commands: Iterable[Command], here: AbstractSet[str]) -> tuple[Command, ...]:
    return tuple(command for command in commands if command.node in here)


def _captures(captures: Iterable[Capture], here: AbstractSet[str]) -> tuple[Capture, ...]:
    return tuple(capture for capture in captures if capture.command.node in here)


def _taps(tasks: Iterable[CaptureTask], here: AbstractSet[str]) -> Iterable[CaptureTask]:
    for task in tasks:
        taps = tuple(tap for tap in task.taps if tap.node in here)
        if taps:
            yield task.model_copy(update={"taps": taps})


def _steps(steps: Iterable[StepTask], here: AbstractSet[str]) -> Iterable[StepTask]:
    for step in steps:
        commands = _commands(step.commands, here)
        if commands:
            yield step.model_copy(update={"commands": commands, "counted": _captures(step.counted, here)})


def _require_nodes(job: Job) -> None:
    captured = (capture.command for capture in (*job.readback, *job.pings, *job.counted))
    stepped = (command for step in job.steps for command in step.commands)
    for command in (*job.configure, *job.aqms, *job.anew, *captured, *stepped):
        if command.node is None:
            said = " ".join(command.argv)
            message = f"the command {said} is for no node, and there are several machines: name the node"
            raise PlanError(message)

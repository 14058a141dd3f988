"""``fabbbr plan``: cells, cost and commands, without running anything."""

from __future__ import annotations

import argparse
import json
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from fabbbr.capacity import TRACE_BIN
from fabbbr.capturing import Room, room_of
from fabbbr.commands.question import trust_of
from fabbbr.commands.terminal import Terminal
from fabbbr.job.build import prepare
from fabbbr.job.records import Command, Job
from fabbbr.laboratory import Request, place, planned, selected
from fabbbr.model import Bottleneck, Cell, LinkWay
from fabbbr.physics import deep_buckets, end_of, idle_aqms, loses, loss_in_words, without_marks
from fabbbr.plan.alike import alike, alike_in_words
from fabbbr.plan.doubts import doubts_in_words
from fabbbr.plan.estimate import Estimate, estimate, offered_loads
from fabbbr.testbed import Testbed

_WIDER_THAN_ANY_TABLE = 10_000
"""An id that is cut off is of no use for --only: rather let a narrow terminal wrap."""


def main(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    request = Request(
        experiment=arguments.experiment,
        backend=arguments.backend,
        clock=arguments.clock,
        profile=arguments.profile,
        seed=arguments.seed,
        repeat=arguments.repeat,
        overrides=tuple(arguments.overrides),
        ccas=dict(arguments.ccas),
        only=arguments.only,
        trust=trust_of(arguments),
    )
    cells = selected(request, planned(request).cells)
    return print_plan(cells, place(request), commands=arguments.commands, as_json=arguments.json)


def print_plan(cells: Sequence[Cell], testbed: Testbed, *, commands: bool, as_json: bool) -> int:
    """Print ``cells`` as a table or as JSON, with every command as on ``testbed`` when asked."""
    cost, room = estimate(cells, testbed), _room(cells)
    if as_json:
        print(
            json.dumps(
                {
                    "cells": [
                        {
                            "cell": cell.model_dump(mode="json"),
                            "load": offered_loads(cell),
                            **({"job": _job_as_json(cell, testbed)} if commands else {}),
                        }
                        for cell in cells
                    ],
                    "estimate": {
                        "cells": cost.cells,
                        "clock_s": cost.clock_s,
                        "bottleneck_bytes": cost.bottleneck_bytes,
                        "bottleneck_packets": cost.bottleneck_packets,
                        "wall_s_on_one_core": cost.wall_s,
                        "capture_memory_bytes": room.memory_bytes,
                        "capture_disk_bytes": room.disk_bytes,
                    },
                    "alike": alike(cells),
                    "idle_aqms": {aqm: sorted(where) for aqm, where in idle_aqms(cells).items()},
                    "without_marks": without_marks(cells),
                    "deep_buckets": sorted(deep_buckets(cells)),
                    "testbed": testbed.model_dump(mode="json"),
                }
            )
        )
        return 0
    console = Terminal()
    Terminal(width=_WIDER_THAN_ANY_TABLE).print(_table(cells))
    if commands:
        for cell in cells:
            _print_commands(console, cell, testbed)
    console.say(cost_in_words(cost, testbed))
    for said in (alike_in_words(cells), *doubts_in_words(cells)):
        if said:
            console.say(said)
    if room.memory_bytes:
        console.say(
            f"captures: up to {room.memory_bytes / 1e6:.0f} MB of memory while a cell runs, and about "
            f"{room.disk_bytes / 1e6:.0f} MB of files in all"
        )
    return 0


def _room(cells: Sequence[Cell]) -> Room:
    """The memory of the largest cell, and the files of all."""
    each = [room_of(cell) for cell in cells]
    return Room(
        memory_bytes=max((room.memory_bytes for room in each), default=0),
        disk_bytes=sum(room.disk_bytes for room in each),
    )


_HEADS = (
    "cell", "bottleneck", "RTT", "buffer", "burst", "loss", "late", "flows", "load", "duration", "steps",
    "sysctl",
)  # fmt: skip


def _table(cells: Sequence[Cell]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    rows = [row_of(cell) for cell in cells]
    heads = [name for name in _HEADS if any(name in row for row in rows)]
    for name in heads:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(row.get(name, "") for name in heads))
    return table


def row_of(cell: Cell) -> dict[str, str]:
    """A cell as people read it, by the heads of a plan's table."""
    queue = cell.bottleneck
    loss = next((entry.loss for entry in cell.links if entry.loss is not None), None)
    late = next((entry.reordering for entry in cell.links if entry.reordering is not None), None)
    loads = offered_loads(cell)
    texts = {
        "cell": cell.id,
        "bottleneck": str(queue.rate) + _trace_in_words(queue) + _way_back_in_words(queue),
        "RTT": ", ".join(dict.fromkeys(str(flow.rtt) for flow in cell.flows)),
        "buffer": ", back ".join(map(_buffer_in_words, queue.distinct)),
        "burst": ", back ".join(_burst_in_words(way) for way in queue.distinct),
        "loss": loss_in_words(loss) if loss is not None and loses(loss) else "none",
        "late": f"{late.rate} by {late.late}" if late else "",
        "flows": _flows_in_words(cell),
        "load": ", ".join(f"{group} {load:.1%}" for group, load in loads.items()),
        "duration": f"{end_of(cell.flows, cell.links).seconds:g} s",
        "steps": str(len(cell.asked_steps)),
        "sysctl": cell.tuning,
    }
    asked = any(way.burst_bytes for way in queue.distinct)
    steps, sysctl = cell.asked_steps, cell.tuning
    optional = (("burst", asked), ("load", loads), ("late", late), ("steps", steps), ("sysctl", sysctl))
    absent = {name for name, there in optional if not there}
    return {name: text for name, text in texts.items() if name not in absent}


def _buffer_in_words(way: LinkWay) -> str:
    """As in ``2 BDP = 250000 B (codel)``."""
    held_by = "" if way.aqm == "taildrop" else f" ({way.aqm})"
    return f"{way.buffer_asked} = {way.buffer_bytes} B{held_by}"


def _trace_in_words(queue: Bottleneck) -> str:
    if queue.trace_name is None:
        return ""
    start = f" from {queue.trace_start} on" if queue.trace_start is not None else ""
    how = f" in bins of {TRACE_BIN}" if queue.trace is None else ""
    return f" by {queue.trace_name}{start}{how}"


def _way_back_in_words(queue: Bottleneck) -> str:
    back = queue.own_way_back
    return "" if back is None else f", back {back.rate}{_trace_in_words(back)}"


def _burst_in_words(way: LinkWay) -> str:
    """As in ``20 ms = 25000 B``."""
    if way.trace is not None:
        return "none"
    return "as the rate needs" if way.burst_bytes is None else f"{way.burst_asked} = {way.burst_bytes} B"


def _flows_in_words(cell: Cell) -> str:
    """How many there are of each kind, as in ``2 cubic, 1 bbr3 of 16 streams, 1 ping``."""
    kinds = Counter(
        (flow.cca or "UDP") + (f" of {flow.streams} streams" if flow.streams > 1 else "")
        for flow in cell.flows
    )
    kinds["ping"] += len(cell.pings)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)


def cost_in_words(cost: Estimate, testbed: Testbed) -> str:
    """What a plan will take, in one line."""
    return (
        f"{cost.cells} cell{'s' * (cost.cells != 1)}, {cost.clock_s:.0f} s of {testbed.clock} time, "
        f"{cost.bottleneck_bytes / 1e9:.2f} GB through the bottleneck, about {cost.wall_s / 60:.1f} min on "
        f"one core"
    )


def _job_as_json(cell: Cell, testbed: Testbed) -> dict[str, Any]:
    return prepare(cell, testbed).job.model_dump(mode="json")


def _print_commands(console: Terminal, cell: Cell, testbed: Testbed) -> None:
    console.rule(cell.id, align="left")
    for line in command_lines(prepare(cell, testbed).job):
        console.say(line)


def command_lines(planned_job: Job) -> list[str]:
    """Every command of a job in order, each with the node it runs on."""
    lines = [_line(command) for command in planned_job.configure]
    lines += [_line(capture.command) for capture in (*planned_job.readback, *planned_job.pings)]
    for gate in planned_job.gates:
        lines.append(
            f"{gate.node}$ python3 -S -m agent.gate  # from {gate.into} to {gate.out}, by a trace, "
            f"limit {gate.limit_bytes} B"
        )
    for task in planned_job.captures:
        for tap in task.taps:
            lines.append(
                f"# {task.file}: packets of {tap.interface}, {tap.keeps_bytes} B of each, in a ring of "
                f"{tap.slots} slots"
            )
    lines += _flow_lines(planned_job)
    for ping in planned_job.pinging:
        lines.append(f"{ping.node}$ {shlex.join(ping.argv)}  # at {ping.start_ns / 1e9:g} s")
    for step in planned_job.steps:
        lines += [f"{_line(command)}  # at {step.at_ns / 1e9:g} s" for command in step.commands]
    return lines


def _flow_lines(planned_job: Job) -> list[str]:
    """What receives, then what sends."""
    tasks = (*planned_job.flows, *planned_job.batches)
    lines = [f"{task.server_node}$ {shlex.join(task.server_argv)}" for task in tasks]
    for flow in planned_job.flows:
        at = f"# at {flow.start_ns / 1e9:g} s"
        lines.append(f"{flow.client_node}$ {shlex.join(flow.client_argv)}  {at}")
    for batch in planned_job.batches:
        first = f"# {len(batch.flows)} flows, the first at {batch.flows[0].start_ns / 1e9:g} s"
        lines.append(f"{batch.client_node}$ {shlex.join(batch.client_argv)}  {first}")
    return lines


def _line(command: Command) -> str:
    text = f"{command.node}$ {shlex.join(command.argv)}"
    if command.stdin is None:
        return text
    return text + " <<END\n" + command.stdin + "END"

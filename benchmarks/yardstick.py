"""What a machine gives to two processes that share nothing: the measure for two guests at the same time.

The CPUs of a virtual machine may share a core, a turbo clock or an owner's patience; a program that does sums
in registers cannot do better side by side than the machine lets it.
"""

from __future__ import annotations

import multiprocessing
import os
from functools import partial

from benchmarks.load import Sample
from benchmarks.meter import Meter, in_own_process
from fabbbr.backends.allotted import usable_cpus

_ROUNDS = 25_000_000
"""About two seconds."""


def run_loops(count: int) -> list[Sample]:
    """Run ``count`` arithmetic loops at the same time, each on a CPU of its own; CPU time divided equally."""
    return in_own_process(partial(_run, count=count))


def _run(meter: Meter, *, count: int) -> list[Sample]:
    context = multiprocessing.get_context("fork")
    loops = [context.Process(target=_loop, args=(cpu,)) for cpu in usable_cpus()[:count]]
    meter.start()
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()
    cost = meter.stop()
    return [
        Sample(packets=0, cpu_s=cost.cpu_s / count, wall_s=cost.wall_s, flow_s=0, goodput_bps=0)
        for _ in loops
    ]


def _loop(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    state = 0
    for step in range(_ROUNDS):
        state = (state * 31 + step) & 0xFFFFFFFF

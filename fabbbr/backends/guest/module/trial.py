"""A module's first flow, before any cell: two seconds over 10 Mbit/s in a guest of its own.

What oopses, spins or never ends a round trip is told here, with its place in the sources.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path

from fabbbr.backends.base import Report, Task
from fabbbr.backends.guest.module.build import BuiltModule
from fabbbr.backends.guest.module.native import called_all_the_same
from fabbbr.backends.guest.module.places import Places, loaded_at, oops_in, parameters_of
from fabbbr.backends.guest.runtime import runtime_folder
from fabbbr.errors import BackendError, ModuleUnfitError
from fabbbr.job.build import prepare
from fabbbr.model import Cell, Module
from fabbbr.plan import expand
from fabbbr.plan.definitions import load
from fabbbr.sources import Sources
from fabbbr.spec import read
from fabbbr.testbed import Testbed
from fabbbr.units import TCP_IPV4_HEADER_BYTES

_EXPERIMENT = """\
id: trial
title: A module's first flow
slice: two_site
path: {rate: 10 Mbit/s, rtt: 20 ms}
flows: [{cca: reno, duration: 2 s}]
repeat: 1
"""
_WALL_S = 30.0
_FIRST_WINDOW_SEGMENTS = 10
"""RFC 6928: what a sender may send before anything is acknowledged."""
_HANGS = re.compile(r"its clock has stood|wall time are over|has said nothing|ran past its limit")
_HANGS_AT = re.compile(r"it is in (?P<function>\w+\(\)) \((?P<place>[^)]*)\)")


def trial_cell(module: Module) -> Cell:
    """One flow that runs the module."""
    experiment = read.parse(_EXPERIMENT, source="the trial of a module")
    (cell,) = expand.cells(experiment, load, seed=1)
    flows = tuple(
        flow.model_copy(update={"cca": module.kernel_name, "module": module}) for flow in cell.flows
    )
    return cell.model_copy(update={"flows": flows})


def try_out(
    execute: Callable[[Task], Report], testbed: Testbed, built: BuiltModule, module: Module, sources: Sources
) -> int:
    """Bytes that its flow delivered; raise ModuleUnfitError when the module is not fit for a cell."""
    cell = trial_cell(module)
    with runtime_folder() as work:
        (work / "raw").mkdir()
        task = Task(
            job=prepare(cell, testbed).job,
            work=work,
            seed=cell.seed,
            wall_limit_s=_WALL_S,
            cancelled=threading.Event(),
            progress=lambda _: None,
        )
        try:
            execute(task)
        except BackendError as error:
            raise ModuleUnfitError(_told(str(error), work, built, sources)) from error
        delivered = _delivered_bytes(work)
        unread = sorted(module.params.keys() - parameters_of(work))
    if unread:
        message = (
            f"{sources.place}: parameter {unread[0]} cannot be read back; give it a mode, as in "
            f"module_param({unread[0]}, {built.parameters[unread[0]]}, 0444)"
        )
        raise ModuleUnfitError(message)
    segment = cell.mtu_bytes - TCP_IPV4_HEADER_BYTES
    if delivered <= _FIRST_WINDOW_SEGMENTS * segment:
        message = (
            f"{sources.place}: a flow of 2 s over 10 Mbit/s delivered {delivered} bytes and never "
            f"got beyond its first window (Linux {built.kernel_release}); look at what becomes of snd_cwnd, "
            "ssthresh and sk_pacing_rate when acknowledgements come"
        )
        raise ModuleUnfitError(message)
    return delivered


def _delivered_bytes(work: Path) -> int:
    """By iperf3's receiver; what it does not tell did not arrive."""
    try:
        said = json.loads((work / "raw" / "flow-0.server.json").read_text(encoding="utf-8"))
        return int(said["end"]["sum_received"]["bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _told(error: str, work: Path, built: BuiltModule, sources: Sources) -> str:
    """Why the trial ended badly, with its place where that can be known."""
    console = work / "raw" / "console.log"
    text = console.read_text(encoding="utf-8", errors="replace") if console.exists() else ""
    linux = f"Linux {built.kernel_release}"
    without = called_all_the_same(text, sources)
    if without is not None:
        return str(without)
    oops = oops_in(text)
    if oops is not None:
        address = loaded_at(work).get(built.source_sha256)
        place = Places(built.debug_file).place(oops.instruction, address) if address is not None else None
        where = sources.place_of(*place.line) if place is not None else _of_init(sources)
        function = f" in {place.function}()" if place is not None else " while it was loaded or just after"
        return f"{where}: it breaks {linux}{function}: {oops.said}; correct it there"
    if _HANGS.search(error):
        at = _HANGS_AT.search(error)
        where, function = (at["place"], at["function"]) if at else (str(sources.place), "it")
        return (
            f"{where}: {function} never comes back under {linux}: a flow of 2 s was not over after "
            f"{_WALL_S:.0f} s of wall time; look for a loop without an end"
        )
    return f"{sources.place}: not fit for {linux}: {error}"


def _of_init(sources: Sources) -> str:
    found = sources.line_of("module_init")
    return sources.shown(*found) if found is not None else str(sources.place)

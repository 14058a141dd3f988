"""A day in virtual time: 64 BBRv2 and BBRv3 flows, random loss, changing rates; kernel's log and memory.

    python benchmarks/soak.py                 24 hours, about half an hour on one core
    python benchmarks/soak.py --hours 1 --json
    python benchmarks/soak.py --keep DIR      keeps the raw files and the guest's kernel log

Fails when the guest's kernel warned of anything, when a flow ended early or stalled, or when memory grew
between the second hour and the last.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from fabbbr.backends.base import Task
from fabbbr.backends.guest import GuestBackend
from fabbbr.backends.registry import DEFAULT, described
from fabbbr.job.build import prepare
from fabbbr.job.records import Command, FlowTask, Job, StepTask
from fabbbr.model import Cell
from fabbbr.plan.opening import open_plan

FLOWS = 64
_HOUR_S = 3600
_STEP_S = 600
_RATES = ("10 Mbit/s", "4 Mbit/s", "20 Mbit/s", "6 Mbit/s")
_WARNING = re.compile(
    r"WARNING|BUG|Oops|Call Trace|refcount|underflow|leak|fab_bbr:|hung task", re.IGNORECASE
)
_GROWTH_KB = 4096
"""Of slab memory from the second hour to the last: pages half filled; a leak of one
connection's state per hour is more."""


def main(argv: Sequence[str]) -> int:
    arguments = _arguments(argv)
    with tempfile.TemporaryDirectory(prefix="fabbbr-soak-") as place:
        work = Path(place) / "work"
        (work / "raw").mkdir(parents=True)
        started = time.monotonic()
        cell = _cell(Path(place), hours=arguments.hours)
        _run(_job(cell, hours=arguments.hours), work, wall_limit_s=arguments.wall_limit)
        if arguments.keep:
            shutil.copytree(work / "raw", arguments.keep, dirs_exist_ok=True)
        result = _result(work / "raw", hours=arguments.hours) | {"wall_s": round(time.monotonic() - started)}
    print(json.dumps(result, indent=1) if arguments.json else _words(result))
    return 1 if result["faults"] else 0


def _cell(place: Path, *, hours: int) -> Cell:
    steps = "".join(
        f"  - {{at: {at} s, rate: {_RATES[number % len(_RATES)]}}}\n"
        for number, at in enumerate(range(_STEP_S, hours * _HOUR_S, _STEP_S), start=1)
    )
    file = place / "soak.yaml"
    file.write_text(
        f"""\
id: soak
title: {hours} h of BBRv2 and BBRv3 under loss and changing rates
slice: two_site
path: {{rate: {_RATES[0]}, rtt: 400 ms, buffer: 1 BDP, loss: 0.1 %}}
flows:
  - {{cca: bbr2, streams: {FLOWS // 2}, duration: {hours * _HOUR_S} s}}
  - {{cca: bbr3, streams: {FLOWS // 2}, duration: {hours * _HOUR_S} s}}
steps:
{steps}sample_period: 60 s
repeat: 1
""",
        encoding="utf-8",
    )
    return open_plan(str(file), seed=1).cells[0]


def _job(cell: Cell, *, hours: int) -> Job:
    """The cell's job, with iperf3 reporting once a minute, and the kernel asked for its memory every hour."""
    planned = prepare(cell, described(DEFAULT, None)).job
    host = cell.flows[0].sender
    asked = [
        StepTask(at_ns=hour * _HOUR_S * 10**9 - 10**9, commands=(_look(host),))
        for hour in range(1, hours + 1)
    ]
    steps = sorted((*planned.steps, *asked), key=lambda step: step.at_ns)
    flows = tuple(_reporting_by_minute(flow) for flow in planned.flows)
    return planned.model_copy(update={"flows": flows, "steps": tuple(steps)})


def _reporting_by_minute(flow: FlowTask) -> FlowTask:
    """Both ends keep every report in memory: a day of seconds would fill the guest's."""
    interval = ("--interval", "60")
    return flow.model_copy(
        update={"client_argv": flow.client_argv + interval, "server_argv": flow.server_argv + interval}
    )


_LOOK = """
import os
from pathlib import Path
raw = Path("work/raw")
wanted = [line for line in open("/proc/meminfo") if line.startswith(("MemFree", "Slab", "SUnreclaim"))]
with (raw / "memory").open("a") as memory:
    memory.write(Path("/proc/uptime").read_text() + "".join(wanted))
log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
with (raw / "kernel.log").open("wb") as said:
    try:
        while True:
            said.write(os.read(log, 8192))
    except BlockingIOError:
        pass
"""
"""Run in the guest, whose root has no dmesg: a record at a time of what the kernel said, and its memory."""


def _look(host: str) -> Command:
    return Command(node=host, argv=("python3", "-c", _LOOK))


def _run(planned: Job, work: Path, *, wall_limit_s: float) -> None:
    backend = GuestBackend()
    latest = [0.0]

    def progress(clock_s: float) -> None:
        if clock_s >= latest[0] + _HOUR_S:
            latest[0] = clock_s
            print(f"{clock_s / _HOUR_S:.0f} h", file=sys.stderr)

    try:
        backend.execute(
            Task(
                job=planned,
                work=work,
                seed=1,
                wall_limit_s=wall_limit_s,
                cancelled=threading.Event(),
                progress=progress,
            )
        )
    finally:
        backend.close()


def _result(raw: Path, *, hours: int) -> dict[str, Any]:
    slab_kb = [int(number) for number in re.findall(r"SUnreclaim:\s+(\d+) kB", (raw / "memory").read_text())]
    log = (raw / "kernel.log").read_text(errors="replace").splitlines()
    warnings = [line for line in log if _WARNING.search(line)]
    delivered = [outcome for index in (0, 1) for outcome in _delivered(raw, index)]
    faults = [f"kernel: {line}" for line in warnings]
    faults += [f"flow {number} {fault}" for number, (_, fault) in enumerate(delivered) if fault]
    if len(delivered) != FLOWS:
        faults.append(f"{len(delivered)} of {FLOWS} flows reported")
    if len(slab_kb) != hours:
        faults.append(f"memory was read {len(slab_kb)} times in {hours} hours")
    elif hours > 2 and slab_kb[-1] - slab_kb[1] > _GROWTH_KB:
        faults.append(f"unreclaimable slab memory grew from {slab_kb[1]} to {slab_kb[-1]} kB")
    return {
        "hours": hours,
        "flows": FLOWS,
        "delivered_bytes": sum(count for count, _ in delivered),
        "least_of_a_flow_bytes": min((count for count, _ in delivered), default=0),
        "slab_kb_by_hour": slab_kb,
        "kernel_log_lines": len(log),
        "faults": faults,
    }


def _delivered(raw: Path, index: int) -> Iterator[tuple[int, str]]:
    """Bytes and fault of each of the 32 connections of one iperf3 client."""
    client = json.loads((raw / f"flow-{index}.client.json").read_text())
    if "error" in client:
        yield 0, f"ended early: {client['error']}"
        return
    for number, stream in enumerate(client["end"]["streams"]):
        minutes = [interval["streams"][number]["bytes"] for interval in client["intervals"]]
        stalled = max(
            (len(list(run)) for empty, run in groupby(minutes, lambda sent: sent == 0) if empty), default=0
        )
        fault = f"sent nothing for {stalled} minutes" if stalled > 1 else ""
        yield int(stream["receiver"]["bytes"]), fault


def _words(result: dict[str, Any]) -> str:
    slab = result["slab_kb_by_hour"]
    memory = (
        f"unreclaimable slab: {slab[min(1, len(slab) - 1)]} kB after the second "
        f"hour, {slab[-1]} kB at the end"
    )
    least, total = result["least_of_a_flow_bytes"] / 1e9, result["delivered_bytes"] / 1e9
    lines = [
        f"{result['hours']} h of {result['flows']} flows in {result['wall_s']} s of wall clock",
        f"delivered {total:.1f} GB, at least {least:.2f} GB a flow",
        memory,
        *(f"fault: {fault}" for fault in result["faults"]),
    ]
    return "\n".join(lines if result["faults"] else [*lines, "no fault"])


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hours", type=int, default=24, help="of virtual time (default 24)")
    parser.add_argument("--wall-limit", type=float, default=7200.0, help="s after which the guest is stopped")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="copy the raw files and the kernel's log there"
    )
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

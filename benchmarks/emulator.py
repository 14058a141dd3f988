"""Speed of the emulator, beside the host's own kernel in real time and ns-3, in one run on one machine.

    python benchmarks/emulator.py                        everything, about 8 minutes on 2 cores
    python benchmarks/emulator.py --only guest,topology --repeat 5
    python benchmarks/emulator.py --load '10 Gbit/s' --cca bbr1 --markdown

Packets are data packets that left the bottleneck; CPU seconds are those of all processes of the
path, starting and stopping included. Repetitions of all parts are interleaved, so that a
disturbance does not fall on one of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rich.console import Console

from benchmarks import host_path, ns3_path
from benchmarks.guest_path import SMALLEST, run_guests
from benchmarks.load import Load, Sample, Spread
from benchmarks.table import Table
from benchmarks.topology_setup import set_up
from benchmarks.yardstick import run_loops
from fabbbr.backends.allotted import usable_cpus
from fabbbr.backends.guest.image.found import found_image
from fabbbr.errors import BackendError, FabbbrError
from fabbbr.units import Duration, Rate, goodput_ceiling

PARTS = ("guest", "pair", "topology", "host", "ns3")
CCAS = ("cubic", "bbr1")
_SHORT, _LONG = Duration.parse("20 ms"), Duration.parse("100 ms")
LOADS = (
    Load(rate=Rate.parse("100 Mbit/s"), rtt=_LONG, seconds=60),
    Load(rate=Rate.parse("1 Gbit/s"), rtt=_SHORT, seconds=5),
    Load(rate=Rate.parse("1 Gbit/s"), rtt=_SHORT, seconds=5, flows=16),
    Load(rate=Rate.parse("10 Gbit/s"), rtt=_SHORT, seconds=2),
    Load(rate=Rate.parse("10 Gbit/s"), rtt=_SHORT, seconds=2, mtu_bytes=9000),
)
_PAIR_LOAD = LOADS[1]
_HOST_SECONDS = 2
_NS3_SECONDS = {"100 Mbit/s": 5.0, "1 Gbit/s": 0.5, "10 Gbit/s": 0.25}
"""A simulation of 10 Gbit/s that leaves slow start takes minutes."""
_TOPOLOGIES = {"2 hosts": "two_site", "200 hosts": "{name: dumbbell, hosts: 100}"}


@dataclass(frozen=True, kw_only=True)
class Task:
    """One thing that is measured again and again."""

    part: str
    label: tuple[str, ...]
    run: Callable[[], list[Sample]]
    samples: list[Sample] = field(default_factory=list)


def main(argv: Sequence[str]) -> int:
    arguments = _arguments(argv)
    console = Console(stderr=True)
    tasks, notes = _tasks(arguments)
    for note in notes:
        console.print(note, markup=False)
    for repetition in range(arguments.repeat):
        for task in tasks:
            console.print(
                f"repetition {repetition + 1} of {arguments.repeat}: {task.part}, {', '.join(task.label)}",
                markup=False,
                highlight=False,
            )
            try:
                task.samples.extend(task.run())
            except BackendError as error:
                console.print(f"  failed: {error}", markup=False)
    if arguments.json:
        print(json.dumps(_as_json(tasks, notes), indent=1))
    else:
        for table in _tables(tasks):
            print(table.markdown() if arguments.markdown else table.plain())
            print()
        print("\n".join(notes))
    return 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", type=_parts, default=PARTS, help=f"parts, of {','.join(PARTS)}")
    parser.add_argument("--load", help="loads whose name begins so, e.g. '1 Gbit/s, 20 ms, MTU 1500, 1 '")
    parser.add_argument("--cca", choices=CCAS, action="append", help="default: all of them")
    parser.add_argument("--repeat", type=int, default=3)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true")
    form.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(text.split(","))
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        message = f"no part {unknown[0]!r}; choose of {', '.join(PARTS)}"
        raise argparse.ArgumentTypeError(message)
    return parts


def _tasks(arguments: argparse.Namespace) -> tuple[list[Task], list[str]]:
    """Everything to repeat, in turn, and remarks on what is left out."""
    ccas = arguments.cca or CCAS
    loads = [
        replace(load, cca=cca)
        for load in LOADS
        if arguments.load is None or load.name.startswith(arguments.load)
        for cca in ccas
    ]
    tasks, notes = [], _surroundings()
    if "guest" in arguments.only:
        tasks.append(Task(part="overhead", label=("a cell that carries nothing",), run=_guest(SMALLEST)))
        tasks += [Task(part="guest", label=(load.name, load.cca), run=_guest(load)) for load in loads]
    if "pair" in arguments.only:
        tasks += _pair_tasks(notes)
    if "topology" in arguments.only:
        tasks += _topology_tasks()
    if "host" in arguments.only:
        missing = host_path.why_not("cubic")
        notes += [f"host kernel: left out, {missing}"] if missing else []
        able = [load for load in loads if host_path.why_not(load.cca) is None]
        tasks += [Task(part="host", label=(load.name, load.cca), run=_host(load)) for load in able]
    if "ns3" in arguments.only:
        missing = ns3_path.why_not()
        notes.append(f"ns-3: left out, {missing}" if missing else f"ns-3 {ns3_path.version()}")
        able = [] if missing else loads
        tasks += [Task(part="ns3", label=(load.name, load.cca), run=_ns3(load)) for load in able]
    return tasks, notes


def _surroundings() -> list[str]:
    image = found_image()
    said = f"guest kernel {image.kernel.release}, {image.tools['iperf3']}" if image else "no guest image"
    return [f"{len(usable_cpus())} CPUs, {said}"]


def _guest(load: Load) -> Callable[[], list[Sample]]:
    return lambda: run_guests(load)


def _host(load: Load) -> Callable[[], list[Sample]]:
    return lambda: [host_path.run_host(replace(load, seconds=_HOST_SECONDS))]


def _ns3(load: Load) -> Callable[[], list[Sample]]:
    return lambda: [ns3_path.run_ns3(replace(load, seconds=_NS3_SECONDS[str(load.rate)]))]


def _pair_tasks(notes: list[str]) -> list[Task]:
    if len(usable_cpus()) < 2:
        notes.append("two guests at once: left out, there is one CPU")
        return []
    side_by_side: dict[str, Callable[[int], list[Sample]]] = {
        "guests": lambda count: run_guests(_PAIR_LOAD, guests=count),
        "loops of plain arithmetic": run_loops,
    }
    return [
        Task(part="pair", label=(f"{what}, {count} at once",), run=partial(run, count))
        for what, run in side_by_side.items()
        for count in (1, 2)
    ]


def _topology_tasks() -> list[Task]:
    def booted(slice_: str, *, build: bool) -> list[Sample]:
        cost = set_up(slice_, build=build)
        return [Sample(packets=0, cpu_s=cost.cpu_s, wall_s=cost.wall_s, flow_s=0, goodput_bps=0)]

    tasks = [Task(part="topology", label=("boot",), run=lambda: booted("two_site", build=False))]
    for name, slice_ in _TOPOLOGIES.items():
        tasks.append(
            Task(
                part="topology",
                label=(f"nodes and cables, {name}",),
                run=lambda slice_=slice_: booted(slice_, build=True),  # type: ignore[misc]
            )
        )
        tasks.append(
            Task(
                part="topology",
                label=(f"whole cell, {name}",),
                run=lambda slice_=slice_: run_guests(SMALLEST, slice_=slice_),  # type: ignore[misc]
            )
        )
    return tasks


def _tables(tasks: Sequence[Task]) -> list[Table]:
    measured = [task for task in tasks if task.samples]
    made = [_speed_table([task for task in measured if task.part in ("guest", "host", "ns3")])]
    for part, title in (
        ("overhead", "Fixed cost of one cell"),
        ("topology", "Bringing up a topology (boot and power-off included)"),
        (
            "pair",
            (
                f"Two CPUs: guests with {_PAIR_LOAD.name}, {_PAIR_LOAD.cca}; and loops, "
                f"for what the machine gives"
            ),
        ),
    ):
        made.append(_cost_table(title, [task for task in measured if task.part == part]))
    return [table for table in made if table.rows]


_NAMES = {"guest": "fabbbr guest", "host": "host kernel, real time, no delay", "ns3": "ns-3"}


def _speed_table(tasks: Sequence[Task]) -> Table:
    table = Table(
        title="One bottleneck, median (range)",
        head=(
            "load", "CCA", "path", "packets per CPU-s", "wall s per clock s", "goodput, of the ceiling",
            "retransmits", "identical",
        ),
    )  # fmt: skip
    for task in sorted(tasks, key=lambda task: [load.name for load in LOADS].index(task.label[0])):
        load = next(load for load in LOADS if load.name == task.label[0])
        speed = Spread.of([sample.packets_per_cpu_s for sample in task.samples])
        pace = Spread.of([sample.wall_per_clock_s for sample in task.samples])
        goodput = Spread.of([sample.goodput_bps for sample in task.samples])
        ceiling = load.rate.bps * goodput_ceiling(load.mtu_bytes)
        table.add(
            *task.label,
            _NAMES[task.part],
            f"{speed.middle / 1e3:.0f} k ({speed.low / 1e3:.0f}–{speed.high / 1e3:.0f})",
            f"{pace.middle:.3g} ({pace.low:.3g}–{pace.high:.3g})",
            f"{goodput.middle / ceiling:.1%}",
            _all_of([sample.retransmits for sample in task.samples]),
            _identical(task.samples),
        )
    return table


def _cost_table(title: str, tasks: Sequence[Task]) -> Table:
    table = Table(title=title, head=("what", "CPU s", "wall s", "packets per CPU-s", "packets per wall-s"))
    for task in tasks:
        cpu = Spread.of([sample.cpu_s for sample in task.samples])
        wall = Spread.of([sample.wall_s for sample in task.samples])
        at_once = 2 if task.label[0].endswith("2 at once") else 1
        carried = [sample for sample in task.samples if task.part == "pair" and sample.packets]
        table.add(
            task.label[0],
            f"{cpu.middle:.2f} ({cpu.low:.2f}–{cpu.high:.2f})",
            f"{wall.middle:.2f} ({wall.low:.2f}–{wall.high:.2f})",
            _kilo([sample.packets_per_cpu_s for sample in carried]),
            _kilo([at_once * sample.packets / sample.wall_s for sample in carried]),
        )
    return table


def _kilo(values: list[float]) -> str:
    return f"{Spread.of(values).middle / 1e3:.0f} k" if values else "–"


def _all_of(values: list[int | None]) -> str:
    known = sorted({value for value in values if value is not None})
    return " to ".join(str(value) for value in dict.fromkeys((known[0], known[-1]))) if known else "–"


def _identical(samples: Sequence[Sample]) -> str:
    digests = {sample.digest for sample in samples}
    if None in digests or len(samples) < 2:
        return "–"
    return "yes" if len(digests) == 1 else "NO"


def _as_json(tasks: Sequence[Task], notes: Sequence[str]) -> dict[str, object]:
    return {
        "notes": list(notes),
        "samples": [
            {
                "part": task.part,
                "label": list(task.label),
                **{
                    key: getattr(sample, key)
                    for key in (
                        "packets", "cpu_s", "wall_s", "flow_s", "goodput_bps", "retransmits", "acks",
                        "digest",
                    )
                },
            }
            for task in tasks
            for sample in task.samples
        ],
    }  # fmt: skip


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except FabbbrError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_status)

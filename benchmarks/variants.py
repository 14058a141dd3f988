"""What a result depends on that no experiment file can vary: the same cells with an edit in their jobs.

Usage: python benchmarks/variants.py EDIT[,EDIT…] EXP --out DIR [--set KEY=VALUE] [--only …]

    htb             HTB over a bfifo of the same bytes instead of the TBF
    way-back        the whole delay on the way of the acknowledgements, in a queue of 1000 packets
    tso=N           senders hand over at least N segments at once (with --set path.offloads=true)
    iw=N            initial window of N segments
    window=BYTES    largest receive and send window, grown by autotuning
    cubic.NAME=N    parameter of the kernel's CUBIC, such as cubic.hystart=0
    loss-both       the loss on the way of the acknowledgements too
    fq              the queueing discipline fq at every host, with its own defaults
    timer=TIME      fq with timers that are at most so late, such as 4ms for a kernel of 250 Hz
    none            no edit: the cells as they are

A certificate refuses what it was not asked for, so cells with an edit may be uncertified; they are printed
all the same. Prints mean goodput by condition.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HOME = Path(__file__).parent.parent
sys.path[:0] = [str(HOME), str(HOME / "analysis")]

from fabbbr import execute, run
from fabbbr.job.build import prepare
from fabbbr.job.expected import Prepared
from fabbbr.job.records import Command, Job
from fabbbr.model import Cell
from fabbbr.testbed import Testbed

Edit = Callable[[Job], Job]

_TBF = re.compile(r"qdisc add dev (\S+) root handle 1: tbf rate (\S+) burst \S+ limit (\S+)")
_HTB = (
    r"qdisc add dev \1 root handle 1: htb default 3\n"
    r"class add dev \1 parent 1: classid 1:3 htb rate \2\n"
    r"qdisc add dev \1 parent 1:3 handle 2: bfifo limit \3"
)
_LOSS = re.compile(r"netem limit \d+ delay \S+ (loss random \S+)")
_BARE_NETEM = re.compile(
    r"(qdisc (?:add|change) dev \S+ root handle 1: netem limit \d+ delay \S+)$", re.MULTILINE
)
_NETEMS = re.compile(
    r"qdisc (add|change) dev (\S+) root handle 1: netem limit \d+ delay ([\d.]+)us\n"
    r"qdisc \1 dev (\S+) root handle 1: netem limit (\d+) delay \3us"
)


def htb(job: Job) -> Job:
    """Replace every TBF."""
    return _in_tc(job, lambda text: _TBF.sub(_HTB, text))


def way_back(job: Job) -> Job:
    """Move the delay of data to the acknowledgements, and limit their queue to netem's default."""

    def moved(found: re.Match[str]) -> str:
        verb, back, delay_us, forward, limit = found.groups()
        return (
            f"qdisc {verb} dev {back} root handle 1: netem limit 1000 delay {2 * float(delay_us):g}us\n"
            f"qdisc {verb} dev {forward} root handle 1: netem limit {limit}"
        )

    return _in_tc(job, lambda text: _NETEMS.sub(moved, text))


def loss_both(job: Job) -> Job:
    """Lose acknowledgements as data."""

    def both(text: str) -> str:
        loss = _LOSS.search(text)
        return text if loss is None else _BARE_NETEM.sub(rf"\1 {loss[1]}", text)

    return _in_tc(job, both)


def fair_queue(*options: str) -> Edit:
    """Pace at the hosts' interfaces, as distributions of many hosts have it, and not in TCP itself."""
    return _on_hosts("tc", "qdisc", "replace", "dev", "HOST-eth0", "root", "fq", *options)


def late_timers(time: str) -> Edit:
    """Pace by timers that may be late, so that what is due comes in bursts."""
    return fair_queue("timer_slack", time)


def tso(segments: str) -> Edit:
    """Make bursts of the senders at least so large."""
    return _on_hosts("sysctl", "-q", "-w", f"net.ipv4.tcp_min_tso_segs={segments}")


def initial_window(segments: str) -> Edit:
    """Set it on every route of the hosts."""
    # "linkdown" is told of a route and not taken.
    routes = "ip route | sed 's/ linkdown//'"
    change = f"{routes} | while read -r route; do ip route change $route initcwnd {segments}; done"
    return _on_hosts("sh", "-c", change)


def window(size_bytes: str) -> Edit:
    """Set the most that autotuning takes."""
    limits = f"net.ipv4.tcp_rmem=4096 131072 {size_bytes}", f"net.ipv4.tcp_wmem=4096 16384 {size_bytes}"
    return _on_hosts("sysctl", "-q", "-w", *limits)


def cubic(name: str, value: str) -> Edit:
    """Set a parameter of tcp_cubic."""
    return _on_hosts("sh", "-c", f"echo {value} >/sys/module/tcp_cubic/parameters/{name}")


def edit_of(word: str) -> Edit:
    """Read one word of the command line."""
    name, _, value = word.partition("=")
    if name.startswith("cubic."):
        return cubic(name.removeprefix("cubic."), value)
    plain = {
        "none": lambda job: job,
        "htb": htb,
        "way-back": way_back,
        "loss-both": loss_both,
        "fq": fair_queue(),
    }
    with_value = {
        "tso": tso,
        "iw": initial_window,
        "window": window,
        "timer": late_timers,
    }
    if name not in plain | with_value:
        sys.exit(f"{word}: no such edit; see --help")
    return plain[name] if name in plain else with_value[name](value)


def _in_tc(job: Job, change: Callable[[str], str]) -> Job:
    """Edit what tc is told, at the beginning and at the instant from which on the flows' time counts."""

    def changed(command: Command) -> Command:
        told = None if command.stdin is None else change(command.stdin)
        return command.model_copy(update={"stdin": told})

    parts = {"configure": job.configure, "anew": job.anew}
    return job.model_copy(update={name: tuple(map(changed, commands)) for name, commands in parts.items()})


def _on_hosts(*argv: str) -> Edit:
    """Run a command on every host after all others; HOST is its name."""

    def edited(job: Job) -> Job:
        hosts = [node.name for node in job.nodes if node.kind == "host"]
        more = (Command(node=host, argv=tuple(w.replace("HOST", host) for w in argv)) for host in hosts)
        return job.model_copy(update={"configure": (*job.configure, *more)})

    return edited


@contextmanager
def edited(edits: Sequence[Edit]) -> Iterator[None]:
    """Every job that is prepared meanwhile has the edits."""

    def prepared_with_edits(cell: Cell, testbed: Testbed) -> Prepared:
        prepared = prepare(cell, testbed)
        job = prepared.job
        for edit in edits:
            job = edit(job)
        return dataclasses.replace(prepared, job=job)

    execute.prepare = prepared_with_edits  # type: ignore[attr-defined]
    try:
        yield
    finally:
        execute.prepare = prepare  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("edits", type=lambda text: [edit_of(word) for word in text.split(",")])
    parser.add_argument("experiment")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--only")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()

    with edited(asked.edits):
        found = run(
            asked.experiment, repeat=asked.repeat, overrides=asked.overrides, only=asked.only,
            jobs=asked.jobs, out=asked.out,
        )  # fmt: skip
    cells = found.runs.assign(mbps=found.runs["goodput_bps"] / 1e6)
    shown = cells.groupby("condition")["mbps"].agg(["mean", "std", "count"])
    print(shown.round(2).to_string())


if __name__ == "__main__":
    main()

"""What was asked, what produced the numbers, and the command that produces them again."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabbbr.capacity import TRACE_BIN
from fabbbr.counts import counted
from fabbbr.manifest import CongestionControl, Provenance, RunManifest
from fabbbr.model import Bottleneck, Cell, Flow, LinkWay
from fabbbr.physics import loses
from fabbbr.units import Duration
from fabbbr_analysis.figures.events import MOST_MARKS, step_in_words
from fabbbr_analysis.report.diagram import (
    buffers,
    bursts,
    losses_in_words,
    queues_in_words,
    reordered_in_words,
    spread,
)
from fabbbr_analysis.wording import distinct, listing, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import OtherWarmUp, RunSet

_SHORT_HASH = 16
_MOST_WAYS = 4
_OF_KERNEL = "the kernel's"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A line of a two-column table."""

    name: str
    value: str


def digest(run_set: RunSet) -> tuple[Fact, ...]:
    """Return the digest of the whole run, or why there is none; nothing for a run set made of frames."""
    found = run_set.found
    if found is None:
        return ()
    said = "none: the run folder is damaged" if found.digest is None else f"sha256 {found.digest}"
    if found.without_digest:
        said += f"; {found.without_digest} manifests are of format 1, so an edit of them would not be noticed"
    return (Fact(name="Digest of the run", value=said),)


_WITHOUT = "none (UDP)"
"""What stands in place of a congestion control."""


def conditions(manifest: RunManifest, other: OtherWarmUp | None = None) -> tuple[Fact, ...]:
    """Return the conditions as asked; what was varied shows its values.

    With ``other``, what is left out of steady state is that of the report, and not of the run.
    """
    cells = manifest.cells
    rows = [
        Fact(
            name="Congestion control",
            value=listing(sorted(_flows(cells, lambda flow: flow.cca or _WITHOUT))),
        ),
        Fact(
            name="Flows in a cell",
            value=spread([str(count) for count in sorted({len(cell.flows) for cell in cells})]),
        ),
        Fact(name="Bottleneck", value=spread(_rates([cell.bottleneck for cell in cells]))),
        Fact(name="Propagation RTT", value=spread(_rtts(cells))),
        Fact(name="Buffer", value=spread(buffers([cell.bottleneck for cell in cells]))),
        Fact(name="Queue discipline", value=_disciplines([cell.bottleneck for cell in cells])),
        *_ways_back(cells),
        Fact(name="ECN", value=_ecn(cells)),
        Fact(name="Injected loss", value=_losses(cells)),
        Fact(name="Duration", value=spread(distinct(_durations(cells)))),
        Fact(name="Left out of steady state", value=left_out(cells, other)),
        Fact(name="MTU", value=f"{spread(_mtus(cells))} bytes"),
        Fact(name="Sampled every", value=spread(_sorted(cells, lambda cell: cell.sample_period))),
        Fact(name="Repetitions", value=str(max(cell.repetition for cell in cells))),
        Fact(name="Cells", value=str(len(cells))),
    ]
    if limits := _limits(cells):
        rows.append(Fact(name="Limit of a connection", value=listing(limits)))
    if traces := _traces(cells):
        rows.append(Fact(name="Link trace", value=traces))
    if others := distinct(told for cell in cells for told in _other_traffic(cell)):
        rows.append(Fact(name="Traffic", value=listing(others)))
    if asked := bursts([cell.bottleneck for cell in cells]):
        some = (
            "" if all(cell.bottleneck.burst_bytes for cell in cells) else ", or no more than the rate needs"
        )
        rows.append(Fact(name="Token bucket", value=f"{spread(asked)}{some}"))
    if late := reordered_in_words(link.reordering for cell in cells for link in cell.links):
        rows.append(Fact(name="Reordering", value=spread(late)))
    if held := _aggregations(cells):
        rows.append(Fact(name="ACK aggregation", value=spread(held)))
    if any(cell.offloads for cell in cells):
        on = "on: what is queued, lost and counted are super-packets of many segments"
        both = f"{on}; and off: packet by packet"
        value = on if all(cell.offloads for cell in cells) else both
        rows.append(Fact(name="Segmentation offloads", value=value))
    told = {
        "Flow sizes": _of_each(sorted(cells, key=_least_size), _sizes, "none"),
        "Starts": _of_each(sorted(cells, key=_instants), _starts, "all at 0 s"),
        "Changes while flows run": _of_each(sorted(cells, key=_changes), _steps, "none"),
        "Initial window": _of_each(sorted(cells, key=_windows), _initial_windows, _OF_KERNEL),
        "TCP of the hosts": _of_each(
            sorted(cells, key=_tuned), lambda cell: cell.tuning, "as the kernel has it"
        ),
    }
    rows += [Fact(name=name, value=said) for name, said in told.items() if said]
    return tuple(rows)


def _traces(cells: Sequence[Cell]) -> str:
    """Which trace is followed how, there and back; nothing without any."""
    queues = [cell.bottleneck for cell in cells]
    backs = list(filter(None, (queue.own_way_back for queue in queues)))
    there, back = (_followed(ways, len(cells)) for ways in (queues, backs))
    told = (there, back and f"back {back}", *distinct(map(_trace_begins, queues)))
    return "; ".join(filter(None, told))


def _followed(queues: Sequence[Bottleneck], cells: int) -> str:
    """As in ``lte.down, packet by packet in 3 of 6 cells``; nothing where none follows a trace."""
    names = sorted({queue.trace_name for queue in queues if queue.trace_name is not None})
    ways = {
        "packet by packet": sum(queue.trace is not None for queue in queues),
        f"as a rate per {TRACE_BIN}": sum(queue.binned_trace is not None for queue in queues),
    }
    told = [
        how if count == cells else f"{how} in {count} of {cells} cells"
        for how, count in ways.items()
        if count
    ]
    return f"{listing(names)}, {listing(told)}" if names else ""


def _trace_begins(queue: Bottleneck) -> str:
    if queue.trace_start_drawn:
        return "from an instant drawn for each repetition, the same in all conditions"
    return "" if queue.trace_start is None else f"from {queue.trace_start} on"


def _rates(queues: Sequence[Bottleneck]) -> list[str]:
    """Of some bottlenecks; that of a trace is only its mean."""
    rates = sorted({queue.rate for queue in queues})
    named = {queue.rate: name for queue in queues if (name := queue.trace_name)}
    return [f"{rate} on average ({named[rate]})" if rate in named else str(rate) for rate in rates]


def gist(manifest: RunManifest) -> str:
    """Say in one line what was run."""
    said = {fact.name: fact.value for fact in conditions(manifest)}
    back = f", back {said['Way back'].split(', buffer')[0]}" if "Way back" in said else ""
    late = f", {said['Reordering']}" if "Reordering" in said else ""
    bucket = f", token bucket {said['Token bucket']}" if "Token bucket" in said else ""
    path = (
        f"{said['Bottleneck']}{bucket}{back}, RTT {said['Propagation RTT']}, "
        f"loss {said['Injected loss'].split(';')[0]}{late}"
    )
    what = said["Congestion control"].replace(_WITHOUT, "UDP")
    return tie(f"{what} over {path}; {counted(int(said['Repetitions']), 'repetition')}")


def left_out(cells: Sequence[Cell], other: OtherWarmUp | None) -> str:
    """What of each run is no steady state, and what the run itself says where that is not the same."""
    if other is None:
        return spread(_sorted(cells, lambda cell: cell.warm_up))
    return (
        f"{other.asked}, as asked when this was made; the run has {spread([str(each) for each in other.own])}"
    )


def _flows(cells: Sequence[Cell], pick: Callable[[Flow], str]) -> list[str]:
    return distinct(pick(flow) for cell in cells for flow in cell.flows)


def _sorted(cells: Sequence[Cell], pick: Callable[[Cell], object]) -> list[str]:
    """Return the distinct quantities in ascending order, as text."""
    values = {pick(cell) for cell in cells}
    return [str(value) for value in sorted(values, key=lambda value: getattr(value, "base", 0))]


def _rtts(cells: Sequence[Cell]) -> list[str]:
    return [str(rtt) for rtt in sorted({flow.rtt for cell in cells for flow in cell.flows})]


def _bottlenecks(cells: Sequence[Cell]) -> Iterator[Bottleneck]:
    return (queue for cell in cells for queue in cell.bottlenecks.values())


def _ways_back(cells: Sequence[Cell]) -> Iterator[Fact]:
    """Those of their own."""
    backs = list(filter(None, (queue.own_way_back for queue in _bottlenecks(cells))))
    if backs:
        rates = spread(_rates(backs))
        yield Fact(name="Way back", value=f"{rates}, {queues_in_words(backs)}, {_disciplines(backs)}")


def _disciplines(ways: Sequence[LinkWay]) -> str:
    """Each, and what it is told of times where that is not the kernel's."""
    of_each: dict[str, set[tuple[str, Duration]]] = {way.aqm: set() for way in ways}
    for way in ways:
        asked = (("target", way.aqm_target), ("interval", way.aqm_interval))
        of_each[way.aqm] |= {(name, time) for name, time in asked if time is not None}
    return listing([aqm + _told(times) for aqm, times in sorted(of_each.items())])


def _told(times: set[tuple[str, Duration]]) -> str:
    words = [
        f"{name} {spread([str(time) for one, time in sorted(times) if one == name])}"
        for name in ("target", "interval")
        if name in dict(times)
    ]
    return f" ({', '.join(words)})" if words else ""


def _losses(cells: Sequence[Cell]) -> str:
    losses = {link.loss for cell in cells for link in cell.links if link.loss and loses(link.loss)}
    if not losses:
        later = any(step.loss is not None for cell in cells for step in cell.steps)
        return "none at first" if later else "none"
    kinds = sorted({f"{loss.model.replace('_', '-')}, {loss.position.replace('_', ' ')}" for loss in losses})
    return f"{spread(losses_in_words(losses))}; {spread(kinds)}"


def _mtus(cells: Sequence[Cell]) -> list[str]:
    return [str(mtu) for mtu in sorted({cell.mtu_bytes for cell in cells})]


def _limits(cells: Sequence[Cell]) -> list[str]:
    """What senders hold each connection to, and with what."""
    flows = [flow for cell in cells for flow in cell.flows]
    paced = [f"{rate} by the socket" for rate in sorted({one.pacing for one in flows if one.pacing})]
    return paced + [f"{rate} by fq" for rate in sorted({one.maxrate for one in flows if one.maxrate})]


def _ecn(cells: Sequence[Cell]) -> str:
    marking = [cell.bottleneck.ce_threshold for cell in cells if cell.ecn]
    plain = {"off": not all(cell.ecn for cell in cells), "on": None in marking}
    told = [listing([word for word, holds in plain.items() if holds])]
    after = sorted({threshold for threshold in marking if threshold is not None})
    told += [f"on, marking what has waited {spread([str(each) for each in after])}"] if after else []
    return "; ".join(filter(None, told))


def _other_traffic(cell: Cell) -> Iterator[str]:
    """What is no plain flow of TCP."""
    for process in cell.arrivals:
        yield f"{process.group}: {process.rate} at random"
    for flow in cell.flows:
        if flow.udp is not None:
            yield f"{flow.group}: UDP at {flow.udp.rate} in packets of {flow.udp.packet_bytes} bytes"
        if flow.video is not None:
            yield (
                f"{flow.group}: video of {flow.video.bitrate} in chunks of {flow.video.chunk}, "
                f"buffer {flow.video.buffer}"
            )
    for ping in cell.pings:
        yield f"{ping.group}: every {ping.interval} from {ping.sender} to {ping.receiver}"


def _aggregations(cells: Sequence[Cell]) -> list[str]:
    asked = {
        link.ack_aggregation for cell in cells for link in cell.links if link.ack_aggregation is not None
    }
    ranges = sorted((one.least, one.most) for one in asked)
    return [str(most) if least == most else f"{least} to {most}" for least, most in ranges]


def _durations(cells: Sequence[Cell]) -> Iterator[str]:
    """Of flows that have one; the others run until their bytes have arrived."""
    flows = [flow for cell in cells for flow in cell.flows]
    yield from map(str, sorted({flow.duration for flow in flows if flow.duration is not None}))
    if any(flow.size is not None and not flow.at_random for flow in flows):
        yield "until the bytes asked for have arrived"
    if any(flow.at_random for flow in flows):
        yield "until what each came with is sent"


def _of_each(cells: Sequence[Cell], say: Callable[[Cell], str], otherwise: str) -> str:
    """What is said of the cells, each thing once; nothing when there is nothing to say of any."""
    said = distinct(say(cell) or otherwise for cell in cells)
    return (
        ""
        if said == [otherwise]
        else " · ".join(said[:_MOST_WAYS]) + (" …" if len(said) > _MOST_WAYS else "")
    )


def _sizes(cell: Cell) -> str:
    sizes: dict[str, list[str]] = {}
    for flow in cell.flows:
        if flow.size is not None and not flow.at_random:
            sizes.setdefault(flow.group, []).append(str(flow.size))
    several = len({flow.group for flow in cell.flows}) > 1
    said = {group: f"{len(each)} × {each[0]}" for group, each in sizes.items()}
    said |= {each.group: each.sizes for each in cell.arrivals}
    return "; ".join(f"{group}: {text}" if several else text for group, text in said.items())


def _initial_windows(cell: Cell) -> str:
    """Of each group, where groups differ."""
    asked = {flow.group: flow.initial_window for flow in cell.flows if flow.cca is not None}
    if len(set(asked.values())) > 1:
        return "; ".join(f"{group}: {segments or _OF_KERNEL}" for group, segments in asked.items())
    return "".join(counted(segments, "segment") for segments in set(asked.values()) if segments)


def _windows(cell: Cell) -> list[int]:
    return [flow.initial_window or 0 for flow in cell.flows]


def _tuned(cell: Cell) -> list[int]:
    """The numbers in what was asked of the hosts: smaller ones come first."""
    return [int(number) for value in cell.sysctls.values() for number in value.split()]


def _least_size(cell: Cell) -> int:
    """What is said of sizes begins with the smallest."""
    return min((flow.size.bytes for flow in cell.flows if flow.size is not None), default=0)


def _instants(cell: Cell) -> list[Duration]:
    return [flow.start for flow in cell.flows]


def _starts(cell: Cell) -> str:
    """When the flows of each group start, where they do not all start at once."""
    starts: dict[str, list[Duration]] = {}
    for flow in cell.flows:
        starts.setdefault(flow.group, []).append(flow.start)
    if len({flow.start for flow in cell.flows}) == 1:
        return ""
    return "; ".join(
        f"{group} at {spread([f'{at.seconds:g} s' for at in sorted(each)])}" for group, each in starts.items()
    )


def _changes(cell: Cell) -> list[tuple[int, ...]]:
    """Earlier ones come first, and of those at one instant the smaller."""
    return sorted(
        (
            step.at.base,
            0 if step.rate is None else step.rate.base,
            0 if step.rtt is None else step.rtt.base,
            step.buffer_bytes or 0,
            0 if step.loss is None else step.loss.rate.base,
        )
        for step in cell.steps
    )


def _steps(cell: Cell) -> str:
    """Each step as it was asked, without those that a trace became; very many are only counted."""
    steps, of = cell.asked_steps, f" ({cell.steps_file})" if cell.steps_file else ""
    if len(steps) > MOST_MARKS:
        return f"{counted(len(steps), 'step')}{of}"
    each = (f"at {step.at} {step_in_words(cell, step)}" for step in sorted(steps, key=lambda step: step.at))
    return f"{'; '.join(each)}{of if steps else ''}"


def facts(manifest: RunManifest, origins: Sequence[Provenance]) -> tuple[Fact, ...]:
    """Return what produced the cells; a property in which they differ shows every value."""
    places = [origin.testbed for origin in origins]
    machines = [machine for place in places for machine in place.machines.values()]
    tools = sorted({name for machine in machines for name in machine.tools})
    rows: list[tuple[str, list[str]]] = [
        ("fabbbr", [origin.fabbbr_version for origin in origins]),
        ("Backend", [place.backend for place in places]),
        ("Clock", [_CLOCKS[place.clock] for place in places]),
        ("Guest image", _hashes(machine.image_sha256 for machine in machines)),
        ("Kernel", [machine.kernel.release for machine in machines]),
        (
            "Congestion controls",
            [_stands_for(each) for origin in origins for each in origin.congestion_controls],
        ),
        ("Kernel configuration", _hashes(machine.kernel.config_sha256 for machine in machines)),
        ("Kernel image", _hashes(machine.kernel.sha256 for machine in machines)),
        *((tool, [one.tools[tool] for one in machines if tool in one.tools]) for tool in tools),
        ("Seed of the run", [str(manifest.seed)]),
        ("Profile", [manifest.profile]),
        ("Started", [manifest.created]),
    ]
    return tuple(Fact(name=name, value="; ".join(distinct(values))) for name, values in rows if values)


_CLOCKS = {
    "virtual": "virtual: time in the emulation does not depend on the speed of the machine",
    "real": "REAL TIME: results depend on the load of the machine",
}


_RAN_AS = {"bpf": "as BPF", "native": "compiled natively, not as BPF"}


def _stands_for(control: CongestionControl) -> str:
    """``bbr2: fabbbr (fab_bbr2, profile v2alpha, source 0123456789abcdef)``."""
    profile = [] if control.profile is None else [f"profile {control.profile}"]
    form = [_RAN_AS[control.form]] if control.form in _RAN_AS else []
    source = [] if control.source is None else [f"source {control.source}"]
    return (
        f"{control.cca}: {control.implementation} "
        f"({', '.join([control.kernel_name, *form, *profile, *source])})"
    )


def _hashes(hashes: Iterable[str | None]) -> list[str]:
    return [f"sha256 {value[:_SHORT_HASH]}…" for value in hashes if value is not None]


def report_command(other: OtherWarmUp) -> str:
    """Return the command line that makes this report of a run folder."""
    return shlex.join(["fabbbr", "report", "RUN", "--warm-up", other.word])


def rerun_command(manifest: RunManifest, origins: Sequence[Provenance]) -> str:
    """Return the command line that makes this run again."""
    profile = [] if manifest.profile == "default" else [f"--{manifest.profile}"]
    argv = ["fabbbr", "run", manifest.source_name, *profile]
    argv += ["--repeat", str(max(cell.repetition for cell in manifest.cells))]
    argv += ["--backend", manifest.backend]
    if any(origin.testbed.clock == "real" for origin in origins):
        argv += ["--clock", "real"]
    for override in manifest.overrides:
        argv += ["--set", override]
    for cca in manifest.ccas:
        argv += ["--cca", cca]
    return shlex.join([*argv, "--seed", str(manifest.seed)])

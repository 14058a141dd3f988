"""Keys that change nothing in a condition: mistakes, unless another condition heeds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from fabbbr.model import AQM_INTERVALS, AQM_TARGETS, THRESHOLD_AQMS, Aqm
from fabbbr.spec.document import Loc, Mistake, Scalar, Table, find
from fabbbr.spec.experiment import BBR_PROFILES, FlowGroup, PathSetup, Setup
from fabbbr.spec.guess import Guess


@dataclass
class InVain:
    """Keys that change nothing: wrong where they do so in every condition, or in one that an axis makes."""

    always: dict[Loc, tuple[Mistake, Table]] | None = None
    of_axes: list[tuple[Mistake, Table]] = field(default_factory=list)

    def look(self, setup: Guess[Setup], table: Table) -> None:
        """At one more condition."""
        found = {mistake[0]: (mistake, table) for mistake in setup.common(_idle, loc_of=itemgetter(0))}
        self.of_axes += [(_left_out(said), at) for said, at in found.values() if _of_axis(at, said[0])]
        known = found if self.always is None else self.always
        self.always = {loc: known[loc] for loc in known if loc in found and not _of_axis(table, loc)}

    def found(self) -> Iterator[tuple[Mistake, Table]]:
        """After all conditions."""
        yield from (self.always or {}).values()
        yield from self.of_axes


def _of_axis(table: Table, loc: Loc) -> bool:
    node = find(table, loc).node
    return isinstance(node, Scalar) and node.axis is not None


def _left_out(said: Mistake) -> Mistake:
    loc, message = said
    return loc, f"{message}; conditions where it means nothing are left out by except"


def _idle(setup: Setup) -> Iterator[Mistake]:
    """Keys that change nothing here, each with the remedy."""
    path, aqms = setup.path, set(setup.aqms.values())
    if path.ecn and aqms == {"taildrop"}:
        yield ("path", "ecn"), "tail drop cannot mark; set aqm: fq_codel (or another) or remove ecn"
    yield from _idle_times(path, aqms)
    if setup.sysctl is not None and not any(_of_tcp(group) for group in setup.flows):
        yield ("sysctl",), "is how TCP is tuned, and no flow is of TCP; add one or remove it"
    for index, group in enumerate(setup.flows):
        if group.stagger.ns and group.count < 2:
            yield ("flows", index, "stagger"), "one flow alone cannot be staggered; raise count or use start"
        if group.profile is not None and group.cca is not None and not BBR_PROFILES.get(group.cca):
            yield ("flows", index, "profile"), f"{group.cca} has no profiles; remove it"


def _of_tcp(group: FlowGroup) -> bool:
    return group.kind not in ("udp", "ping") and bool(group.count)


def _idle_times(path: PathSetup, aqms: set[Aqm]) -> Iterator[Mistake]:
    """What only some AQMs are told."""
    if path.ce_threshold is not None and path.ce_threshold.ns:
        if set(THRESHOLD_AQMS) & aqms and not path.ecn:
            yield ("path", "ce_threshold"), "marks nothing without ECN; add ecn: true or remove ce_threshold"
        yield from _of_others(path, aqms, "ce_threshold", THRESHOLD_AQMS)
    if path.aqm_target is not None:
        yield from _of_others(path, aqms, "aqm_target", AQM_TARGETS)
    if path.aqm_interval is not None:
        yield from _of_others(path, aqms, "aqm_interval", AQM_INTERVALS)


def _of_others(path: PathSetup, aqms: set[Aqm], key: str, known: Iterable[Aqm]) -> Iterator[Mistake]:
    if not set(known) & aqms:
        *first, last = known
        said = f"is of {', '.join(first)} and {last} alone, and aqm is {path.aqm}"
        yield ("path", key), f"{said}; set aqm: fq_codel or remove {key}"

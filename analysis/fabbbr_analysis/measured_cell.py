"""A cell with its tables, read as one: which flow crosses what, at which rate, and what came of it when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pandas as pd

from fabbbr.capacity import RateOverTime, way_of
from fabbbr.model import Bottleneck, Cell, Flow, LinkWay
from fabbbr.ways import Ways
from fabbbr_analysis.arrivals import Arrival, arrivals, deliveries, within
from fabbbr_analysis.ceilings import behind_s, held_bytes
from fabbbr_analysis.contests import contests
from fabbbr_analysis.fair_shares import limiting_themselves
from fabbbr_analysis.metrics import (
    CellTables,
    answer_delays_s,
    queue_back_of,
    queue_of,
    timer_hz_of,
)
from fabbbr_analysis.phases import WHOLE_RUN, Phase
from fabbbr_analysis.propagation import rtt_at_first_s, rtts_s


class Served(NamedTuple):
    """What one bottleneck does with a flow's data."""

    rate: RateOverTime
    way: LinkWay


@dataclass(frozen=True, kw_only=True)
class MeasuredCell:
    """A cell with all that its phases are read from."""

    cell: Cell
    tables: CellTables
    arrived: Mapping[int, Arrival | None]
    passed: Mapping[int, Arrival]
    """As ``arrived``, but when it passed the bottleneck, and in order or not; of flows of TCP."""
    transfers: Mapping[int, tuple[float, float]]
    """Flow → its start and its completion time [s], NaN where it did not complete."""
    rate_of: Mapping[tuple[str, bool], RateOverTime]
    """Bottleneck, and whether data crosses it from ``a`` to ``b`` → its rate."""
    ways: Mapping[int, Mapping[str, bool]]
    """Flow → the links that it crosses, as ``fabbbr.ways.crossed`` has them."""
    contests: Mapping[str, str]
    """Group → where it competes."""
    limiting_themselves: frozenset[int]
    """Flows whose rate is what was asked for."""

    @classmethod
    def of(cls, tables: CellTables, cell: Cell) -> MeasuredCell:
        """Read what was measured of ``cell``."""
        flows, ways = tables.flows, Ways(cell.links)
        times = zip(flows["start_s"].astype("float64"), flows["completion_s"].astype("float64"), strict=True)
        return cls(
            cell=cell,
            tables=tables,
            arrived=arrivals(tables.flows, tables.intervals, tables.sockets),
            passed=deliveries(tables.sockets, answer_delays_s(cell)),
            transfers=dict(zip(flows["flow"].astype("int64"), times, strict=True)),
            rate_of={
                (name, forward): RateOverTime.of(cell, name, reverse=not forward)
                for name in cell.bottlenecks
                for forward in (True, False)
            },
            ways={flow.index: ways.between(flow.sender, flow.receiver) for flow in cell.flows},
            contests=contests(cell),
            limiting_themselves=limiting_themselves(cell),
        )

    @property
    def timer_hz(self) -> int:
        """Ticks a second of the kernels, or of that with the fewest."""
        return timer_hz_of(self.tables)

    @cached_property
    def bottlenecks(self) -> Mapping[str, Bottleneck]:
        """Link → its bottleneck, of those that are one."""
        return self.cell.bottlenecks

    def flows_of(self, group: str) -> list[Flow]:
        """The flows of a group, in their order."""
        return [flow for flow in self.cell.flows if flow.group == group]

    def spans(self, flows: Sequence[Flow]) -> list[tuple[float, float]]:
        """From when to when each of them ran [s]; one whose receiver said nothing is left out."""
        found = (self.arrived.get(flow.index) for flow in flows)
        return [each.span for each in found if each is not None]

    def left(self, flows: Sequence[Flow], link: str) -> list[tuple[float, float]]:
        """From when to when what each of them got had left a bottleneck that it crosses [s]."""
        found = ((flow, self.arrived.get(flow.index)) for flow in flows)
        behind = (
            (each.span, behind_s(self.cell, self.ways[flow.index], link)) for flow, each in found if each
        )
        return [(start - delay, end - delay) for (start, end), delay in behind]

    def bottlenecks_of(self, flow: Flow) -> tuple[tuple[str, bool], ...]:
        """Those that it crosses, in order, and whether from ``a`` to ``b``."""
        ways = self.ways[flow.index].items()
        return tuple((name, forward) for name, forward in ways if name in self.bottlenecks)

    def served(self, flow: Flow) -> list[Served]:
        """By the bottlenecks that it crosses, of which none delivers by a trace."""
        return [
            Served(self.rate_of[link, forward], way_of(self.cell, link, reverse=not forward))
            for link, forward in self.bottlenecks_of(flow)
        ]

    def bucket_bytes(self, served: Served, start_s: float, end_s: float) -> int:
        """The most that the token bucket of a bottleneck holds between two instants."""
        return held_bytes(self.cell, served.way, served.rate, start_s, end_s, timer_hz=self.timer_hz)

    def least_rtt_s(self, flow: Flow, start_s: float, end_s: float) -> float:
        """Of propagation between two instants, were each link all the time at its least."""
        links = [link for link in self.cell.links if link.name in self.ways[flow.index]]
        added = (min(rtts_s(self.cell, link, start_s, end_s)) - rtt_at_first_s(link) for link in links)
        return flow.rtt.seconds + sum(added)

    def came(self, phase: Phase, flow: Flow) -> tuple[float, float]:
        """When the bytes come to the receiver that left the bottleneck in the phase [s].

        What was on its way when a step came arrives after it, at the old rate.
        """
        if phase.number == WHOLE_RUN:
            return phase.start_s, phase.end_s
        met = self.bottlenecks_of(flow)
        delay_s = behind_s(self.cell, self.ways[flow.index], met[0][0]) if met else 0.0
        return phase.start_s + (delay_s if phase.start_s > 0 else 0.0), phase.end_s + delay_s

    def got(self, phase: Phase, flow: Flow) -> float:
        """Bytes of a known flow in the phase."""
        arrived = self.arrived[flow.index]
        assert arrived is not None
        return arrived.between(*self.came(phase, flow))

    def seen(self, phase: Phase, flow: Flow) -> tuple[float, tuple[float, float]] | None:
        """Bytes of a known flow between two samples in the phase, and when these were.

        In a phase, as they passed the bottleneck: none waits there for one that was lost. Between samples
        that are too far apart bytes are taken to be even. None when it did not run.
        """
        passed = self.passed.get(flow.index)
        if phase.number != WHOLE_RUN and passed is not None:
            seen = passed.seen_between(phase.start_s, phase.end_s)
            if seen is not None:
                return seen
        arrived = self.arrived[flow.index]
        assert arrived is not None
        start_s, end_s = self.came(phase, flow)
        ran = within([arrived.span], start_s, end_s)
        seen = arrived.seen_between(start_s, end_s)
        return seen if seen is not None or not ran else (arrived.between(start_s, end_s), ran[0])

    def queue(self, flows: Sequence[Flow]) -> pd.DataFrame | None:
        """Samples of the first bottleneck queue of these flows, one from ``a`` to ``b`` first."""
        ways = [self.ways[flow.index] for flow in flows]
        links = [link for link in self.cell.links if link.name in self.bottlenecks]
        there = next((link for link in links if any(way.get(link.name) for way in ways)), None)
        if there is not None:
            return queue_of(self.tables.queues, there)
        back = next((link for link in links if any(link.name in way for way in ways)), None)
        return None if back is None else queue_back_of(self.tables.queues, back)

"""Cell → the whole job: everything that the agent will do, decided beforehand. Pure."""

from __future__ import annotations

from fabbbr.job.cabling import lay_cables
from fabbbr.job.configure import configure_commands, readback_captures, step_commands, window_bytes
from fabbbr.job.congestion import requirements
from fabbbr.job.flows import flow_task, has_threads, reports_bytes
from fabbbr.job.probes import burst, pings
from fabbbr.job.records import Job, StepTask
from fabbbr.model import Cell
from fabbbr.units import NANOSECONDS_PER_SECOND


def job(cell: Cell, *, iperf3_version: str | None = None) -> Job:
    """All that the agent has to do for ``cell``, where this iperf3 runs (None: one without threads)."""
    cabling = lay_cables(cell)
    threads = iperf3_version is not None and has_threads(iperf3_version)
    flows = tuple(flow_task(cell, cabling, flow, threads=threads) for flow in cell.flows)
    hosts = dict.fromkeys(name for flow in cell.flows for name in (flow.sender, flow.receiver))
    return Job(
        nodes=cabling.nodes,
        cables=cabling.cables,
        mtu_bytes=cell.mtu_bytes,
        bottleneck_bps=cell.bottleneck.rate.bps if cell.bottleneck.rate is not None else 0,
        window_bytes=window_bytes(cell),
        reports_bytes=sum(reports_bytes(flow) for flow in cell.flows),
        requires=requirements(cell),
        configure=configure_commands(cell, cabling),
        readback=readback_captures(cell, cabling),
        pings=pings(cell, cabling),
        burst=burst(cell, cabling),
        settle_ns=_settle_ns(cell),
        flows=flows,
        steps=tuple(
            StepTask(at_ns=step.at.ns, commands=commands)
            for step, commands in zip(cell.steps, step_commands(cell, cabling), strict=True)
        ),
        socket_nodes=tuple(hosts),
        queue_nodes=tuple(node.name for node in cabling.nodes if node.kind != "host"),
        sample_period_ns=cell.sample_period.ns,
        end_ns=max(task.deadline_ns for task in flows),
    )


def _settle_ns(cell: Cell) -> int:
    """Silence between probes and flows: long enough for every queue and delay line to be empty."""
    longest = max(flow.rtt.ns for flow in cell.flows)
    return 2 * longest + NANOSECONDS_PER_SECOND // 5

"""Cell × testbed → the whole job, and what must be measured when it is carried out. Pure."""

from __future__ import annotations

from fabbbr.job.batches import batch_tasks
from fabbbr.job.cabling import Cabling, lay_cables
from fabbbr.job.captures import capture_tasks
from fabbbr.job.configure import (
    anew_commands,
    aqm_commands,
    configure_commands,
    expected_host_settings,
    expected_initial_windows,
    expected_offloads,
    expected_pacings,
    expected_queues,
    expected_wires,
    gate_tasks,
    interface_roles,
    readback_captures,
    seeding_commands,
    step_tasks,
)
from fabbbr.job.congestion import controls, module_commands, module_digests, requirements
from fabbbr.job.expected import Expected, Prepared
from fabbbr.job.flows import flow_task, reports_bytes
from fabbbr.job.geography import left_to_emulate
from fabbbr.job.headroom import held_ns, window_bytes
from fabbbr.job.pinging import ping_tasks
from fabbbr.job.probes import burst, burst_back, burst_back_probe, burst_probe, pings, round_trips
from fabbbr.job.qdiscs import delay_tables
from fabbbr.job.records import Cable, Job, placed
from fabbbr.job.superpackets import counting_captures, counting_commands, super_packets
from fabbbr.job.train import train, train_probe
from fabbbr.job.zero import flows_at_ns
from fabbbr.model import Cell
from fabbbr.testbed import Testbed
from fabbbr.units import NANOSECONDS_PER_SECOND


def prepare(cell: Cell, testbed: Testbed) -> Prepared:
    """Decide all of ``cell`` on ``testbed``."""
    emulated = left_to_emulate(cell, testbed)
    cabling = lay_cables(emulated, testbed)
    expected = _expected(emulated, testbed, cabling)
    return Prepared(
        cell=cell,
        testbed=testbed,
        job=_job(emulated, testbed, cabling, expected),
        expected=expected,
        roles=interface_roles(cabling),
    )


def _job(cell: Cell, testbed: Testbed, cabling: Cabling, expected: Expected) -> Job:
    flows = tuple(flow_task(cell, testbed, cabling, flow) for flow in cell.flows if not flow.at_random)
    batches = batch_tasks(cell, cabling)
    hosts = dict.fromkeys(name for flow in cell.flows for name in (flow.sender, flow.receiver))
    probes, settle_ns = pings(cell, cabling), _settle_ns(cell)
    there, back = burst(cell, testbed, cabling), burst_back(cell, testbed, cabling)
    late = train(cell, testbed, cabling)
    bursts = tuple(each for each in (there, back, late) if each is not None)
    zero_ns = flows_at_ns(cell, testbed, bursts, pairs=len(probes), settle_ns=settle_ns)
    return Job(
        nodes=cabling.nodes,
        cables=cabling.cables,
        mtu_bytes=cell.mtu_bytes,
        bottleneck_bps=cell.bottleneck.rate.bps,
        window_bytes=window_bytes(cell),
        reports_bytes=sum(reports_bytes(flow) for flow in cell.flows),
        requires=requirements(cell),
        modules=module_digests(cell),
        configure=(
            *module_commands(cell),
            *configure_commands(cell, testbed, cabling, expected.network_cables),
            *counting_commands(expected.super_packets, cabling),
            *(() if zero_ns is None else seeding_commands(cell, cabling)),
        ),
        aqms=tuple(aqm_commands(cell, cabling)),
        readback=readback_captures(cell, cabling),
        pings=probes,
        burst=there,
        burst_back=back,
        train=late,
        delay_tables=delay_tables(cell),
        settle_ns=settle_ns,
        flows_at_ns=zero_ns,
        anew=() if zero_ns is None else tuple(anew_commands(cell, cabling)),
        flows=flows,
        batches=batches,
        pinging=ping_tasks(cell, cabling),
        steps=tuple(step_tasks(cell, testbed, cabling)),
        gates=tuple(gate_tasks(cabling)),
        captures=capture_tasks(cell, cabling, expected.queues),
        counted=tuple(counting_captures(expected.super_packets)),
        socket_nodes=tuple(hosts),
        queue_nodes=tuple(node.name for node in cabling.nodes if node.kind != "host"),
        sample_period_ns=cell.sample_period.ns,
        end_ns=max(task.deadline_ns for task in (*flows, *batches)),
    )


def _expected(cell: Cell, testbed: Testbed, cabling: Cabling) -> Expected:
    queues = tuple(expected_queues(cell, testbed, cabling))
    network = _network_cables(cabling, testbed)
    return Expected(
        hosts=tuple(expected_host_settings(cell, cabling)),
        offloads=tuple(expected_offloads(cell, cabling, network)),
        queues=queues,
        pacings=tuple(expected_pacings(cell, cabling)),
        initial_windows=tuple(expected_initial_windows(cell, cabling)),
        wires=tuple(expected_wires(cell, cabling)),
        round_trips=tuple(round_trips(cell, cabling)),
        burst=burst_probe(cell, testbed, cabling, queues),
        burst_back=burst_back_probe(cell, testbed, cabling, queues),
        train=train_probe(cell),
        controls=controls(cell),
        network_cables=network,
        super_packets=super_packets(cell, testbed, cabling, queues),
    )


def _network_cables(cabling: Cabling, testbed: Testbed) -> tuple[Cable, ...]:
    """Those whose ends are on different machines."""
    machines = placed(cabling.nodes, cabling.cables, testbed)
    return tuple(cable for cable in cabling.cables if machines[cable.a.node] != machines[cable.b.node])


def _settle_ns(cell: Cell) -> int:
    """Silence between probes and flows: long enough for every queue and delay line to be empty."""
    longest = max(one.rtt.ns for one in cell.traffic)
    return 2 * longest + sum(map(held_ns, cell.links)) + NANOSECONDS_PER_SECOND // 5

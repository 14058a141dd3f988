"""The guest, through the path that ``fabbbr run`` takes: experiment file, plan, execute, run folder."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.load import Load, Sample
from benchmarks.meter import Cost, Meter, in_own_process
from fabbbr.backends.guest import GuestBackend
from fabbbr.errors import CellsFailedError
from fabbbr.execute import execute
from fabbbr.job.cabling import Cabling, lay_cables
from fabbbr.laboratory import Request, open_or_create, planned
from fabbbr.model import Cell
from fabbbr.store import RunFolder, StoredCell
from fabbbr.units import Duration, Rate

SMALLEST = Load(rate=Rate.parse("1 Mbit/s"), rtt=Duration.parse("20 ms"), seconds=1, buffer="10 packets")
"""Hardly a packet: what a cell costs before it carries anything."""


def experiment_text(load: Load, *, slice_: str = "two_site") -> str:
    """The experiment file of ``load``."""
    return f"""\
id: benchmark
title: {load.name}
slice: {slice_}
path: {{rate: {load.rate}, rtt: {load.rtt}, mtu: {load.mtu_bytes}, buffer: {load.buffer}}}
flows: [{{cca: {load.cca}, count: {load.flows}, duration: {load.seconds:g} s}}]
repeat: 1
"""


def run_guests(load: Load, *, guests: int = 1, slice_: str = "two_site") -> list[Sample]:
    """Run ``load`` in this many guests at the same time.

    CPU and wall seconds are those of all together, divided equally.
    """
    return in_own_process(partial(_run, text=experiment_text(load, slice_=slice_), load=load, guests=guests))


def _run(meter: Meter, *, text: str, load: Load, guests: int) -> list[Sample]:
    with tempfile.TemporaryDirectory(prefix="fabbbr-benchmark-") as place:
        file = Path(place) / "benchmark.yaml"
        file.write_text(text, encoding="utf-8")
        request = Request(experiment=str(file), repeat=guests, out=Path(place) / "run")
        plan = planned(request)
        folder = open_or_create(request, plan)
        cost = _execute(folder, plan.cells, meter)
        return [_sample(stored, load, cost, guests) for stored in folder.cells()]


def _execute(folder: RunFolder, cells: Sequence[Cell], meter: Meter) -> Cost:
    backend = GuestBackend()
    meter.start()
    try:
        summary = execute(folder, cells, backend, jobs=len(cells), listen=lambda _: None)
    finally:
        backend.close()
    bad = {**summary.uncertified, **summary.failed}
    if bad:
        raise CellsFailedError("; ".join(f"{cell}: {reason}" for cell, reason in bad.items()))
    return meter.stop()


def _sample(stored: StoredCell, load: Load, cost: Cost, guests: int) -> Sample:
    cell, cabling = stored.manifest.cell, lay_cables(stored.manifest.cell, stored.manifest.provenance.testbed)
    clients = [_read(stored, f"flow-{flow.index}.client.json")["end"] for flow in cell.flows]
    return Sample(
        packets=_bottleneck_packets(stored, cabling),
        cpu_s=cost.cpu_s / guests,
        wall_s=cost.wall_s,
        flow_s=load.seconds,
        goodput_bps=sum(end["sum_received"]["bits_per_second"] for end in clients),
        retransmits=sum(end["sum_sent"]["retransmits"] for end in clients),
        acks=_acks(stored, cabling),
        digest=_digest(stored),
    )


def _bottleneck_packets(stored: StoredCell, cabling: Cabling) -> int:
    queue = next(ends.queue for ends in cabling.ends if ends.link.bottleneck is not None)
    before, after = (
        next(
            qdisc["packets"]
            for qdisc in _read(stored, f"counters.{when}.json")[queue.node]["qdiscs"]
            if qdisc["dev"] == queue.name and qdisc.get("root")
        )
        for when in ("before", "after")
    )
    return int(after - before)


def _acks(stored: StoredCell, cabling: Cabling) -> int:
    """What the receivers' interfaces sent."""
    total = 0
    for receiver in {flow.receiver for flow in stored.manifest.cell.flows}:
        port = cabling.interfaces(receiver)[0].name
        before, after = (
            next(
                link["stats64"]["tx"]["packets"]
                for link in _read(stored, f"counters.{when}.json")[receiver]["links"]
                if link["ifname"] == port
            )
            for when in ("before", "after")
        )
        total += after - before
    return total


def _digest(stored: StoredCell) -> str:
    digest = hashlib.sha256()
    for name, sha256 in sorted(stored.manifest.files.items()):
        if name.startswith(("raw/flow-", "raw/sockets", "raw/queues", "raw/counters")):
            digest.update(f"{name} {sha256}\n".encode())
    return digest.hexdigest()


def _read(stored: StoredCell, name: str) -> Any:  # noqa: ANN401 - what iperf3, ip and tc print
    return json.loads(stored.raw(name).read_text(encoding="utf-8"))

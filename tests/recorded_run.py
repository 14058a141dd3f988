"""A run folder around the real capture ``rivals`` of tests/golden: BBR against two streams of CUBIC."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from places import place

from fabbbr.manifest import CellManifest, Certificate, Provenance, RunManifest
from fabbbr.model import Cell
from fabbbr.store import RunFolder, StoredCell, hashes_of_raw_files
from fabbbr.testbed import Testbed

GOLDEN = Path(__file__).parent / "golden"
RAW_FILES = {
    "flow-0.client.json": "iperf3-rivals-0.client.json",
    "flow-0.server.json": "iperf3-rivals-0.server.json",
    "flow-1.client.json": "iperf3-rivals-1.client.json",
    "flow-1.server.json": "iperf3-rivals-1.server.json",
    "sockets.a.txt": "sockets.rivals.a.txt",
    "sockets.a.times": "sockets.rivals.a.times",
    "sockets.b.txt": "sockets.rivals.b.txt",
    "sockets.b.times": "sockets.rivals.b.times",
    "queues.s1.json": "queues.rivals.json",
    "queues.s1.times": "queues.rivals.times",
}
INTERFACES = {"s1-eth2": {"link": "trunk", "role": "bottleneck"}}


def cell(repetition: int = 1, **changes: object) -> Cell:
    """The cell that the capture stands for."""
    flow = {"sender": "a", "receiver": "b", "start": "0 s", "duration": "4 s", "rtt": "1 ms"}
    return Cell.model_validate(
        {
            "id": f"rivals-r{repetition}",
            "experiment": "rivals",
            "condition": "rivals",
            "axes": {"cca": "bbr1"},
            "repetition": repetition,
            "seed": repetition,
            "hosts": [{"name": "a"}, {"name": "b"}],
            "switches": [{"name": "s1"}],
            "links": [
                {"name": "access", "a": "a", "b": "s1"},
                {"name": "trunk", "a": "s1", "b": "b", "bottleneck": {
                    "rate": "20 Mbit/s", "buffer_bytes": 30_000, "buffer_asked": "30 kB",
                    "bdp_bytes": 2_500,
                }},
            ],
            "flows": [
                {"index": 0, "group": "bbr", "cca": "bbr1", **flow},
                {"index": 1, "group": "cubic", "cca": "cubic", "streams": 2, **flow},
            ],
            "sample_period": "250 ms",
            "warm_up": "1 s",
        }
        | changes
    )  # fmt: skip


def create(
    path: Path, *cells: Cell, name: str = "rivals", backend: str = "replay", clock: str = "real"
) -> RunFolder:
    """Make an empty run folder whose plan is ``cells``."""
    manifest = RunManifest(
        experiment={"id": name},
        source_name=name,
        profile="default",
        seed=1,
        backend=backend,
        clock=clock,
        claims=(),
        cells=cells,
        created="2026-01-01T00:00:00Z",
        fabbbr_version="0",
    )
    return RunFolder.create(path, manifest, f"id: {name}\n")


def record(
    folder: RunFolder,
    cell: Cell,
    *,
    files: dict[str, bytes | None] | None = None,
    interfaces: dict | None = INTERFACES,
    status: str = "certified",
    wall_s: float = 5.0,
    clock: str = "real",
    backend: str = "replay",
    testbed: Testbed | None = None,
) -> StoredCell:
    """Put a cell into the folder: the capture, with ``files`` added, replaced or (None) left out."""
    work = folder.begin(cell.id)
    started = [{"flow": flow.index, "started_s": 0.125 * flow.index} for flow in cell.flows]
    contents = {name: (GOLDEN / source).read_bytes() for name, source in RAW_FILES.items()}
    contents |= {"flows.json": json.dumps(started).encode()} | (files or {})
    for name, content in contents.items():
        if content is not None:
            (work / "raw" / name).write_bytes(content)
    provenance = Provenance(
        fabbbr_version="0",
        testbed=testbed or place(clock, backend=backend),
        options={} if interfaces is None else {"interfaces": interfaces},
    )
    manifest = CellManifest(
        cell=cell,
        status=status,
        certificate=Certificate(checks=()),
        provenance=provenance,
        virtual_s=None,
        wall_s=wall_s,
        files=hashes_of_raw_files(work),
    )
    return folder.commit(cell.id, manifest)


def recorded(path: Path, *cells: Cell) -> RunFolder:
    """Make a run folder that holds all of its cells."""
    folder = create(path, *cells)
    for each in cells:
        record(folder, each)
    return folder


def remove(folder: RunFolder, cell_id: str) -> None:
    """Take a cell out again."""
    shutil.rmtree(folder.path / "cells" / cell_id)

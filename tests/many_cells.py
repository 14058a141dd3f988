"""Run folders of as many cells as asked: the capture ``rivals`` of tests/golden, taken apart and made longer.

A cell has one flow, BBR's or CUBIC's. Repetitions differ in their length, so that rows of one cell are not
those of the next. Cells share their raw files on disk (hard links): four thousand are made in a minute.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import recorded_run
from places import place

from fabbbr.manifest import CellManifest, Certificate, Check, Provenance
from fabbbr.model import Cell
from fabbbr.store import RunFolder, hashes_of_raw_files

EXPERIMENT = "cardwell_f6"
"""Its claims read every trace."""
CCAS = ("bbr1", "cubic")
CAPTURE_S = 5.0
"""What one turn of the capture lasts, pauses included."""
_LENGTHS = 3


def make(path: Path, cells: int, *, turns: int = 12, experiment: str = EXPERIMENT) -> RunFolder:
    """Make a run folder of ``cells`` whole cells, each of ``turns`` to ``turns + 2`` turns of the capture."""
    planned = [_cell(experiment, CCAS[number % 2], 1 + number // 2) for number in range(cells)]
    folder = recorded_run.create(path, *planned, name=experiment)
    for each in planned:
        add(folder, each, turns=turns)
    return folder


def add(folder: RunFolder, cell: Cell, *, turns: int) -> None:
    """Put a cell of the plan into the folder."""
    work = folder.begin(cell.id)
    source = _raw_files(folder.path.parent, cell.flows[0].cca, turns + cell.repetition % _LENGTHS)
    for file in source.iterdir():
        os.link(file, work / "raw" / file.name)
    checks = tuple(
        Check(name=name, passed=True, asked="1", measured=f"1.{cell.repetition:04}")
        for name in ("rtt", "rate", "buffer", "conservation")
    )
    manifest = CellManifest(
        cell=cell,
        status="certified",
        certificate=Certificate(checks=checks),
        provenance=Provenance(
            fabbbr_version="0",
            testbed=place("real", backend="replay"),
            options={"interfaces": recorded_run.INTERFACES},
        ),
        virtual_s=None,
        wall_s=5.0,
        files=hashes_of_raw_files(work),
    )
    folder.commit(cell.id, manifest)


def _cell(experiment: str, cca: str, repetition: int) -> Cell:
    flow = {"sender": "a", "receiver": "b", "start": "0 s", "duration": "4 s", "rtt": "1 ms"}
    streams = 1 if cca == "bbr1" else 2
    return recorded_run.cell(
        repetition,
        id=f"cca={cca},r{repetition}",
        experiment=experiment,
        condition=f"cca={cca}",
        axes={"cca": cca},
        flows=[{"index": 0, "group": cca, "cca": cca, "streams": streams, **flow}],
    )


def _raw_files(place: Path, cca: str, turns: int) -> Path:
    """Write the raw files of such a cell once; return their folder."""
    folder = place / f"raw-{cca}-{turns}"
    if not folder.exists():
        folder.mkdir(parents=True)
        for name, content in _contents(cca, turns).items():
            (folder / name).write_bytes(content)
    return folder


@cache
def _contents(cca: str, turns: int) -> dict[str, bytes]:
    flow = CCAS.index(cca)
    files = {
        f"flow-0.{side}.json": _longer_report(_golden(f"iperf3-rivals-{flow}.{side}.json"), turns)
        for side in ("client", "server")
    }
    for host in ("a", "b"):
        times, lines = _own_sockets(host, flow)
        files[f"sockets.{host}.times"] = _longer_times(times, turns)
        files[f"sockets.{host}.txt"] = lines * turns
    files["queues.s1.times"] = _longer_times(_golden("queues.rivals.times").splitlines(), turns)
    files["queues.s1.json"] = _golden("queues.rivals.json") * turns
    files["flows.json"] = json.dumps([{"flow": 0, "started_s": 0.0}]).encode()
    return files


def _golden(name: str) -> bytes:
    return (recorded_run.GOLDEN / name).read_bytes()


def _own_sockets(host: str, flow: int) -> tuple[list[bytes], bytes]:
    """Keep the sockets of one flow, on the ports that it would have if it were alone."""
    lines = iter(_golden(f"sockets.rivals.{host}.txt").splitlines(keepends=True))
    times: list[bytes] = []
    kept: list[bytes] = []
    for time in _golden(f"sockets.rivals.{host}.times").splitlines():
        at_s, count = time.split()
        own = [_alone(line, flow) for line in (next(lines) for _ in range(int(count))) if _is_of(line, flow)]
        times.append(b"%s %d" % (at_s, len(own)))
        kept += own
    return times, b"".join(kept)


def _is_of(line: bytes, flow: int) -> bool:
    return b":%d " % (5201 + flow) in line


def _alone(line: bytes, flow: int) -> bytes:
    line = line.replace(b":%d " % (5201 + flow), b":5201 ")
    for stream in (0, 1):
        line = line.replace(b":%d " % (32768 + 64 * flow + stream), b":%d " % (32768 + stream))
    return line


def _longer_times(lines: Sequence[bytes], turns: int) -> bytes:
    split = [line.split() for line in lines]
    return b"".join(
        b" ".join([b"%.6f" % (float(at_s) + turn * CAPTURE_S), *rest]) + b"\n"
        for turn in range(turns)
        for at_s, *rest in split
    )


def _longer_report(text: bytes, turns: int) -> bytes:
    report = json.loads(text)
    report["intervals"] = [
        _later(interval, turn * CAPTURE_S) for turn in range(turns) for interval in report["intervals"]
    ]
    return json.dumps(report, indent="\t").encode()


def _later(interval: dict[str, Any], by_s: float) -> dict[str, Any]:
    shifted = [_shifted(stream, by_s) for stream in interval["streams"]]
    return {**interval, "streams": shifted, "sum": _shifted(interval["sum"], by_s)}


def _shifted(record: dict[str, Any], by_s: float) -> dict[str, Any]:
    return record | {name: record[name] + by_s for name in ("start", "end")}

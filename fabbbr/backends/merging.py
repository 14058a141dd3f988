"""The raw files of the parts of a job → those that one machine would have left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabbbr.errors import BackendError
from fabbbr.job.records import Job

CONSOLE = "console.log"
_MERGED = {
    "readback.json",
    "preflight.json",
    "counters.before.json",
    "counters.after.json",
    "flows.json",
    "steps.json",
    CONSOLE,
}
_BURST = ("sent", "refills_from", "payload_bytes", "late", "arrivals", "queues_at_peak")


def merge(job: Job, parts: Mapping[str, Job], folders: Mapping[str, Path], raw: Path) -> None:
    """Make in ``raw`` what there would be if ``job`` had been carried out on one machine.

    ``folders`` says where the raw files of each machine's part are. Raise BackendError, which names the
    machine, for a file that is missing, cannot be read, or is there twice.
    """
    told = _Told(folders)
    _copy_the_rest(folders, raw)
    _write(raw / "readback.json", _ordered(told.joined("readback.json"), (c.name for c in job.readback)))
    _write(raw / "preflight.json", _preflight(job, told.each("preflight.json")))
    for name in ("counters.before.json", "counters.after.json"):
        _write(raw / name, _ordered(told.joined(name), (node.name for node in job.nodes)))
    _write(raw / "flows.json", _flows(told.each("flows.json")))
    steps = _steps(job, parts, told)
    if steps:
        _write(raw / "steps.json", steps)
    write_console(folders, raw)


def write_console(folders: Mapping[str, Path], raw: Path) -> None:
    """What the agents printed, one machine after the other."""
    with (raw / CONSOLE).open("wb") as console:
        for machine, folder in folders.items():
            if (folder / CONSOLE).exists() and (folder / CONSOLE).stat().st_size:
                console.write(f"--- {machine}\n".encode())
                console.write((folder / CONSOLE).read_bytes())


class _Told:
    """What the parts wrote."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders

    def of(self, machine: str, name: str) -> Any:  # noqa: ANN401
        try:
            return json.loads((self._folders[machine] / name).read_bytes())
        except (OSError, ValueError) as error:
            message = f"machine {machine}: raw/{name} cannot be read ({error}); run the cell again"
            raise BackendError(message) from None

    def each(self, name: str) -> list[Any]:
        return [self.of(machine, name) for machine in self._folders]

    def joined(self, name: str) -> dict[str, Any]:
        return {key: value for part in self.each(name) for key, value in part.items()}

    def steps(self, machine: str) -> list[Any]:
        """Those that were carried out; without any there is no file."""
        there = (self._folders[machine] / "steps.json").exists()
        return list(self.of(machine, "steps.json")) if there else []


def _ordered(found: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """In the order of one machine; what is missing is for the certificate to miss."""
    return {name: found[name] for name in names if name in found}


def _preflight(job: Job, told: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    pings = {name: answer for part in told for name, answer in part["pings"].items()}
    merged: dict[str, Any] = {"pings": _ordered(pings, (capture.name for capture in job.pings))}
    for name, probe in (("burst", job.burst), ("burst_back", job.burst_back), ("train", job.train)):
        if probe is not None:
            seen = {key: value for part in told for key, value in part[name].items()}
            merged[name] = _ordered(seen, _BURST)
    return merged


def _flows(told: Iterable[Iterable[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Of two machines, the sender's notes everything but how the receiver ended, and when zero is there."""
    records = [record for part in told for record in part]
    receivers = {record["flow"]: record for record in records if "client_exit" not in record}
    whole = [
        {**record, **_of_receiver(receivers.get(record["flow"]))}
        for record in records
        if "client_exit" in record
    ]
    return sorted(whole, key=lambda record: record["flow"])


def _of_receiver(record: Mapping[str, Any] | None) -> dict[str, Any]:
    if record is None:
        return {}
    return {"server_exit": record["server_exit"], "server_epoch_s": record["epoch_s"]}


def _steps(job: Job, parts: Mapping[str, Job], told: _Told) -> list[dict[str, Any]]:
    """A step on several machines is carried out when all have; the latest says when it was done."""
    done: dict[int, list[Mapping[str, Any]]] = {}
    wanted: dict[int, int] = {}
    for machine, part in parts.items():
        numbers = _in_turn(job, {node.name for node in part.nodes})
        for number in numbers:
            wanted[number] = wanted.get(number, 0) + 1
        for number, record in zip(numbers, told.steps(machine), strict=False):
            done.setdefault(number, []).append(record)
    return [
        _step(done[number])
        for number in sorted(done, key=lambda number: (job.steps[number].at_ns, number))
        if len(done[number]) == wanted[number]
    ]


def _step(told: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    merged = {"at_s": told[0]["at_s"], "done_s": max(record["done_s"] for record in told)}
    for when in ("before", "after"):
        counted = {name: answer for record in told for name, answer in record.get(when, {}).items()}
        merged |= {when: counted} if counted else {}
    return merged


def _in_turn(job: Job, here: set[str]) -> list[int]:
    """The numbers of the steps of one machine, as it carries them out."""
    own = (
        number
        for number, step in enumerate(job.steps)
        if any(command.node in here for command in step.commands)
    )
    return sorted(own, key=lambda number: (job.steps[number].at_ns, number))


def _copy_the_rest(folders: Mapping[str, Path], raw: Path) -> None:
    for machine, path in _others(folders):
        if (raw / path.name).exists():
            message = f"machine {machine}: raw/{path.name} comes from another machine too; run the cell again"
            raise BackendError(message)
        shutil.copy2(path, raw / path.name)


def _others(folders: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    for machine, folder in folders.items():
        for path in sorted(folder.iterdir()):
            if path.name not in _MERGED:
                yield machine, path


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")

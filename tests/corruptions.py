"""Damage to a run folder, of every kind thought of, and what became of it: tests, benchmarks/damage.py."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import recorded_run

from fabbbr.errors import FabbbrError
from fabbbr.inspection import inspect
from fabbbr.store import RunFolder
from fabbbr_analysis.runset import DamagedRunWarning, RunSet
from fabbbr_analysis.tables.index import altered

TABLES = ("cells", "flows", "intervals", "runs", "sockets", "queues")
CELLS = tuple(map(recorded_run.cell, (1, 2, 3)))


def make(path: Path) -> Path:
    """A run of two cells with their tables; a third is planned."""
    folder = recorded_run.create(path, *CELLS)
    for cell in CELLS[:2]:
        recorded_run.record(folder, cell)
    RunSet.open(path)
    return path


def make_on_another_clock(path: Path) -> Path:
    """The same run, in virtual time."""
    folder = recorded_run.create(path, *CELLS, clock="virtual")
    for cell in CELLS[:2]:
        recorded_run.record(folder, cell, clock="virtual")
    return path


def make_other(path: Path) -> Path:
    """A run of the same name, from another seed: where mix-ups come from."""
    cells = [cell.model_copy(update={"seed": 100 + cell.seed}) for cell in CELLS]
    folder = recorded_run.create(path, *cells)
    for cell in cells[:2]:
        recorded_run.record(folder, cell, files={"flows.json": b"[]"})
    RunSet.open(path)
    return path


# What happens to the content of a file

Change = Callable[[bytes, random.Random], bytes]


def _at(text: bytes, rng: random.Random) -> int:
    return rng.randrange(len(text)) if text else 0


def _flip(text: bytes, rng: random.Random) -> bytes:
    at = _at(text, rng)
    return text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1 :] if text else b"x"


def _insert(text: bytes, rng: random.Random) -> bytes:
    at = _at(text, rng)
    return text[:at] + bytes([rng.randrange(256)]) + text[at:]


def _remove(text: bytes, rng: random.Random) -> bytes:
    at = _at(text, rng)
    return text[:at] + text[at + 1 :]


def _zero(text: bytes, rng: random.Random) -> bytes:
    at = _at(text, rng)
    return text[:at] + bytes(len(text[at : at + 64])) + text[at + 64 :]


def _lines(change: Callable[[list[bytes], int, int], list[bytes]]) -> Change:
    def changed(text: bytes, rng: random.Random) -> bytes:
        lines = text.splitlines(keepends=True) or [b""]
        return b"".join(change(lines, rng.randrange(len(lines)), rng.randrange(len(lines))))

    return changed


def _swapped(lines: list[bytes], one: int, two: int) -> list[bytes]:
    lines[one], lines[two] = lines[two], lines[one]
    return lines


def _digit(text: bytes, rng: random.Random) -> bytes:
    """Another digit in a number: by hand, in an editor."""
    numbers = list(re.finditer(rb"\d", text))
    if not numbers:
        return text
    at = rng.choice(numbers).start()
    return text[:at] + str((int(text[at : at + 1]) + rng.randrange(1, 9)) % 10).encode() + text[at + 1 :]


def _leaves(value: object) -> Iterator[tuple[dict | list, object]]:
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(child, (dict, list)):
            yield from _leaves(child)
        else:
            yield value, key


def _json(change: Callable[[dict | list, object, random.Random], None]) -> Change:
    """A valid document with one leaf changed; a file that is no JSON stays as it is."""

    def changed(text: bytes, rng: random.Random) -> bytes:
        try:
            document = json.loads(text)
        except ValueError:
            return text
        leaves = list(_leaves(document))
        if not leaves:
            return text
        change(*rng.choice(leaves), rng)
        return json.dumps(document, indent=1, separators=(",", ":"), ensure_ascii=False).encode()

    return changed


def _other_value(parent: dict | list, key: object, rng: random.Random) -> None:
    value = parent[key]
    if isinstance(value, str):
        parent[key] = re.sub(r"\d+", lambda found: str(2 * int(found[0]) + 1), value)
    elif isinstance(value, (bool, type(None))):
        parent[key] = not value
    else:
        parent[key] = rng.choice([2 * value, value + 1, -value, 0])


def _no_value(parent: dict | list, key: object, _rng: random.Random) -> None:
    del parent[key]


CONTENT: dict[str, Change] = {
    "a bit flipped": _flip,
    "a byte inserted": _insert,
    "a byte removed": _remove,
    "64 bytes zeroed": _zero,
    "cut short": lambda text, rng: text[: _at(text, rng)],
    "emptied": lambda *_: b"",
    "something appended": lambda text, _: text + b"1\n",
    "printed twice": lambda text, _: text + text,
    "a line twice": _lines(lambda lines, one, _: [*lines[: one + 1], lines[one], *lines[one + 1 :]]),
    "a line removed": _lines(lambda lines, one, _: lines[:one] + lines[one + 1 :]),
    "two lines swapped": _lines(_swapped),
    "a digit edited": _digit,
    "a JSON value edited": _json(_other_value),
    "a JSON value removed": _json(_no_value),
}


# What happens to a file as a whole

Act = Callable[[Path, Path, Path, random.Random], None]
"""File, the run folder, another run folder."""


def _instead(make_it: Callable[[Path], object]) -> Act:
    def act(file: Path, *_: object) -> None:
        file.unlink()
        make_it(file)

    return act


def _huge(file: Path) -> None:
    with file.open("wb") as new:
        new.truncate(1 << 40)


def _linked_copy(file: Path, folder: Path, *_: object) -> None:
    kept = folder.parent / f"{folder.name}.kept"
    file.rename(kept)
    file.symlink_to(kept)


def _swap_with_neighbour(file: Path, *more: object) -> None:
    neighbour = more[-1].choice(sorted(each for each in file.parent.iterdir() if each.is_file()))
    one, two = file.read_bytes(), neighbour.read_bytes()
    file.write_bytes(two)
    neighbour.write_bytes(one)


def _swap_with_other_cell(file: Path, folder: Path, *_: object) -> None:
    name = str(file.relative_to(folder))
    there = folder / name.translate(str.maketrans("12", "21"))
    if there != file and there.is_file() and "rivals-r" in name:
        one, two = file.read_bytes(), there.read_bytes()
        file.write_bytes(two)
        there.write_bytes(one)


def _of_another_run(file: Path, folder: Path, other: Path, *_: object) -> None:
    file.write_bytes((other / file.relative_to(folder)).read_bytes())


FILE: dict[str, Act] = {
    "gone": lambda file, *_: file.unlink(),
    "a link to a copy": _linked_copy,
    "a link to /dev/zero": _instead(lambda file: file.symlink_to("/dev/zero")),
    "a link to nothing": _instead(lambda file: file.symlink_to("nothing")),
    "a named pipe": _instead(os.mkfifo),
    "a folder": _instead(lambda file: file.mkdir()),
    "a terabyte": _instead(_huge),
    "swapped with its neighbour": _swap_with_neighbour,
    "swapped with that of the other cell": _swap_with_other_cell,
    "that of another run": _of_another_run,
}


# What happens to the folder


def _copy_cell(name: str) -> Callable[[Path, Path], object]:
    return lambda folder, _: shutil.copytree(folder / "cells/rivals-r1", folder / "cells" / name)


def _swap_cells(folder: Path, _other: Path) -> None:
    one, two = folder / "cells/rivals-r1", folder / "cells/rivals-r2"
    one.rename(folder / "between")
    two.rename(one)
    (folder / "between").rename(two)


def _take_cell(folder: Path, other: Path) -> None:
    shutil.rmtree(folder / "cells/rivals-r1")
    shutil.copytree(other / "cells/rivals-r1", folder / "cells/rivals-r1")


def _drop_planned(folder: Path, _other: Path) -> None:
    run = json.loads((folder / "run.json").read_text())
    run["cells"] = run["cells"][:1]
    (folder / "run.json").write_text(json.dumps(run, indent=1))


def _faster_everywhere(folder: Path, _other: Path) -> None:
    for file in (folder / "run.json", *folder.glob("cells/*/manifest.json")):
        text = file.read_text()
        assert "20 Mbit/s" in text
        file.write_text(text.replace("20 Mbit/s", "40 Mbit/s"))


def _certified(folder: Path, _other: Path) -> None:
    file = folder / "cells/rivals-r1/manifest.json"
    file.write_text(file.read_text().replace('"certified"', '"uncertified"'))


def _tripled(folder: Path, _other: Path) -> None:
    table = pq.read_table(folder / "tables/runs.parquet")
    at = table.schema.get_field_index("goodput_bps")
    tripled = pa.array([3 * value for value in table["goodput_bps"].to_pylist()], pa.float64())
    pq.write_table(table.set_column(at, "goodput_bps", tripled), folder / "tables/runs.parquet")


def _tables_of_another_run(folder: Path, other: Path) -> None:
    shutil.rmtree(folder / "tables")
    shutil.copytree(other / "tables", folder / "tables")


def _linked(name: str) -> Callable[[Path, Path], None]:
    def act(folder: Path, _other: Path) -> None:
        kept = folder.parent / f"{folder.name}.kept"
        (folder / name).rename(kept)
        (folder / name).symlink_to(kept)

    return act


def _one_cell_for_both(folder: Path, _other: Path) -> None:
    shutil.rmtree(folder / "cells/rivals-r2")
    (folder / "cells/rivals-r2").symlink_to("rivals-r1")


FOLDER: dict[str, Callable[[Path, Path], object]] = {
    "a cell under a second name": _copy_cell("rivals-r4"),
    "a cell under a planned name": _copy_cell("rivals-r3"),
    "a cell renamed": lambda folder, _: (folder / "cells/rivals-r1").rename(folder / "cells/rivals-r3"),
    "two cells swapped": _swap_cells,
    "a cell of another run": _take_cell,
    "a cell removed": lambda folder, _: shutil.rmtree(folder / "cells/rivals-r1"),
    "raw files removed": lambda folder, _: shutil.rmtree(folder / "cells/rivals-r1/raw"),
    "one cell linked for both": _one_cell_for_both,
    "planned cells dropped": _drop_planned,
    "another rate everywhere": _faster_everywhere,
    "a status edited": _certified,
    "goodput tripled in runs.parquet": _tripled,
    "tables of another run": _tables_of_another_run,
    "more socket samples": lambda folder, _: (folder / "cells/rivals-r1/raw/sockets.c.txt").write_bytes(b""),
    "a raw file more": lambda folder, _: (folder / "cells/rivals-r1/raw/\x1b[31mred\udcff").touch(),
    "a file in cells": lambda folder, _: (folder / "cells/notes.txt").touch(),
    "a file beside a manifest": lambda folder, _: (folder / "cells/rivals-r1/notes.txt").touch(),
    "a link for cells": _linked("cells"),
    "a link for a cell": _linked("cells/rivals-r1"),
    "a link for raw": _linked("cells/rivals-r1/raw"),
    "a link for tables": _linked("tables"),
    "no tables": lambda folder, _: shutil.rmtree(folder / "tables"),
}


# What became of it


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What verify and an analysis said; ``missed`` is what must never be."""

    named: bool
    """By verify, as damage or as a cell that is not there."""
    warned: bool
    """By the analysis, or it refused."""
    equal: bool
    """The tables are those of the untouched run."""
    rest_equal: bool
    """The rows of the cells that are left are those of the untouched run."""

    @property
    def missed(self) -> bool:
        return not (self.equal or (self.named and self.warned and self.rest_equal))


def outcome(folder: Path, untouched: dict[str, pd.DataFrame]) -> Outcome:
    """Verify and analyse a folder; an exception that is not fabbbr's own is not caught."""
    named = _is_named(folder)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", DamagedRunWarning)
            run_set = RunSet.open(folder)
            found = tables(run_set)
    except FabbbrError:
        return Outcome(named=named, warned=True, equal=False, rest_equal=True)
    left = set(found["runs"]["cell_id"])
    rest = {name: _of(frame, left) for name, frame in untouched.items()}
    return Outcome(
        named=named,
        warned=bool(said) or "rivals-r1" in run_set.found.not_run,
        equal=_same(found, untouched),
        rest_equal=_same(found, rest),
    )


def _is_named(folder: Path) -> bool:
    try:
        found = inspect(RunFolder.open(folder), raw_files=True)
    except FabbbrError:
        return True
    wrong = (*found.problems, *altered(folder / "tables"), *set(found.not_run) - {"rivals-r3"})
    assert "".join(found.problems).isprintable()
    return bool(wrong)


def tables(run_set: RunSet) -> dict[str, pd.DataFrame]:
    return {
        name: getattr(run_set, name)() if name in ("sockets", "queues") else getattr(run_set, name)
        for name in TABLES
    }


def _of(frame: pd.DataFrame, cells: set[str]) -> pd.DataFrame:
    return frame[frame["cell_id"].isin(cells)].reset_index(drop=True)


def _same(found: dict[str, pd.DataFrame], wanted: dict[str, pd.DataFrame]) -> bool:
    if wanted["runs"].empty:  # then there is no run to say which metrics there are
        return all(found[name].empty for name in TABLES)
    return all(found[name].equals(wanted[name]) for name in TABLES)


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def corrupt(folder: Path, other: Path, name: str, kind: str, rng: random.Random) -> None:
    """Do ``kind`` to the file ``name``, or to the whole folder."""
    if kind in FOLDER:
        FOLDER[kind](folder, other)
    elif kind in FILE:
        FILE[kind](folder / name, folder, other, rng)
    else:
        (folder / name).write_bytes(CONTENT[kind]((folder / name).read_bytes(), rng))

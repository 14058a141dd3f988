"""A certificate needs every piece of evidence: whatever a tool leaves out or prints otherwise, a cell is never certified by it.

The evidence is that of a real cell, in ``tests/golden/cell``.
"""

import copy
import json
import re
import shutil
from pathlib import Path

import pytest
from golden_cell import CELL, RAW
from recorded_run import create

from fabbbr.backends.base import Identity, Report
from fabbbr.certify import certify
from fabbbr.errors import BackendError
from fabbbr.evidence import Evidence
from fabbbr.execute import execute

NO_EVIDENCE = {
    "console.log": "words for whoever looks for a cause",
    "queues.s1.json": "samples for the tables, whose reader says what is wrong with them",
    "queues.s1.times": "as above",
    "queues.w1.json": "as above",
    "queues.w1.times": "as above",
    "sockets.h1.times": "as above",
    "sockets.h2.times": "as above",
}
"""Raw files that no check reads, each with the reason."""

WHOLE = {
    "gone": None,
    "empty": b"",
    "a list": b"[]",
    "an object": b"{}",
    "a number": b"5",
    "words": b"Segmentation fault\n",
    "not UTF-8": b"\xff\xfe\x00",
    "too deep": b"[" * 100_000,
}
FILES = sorted(path.name for path in RAW.iterdir() if path.name not in NO_EVIDENCE)


def outcome(raw):
    """``certified``, ``uncertified`` or ``failed``: nothing else may come of any evidence."""
    try:
        certificate = certify(CELL, Evidence.read(raw), real_clock=False, lossy_cells=1)
    except BackendError as error:
        return "failed"
    return "certified" if certificate.passed else "uncertified"


@pytest.fixture
def raw(tmp_path):
    return Path(shutil.copytree(RAW, tmp_path / "raw"))


def test_the_evidence_as_it_was_recorded_is_certified(raw):
    assert outcome(raw) == "certified"


@pytest.mark.parametrize("how", WHOLE)
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_what_its_tool_prints_certifies_nothing(raw, name, how):
    (raw / name).unlink() if WHOLE[how] is None else (raw / name).write_bytes(WHOLE[how])
    assert outcome(raw) in ("failed", "uncertified")


@pytest.mark.parametrize("name", NO_EVIDENCE)
def test_a_file_that_is_named_as_no_evidence_is_none(raw, name):
    (raw / name).unlink()
    assert outcome(raw) == "certified"


# Keys


DELETED = object()
INSTEAD = (DELETED, [], "x")
LONGEST_LIST = 3
"""Of a longer one, the arrivals of the burst, only this many elements are tried."""


def places(value, path=()):
    """Path of every key and of every element of a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value[: LONGEST_LIST if len(value) > 20 else None]):
            yield (*path, number)
            yield from places(inner, (*path, number))


def put(document, path, new):
    """A copy of ``document`` with something else at ``path``."""
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if new is DELETED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return changed


# In a run


class Replay:
    """Leaves the golden files as every cell's, but for one that it spoils."""

    def __init__(self, spoil):
        self.spoil = spoil

    def identity(self):
        return Identity(
            name="guest", clock="virtual", kernel_release="0", kernel_config_sha256=None,
            kernel_sha256=None, timer_hz=1000, tools={},
        )  # fmt: skip

    def execute(self, task):
        shutil.copytree(RAW, task.work / "raw", dirs_exist_ok=True)
        if task.seed == CELL.seed:
            self.spoil(task.work / "raw")
        return Report(wall_s=0.1, clock_s=2.0)

    def close(self):
        pass


def without_counters(raw):
    """``ip -s -j link`` of an old iproute2."""
    file = raw / "counters.after.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"stats64"', '"stats"'), encoding="utf-8")


def crashed(raw):
    """Every client of iperf3 crashed."""
    records = json.loads((raw / "flows.json").read_text(encoding="utf-8"))
    (raw / "flows.json").write_text(
        json.dumps([one | {"client_exit": -11} for one in records]), encoding="utf-8"
    )


SPOILT = [
    (without_counters, "raw/counters.after.json, from ip -s -j link: .*stats64: Field required"),
    (
        lambda raw: (raw / "sockets.h1.txt").write_bytes(b"\xff"),
        "raw/sockets.h1.txt, from ss: not UTF-8 at byte 0",
    ),
    (lambda raw: (raw / "preflight.json").write_bytes(b"[]"), "raw/preflight.json, from the agent: "),
    (crashed, "the client of flow 0 was ended by signal 11"),
]


@pytest.mark.parametrize(("spoil", "reason"), SPOILT)
def test_a_cell_whose_evidence_cannot_be_read_is_put_aside_and_the_others_go_on(tmp_path, spoil, reason):
    other = CELL.model_copy(update={"id": "r2", "repetition": 2, "seed": CELL.seed + 1})
    folder = create(tmp_path / "run", CELL, other)
    summary = execute(folder, (CELL, other), Replay(spoil), jobs=1, listen=lambda _: None)
    assert summary.certified == ["r2"]
    assert re.search(reason, summary.failed["r1"])
    aside = folder.path / "failed" / "r1"
    assert (aside / "reason.txt").read_text(encoding="utf-8") == summary.failed["r1"] + "\n"
    assert (aside / "raw" / "readback.json").exists()
    assert not folder.has("r1")
